#!/usr/bin/python3
"""The memory budget holds, too little memory is refused in words, bad samples are listed exactly (R9).

    tests/memory_test.py FORELOAD [unittest arguments]
"""
import json
import os
import re
import resource

import ledger
import program
from program import ProgramTest, amount, memory_cgroup, seeded

MIB = 1 << 20
MARGIN = 64 * MIB  # what may come on top of the budget, beside the index


class BudgetTest(ProgramTest):
    def index_bytes(self, folder):
        return sum(path.stat().st_size for path in folder.glob(".foreload-index-*"))

    def check(self, folder, budget, *arguments):
        report = self.report("run", folder, "--memory", budget, "--epochs", 2, *arguments)
        self.assertEqual(report["memory_budget_bytes"], budget)
        self.assertLessEqual(report["peak_rss_bytes"], budget + MARGIN + self.index_bytes(folder), arguments)
        self.assertLessEqual(report["cache"]["used_bytes"], budget)
        return report

    def test_resident_memory_of_images(self):
        folder = self.images(count=60)
        for budget in (24 * MIB, 48 * MIB, 256 * MIB):
            threads = 8 if budget > 40 * MIB else 1
            for extra in ([], ["--direct"], ["--no-cache"], ["--workers", threads]):
                self.check(folder, budget, "--batch", 4, *extra)

    def test_resident_memory_of_a_dataset_larger_than_the_budget(self):
        folder = self.ledger("set", 96, size=MIB)
        for budget in (16 * MIB, 32 * MIB, 64 * MIB):
            for extra in ([], ["--direct"]):
                report = self.check(folder, budget, "--batch", 2, "--chain", ledger.chain(MIB), *extra)
                # Later epochs read what the cache does not hold, and nothing twice; a sample or two may still be in hand.
                read, whole = report["epochs"][1]["bytes"]["source"], report["dataset"]["bytes"]
                self.assertGreater(report["cache"]["used_bytes"], budget // 8)
                missing = whole - report["cache"]["used_bytes"]
                self.assertLessEqual(read, missing + whole // 100)
                self.assertGreaterEqual(read, missing - 2 * MIB)

    def test_a_sample_larger_than_the_budget_is_an_error_with_both_numbers(self):
        folder = self.top / "set"
        folder.mkdir()
        for number in range(4):
            (folder / f"{number}.bin").write_bytes(bytes(30 * MIB if number == 2 else MIB))
        base = ["run", folder, "--batch", 1, "--chain", ledger.chain(MIB), "--memory", "16MiB", "--workers", 1]
        done = self.foreload(*base)
        self.assert_fails(done, "2.bin", "30 MiB", codes=(1,))
        self.assertEqual(len(re.findall(r"[\d.]+ MiB", done.err)), 2, done.err)
        # Replacing it would make the batches depend on the budget: that is only done for what is bad everywhere.
        again = self.foreload(*base, "--on-error", "replace", "--json")
        self.assert_fails(again, "2.bin", "30 MiB", codes=(1,))
        self.assertEqual(json.loads(again.out)["error"]["code"], "NoMemory")


class LimitTest(ProgramTest):
    """R9: a limit of the machine that is lower than the budget."""

    def hashes(self, *arguments):
        return [epoch["content_hash"] for epoch in self.report(*arguments, "--hash")["epochs"]]

    def test_address_space(self):
        chance = seeded("address_space")
        base = ["run", self.images(count=24), "--batch", 4, "--epochs", 2]
        hashes = self.hashes(*base)
        for _ in range(max(10, amount(100))):
            limit = chance.randrange(40, 400) * MIB
            settings = ["--memory", "256MB", "--workers", chance.choice((1, 2, 8)), "--on-error", "replace"]
            settings += chance.choice(([], ["--io", "threads"], ["--direct"]))
            with self.subTest(limit=limit, settings=settings):
                done = self.foreload(*base, *settings, "--hash", "--json",
                                     preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
                self.assert_degrades_or_refuses(done, hashes)

    def test_the_default_budget_respects_the_address_space(self):
        limit = 512 * MIB
        report = self.report("run", self.images(count=24), "--batch", 4,
                             preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
        self.assertLess(report["memory_budget_bytes"], limit)

    def test_few_threads_are_allowed(self):
        if os.geteuid() != 0:
            self.skipTest("needs to be root, to become a user without other processes")
        folder = self.ledger("set", 40)
        base = ["run", folder, "--batch", 4, "--chain", ledger.chain()]
        hashes = self.hashes(*base)
        user = 100_000 + os.getpid()  # of no other process, so that only these threads count
        for number in range(1, 8):
            with self.subTest(processes=number):
                done = self.foreload_as(user, *base, "--workers", 4, "--hash", "--json",
                                        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NPROC, (number, number)))
                self.assert_degrades_or_refuses(done, hashes)

    def test_open_files(self):
        folder = self.ledger("set", 60)
        base = ["run", folder, "--batch", 4, "--chain", ledger.chain(), "--no-cache"]
        hashes = self.hashes(*base)
        for number in range(8, 28, 2):
            for engine in ([], ["--io", "threads"]):
                with self.subTest(files=number, engine=engine):
                    limit = (resource.RLIMIT_NOFILE, (number, number))
                    done = self.foreload(*base, *engine, "--hash", "--json",
                                         preexec_fn=lambda: resource.setrlimit(*limit))
                    self.assertIn(done.returncode, (0, 1), done.err)
                    if done.returncode == 0:
                        self.assertEqual([epoch["content_hash"] for epoch in json.loads(done.out)["epochs"]], hashes)
                    else:
                        self.assert_fails(done, "Too many open files")

    def test_cgroup(self):
        with memory_cgroup(96 * MIB) as group:
            if group is None:
                self.skipTest("no memory cgroup can be made here")
            folder = self.ledger("set", 160, size=MIB)
            base = ["run", folder, "--batch", 2, "--epochs", 2, "--chain", ledger.chain(MIB), "--seed", 1]
            hashes = self.hashes(*base)
            for settings in ([], ["--memory", "256MB"], ["--memory", "1GiB"], ["--memory", "256MB", "--direct"],
                             ["--memory", "256MB", "--io", "threads", "--workers", 8]):
                with self.subTest(settings=settings):
                    done = self.foreload(*base, *settings, "--hash", "--json",
                                         preexec_fn=lambda: (group / "cgroup.procs").write_text(str(os.getpid())))
                    self.assert_degrades_or_refuses(done, hashes)


class QuarantineTest(ProgramTest):
    """Bad samples: which ones are replaced, where, and by what."""

    def spoil(self, folder, chance, count):
        """Makes some images undecodable, each in another way. Returns their keys."""
        paths = chance.sample(sorted(folder.rglob("*.jpg")), count)
        for number, path in enumerate(paths):
            data = path.read_bytes()
            path.write_bytes((b"", b"not an image", data[:2], bytes(len(data)), data[:40])[number % 5])
        return {str(path.relative_to(folder)) for path in paths}

    def test_the_list_is_exact_and_alike_for_all_threads_and_ranks(self):
        chance = seeded("quarantine")
        for turn in range(amount(50)):
            folder = self.images(f"images{turn}", count=40)
            bad = self.spoil(folder, chance, chance.randrange(1, 8))
            keys = sorted(str(path.relative_to(folder)) for path in folder.rglob("*.jpg"))
            base = [folder, "--global-batch", 8, "--last", "ragged", "--epochs", 2, "--on-error", "replace",
                    "--chain", "resize(24), center_crop(24)"]
            lines, report = self.logged(*base)
            self.judge(lines, report, keys, bad)
            listed = self.listed(report)
            with self.subTest(bad=bad):
                again, report = self.logged(*base, "--workers", chance.choice((1, 3, 8)), "--no-cache")
                self.assertEqual((again, self.listed(report)), (lines, listed))
                ranks = [self.logged(*base, "--world", 3, "--rank", rank) for rank in range(3)]
                self.assertEqual(ledger.steps(line for part, _ in ranks for line in part), ledger.steps(lines))
                self.assertEqual(sorted(sum((self.listed(part) for _, part in ranks), [])), listed)

    def listed(self, report):
        return sorted((entry["epoch"], entry["position"], entry["id"], entry["key"]) for entry in report["quarantine"])

    def judge(self, lines, report, keys, bad):
        """Every bad sample is listed once for its own place and never delivered; every entry names a bad sample."""
        bad_ids = {keys.index(key) for key in bad}
        self.assertEqual({entry["key"] for entry in report["quarantine"]}, bad)
        for entry in report["quarantine"]:
            self.assertEqual(keys[entry["id"]], entry["key"])
            self.assertTrue(entry["reason"])
        ids, _ = ledger.positions_of(lines)
        for epoch in (0, 1):
            delivered = [ids[epoch, position] for position in range(len(keys))]
            self.assertTrue(bad_ids.isdisjoint(delivered))
            self.assertLessEqual(set(range(len(keys))) - bad_ids, set(delivered), "good samples are all delivered")
            places = {entry["position"] for entry in report["quarantine"] if entry["epoch"] == epoch}
            self.assertEqual(len(places), len(bad), "one place per bad sample")
            entries = sum(entry["epoch"] == epoch for entry in report["quarantine"])
            self.assertEqual(report["epochs"][epoch]["replaced"], entries)

    def test_fail_names_the_first_bad_sample_after_the_batches_before_it(self):
        folder = self.ledger("set", 40)
        whole, _ = self.logged(folder, "--batch", 4, "--chain", ledger.chain())
        bad = whole[5]["ids"][2]
        os.truncate(folder / ledger.name(bad, 40), 0)
        log = self.top / "log"
        for path in folder.glob(".foreload*"):
            path.unlink()
        done = self.foreload("run", folder, "--batch", 4, "--chain", ledger.chain(), "--hash", "--log", log)
        self.assert_fails(done, ledger.name(bad, 40), "empty", codes=(1,))
        self.assertEqual(program.log_lines(log), whole[:5])

    def test_nothing_but_bad_samples_ends_with_an_error(self):
        folder = self.ledger("set", 12)
        for path in folder.rglob("*.bin"):
            os.truncate(path, 0)
        for policy in ("fail", "replace"):
            done = self.foreload("run", folder, "--batch", 4, "--chain", ledger.chain(), "--on-error", policy)
            self.assert_fails(done, "empty", codes=(1,))


if __name__ == "__main__":
    program.main()
