#!/usr/bin/python3
"""Bad input gives one line that names the thing, exit code 1 or 2, and leaves nothing written and nothing running.

    tests/bad_input_test.py FORELOAD [unittest arguments]
"""
import json
import os
import re
import subprocess

import ledger
import program
from program import RefusalTest


class DatasetTest(RefusalTest):
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
        for uri in (f"file:{self.good}", f"file://{self.good}", "pipe:cat /etc/passwd", "http:127.0.0.1:9/x.tar",
                    "https://127.0.0.1/x", "s3://b/key", "gs://bucket/key", "data:,x", "fd:0"):
            self.refused("run", uri, words=[uri], codes=(2,))

    def test_files_that_can_not_be_read(self):
        folder = self.ledger("locked", 10)
        os.chmod(folder / ledger.name(4, 10), 0)
        arguments = ["run", folder, "--batch", 5, "--chain", ledger.chain()]
        is_root = os.geteuid() == 0  # who may read everything
        done = self.foreload_as(65534, *arguments) if is_root else self.foreload(*arguments)
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
                error = self.refused("run", folder, *self.tail, "--on-error", policy,
                                     words=[path, "changed", "64", size])
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

    def test_data_that_changes_while_it_is_read(self):
        tar = self.top / "set.tar"
        folder = self.ledger("set", 1500)  # many, so that no sample stays in memory from one epoch to the next
        subprocess.run(["tar", "--sort=name", "-cf", tar, "-C", folder, "."], check=True)
        for place, file in ((folder, folder / ledger.name(11, 1500)), (tar, tar)):
            for engine in ("threads", self.report("run", place, *self.tail)["io"]):
                log = self.top / "log"
                log.unlink(missing_ok=True)
                process = self.start("run", place, *self.tail, "--no-cache", "--epochs", 10**6, "--log", log,
                                     "--io", engine, "--accelerator", 20000)
                self.assertTrue(program.wait_until(lambda: len(program.log_lines(log)) > 20))
                with open(file, "ab") as changed:
                    changed.write(b"more")
                _, process.err = process.communicate(timeout=program.DEADLINE)
                self.assert_fails(process, file, "changed", codes=(1,))
                os.truncate(file, file.stat().st_size - 4)
                for index in self.top.rglob(".foreload*"):
                    index.unlink()

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
        self.refused("run", self.good, "--batch", 8, "--chain", "resize(32), center_crop(32)",
                     words=["JPEG, PNG", ".bin"])
        message = self.refused("run", self.good, "--batch", 8, words=[self.good, "array("])["message"]
        advice = re.search(r"array\([^)]*\)", message)[0]
        done = self.foreload("run", self.good, "--batch", 8, "--chain", advice)
        self.assertNotIn("transform array:", done.err, "what a message advises is accepted")

    def test_a_batch_or_a_world_larger_than_the_dataset(self):
        base = ["run", self.good, "--chain", ledger.chain()]
        self.refused(*base, "--batch", 41, words=["41", "40", self.good], codes=(2,))
        self.refused(*base, "--batch", 1, "--world", 41, words=["41", "40", self.good], codes=(2,))
        self.refused(*base, "--global-batch", 41, "--last", "drop", words=["41", "40"], codes=(2,))
        self.refused(*base, "--global-batch", 8, "--world", 41, words=["41", "40", self.good], codes=(2,))
        for last in ("ragged", "pad"):
            self.report(*base, "--batch", 41, "--last", last)
            self.report(*base, "--batch", 1, "--world", 50, "--rank", 49, "--last", last)

    def test_a_budget_too_small_says_what_would_do(self):
        base = ["run", self.good, *self.tail, "--workers", 1]
        error = self.refused(*base, "--memory", "100kB", words=["97.7 KiB", "at least"], codes=(1,))
        self.assertEqual(error["code"], "NoMemory")
        needed = re.search(r"at least ([\d.]+) ?(\w+)", error["message"])
        self.report(*base, "--memory", "".join(needed.groups()))
        error = self.refused("run", self.good, "--batch", 8, "--chain", "resize(4096:4096)", "--memory", "64MB",
                             words=["at least"])
        self.assertEqual(error["code"], "NoMemory")


