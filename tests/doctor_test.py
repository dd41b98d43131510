#!/usr/bin/python3
"""foreload doctor under real limits and on a dataset with planted oddities: each is named, with its severity.

    tests/doctor_test.py FORELOAD [unittest arguments]
"""
import ctypes
import json
import os
import pathlib
import resource
import shutil
import struct
import subprocess

import program
from program import ProgramTest, memory_cgroup

MIB = 1 << 20
IO_URING_SETUP = 425


def limit(kind, soft):
    hard = resource.getrlimit(kind)[1]
    return lambda: resource.setrlimit(kind, (soft, hard))


def forbid_io_uring():
    """A seccomp filter, as containers have it; what fails here fails in the child, before it becomes foreload."""
    libc = ctypes.CDLL(None, use_errno=True)
    instructions = b"".join(struct.pack("<HBBI", *one) for one in (
        (0x20, 0, 0, 0),                    # the number of the system call
        (0x15, 0, 1, IO_URING_SETUP),
        (0x06, 0, 0, 0x00050000 | 1),       # EPERM
        (0x06, 0, 0, 0x7FFF0000)))          # allowed
    buffer = ctypes.create_string_buffer(instructions)
    filters = ctypes.create_string_buffer(struct.pack("<HxxxxxxQ", 4, ctypes.addressof(buffer)))
    if libc.prctl(38, 1, 0, 0, 0) != 0 or libc.prctl(22, 2, ctypes.byref(filters), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "no seccomp")


class DoctorTest(ProgramTest):
    def doctor(self, *arguments, code=0, **options):
        """Findings by what they are about; several are a list in their order."""
        before = self.tree()
        done = self.foreload("doctor", *arguments, "--json", **options)
        self.assertEqual(done.returncode, code, done.err + done.out)
        self.assertEqual(self.tree(), before, "the doctor changed something")
        report = json.loads(done.out)
        findings = {}
        for one in report["findings"]:
            findings.setdefault(one["what"], []).append(one)
        severities = [one["severity"] for one in report["findings"]]
        self.assertEqual(severities, sorted(severities, key=["breaks", "costs", "note", "ok"].index))
        self.assertEqual(report["breaks"], severities.count("breaks"))
        for one in report["findings"]:
            if one["severity"] != "ok":
                self.assertTrue(one["cost"] and one["mend"], one)
        return findings

    def one(self, findings, what):
        self.assertIn(what, findings)
        self.assertEqual(len(findings[what]), 1, findings[what])
        return findings[what][0]


