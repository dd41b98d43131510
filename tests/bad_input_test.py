#!/usr/bin/python3
"""Bad input gives one line that names the thing, exit code 1 or 2, and leaves nothing written and nothing running.

    tests/bad_input_test.py FORELOAD [unittest arguments]
"""
import io
import json
import os
import re
import socket
import subprocess
import tarfile

import ledger
import program
from program import INDEX_FILE, ProgramTest


class BadInputTest(ProgramTest):
    def refused(self, *arguments, words=(), codes=(1, 2)):
        """Runs it as text and with --json; both have to fail alike and to change no file."""
        before = self.tree()
        done = self.foreload(*arguments)
        self.assert_fails(done, *words, codes=codes)
        again = self.foreload(*arguments, "--json")
        self.assertEqual(again.returncode, done.returncode)
        report = json.loads(again.out)
        self.assertEqual((report["schema"], report["command"]), (1, arguments[0]))
        self.assertEqual(f"foreload: {report['error']['message']}", again.err.splitlines()[-1])
        self.assertEqual(self.tree(), before)
        report["error"]["warnings"] = done.err
        return report["error"]

    def warned(self, *arguments, words=()):
        """Runs it: it succeeds with one warning that has all the words."""
        done = self.foreload(*arguments)
        self.assertEqual(done.returncode, 0, done.err)
        warnings = done.err.splitlines()
        fitting = [line for line in warnings if all(str(word) in line for word in words)]
        self.assertEqual(len(fitting), 1, f"{words} in {warnings}")
        return done


class DatasetTest(BadInputTest):
    def setUp(self):
        super().setUp()
        self.good = self.ledger("good", 40)
        self.tail = ["--batch", 8, "--chain", ledger.chain()]

    def test_missing_path(self):
        for command in ("run", "index", "bench"):
            error = self.refused(command, self.top / "missing", words=[self.top / "missing", "No such file"])
            self.assertEqual(error["code"], "NotFound")
        self.refused("run", self.good, self.top / "missing", *self.tail, words=["missing"])

    def test_empty_dataset(self):
        (self.top / "empty" / "class").mkdir(parents=True)
        error = self.refused("run", self.top / "empty", words=[self.top / "empty", ".jpg"])
        self.assertEqual(error["code"], "NotFound")
        (self.top / "empty" / "notes.txt").write_text("x")
        self.refused("run", self.top / "empty", words=[self.top / "empty", "1 file"])
        self.assertEqual(list((self.top / "empty").rglob(".*")), [])

    def test_a_path_that_is_no_dataset(self):
        (self.top / "file.jpg").write_bytes(b"x")
        for path, words in ((self.top / "file.jpg", ["file.jpg", ".tar"]), ("/dev/null", ["/dev/null"]),
                            ("/dev/zero", ["/dev/zero"]), ("", ["empty"])):
            self.refused("run", path, words=words)

    def test_addresses_that_are_no_paths(self):
        for uri in (f"file:{self.good}", f"file://{self.good}", "pipe:cat /etc/passwd", "http://127.0.0.1:9/x.tar",
                    "https://127.0.0.1/x", "s3://bucket/key", "gs://bucket/key", "data:,x", "fd:0"):
            self.refused("run", uri, words=[uri], codes=(2,))

    def test_files_that_can_not_be_read(self):
        folder = self.ledger("locked", 10)
        os.chmod(folder / ledger.name(4, 10), 0)
        if os.geteuid() == 0:
            os.chmod(self.top, 0o755)
            for path in (self.top, *self.top.rglob("*")):
                os.chown(path, 65534, 65534)
            done = self.foreload("run", folder, "--batch", 5, "--chain", ledger.chain(), user=65534, group=65534,
                                 extra_groups=[])
        else:
            done = self.foreload("run", folder, "--batch", 5, "--chain", ledger.chain())
        self.assert_fails(done, ledger.name(4, 10), "Permission denied", codes=(1,))

    def test_a_directory_that_is_named_like_an_image(self):
        (self.good / "c0" / "x.jpg").mkdir()
        self.assertEqual(self.report("run", self.good, *self.tail)["dataset"]["samples"], 40)

    def test_a_file_that_changed_since_indexing(self):
        for size in (10, 0, ledger.SIZE + 1):
            folder = self.ledger(f"changed{size}", 20)
            self.report("index", folder)
            path = folder / ledger.name(7, 20)
            os.truncate(path, size)
            for policy in ("fail", "replace"):
                error = self.refused("run", folder, *self.tail, "--on-error", policy, words=[path, "changed", "64", size])
                self.assertEqual(error["code"], "DataChanged")

    def test_a_first_image_that_changed_since_indexing(self):
        # The first sample is looked at to choose a chain: that look must tell the same story.
        for size in (100, 0):
            folder = self.images(f"images{size}", count=12)
            self.report("index", folder)
            first = min(folder.rglob("*.jpg"))
            os.truncate(first, size)
            error = self.refused("run", folder, "--batch", 4, words=[first.name, "changed"])
            self.assertEqual(error["code"], "DataChanged")

    def test_a_file_that_is_gone_since_indexing(self):
        self.report("index", self.good)
        (self.good / ledger.name(3, 40)).unlink()
        self.assertEqual(self.report("run", self.good, *self.tail)["dataset"]["samples"], 39)

    def test_a_zero_byte_file(self):
        path = self.good / ledger.name(5, 40)
        path.write_bytes(b"")
        error = self.refused("run", self.good, *self.tail, words=[path, "empty"], codes=(1,))
        self.assertEqual(error["code"], "BadSample")
        report = self.report("run", self.good, *self.tail, "--on-error", "replace")
        self.assertEqual({entry["id"] for entry in report["quarantine"]}, {5})

    def test_samples_that_do_not_fit_the_chain(self):
        self.refused("run", self.good, "--batch", 8, "--chain", ledger.chain(65), words=["of u8", "65", ".bin"])
        self.refused("run", self.good, "--batch", 8, "--chain", "resize(32), center_crop(32)", words=["JPEG, PNG", ".bin"])
        message = self.refused("run", self.good, "--batch", 8, words=[self.good, "array("])["message"]
        advice = re.search(r"array\([^)]*\)", message)[0]
        done = self.foreload("run", self.good, "--batch", 8, "--chain", advice)
        self.assertNotIn("transform array:", done.err, "what a message advises is accepted")

    def test_a_batch_or_a_world_larger_than_the_dataset(self):
        base = ["run", self.good, "--chain", ledger.chain()]
        self.refused(*base, "--batch", 41, words=["41", "40", self.good], codes=(2,))
        self.refused(*base, "--batch", 1, "--world", 41, words=["41", "40", self.good], codes=(2,))
        self.refused(*base, "--global-batch", 41, "--last", "drop", words=["41", "40"], codes=(2,))
        for last in ("ragged", "pad"):
            self.report(*base, "--batch", 41, "--last", last)
            self.report(*base, "--batch", 1, "--world", 50, "--rank", 49, "--last", last)

    def test_a_budget_too_small_says_what_would_do(self):
        base = ["run", self.good, *self.tail, "--threads", 1]
        error = self.refused(*base, "--memory", "100kB", words=["97.7 KiB", "at least"], codes=(1,))
        self.assertEqual(error["code"], "NoMemory")
        needed = re.search(r"at least ([\d.]+) ?(\w+)", error["message"])
        self.report(*base, "--memory", "".join(needed.groups()))
        error = self.refused("run", self.good, "--batch", 8, "--chain", "resize(4096:4096)", "--memory", "64MB",
                             words=["at least"])
        self.assertEqual(error["code"], "NoMemory")