class OptionTest(RefusalTest):
    def setUp(self):
        super().setUp()
        self.good = self.ledger("good", 70)
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
                ("--dtype", "f64", ["f64", "f32"]), ("--layout", "chw", ["chw", "nchw"]),
                ("--last", "never", ["never", "drop"]), ("--on-error", "ignore", ["ignore", "replace"]),
                ("--io", "aio", ["aio", "uring"]),
                ("--accelerator", "a100", ["a100", "resnet50-a100"]), ("--accelerator", "-1", ["-1"]),
                ("--accelerator", "nan", ["nan"]), ("--memory", "lots", ["lots", "8GiB"]), ("--memory", "0", ["0"]),
                ("--nonsense", "1", ["--nonsense"])):
            with self.subTest(flag=flag, value=value):
                tail = [] if flag == "--chain" else ["--chain", ledger.chain()]
                self.refused("run", self.good, "--batch", 8, f"{flag}={value}", *tail, words=words, codes=(2,))

    def test_numbers_out_of_range(self):
        base = ["run", self.good, "--chain", ledger.chain()]
        for flag in ("--batch", "--global-batch", "--seed", "--workers", "--world", "--local-world", "--rank", "--epochs"):
            for value in ("-1", "1.5", "x", "", "99999999999999999999999"):
                if (flag, len(value)) == ("--epochs", 23):
                    continue  # so many epochs would be read if they were accepted
                with self.subTest(flag=flag, value=value):
                    self.refused(*base, f"{flag}={value}", words=[flag.strip("-").split("-")[-1], value], codes=(2,))
        for flag, value in (("--batch", 0), ("--world", 0), ("--rank", 1), ("--epochs", 0), ("--workers", 100000),
                            ("--workers", 0), ("--local-world", 2)):
            with self.subTest(flag=flag, value=value):
                message = self.refused(*base, flag, value, words=[flag.split("-")[-1], value], codes=(2,))["message"]
                self.assertLess(len(message), 200, "a message that a person can read")

    def test_numbers_of_other_commands(self):
        for command, flag in (("generate", "--images"), ("generate", "--seed"), ("generate", "--classes"),
                              ("generate", "--tar"), ("generate", "--threads"), ("index", "--threads"),
                              ("bench", "--rounds"), ("bench", "--batch")):
            for value in ("-1", "1.5", "x", "0x10", "1'000", "99999999999999999999999"):
                with self.subTest(command=command, flag=flag, value=value):
                    place = self.top / "new" if command == "generate" else self.good
                    self.refused(command, place, f"{flag}={value}", words=[flag, value], codes=(2,))

    def test_leading_zeros_are_no_octal_numbers(self):
        lines, _ = self.logged(self.good, "--batch", "010", "--chain", ledger.chain())
        self.assertEqual(len(lines[0]["ids"]), 10)

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
        for subset, words in (("70", ["70", "69"]), ("0,99", ["99"]), ("c0/none.bin", ["c0/none.bin"]), (",", [","]),
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
        self.refused(*base, self.top / "pipe", words=[self.top / "pipe"])
        self.assertTrue((self.top / "pipe").is_fifo(), "a device such as /dev/null would be replaced as well")
        self.report(*base, self.top / "link")
        self.assertTrue((self.top / "link").is_symlink())
        self.assertEqual(json.loads((self.top / "real").read_text())["epoch"], 1)


class StateTest(RefusalTest):
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
        for content in (b"", b"{", b"[]", b"null", b"\xff\xfe" * 20, b"[" * 60000, os.urandom(3000), bytes(200000),
                        text[:-1], text + b"}", text.replace(b"{", b"{{")):
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
        for position in (3, 39, 999999, 2**63):
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
        for extra, saved, here in ((["--batch", 4], "global batch 8", "global batch 4"),
                                   (["--batch", 8, "--in-order"], "shuffled", "in order"),
                                   (["--batch", 8, "--last", "drop"], "last batch auto", "last batch drop"),
                                   (["--batch", 4, "--in-order"], "global batch 8, shuffled", "global batch 4, in order")):
            self.refused("run", self.good, *extra, *tail, *resume, words=[f"its plan is {saved}, here it is {here};"])
        foreign = self.write({**self.saved, "plan": "0" * 16})
        self.refused(*self.base, *foreign, words=["its plan is most likely one with weights",
                                                     "here it is global batch 8, shuffled, last batch auto, every sample once;"])

    def test_no_file(self):
        for path in (self.top / "none", self.top, "/dev/zero"):
            self.refused(*self.base, "--resume", path, words=[path])
        os.mkfifo(self.top / "pipe")
        self.refused(*self.base, "--resume", self.top / "pipe", words=["pipe"])


if __name__ == "__main__":
    program.main()
