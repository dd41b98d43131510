#!/usr/bin/python3
"""The disk cache of whole programs: kill -9 at any moment of filling it, damage, limits, refusals (R7).

    tests/disk_test.py FORELOAD [unittest arguments]
"""
import json
import os
import resource
import shutil
import signal
import stat
import subprocess
import time

import ledger
import program
from program import RefusalTest, seeded

SIZE = 3000
SAMPLES = 400


class DiskTest(RefusalTest):
    def setUp(self):
        super().setUp()
        self.folder = self.ledger("set", SAMPLES, size=SIZE)
        self.disk = self.top / "disk"
        self.base = [self.folder, "--batch", 16, "--chain", ledger.chain(SIZE), "--no-cache"]

    def cache(self, name):
        return next(self.disk.iterdir()) / name

    def epoch(self, *arguments):
        return self.report("run", *self.base, "--hash", *arguments)["epochs"][0]

    def test_a_second_run_reads_nothing_from_the_source(self):
        plain = self.epoch()
        first, again = self.epoch("--disk", self.disk), self.epoch("--disk", self.disk)
        self.assertEqual({first["content_hash"], again["content_hash"]}, {plain["content_hash"]})
        self.assertEqual(first["bytes"], {"memory": 0, "disk": 0, "peer": 0, "source": SAMPLES * SIZE})
        self.assertEqual(again["bytes"], {"memory": 0, "disk": SAMPLES * SIZE, "peer": 0, "source": 0})
        for path in self.disk.iterdir():
            self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o700)
            self.assertEqual(sorted(os.listdir(path)), ["data", "lock", "table"])

    def test_warm_up_fills_it_before_the_first_run(self):
        folder = self.top / "pictures"
        self.report("generate", folder, "--images", 60)
        plain = self.report("run", folder, "--batch", 16, "--hash", "--no-cache")["epochs"][0]
        warmed = self.report("index", folder, "--warm", "--disk", self.disk)["warm"]
        self.assertEqual(warmed["filled_bytes"], plain["bytes"]["source"])
        for memory in (["--no-cache"], []):
            found = self.report("run", folder, "--batch", 16, "--hash", "--disk", self.disk, *memory)["epochs"][0]
            self.assertEqual(found["content_hash"], plain["content_hash"])
            self.assertEqual(found["bytes"]["source"], 0)
        self.assertEqual(self.report("index", folder, "--warm", "--disk", self.disk)["warm"]["filled_bytes"], 0)
        # Memory that holds little of it, and nobody who asks for batches.
        for memory in ("20MiB", "40MiB"):
            other = self.top / f"disk-{memory}"
            warmed = self.report("index", folder, "--warm", "--disk", other, "--memory", memory)["warm"]
            self.assertEqual(warmed["disk_bytes"], plain["bytes"]["source"])
        self.refused("index", folder, "--warm", words=["--disk"])
        self.refused("index", folder, "--disk", self.disk, words=["--warm"])

    def test_the_same_files_by_another_path_are_reused(self):
        self.epoch("--disk", self.disk)
        (self.top / "link").symlink_to(self.folder)
        copy = shutil.copytree(self.folder, self.top / "copy")  # with its times
        moved = shutil.move(shutil.copytree(self.folder, self.top / "other"), self.top / "moved")
        for place in (self.top / "link", copy, moved):
            report = self.report("run", place, *self.base[1:], "--hash", "--disk", self.disk)
            self.assertEqual(report["epochs"][0]["bytes"]["source"], 0, place)
            self.assertEqual(report["disk"]["damaged"], 0)

    def test_a_copy_with_other_times_replaces_it_with_one_warning(self):
        plain = self.epoch("--disk", self.disk)["content_hash"]
        copy = shutil.copytree(self.folder, self.top / "copy", copy_function=shutil.copy, ignore=shutil.ignore_patterns(".*"))
        for path in copy.rglob("*.bin"):
            os.utime(path, (1, 1))
        for place in (copy, self.folder):  # and back again
            for again in (False, True):
                done = self.foreload("run", place, *self.base[1:], "--hash", "--json", "--disk", self.disk)
                self.assertEqual(done.returncode, 0, done.err)
                report = json.loads(done.out)
                self.assertEqual(report["disk"]["damaged"], 0)
                self.assertEqual(report["epochs"][0]["content_hash"], plain)
                self.assertEqual(report["epochs"][0]["bytes"]["source"], 0 if again else SAMPLES * SIZE)
                told = [line for line in done.err.splitlines() if f"{SAMPLES} samples are replaced" in line]
                self.assertEqual((len(told), done.err.count("warning")), (0, 0) if again else (1, 1), done.err)

    def test_ranks_are_given_one_folder(self):
        plain = self.epoch()["content_hash"]
        both = ["--world", 2, "--last", "ragged", "--global-batch", 16, "--disk", self.disk, "--json", "--hash", "--accelerator", 2000]
        for again in (False, True):
            ranks = [self.start("run", *self.base, *both, "--rank", rank) for rank in (0, 1)]
            reports = []
            for process in ranks:
                out, errors = process.communicate(timeout=program.DEADLINE)
                self.assertEqual((process.returncode, errors), (0, ""))
                reports.append(json.loads(out))
            total = sum(int(report["epochs"][0]["content_hash"], 16) for report in reports) % (1 << 64)
            self.assertEqual(f"{total:016x}", plain)
            if again:
                self.assertEqual([report["epochs"][0]["bytes"]["source"] for report in reports], [0, 0])
        self.assertEqual([path.name[-5:] for path in sorted(self.disk.iterdir())], ["rank0", "rank1"])

    def test_killed_while_filling(self):
        chance = seeded("killed_while_filling")
        plain = self.epoch()["content_hash"]
        kept = 0
        for turn in range(100 if program.SOAK else 10):
            if turn % 5 == 0 and self.disk.exists():
                for name in ("data", "table"):
                    self.cache(name).unlink()
            process = self.start("run", *self.base, "--disk", self.disk, "--storage", "4MB/s")
            time.sleep(chance.uniform(0.01, 0.35))
            process.send_signal(signal.SIGKILL)
            process.communicate()
            if turn % 3 == 2:  # and sometimes the kill falls into a cache that was filled by others that were killed
                continue
            report = self.report("run", *self.base, "--hash", "--disk", self.disk)
            self.assertEqual(report["epochs"][0]["content_hash"], plain)
            self.assertEqual(report["disk"]["damaged"], 0, "a kill tears nothing")
            kept += report["epochs"][0]["bytes"]["disk"]
        self.assertGreater(kept, 0, "what was written before the kill is used")

    def mounted(self, size):
        """A file system of its own, as the disk."""
        place = self.top / "mounted"
        place.mkdir()
        if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", place],
                                               capture_output=True).returncode != 0:
            self.skipTest("needs the right to mount")
        self.addCleanup(subprocess.run, ["umount", "-l", place], check=True)
        return place

    def test_a_file_system_that_is_full_or_read_only(self):
        plain = self.epoch()["content_hash"]
        place = self.mounted("2m")
        (place / "others").write_bytes(bytes(1300 << 10))  # what is left is less than the dataset
        disk = ["--disk", place, "--disk-size", "1700k"]
        for _ in range(2):
            self.assertEqual(self.epoch(*disk)["content_hash"], plain)
        (place / "others").unlink()
        self.assertEqual(self.epoch("--disk", place)["content_hash"], plain)
        subprocess.run(["mount", "-o", "remount,ro", place], check=True)
        done = self.foreload("run", *self.base, "--hash", "--json", "--disk", place)
        self.assertEqual(done.returncode, 0, done.err)
        self.assertEqual(json.loads(done.out)["epochs"][0]["content_hash"], plain)
        self.assertEqual(done.err.count("warning"), 1, done.err)
        self.assertIn("disk cache", done.err)

    def test_a_part_on_disk_and_another_seed(self):
        limit = ["--disk", self.disk, "--disk-size", SAMPLES * SIZE // 2]
        for seed in (1, 2, 1):
            plain = self.epoch("--seed", seed)["content_hash"]
            for _ in range(2):
                found = self.epoch("--seed", seed, *limit)
                self.assertEqual(found["content_hash"], plain)
            self.assertGreater(found["bytes"]["disk"], 0.4 * SAMPLES * SIZE)
            self.assertLessEqual(sum(self.cache(name).stat().st_size for name in ("data", "table")), SAMPLES * SIZE // 2)

    def test_no_space_is_one_warning(self):
        # Writing beyond it fails with EFBIG in a thread that takes no signals.
        self.report("index", self.folder)
        limit = 200_000
        done = self.foreload("run", *self.base, "--disk", self.disk, "--epochs", 2,
                             preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        self.assertEqual(done.returncode, 0, done.err)
        self.assertEqual(done.err.count("warning"), 1, done.err)
        self.assertIn("takes no more samples", done.err)
        self.assertGreater(self.epoch("--disk", self.disk)["bytes"]["disk"], limit // 2)

    def test_a_folder_of_others_is_left_alone(self):
        self.epoch("--disk", self.disk)
        self.cache("lock").write_text("mine")
        before = self.tree()
        self.warned("run", *self.base, "--disk", self.disk, words=["left alone", "without it"])
        self.assertEqual(self.tree(), before)
        self.cache("lock").unlink()
        before = self.tree()
        self.warned("run", *self.base, "--disk", self.disk, words=["left alone", "without it"])
        self.assertEqual(self.tree(), before, "no empty lock is left behind")

    def test_a_smaller_limit_is_no_damage(self):
        self.epoch("--disk", self.disk)
        for _ in range(2):
            report = self.report("run", *self.base, "--hash", "--disk", self.disk, "--disk-size", SAMPLES * SIZE // 3)
            self.assertEqual(report["disk"]["damaged"], 0)
        report = self.report("run", *self.base, "--hash", "--disk", self.disk)
        self.assertEqual(report["disk"]["damaged"], 0)
        self.assertEqual(report["epochs"][0]["content_hash"], self.epoch()["content_hash"])

    def test_two_at_once(self):
        holder = self.start("run", *self.base, "--disk", self.disk, "--accelerator", 20)
        self.assertTrue(program.wait_until(lambda: self.disk.exists() and any(self.disk.iterdir()) and self.cache("table").exists()))
        self.warned("run", *self.base, "--disk", self.disk, words=["in use", "without it"])
        self.end(holder)

    def test_refusals(self):
        self.refused("run", *self.base, "--disk-size", "1GB", words=["--disk"])
        self.refused("run", *self.base, "--disk", self.disk, "--disk-size", "0", words=["--disk-size"])
        self.refused("run", *self.base, "--disk", self.folder, words=["inside of the dataset"])
        self.refused("run", *self.base, "--disk", self.top / "missing" / "cache", words=["--disk", "missing", "last part"], codes=(2,))
        (self.top / "file").write_text("")
        self.refused("run", *self.base, "--disk", self.top / "file", words=["--disk", "file", "name a folder"], codes=(2,))
        self.refused("run", *self.base, "--disk", "", words=["--disk", "nothing is named"], codes=(2,))
        self.refused("index", self.folder, "--warm", "--disk", "", words=["--disk", "nothing is named"], codes=(2,))

    def test_the_table_of_a_run_fits_80_columns(self):
        done = self.foreload("run", *self.base, "--disk", self.disk, "--accelerator", 100000)
        self.assertEqual(done.returncode, 0, done.err)
        lines = [line for line in done.out.splitlines() if str(self.top) not in line]
        self.assertLessEqual(max(map(len, lines)), 80)
        self.assertIn("disk", done.out)

    def test_both_hashes_are_shown(self):
        for disk in ([], ["--disk", self.disk]):
            found = self.epoch(*disk)
            done = self.foreload("run", *self.base, "--hash", *disk)
            *_, header, line = done.out.splitlines()
            self.assertEqual(line.split()[-2:], [found["order_hash"], found["content_hash"]])
            self.assertEqual([header.index("order"), header.index("content")], [line.index(found["order_hash"]), line.index(found["content_hash"])])


if __name__ == "__main__":
    program.main()