class OptionTest(BadInputTest):
    def setUp(self):
        super().setUp()
        self.good = self.ledger("good", 40)
        self.report("index", self.good)

    def test_unknown_words(self):
        for flag, value, words in (
                ("--chain", "sharpen(3)", ["sharpen", "random_resized_crop"]),
                ("--chain", "resize(size=7, colour=3)", ["colour", "resize", "size"]),
                ("--chain", "resize(", ["resize("]), ("--chain", "resize(7))", ["resize(7))"]),
                ("--chain", ",", [","]), ("--chain", "array(u9, 64)", ["u9", "u8"]),
                ("--chain", "array(u8, 0)", ["shape", "0"]), ("--chain", "resize(-4)", ["resize", "-4"]),
                ("--chain", "normalize(mean=1:2)", ["normalize", "mean"]),
                ("--chain", "center_crop(99999999999)", ["center_crop", "99999999999"]),
                ("--dtype", "f64", ["f64", "f32"]), ("--layout", "chw", ["chw", "nchw"]), ("--last", "never", ["never", "drop"]),
                ("--on-error", "ignore", ["ignore", "replace"]), ("--io", "aio", ["aio", "uring"]),
                ("--accelerator", "a100", ["a100", "resnet50-a100"]), ("--accelerator", "-1", ["-1"]),
                ("--accelerator", "nan", ["nan"]), ("--memory", "lots", ["lots", "8GiB"]), ("--memory", "0", ["0"]),
                ("--nonsense", "1", ["--nonsense"])):
            with self.subTest(flag=flag, value=value):
                tail = [] if flag == "--chain" else ["--chain", ledger.chain()]
                self.refused("run", self.good, "--batch", 8, f"{flag}={value}", *tail, words=words, codes=(2,))

    def test_numbers_out_of_range(self):
        base = ["run", self.good, "--chain", ledger.chain()]
        for flag in ("--batch", "--global-batch", "--seed", "--threads", "--world", "--rank", "--epochs"):
            for value in ("-1", "1.5", "x", "", "99999999999999999999999"):
                with self.subTest(flag=flag, value=value):
                    self.refused(*base, f"{flag}={value}", words=[flag.strip("-").split("-")[-1], value], codes=(2,))
        for flag, value in (("--batch", 0), ("--world", 0), ("--rank", 1), ("--epochs", 0), ("--threads", 100000)):
            with self.subTest(flag=flag, value=value):
                message = self.refused(*base, flag, value, words=[flag.strip("-"), value], codes=(2,))["message"]
                self.assertLess(len(message), 200, "a message that a person can read")

    def test_storage_that_can_not_be_emulated(self):
        base = ["run", self.good, "--batch", 8, "--chain", ledger.chain()]
        for spec in ("fast", "0MB/s", "-5MB/s", "10MB/s,10MB/s", "5ms,5ms", "2h", ",", "10MB/s,", "nan", "1e3MB/s",
                     "10MB/s,bucket=", "bucket=a,bucket=b"):
            with self.subTest(spec=spec):
                self.refused(*base, f"--storage={spec}", words=[f'"{spec}"'], codes=(2,))

    def test_a_bucket_that_is_none_of_ours_is_left_alone(self):
        base = ["run", self.good, "--batch", 8, "--chain", ledger.chain()]
        (self.top / "precious").write_text("precious " * 100)
        (self.top / "same_size").write_bytes(bytes(64))
        os.mkfifo(self.top / "pipe")
        os.symlink(self.top / "precious", self.top / "link")
        for name in ("precious", "same_size", "pipe", "link", "good", "missing/bucket"):
            with self.subTest(bucket=name):
                self.refused(*base, "--storage", f"10MB/s,bucket={self.top / name}", words=[self.top / name])
        self.refused(*base, "--storage", "10MB/s,bucket=/dev/null", words=["/dev/null"])

    def test_subsets(self):
        base = ["run", self.good, "--batch", 1, "--chain", ledger.chain()]
        for subset, words in (("40", ["40", "39"]), ("0,99", ["99"]), ("c0/none.bin", ["c0/none.bin"]), (",", [","]),
                              ("../good/c0/000000.bin", ["../good"]), (f"@{self.top}/none", ["none"]),
                              (f"@{self.top}", [self.top]), ("-1", ["-1"])):
            with self.subTest(subset=subset):
                self.refused(*base, f"--subset={subset}", words=words)

    def test_files_that_can_not_be_written(self):
        base = ["run", self.good, "--batch", 8, "--chain", ledger.chain()]
        for flag in ("--log", "--state", "--record"):
            for path in (self.top / "missing" / "file", self.good):
                with self.subTest(flag=flag, path=path):
                    self.refused(*base, flag, path, words=[path], codes=(1, 2))
        for flag in ("--log", "--record"):
            self.refused(*base, flag, "/dev/full", words=["/dev/full"], codes=(1,))

    def test_a_state_never_replaces_what_is_no_file(self):
        os.mkfifo(self.top / "pipe")
        (self.top / "real").write_text("old")
        os.symlink("real", self.top / "link")
        base = ["run", self.good, "--batch", 8, "--chain", ledger.chain(), "--state"]
        self.foreload(*base, self.top / "pipe")
        self.assertTrue((self.top / "pipe").is_fifo(), "a device such as /dev/null would be replaced as well")
        self.foreload(*base, self.top / "link")
        self.assertTrue((self.top / "link").is_symlink())


