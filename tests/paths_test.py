#!/usr/bin/python3
"""Hostile and broken folders and tars: nothing outside is opened, and what is left out is named (R16).

    tests/paths_test.py FORELOAD [unittest arguments]
"""
import ctypes
import io
import json
import os
import shutil
import socket
import subprocess
import tarfile

import ledger
import program
from program import INDEX_FILE, RefusalTest, amount, seeded

IN_OPEN = 0x20


class OpenWatch:
    """Counts how often anything directly in some folders is opened, by anyone (inotify)."""

    def __init__(self, *folders):
        libc = ctypes.CDLL(None, use_errno=True)
        self.fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        for folder in folders:
            if libc.inotify_add_watch(self.fd, os.fsencode(folder), IN_OPEN) < 0:
                raise OSError(ctypes.get_errno(), f"cannot watch {folder}")

    def close(self):
        os.close(self.fd)

    def has_seen_something(self):
        try:
            return len(os.read(self.fd, 1 << 16)) > 0
        except BlockingIOError:
            return False


class PathTest(RefusalTest):
    """R16, folders: nothing outside of the dataset is opened, and odd entries are named in a warning."""

    def setUp(self):
        super().setUp()
        self.folder = self.ledger("set", 30)
        (self.top / "outside" / "c9").mkdir(parents=True)
        (self.top / "outside" / "c9" / "secret.bin").write_bytes(ledger.sample(999))
        self.watch = OpenWatch(self.top / "outside", self.top / "outside" / "c9")
        self.addCleanup(self.watch.close)
        self.arguments = ["run", self.folder, "--batch", 8, "--chain", ledger.chain()]

    def assert_samples(self, count, *words):
        self.warned(*self.arguments, words=words)
        lines, report = self.logged(*self.arguments[1:])
        self.assertEqual(report["dataset"]["samples"], count)
        self.assertEqual(ledger.judge_lines(lines, ledger.standard_samples(30)), "")
        self.assertFalse(self.watch.has_seen_something(), "something outside was opened")

    def test_the_watch_sees_what_is_opened(self):
        (self.top / "outside" / "c9" / "secret.bin").read_bytes()
        self.assertTrue(self.watch.has_seen_something())

    def test_links_that_lead_outside(self):
        secret = "outside/c9/secret.bin"
        for number, target in enumerate((self.top / secret, f"../../{secret}", "/etc/passwd", "/proc/self/mem")):
            os.symlink(target, self.folder / "c0" / f"x{number}.bin")
        os.symlink("../outside/c9", self.folder / "c9")
        os.symlink("/", self.folder / "c8")
        self.assert_samples(30, "6 links", "outside")

    def test_loops(self):
        for name, target in (("c1/up", ".."), ("c1/here", "."), ("self", "."), ("a", "b"), ("b", "a")):
            os.symlink(target, self.folder / name)
        self.assert_samples(30, "lead back")

    def test_pipes_sockets_and_devices(self):
        os.mkfifo(self.folder / "c0" / "pipe.bin")
        with socket.socket(socket.AF_UNIX) as server:
            os.chdir(self.folder)
            self.addCleanup(os.chdir, "/")
            server.bind("c0/socket.bin")
        count = 2
        if os.geteuid() == 0:
            os.mknod(self.folder / "c0" / "zero.bin", 0o20666, os.makedev(1, 5))
            count = 3
        self.assert_samples(30, f"{count} devices, pipes and sockets")

    def test_a_file_that_became_a_link_after_indexing(self):
        self.report("index", self.folder)
        path = self.folder / ledger.name(3, 30)
        path.unlink()
        os.symlink(self.top / "outside/c9/secret.bin", path)
        done = self.foreload(*self.arguments)
        self.assertIn("outside", done.err)
        self.assertFalse(self.watch.has_seen_something(), "something outside was opened")

    def plant(self, chance, number):
        """One hostile entry at a random place: a link that climbs, jumps or winds, to a file or a folder."""
        place = self.folder / chance.choice(("", "c0", "c1/deep", "c2/x/y"))
        place.mkdir(parents=True, exist_ok=True)
        depth = len(place.relative_to(self.top).parts)
        up = "../" * depth
        climb = chance.choice((up, "../" * 40, "./" + up, f"{self.top}/", "z/../" + up))
        target = climb + chance.choice(("outside", "outside/c9", "outside/c9/secret.bin", "outside//c9/./secret.bin"))
        name = chance.choice((f"zz{number}.bin", f"zz{number}", f"zz{number}.jpg"))
        (place / "z").mkdir(exist_ok=True)
        os.symlink(target, place / name)

    def test_random_links_never_lead_outside(self):
        chance = seeded("random_links")
        for turn in range(amount(100)):
            for number in range(5):
                self.plant(chance, 5 * turn + number)
            lines, report = self.logged(*self.arguments[1:])
            self.assertEqual(report["dataset"]["samples"], 30)
            self.assertEqual(ledger.judge_lines(lines, ledger.standard_samples(30)), "")
            self.assertFalse(self.watch.has_seen_something(), f"something outside was opened in turn {turn}")

    def test_a_damaged_index_is_built_anew(self):
        chance = seeded("damaged_index")
        expected = self.report("index", self.folder)["dataset"]
        index, = self.folder.glob(".foreload-index-*")
        good = index.read_bytes()
        for _ in range(amount(200)):
            bad = bytearray(good)
            bad[chance.randrange(len(bad))] ^= 1 << chance.randrange(8)
            index.write_bytes(chance.choice((bad, good[:chance.randrange(len(good))], good + b"x", os.urandom(900))))
            done = self.foreload("index", self.folder, "--json")
            self.assertEqual(done.returncode, 0, done.err)
            self.assertIn(index.name, done.err)
            self.assertEqual(json.loads(done.out)["dataset"], expected)
            self.assertEqual(self.foreload("index", self.folder).err, "")

    def test_an_index_folder_leaves_the_dataset_untouched(self):
        before = sorted(self.folder.rglob("*"))
        self.report(*self.arguments, "--index-folder", self.top / "indexes" / "deep")
        self.assertEqual(sorted(self.folder.rglob("*")), before)
        self.assertEqual(len(list((self.top / "indexes" / "deep").iterdir())), 1)

    def test_names_of_all_bytes_and_of_any_length(self):
        where = os.fsencode(self.folder) + b"/c4/"
        names = (b"zz\xff\xfe", b"zz new\nline", b"zz\x1b[31m", b"zz" + b"n" * 249, b"zz\xc3\xa9")
        for number, name in enumerate(names):
            with open(where + name + b".bin", "wb") as file:
                file.write(ledger.sample(number))
        done = self.foreload(*self.arguments)
        self.assertEqual(done.returncode, 0, done.err)
        self.assertEqual(self.report(*self.arguments)["dataset"]["samples"], 35)
        # A name must not be able to write to the terminal.
        os.truncate(where + b"zz\x1b[31m.bin", 0)
        done = self.foreload(*self.arguments)
        self.assertEqual(done.returncode, 1)
        self.assertNotIn("\x1b", done.err)
        os.rename(os.fsencode(self.folder) + b"/c4", os.fsencode(self.folder) + b"/c4\x1b[31m\n")
        done = self.foreload("index", self.folder)
        self.assertEqual(done.returncode, 0, done.err)
        self.assertNotIn("\x1b", done.out)
        self.assertIn("c4\\x1b[31m\\x0a", done.out)

    def test_names_that_are_no_text_are_still_json(self):
        odd = os.fsdecode(b"odd\xff")
        folder = shutil.copytree(self.images(count=12), self.top / odd)
        first = sorted(folder.rglob("*.jpg"))[0]
        bad = first.rename(first.parent / os.fsdecode(b"b\xfe\t.jpg"))
        bad.write_bytes(bad.read_bytes()[:200])
        first.parent.rename(folder / os.fsdecode(b"class\xfd"))
        key = os.fsdecode(b"class\xfd/b\xfe\t.jpg")
        disk = ["--disk", self.top / os.fsdecode(b"disk\xff")]
        for code, *arguments in ((0, "index", folder, "--list", "--dimensions"), (0, "index", folder, "--subset", key),
                                 (0, "index", folder, "--warm", *disk), (1, "run", folder, "--batch", 4),
                                 (0, "run", folder, "--batch", 4, "--on-error", "replace", "--log", self.top / odd[::-1], *disk),
                                 (0, "convert", folder, self.top / f"out{odd}", "--on-error", "keep"),
                                 (2, "convert", folder, self.top / f"out{odd}", "--on-error", "keep", "--max-side", 99),
                                 (1, "index", self.top / f"none{odd}"), (2, "run", folder, "--decode", odd), (2, odd, "x")):
            done = subprocess.run([os.fsencode(str(word)) for word in (program.FORELOAD, *arguments, "--json")],
                                  capture_output=True, env=self.environment, timeout=program.DEADLINE)
            self.assertEqual(done.returncode, code, done.stderr)
            json.loads(done.stdout.decode("utf-8"))  # strict

    def test_paths_longer_than_the_kernel_takes(self):
        here = os.open(self.folder / "c2", os.O_RDONLY)
        for _ in range(17):
            os.mkdir("n" * 250, dir_fd=here)
            below = os.open("n" * 250, os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = below
            os.close(os.open("x.txt", os.O_WRONLY | os.O_CREAT, dir_fd=here))
        os.close(here)
        self.addCleanup(subprocess.run, ["rm", "-rf", self.folder / "c2"])
        self.warned(*self.arguments, words=["too long"])
        for name in ("n" * 256, "n" * 4096, "n/" * 3000):
            done = self.foreload("run", self.top / name)
            self.assert_fails(done, "File name too long")
            self.assertLess(len(done.err), 10000)


class TarTest(RefusalTest):
    def setUp(self):
        super().setUp()
        self.tail = ["--batch", 4, "--chain", ledger.chain()]
        self.tar = self.top / "data.tar"

    def write(self, names, path=None):
        with tarfile.open(path or self.tar, "w", format=tarfile.GNU_FORMAT) as tar:
            for number, name in enumerate(names):
                entry = tarfile.TarInfo(name)
                entry.size = ledger.SIZE
                tar.addfile(entry, io.BytesIO(ledger.sample(number)))

    def test_garbage(self):
        for name, content in (("random", os.urandom(20000)), ("empty", b""), ("zeros", bytes(10240)),
                              ("short", b"x" * 100), ("gzip", b"\x1f\x8b" + os.urandom(2000))):
            path = self.top / f"{name}.tar"
            path.write_bytes(content)
            with self.subTest(name=name):
                self.refused("run", path, *self.tail, words=[path.name])
        self.assertEqual([path for path in self.top.iterdir() if INDEX_FILE.fullmatch(path.name)], [])

    def test_a_truncated_tail_loses_only_what_is_cut(self):
        names = [f"c{number // 10}/{number:03}.bin" for number in range(30)]
        self.write(names)
        whole = self.tar.read_bytes()
        # An entry is a header and a block of bytes: cut in a header, after it, in the bytes, and between two entries.
        for cut, lost in ((200, ""), (512, "020"), (512 + 10, "020"), (0, "")):
            with self.subTest(cut=cut):
                path = self.top / f"cut{cut}.tar"
                path.write_bytes(whole[:20 * 1024 + cut])
                done = self.warned("run", path, *self.tail, words=[path.name, lost, "019" if not lost else lost])
                self.assertIn("20 samples", done.out)

    def test_a_shard_that_shrank_since_indexing(self):
        self.write([f"c0/{number:03}.bin" for number in range(30)])
        self.report("index", self.tar)
        os.truncate(self.tar, 20 * 1024 + 512 + 10)
        self.warned("run", self.tar, *self.tail, words=["data.tar", "020"])

    def test_names_that_lead_elsewhere_are_never_opened(self):
        good = [f"ok/{number}.bin" for number in range(4)]
        self.write(["../../etc/passwd.bin", "/etc/passwd.bin", "a/../../x.bin", *good])
        process = self.foreload("run", self.tar, *self.tail)
        self.assertEqual(process.returncode, 0, process.err)
        self.assertIn('".."', process.err)

    def test_links_and_devices_are_skipped(self):
        self.write([f"c/{number}.bin" for number in range(5)])
        with tarfile.open(self.tar, "a") as tar:
            for name, kind in (("l.bin", tarfile.SYMTYPE), ("h.bin", tarfile.LNKTYPE), ("d.bin", tarfile.CHRTYPE),
                               ("p.bin", tarfile.FIFOTYPE)):
                entry = tarfile.TarInfo(f"c/{name}")
                entry.type, entry.linkname = kind, "/etc/passwd"
                tar.addfile(entry)
        self.assertEqual(self.report("run", self.tar, *self.tail)["dataset"]["samples"], 5)
        self.warned("run", self.tar, *self.tail, words=["2 links in tars"])

    def test_an_entry_that_claims_more_than_the_file_has(self):
        self.write([f"c/{number}.bin" for number in range(9)])
        data = bytearray(self.tar.read_bytes())
        header = data[8 * 1024:8 * 1024 + 512]
        header[124:136] = b"77777777777\0"  # 8 GiB
        header[148:156] = b" " * 8
        header[148:156] = b"%06o\0 " % sum(header)
        data[8 * 1024:8 * 1024 + 512] = header
        self.tar.write_bytes(data)
        self.warned("run", self.tar, *self.tail, words=["data.tar", "c/8.bin"])

    def test_lists(self):
        for uri, words in (("data{1..3}.tar", ["data1.tar"]), ("none*.tar", ["none*.tar"]),
                           ("{0..99999999}.tar", ["1,000,000"]), ("{a,b}.tar", ["a.tar"])):
            self.refused("run", self.top / uri, *self.tail, words=words)


if __name__ == "__main__":
    program.main()