class MachineTest(DoctorTest):
    def test_this_machine_breaks_nothing(self):
        findings = self.doctor()
        for what in ("cores", "memory", "io_uring", "memlock", "open files", "file size", "/dev/shm", "clock", "peers",
                     "python"):
            self.assertIn(what, findings)

    def test_open_files(self):
        found = self.one(self.doctor(preexec_fn=limit(resource.RLIMIT_NOFILE, 64)), "open files")
        self.assertEqual(found["severity"], "costs")
        self.assertIn("64 may be open", found["found"])
        self.assertIn("ulimit -n", found["mend"])
        found = self.one(self.doctor(preexec_fn=limit(resource.RLIMIT_NOFILE, 16)), "open files")
        self.assertEqual(found["severity"], "costs")
        self.assertIn("now and then", found["cost"])

    def test_what_it_calls_too_few_open_files_is(self):
        """The run fails where it says so, and works where it does not."""
        folder = self.images(count=80)
        for files in (6, 64):  # between 8 and 24 it is luck: reads are tried again
            tight = limit(resource.RLIMIT_NOFILE, files)
            judged = self.foreload("doctor", folder, "--json", preexec_fn=tight).returncode
            run = self.foreload("run", folder, "--epochs", 1, "--batch", 8, preexec_fn=tight).returncode
            self.assertEqual(run, judged, f"{files} files")

    def test_locked_memory(self):
        found = self.one(self.doctor(preexec_fn=limit(resource.RLIMIT_MEMLOCK, 0)), "memlock")
        self.assertIn(found["severity"], ("note", "costs"))
        self.assertIn("0 B", found["found"])
        self.assertIn("ulimit -l", found["mend"])

    def test_length_of_files(self):
        found = self.one(self.doctor(preexec_fn=limit(resource.RLIMIT_FSIZE, 10 * MIB)), "file size")
        self.assertEqual(found["severity"], "costs")
        self.assertIn("10", found["found"])
        self.assertIn("ulimit -f", found["mend"])

    def test_cores(self):
        cores = sorted(os.sched_getaffinity(0))
        if len(cores) < 2:
            self.skipTest("one core can not be made fewer")
        found = self.one(self.doctor(preexec_fn=lambda: os.sched_setaffinity(0, {cores[0]})), "cores")
        self.assertIn(found["severity"], ("costs", "note"))
        self.assertIn("1 of ", found["found"])
        self.assertIn("affinity", found["found"])

    def test_memory_of_a_control_group(self):
        with memory_cgroup(256 * MIB) as group:
            if group is None:
                self.skipTest("no memory cgroup can be made here")
            join = lambda: (group / "cgroup.procs").write_text(str(os.getpid()))
            found = self.one(self.doctor(preexec_fn=join), "memory")
        self.assertEqual(found["severity"], "costs")
        self.assertIn("control group", found["found"])

    def test_forbidden_io_uring(self):
        try:
            found = self.one(self.doctor(preexec_fn=forbid_io_uring), "io_uring")
        except subprocess.SubprocessError:
            self.skipTest("seccomp is not available")
        self.assertEqual(found["severity"], "costs")
        self.assertIn("Operation not permitted", found["found"])
        self.assertTrue("seccomp" in found["mend"] or "sysctl" in found["mend"], found)

    def test_interpreters(self):
        path = self.top / "bin"
        path.mkdir()
        fake = path / "python3"
        fake.write_text("#!/bin/sh\nexit 1\n")
        fake.chmod(0o755)
        self.environment["PATH"] = f"{path}:{os.environ['PATH']}"
        found = self.doctor()["python"][0]
        self.assertEqual(found["severity"], "costs")
        self.assertIn(str(fake), found["found"])
        found = self.doctor("--python", "/usr/bin/python3")["python"][0]
        self.assertNotEqual(found["severity"], "breaks")
        self.assertIn("/usr/bin/python3", found["found"])

    def test_text_fits_a_screen(self):
        done = self.foreload("doctor", self.images(count=40))
        self.assertEqual(done.returncode, 0, done.err)
        self.assertLessEqual(len(done.out.splitlines()), 24, done.out)
        found = self.foreload("doctor", preexec_fn=limit(resource.RLIMIT_MEMLOCK, 0)).out.splitlines()
        memlock = next(number for number, line in enumerate(found) if " memlock: " in line)
        self.assertIn("→ ulimit -l", "".join(found[memlock + 1:memlock + 3]), found)  # a note, with its mend
        self.assertGreater(len(self.foreload("doctor", "--all").out.splitlines()), 8)