class StateTest(BadInputTest):
    def setUp(self):
        super().setUp()
        self.good = self.ledger("good", 40)
        self.base = ["run", self.good, "--batch", 8, "--chain", ledger.chain(), "--epochs", 2]
        self.state = self.top / "state"
        self.report(*self.base[:-1], 1, "--state", self.state)
        self.saved = json.loads(self.state.read_text())

    def write(self, content):
        (self.top / "bad").write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        return ["--resume", self.top / "bad"]

    def test_corrupt(self):
        text = json.dumps(self.saved).encode()
        for content in (b"", b"{", b"[]", b"null", b"\xff\xfe" * 20, b"[" * 60000, os.urandom(3000), bytes(200000), text[:-1],
                        text + b"}", text.replace(b"{", b"{{")):
            with self.subTest(content=content[:40]):
                self.refused(*self.base, *self.write(content), words=["bad"], codes=(2,))

    def test_wrong_fields(self):
        for field in self.saved:
            for value in (None, "x", -1, 1.5, [], {}, True, "0" * 17):
                with self.subTest(field=field, value=value):
                    self.refused(*self.base, *self.write({**self.saved, field: value}), words=["bad", field])
            left = {name: value for name, value in self.saved.items() if name != field}
            self.refused(*self.base, *self.write(left), words=["bad", field])

    def test_positions_that_no_run_could_have_reached(self):
        for position in (3, 39, 41, 999999, 2**63):
            with self.subTest(position=position):
                self.refused(*self.base, *self.write({**self.saved, "epoch": 0, "position": position}),
                             words=["position", position])

    def test_of_another_dataset_or_plan_names_both_values(self):
        resume = ["--resume", self.state]
        other = self.ledger("other", 41)
        fingerprint = self.report("index", other)["dataset"]["fingerprint"]
        tail = ["--chain", ledger.chain(), "--epochs", 2]
        error = self.refused("run", other, "--batch", 8, *tail, *resume, words=[fingerprint, self.saved["fingerprint"]])
        self.assertEqual(error["code"], "Mismatch")
        self.refused("run", self.good, "--batch", 8, *tail, *resume, "--seed", 77, words=["seed", "77", "0"])
        for extra in (["--batch", 4], ["--batch", 8, "--in-order"], ["--batch", 8, "--last", "drop"]):
            self.refused("run", self.good, *extra, *tail, *resume, words=["plan", self.saved["plan"]])

    def test_no_file(self):
        for path in (self.top / "none", self.top, "/dev/zero"):
            self.refused(*self.base, "--resume", path, words=[path])
        os.mkfifo(self.top / "pipe")
        self.refused(*self.base, "--resume", self.top / "pipe", words=["pipe"])


