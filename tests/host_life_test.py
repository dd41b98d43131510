#!/usr/bin/python3
"""How hosts begin and end, and how they last: kills of all, signals, hours (R5, R18, R19).

    tests/host_life_test.py FORELOAD [unittest arguments]
"""
import os
import pathlib
import signal
import subprocess
import time

import ledger
import program
from program import HostProgramTest, amount, seeded, stop_code, wait_until

LIMIT = 5  # seconds that a signal may take
MIB = 1 << 20


class HostLifeTest(HostProgramTest):
    def setUp(self):
        super().setUp()
        self.folder = self.ledger("set", 120)

    def run_of(self, *arguments):
        return ["run", self.folder, "--batch", 8, "--chain", ledger.chain(), *arguments]

    def in_host(self, *arguments):
        return self.run_of("--host", self.host, "--memory", "128MiB", *arguments)

    def agent(self):
        agent = self.start("agent", "--host", self.host, "--memory", "128MiB", "--workers", 1)
        self.assertIn(self.host, agent.stdout.readline())
        return agent

    def learner_of(self, *arguments):
        return self.learner(*self.run_of("--memory", "128MiB", *arguments)[1:])

    def members(self):
        return self.report("agent", "--host", self.host, "--status")["members"]


class KillAllTest(HostLifeTest):
    def left(self):
        places = [pathlib.Path("/dev/shm"), self.top]
        return sorted(str(path) for place in places if place.is_dir() for path in place.iterdir())

    def test_after_all_were_killed_the_next_start_finds_nothing(self):
        """R5."""
        chance = seeded("kill_all")
        expected = self.report(*self.run_of("--epochs", 2, "--hash"))["epochs"]
        before = self.left()
        for turn in range(amount(100)):
            processes = [self.start(*self.in_host("--epochs", 10**7, "--seed", seed)) for seed in range(2)]
            processes.append(self.start("agent", "--host", self.host, "--memory", "128MiB", "--workers", 1))
            time.sleep(chance.random() * 0.3)
            for process in processes:
                process.kill()
            for process in processes:
                process.communicate()
                self.assertTrue(program.is_group_empty(process.pid), "something is left running")
            began = time.monotonic()
            done = self.report(*self.in_host("--epochs", 2, "--hash"))["epochs"]
            self.assertLess(time.monotonic() - began, 3 if program.SOAK else 15, f"turn {turn}")
            self.assertEqual([epoch["content_hash"] for epoch in done], [epoch["content_hash"] for epoch in expected])
            self.assertGreater(done[0]["bytes"]["source"], 0, "the cache of the dead was found")
            self.assertEqual(self.left(), before)


class SignalTest(HostLifeTest):
    """R18."""

    def stop(self, process, number, codes):
        sent = time.monotonic()
        process.send_signal(number)
        try:
            _, errors = process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            self.fail(f"{number.name} is not obeyed within {LIMIT} s: {process.args[1:]}")
        self.assertLess(time.monotonic() - sent, LIMIT)
        self.assertIn(process.returncode, codes, errors)
        self.assertNotIn("defect", errors)
        self.assertTrue(program.is_group_empty(process.pid), "something is left running")

    def test_whoever_is_stopped_by_a_signal_the_others_go_on(self):
        chance = seeded("host_signals")
        stays = self.learner_of("--seed", 1)
        for turn in range(amount(50)):
            for number in (signal.SIGINT, signal.SIGTERM):
                for arguments in (["agent", "--host", self.host], self.in_host("--epochs", 10**7, "--seed", 2),
                                  self.in_host("--storage", "1B/s,1min", "--no-cache"), ["top", "--host", self.host]):
                    wait = chance.random() * 0.2 if turn % 3 else 0
                    with self.subTest(number=number.name, wait=wait, arguments=arguments):
                        process = self.start(*arguments)
                        time.sleep(wait)
                        # In the first milliseconds the signal itself ends it; `top` without a terminal is soon done.
                        self.stop(process, number, (stop_code(number), -number, *([0] if arguments[0] == "top" else [])))
            self.assertIsNone(stays.poll())
        self.assert_goes_on(stays)
        self.assertTrue(wait_until(lambda: len(self.members()) == 1, 5), "the host still counts who is gone")

    def test_while_the_only_other_member_stands_still(self):
        stopped = self.learner_of("--seed", 1)
        stopped.send_signal(signal.SIGSTOP)
        for arguments in (["agent", "--host", self.host], self.in_host("--seed", 2)):
            for number in (signal.SIGINT, signal.SIGTERM):
                with self.subTest(number=number.name, arguments=arguments):
                    process = self.start(*arguments)
                    time.sleep(0.3)
                    self.stop(process, number, (stop_code(number),))
        for arguments in (self.in_host("--seed", 2), ["top", "--host", self.host],
                          ["agent", "--host", self.host, "--status"]):
            with self.subTest(arguments=arguments):
                self.assert_fails(self.foreload(*arguments), stopped.pid, "SIGCONT", codes=(1,))
        stopped.send_signal(signal.SIGCONT)
        self.assert_goes_on(stopped)


def footprint(process):
    """Resident bytes, descriptors and threads."""
    folder = pathlib.Path(f"/proc/{process.pid}")
    status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
    return int(status["VmRSS"].split()[0]) << 10, len(os.listdir(folder / "fd")), int(status["Threads"])


class SoakTest(HostLifeTest):
    def test_members_stay_as_they_are(self):
        """R19: members in different states; others come and go all the time, in the second half by kill -9."""
        chance = seeded("host_soak")
        seconds = 600 if program.SOAK else 12
        expected = [epoch["content_hash"] for epoch in self.report(*self.run_of("--epochs", 2, "--hash"))["epochs"]]
        lasting = {"agent": self.agent(), "fast": self.learner_of("--seed", 1),
                   "slow": self.learner_of("--seed", 2, "--accelerator", 400),
                   "uncached": self.learner_of("--seed", 3, "--no-cache")}
        began, had, visitors = time.monotonic(), None, 0
        while time.monotonic() < began + seconds:
            late = time.monotonic() > began + seconds / 2
            if had is None and time.monotonic() > began + seconds / 6:
                had = {name: self.at_rest(process) for name, process in lasting.items()}
            victim = self.start(*self.in_host("--epochs", 10**7, "--seed", chance.randrange(4)))
            time.sleep(chance.random() * 0.2)
            victim.send_signal(signal.SIGKILL if late else signal.SIGTERM)
            victim.communicate(timeout=LIMIT)
            done = self.report(*self.in_host("--epochs", 2, "--hash"))
            self.assertEqual([epoch["content_hash"] for epoch in done["epochs"]], expected)
            visitors += 1
        self.assertGreater(visitors, 2)
        for name, process in lasting.items():
            self.assertIsNone(process.poll(), name)
            resident, descriptors, threads = self.at_rest(process)
            self.assertLessEqual(resident, had[name][0] + 8 * MIB, name)
            self.assertEqual((descriptors, threads), had[name][1:], name)
        self.assertEqual(len(self.members()), len(lasting))

    def at_rest(self, process):
        """When it has let go of the streams of those who are gone: they may be among its descriptors for a moment."""
        found = []
        for _ in range(20):
            time.sleep(0.1)
            found.append(footprint(process))
        return tuple(min(values) for values in zip(*found))


if __name__ == "__main__":
    program.main()