class DatasetTest(DoctorTest):
    def test_a_clean_dataset_breaks_nothing_and_nothing_is_written(self):
        findings = self.doctor(self.images(count=40))
        self.assertEqual(self.one(findings, "samples")["severity"], "ok")
        for what in ("empty", "huge", "broken", "copies", "classes"):
            self.assertNotIn(what, findings)
        # An index that is in memory only.
        self.assertEqual([path for path in self.top.rglob(".foreload-index-*")], [])

    def test_planted_oddities_are_named(self):
        folder = self.top / "odd"
        images = sorted(pathlib.Path(program.generated(40)).rglob("*.jpg"))
        (folder / "common").mkdir(parents=True)
        (folder / "rare").mkdir()
        small = min(images, key=lambda path: path.stat().st_size).read_bytes()
        for number in range(500):  # each is another picture to the index: a comment that differs in length
            comment = b"\xff\xfe" + struct.pack(">H", 2 + 1 + number) + b"x" * (1 + number)
            (folder / "common" / f"{number:03}.jpg").write_bytes(small[:2] + comment + small[2:])
        shutil.copy(images[1], folder / "rare" / "only.jpg")
        shutil.copy(folder / "common" / "007.jpg", folder / "common" / "twin.jpg")
        (folder / "common" / "empty.jpg").write_bytes(b"")
        cut = images[2].read_bytes()
        (folder / "common" / "cut.jpg").write_bytes(cut[:len(cut) // 3])
        with open(folder / "common" / "huge.jpg", "wb") as file:
            file.write(images[3].read_bytes())
            file.truncate(len(small) * 150 + 16 * MIB)
        findings = self.doctor(folder, code=1)
        self.assertEqual(self.one(findings, "empty")["severity"], "breaks")
        self.assertIn("empty.jpg", self.one(findings, "empty")["found"])
        self.assertEqual(self.one(findings, "huge")["severity"], "costs")
        self.assertIn("huge.jpg", self.one(findings, "huge")["found"])
        self.assertEqual(self.one(findings, "broken")["severity"], "breaks")
        self.assertIn("cut.jpg", self.one(findings, "broken")["found"])
        self.assertIn("twin.jpg", self.one(findings, "copies")["found"])
        self.assertIn("007.jpg", self.one(findings, "copies")["found"])
        self.assertIn("1 (rare) to 504 samples (common)", self.one(findings, "classes")["found"])
        text = self.foreload("doctor", folder)
        self.assertEqual(text.returncode, 1)
        for name in ("empty.jpg", "huge.jpg", "cut.jpg", "twin.jpg", "rare"):
            self.assertIn(name, text.out)
        self.assertIn("will break the run", text.err)

    def test_what_it_calls_broken_breaks_a_run(self):
        folder = self.images(count=20)
        victim = sorted(folder.rglob("*.jpg"))[5]
        victim.write_bytes(victim.read_bytes()[:1000])
        self.assertIn(victim.name, self.one(self.doctor(folder, code=1), "broken")["found"])
        self.assertEqual(self.foreload("run", folder, "--epochs", 1, "--batch", 4).returncode, 1)

    def test_copies_with_other_labels(self):
        folder = self.images(count=20)
        images = sorted(folder.rglob("*.jpg"))
        other = next(path for path in images if path.parent != images[0].parent)
        shutil.copy(images[0], other.parent / "copy.jpg")
        self.assertIn("another label", self.one(self.doctor(folder), "copies")["cost"])

    def test_a_dataset_that_is_not_there(self):
        found = self.one(self.doctor(self.top / "nowhere", code=1), "dataset")
        self.assertEqual(found["severity"], "breaks")
        self.assertIn("nowhere", found["found"])

    def test_disk_cache(self):
        folder = self.images(count=20)
        found = self.one(self.doctor(folder, "--disk", self.top / "cache"), "disk cache")
        self.assertIn("cache", found["found"])
        found = self.one(self.doctor(folder, "--disk", self.top / "no" / "parent", code=1), "disk cache")
        self.assertIn("mkdir -p", found["mend"])
        (self.top / "file").write_text("x")
        self.one(self.doctor(folder, "--disk", self.top / "file", code=1), "disk cache")

    def test_an_index_that_can_not_be_kept(self):
        folder = self.images(count=20)
        folder.chmod(0o555)
        self.addCleanup(folder.chmod, 0o755)
        self.environment["XDG_CACHE_HOME"] = "/proc/nothing"
        self.assertEqual(self.one(self.doctor(folder), "index")["severity"], "costs")

    def test_shards(self):
        records = self.top / "records"
        self.report("convert", self.images(count=20), records)
        findings = self.doctor(records)
        self.assertEqual(self.one(findings, "samples")["severity"], "ok")


if __name__ == "__main__":
    program.main()