class PathTest(BadInputTest):
    """R16, folders: nothing outside of the dataset is opened, and odd entries are named in a warning."""

    def setUp(self):
        super().setUp()
        self.folder = self.ledger("set", 30)
        (self.top / "outside" / "c9").mkdir(parents=True)
        (self.top / "outside" / "c9" / "secret.bin").write_bytes(ledger.sample(999))
        self.arguments = ["run", self.folder, "--batch", 8, "--chain", ledger.chain()]

    def assert_samples(self, count, *words):
        self.warned(*self.arguments, words=words)
        lines, report = self.logged(*self.arguments[1:])
        self.assertEqual(report["dataset"]["samples"], count)
        self.assertEqual(ledger.judge_lines(lines, ledger.standard_samples(30)), "")

    def test_links_that_lead_outside(self):
        for number, target in enumerate((self.top / "outside/c9/secret.bin", "../../outside/c9/secret.bin", "/etc/passwd",
                                         "/proc/self/mem")):
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

    def test_names_of_all_bytes_and_of_any_length(self):
        where = os.fsencode(self.folder) + b"/c4/"
        for number, name in enumerate((b"zz\xff\xfe", b"zz new\nline", b"zz\x1b[31m", b"zz" + b"n" * 249, b"zz\xc3\xa9")):
            with open(where + name + b".bin", "wb") as file:
                file.write(ledger.sample(number))
        done = self.foreload(*self.arguments)
        self.assertEqual(done.returncode, 0, done.err)
        self.assertEqual(self.report(*self.arguments)["dataset"]["samples"], 35)
        with open(where + b"zz\x1b[31m.bin", "wb"):
            pass
        # A name must not be able to write to the terminal.
        self.assertNotIn("\x1b", self.foreload("run", self.folder, "--batch", 35, "--chain", ledger.chain(), "--rebuild").err)

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


class TarTest(BadInputTest):
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
        for name, content in (("random", os.urandom(20000)), ("empty", b""), ("zeros", bytes(10240)), ("short", b"x" * 100),
                              ("gzip", b"\x1f\x8b" + os.urandom(2000))):
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
        names = ["../../etc/passwd.bin", "/etc/passwd.bin", "a/../../x.bin", "ok/1.bin", "ok/2.bin", "ok/3.bin", "ok/4.bin"]
        self.write(names)
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
        for uri, words in (("data{1..3}.tar", ["data1.tar"]), ("none*.tar", ["none*.tar"]), ("{0..99999999}.tar", ["1,000,000"]),
                           ("{a,b}.tar", ["a.tar"])):
            self.refused("run", self.top / uri, *self.tail, words=words)


if __name__ == "__main__":
    program.main()
