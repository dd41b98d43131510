#!/usr/bin/python3
"""Hosts on machines with little memory: no member is ever ended by a signal, and the others go on (R9).

    tests/host_limits_test.py FORELOAD [unittest arguments]
"""
import os
import resource
import subprocess

import ledger
import program
from program import HostProgramTest, amount, memory_cgroup, seeded

MIB = 1 << 20


class HostLimitTest(HostProgramTest):
    def hashes(self, *arguments):
        return [epoch["content_hash"] for epoch in self.report(*arguments, "--hash")["epochs"]]

    def members(self, base, settings, seeds, preexec_fn):
        """Runs of one host at the same time, by seed; each as far as it came."""
        started = {seed: self.start(*base, "--seed", seed, *settings, "--host", self.host, "--hash", "--json",
                                    preexec_fn=preexec_fn) for seed in seeds}
        for process in started.values():
            try:
                process.out, process.err = process.communicate(timeout=program.DEADLINE)
            except subprocess.TimeoutExpired:
                self.fail(f"does not end: {process.args}")
        return started

    def test_cgroup(self):
        """All members in one group, with less than the budget."""
        with memory_cgroup(64 * MIB) as group:
            if group is None:
                self.skipTest("no memory cgroup can be made here")
        folder = self.ledger("set", 160, size=MIB)
        base = ["run", folder, "--batch", 2, "--epochs", 2, "--chain", ledger.chain(MIB), "--workers", 2]
        expected = {seed: self.hashes(*base, "--seed", seed) for seed in range(3)}
        worked = 0
        for limit in (64, 160, 256, 320, 400):
            with self.subTest(limit=limit), memory_cgroup(limit * MIB) as group:
                join = lambda: (group / "cgroup.procs").write_text(str(os.getpid()))
                for budget in ("256MiB", "1GiB"):
                    done = self.members(base, ["--memory", budget], range(3), join)
                    for seed, process in done.items():
                        self.assert_degrades_or_refuses(process, expected[seed])
                        warnings = [line for line in process.err.splitlines() if "the cache of host" in line]
                        self.assertLessEqual(len(warnings), 1, process.err)
                        worked += process.returncode == 0
        self.assertGreater(worked, 0, "a limit at which all is refused shows nothing")

    def test_growth_that_is_refused_is_one_warning_and_the_run_goes_on(self):
        folder = self.ledger("set", 160, size=MIB)
        base = ["run", folder, "--batch", 2, "--epochs", 2, "--chain", ledger.chain(MIB), "--workers", 2]
        expected = self.hashes(*base, "--seed", 1)
        limit = 700 * MIB  # of addresses: enough to map all homes, and too little to fill them
        for _ in range(amount(100)):
            done = self.members(base, ["--memory", "512MiB"], [1],
                                lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))[1]
            self.assertEqual(done.returncode, 0, done.err)
            self.assert_degrades_or_refuses(done, expected)
            warnings = [line for line in done.err.splitlines() if "the cache of host" in line]
            self.assertEqual(len(warnings), 1, done.err)
            self.assertIn(self.host, warnings[0])
            self.assertRegex(warnings[0], r"160 MiB .* [\d.]+ MiB are available")

    def test_the_longest_sample_has_room_whatever_the_usual_share_is(self):
        folder = self.ledger("set", 20, size=MIB)
        for budget in (40, 48, 56, 64, 72, 80):
            done = self.foreload("run", folder, "--batch", 2, "--chain", ledger.chain(MIB), "--workers", 1, "--memory",
                                 f"{budget}MiB", "--host", self.host)
            self.assertEqual(done.returncode, 0, done.err)

    def beside(self, what, limits):
        """A member with limits of its own beside one without: that one goes on, whatever becomes of the other."""
        folder = self.ledger("set", 200)
        base = [folder, "--batch", 4, "--chain", ledger.chain(), "--memory", "128MiB"]
        expected = self.hashes("run", *base, "--epochs", 2)
        long = self.learner(*base, "--seed", 9)
        for limit, threads in limits:
            with self.subTest(limit=limit, threads=threads):
                done = self.foreload("run", *base, "--epochs", 2, "--workers", threads, "--host", self.host, "--hash",
                                     "--json", preexec_fn=lambda: resource.setrlimit(what, (limit, limit)))
                yield done, expected
                self.assertIsNone(long.poll(), "the other one has ended")
        self.assert_goes_on(long)

    def test_address_space(self):
        chance = seeded("host_address_space")
        limits = [(chance.randrange(20, 600) * MIB, chance.choice((1, 2, 8))) for _ in range(max(10, amount(100)))]
        for done, expected in self.beside(resource.RLIMIT_AS, limits):
            self.assert_degrades_or_refuses(done, expected)

    def test_size_of_files(self):
        """A memory file counts as one; the kernel's answer would be a signal."""
        for done, expected in self.beside(resource.RLIMIT_FSIZE, [(size, 2) for size in (4096, MIB, 8 * MIB, 64 * MIB)]):
            self.assert_degrades_or_refuses(done, expected)

    def test_open_files(self):
        for done, expected in self.beside(resource.RLIMIT_NOFILE, [(number, 2) for number in range(6, 48, 3)]):
            self.assertIn(done.returncode, (0, 1), done.err)
            if done.returncode == 0:
                self.assert_degrades_or_refuses(done, expected)
            else:
                self.assert_fails(done, "Too many open files")


if __name__ == "__main__":
    program.main()
