#!/usr/bin/python3
"""The command line as a person or a script sees it: output, exit codes, signals.

    tests/cli/cli_test.py FORELOAD [unittest arguments]
"""
import hashlib
import json
import os
import pathlib
import pty
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import time
import unittest

FORELOAD = ""


def foreload(*arguments, **options):
    return subprocess.run([FORELOAD, *map(str, arguments)], capture_output=True, text=True, timeout=120, **options)


def content(folder):
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(folder.rglob("*")) if path.is_file()}


class CliTest(unittest.TestCase):
    def setUp(self):
        self.top = pathlib.Path(tempfile.mkdtemp(prefix="foreload-cli-"))
        self.addCleanup(shutil.rmtree, self.top)

    def generate(self, name, *arguments):
        done = foreload("generate", self.top / name, "--images", 12, "--classes", 3, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.top / name

    def assert_fails(self, done, code, *words):
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertTrue(done.stderr.startswith("foreload: "), done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)


class FrameTest(CliTest):
    def test_version_and_help_are_no_errors(self):
        self.assertRegex(foreload("--version").stdout, r"^foreload \d+\.\d+\.\d+\n$")
        self.assertEqual(foreload("--help").returncode, 0)
        for command in ("generate", "index"):
            done = foreload(command, "--help")
            self.assertEqual(done.returncode, 0)
            self.assertIn("Examples:", done.stdout)
            self.assertIn(f"foreload {command} ", done.stdout)

    def test_wrong_usage_is_exit_code_2(self):
        self.assert_fails(foreload(), 2, "--help")
        self.assert_fails(foreload("nonsense"), 2, "nonsense")
        self.assert_fails(foreload("generate"), 2, "DIR")
        self.assert_fails(foreload("generate", self.top / "x", "--images", "many"), 2, "--images")
        self.assert_fails(foreload("generate", self.top / "x", "--colour"), 2, "--colour")
        self.assertEqual(list(self.top.iterdir()), [])

    def test_mistyped_words_get_a_suggestion(self):
        for arguments, meant in ((["rnu", "x"], "did you mean run?"), (["gen"], "did you mean generate?"),
                                 (["run", "x", "--epoch", "3"], "for --epoch, did you mean --epochs?"),
                                 (["run", "x", "--epohcs=3"], "for --epohcs, did you mean --epochs?"),
                                 (["bench", "prep", "--phots", "x"], "did you mean --photos?"),
                                 (["--vers"], "did you mean --version?")):
            self.assert_fails(foreload(*arguments), 2, meant)
        for arguments in (["nonsense"], ["run", "x", "--colour"], ["run", "x", "--" + 1000 * "y"], [""], ["run", "x", "--"]):
            self.assertNotIn("did you mean", foreload(*arguments).stderr)

    def test_help_fits_80_columns(self):
        for arguments in ([], ["generate"], ["index"], ["convert"], ["run"], ["bench"], ["bench", "prep"], ["analyze"],
                          ["doctor"]):
            done = foreload(*arguments, "--help")
            self.assertEqual([line for line in done.stdout.splitlines() if len(line) > 80], [], arguments)

    def test_accelerators_are_documented_with_their_rates(self):
        usage = (pathlib.Path(__file__).resolve().parents[2] / "docs" / "usage.md").read_text()
        text = " ".join(foreload("run", "--help").stdout.split("Accelerators (samples/s): ")[1].split())
        for preset in text.split(", "):
            name, rate = preset.split()
            self.assertIn(f"| `{name}` | {rate} |", usage)

    def test_errors_are_json_too_when_asked(self):
        for arguments, code in ((["index", self.top / "missing", "--json"], "NotFound"),
                                (["generate", "--json", "--images", "many", "x"], "Invalid")):
            report = json.loads(foreload(*arguments).stdout)
            self.assertEqual((report["schema"], report["command"]), (1, arguments[0]))
            self.assertEqual(report["error"]["code"], code)
            self.assertTrue(report["error"]["message"])

    def test_output_that_can_not_be_written_is_a_failure(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([FORELOAD, "generate", self.top / "x", "--images", "1", "--classes", "1", "--json"],
                                  stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("standard output", done.stderr)


class GenerateTest(CliTest):
    def test_reports_what_it_made_and_makes_it_once(self):
        arguments = ["generate", self.top / "set", "--images", 12, "--classes", 3, "--seed", 4, "--json"]
        first, second = (json.loads(foreload(*arguments).stdout) for _ in range(2))
        self.assertEqual((first["schema"], first["command"], first["images"], first["made"]), (1, "generate", 12, 12))
        self.assertEqual((second["made"], second["bytes"]), (0, first["bytes"]))
        self.assertEqual(first["bytes"], sum(path.stat().st_size for path in self.top.rglob("*.jpg")))

    def test_refuses_folders_that_are_not_its_own(self):
        folder = self.generate("set")
        before = content(folder)
        self.assert_fails(foreload("generate", folder, "--images", 13), 2, str(folder), "other options")
        self.assertEqual(content(folder), before)
        (self.top / "mine").mkdir()
        (self.top / "mine" / "file").write_text("precious")
        self.assert_fails(foreload("generate", self.top / "mine"), 2, "not empty")
        self.assert_fails(foreload("generate", self.top / "mine" / "file"), 1, str(self.top / "mine" / "file"))

    def test_stops_on_signals_and_continues(self):
        whole = self.top / "whole"
        arguments = ["--images", 60, "--classes", 3]
        self.assertEqual(foreload("generate", whole, *arguments).returncode, 0)
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            folder = self.top / f"part{code}"
            process = subprocess.Popen([FORELOAD, "generate", folder, *map(str, arguments)], stderr=subprocess.PIPE)
            deadline = time.monotonic() + 20
            while time.monotonic() < deadline and len(list(folder.rglob("*.jpg"))) < 5:
                time.sleep(0.005)
            process.send_signal(number)
            _, errors = process.communicate(timeout=5)
            self.assertEqual(process.returncode, code, errors)
            self.assertLess(len(list(folder.rglob("*.jpg"))), 60)
            self.assertEqual(foreload("generate", folder, *arguments).returncode, 0)
            self.assertEqual(content(folder), content(whole))

    def test_names_the_next_command_which_works(self):
        for name, arguments in (("set", []), ("with blank's", []), ("tars", ["--tar", 5])):
            done = foreload("generate", self.top / name, "--images", 12, "--classes", 3, *arguments)
            command = done.stdout.splitlines()[-1]
            self.assertTrue(command.startswith("next: "), done.stdout)
            run = subprocess.run(command.removeprefix("next: "), shell=True, capture_output=True, text=True)
            self.assertEqual((run.returncode, run.stderr), (0, ""), command)
            self.assertIn("12 samples", run.stdout)
        done = foreload("generate", self.top / "set", "--images", 12, "--classes", 3, "--json")
        self.assertEqual(json.loads(done.stdout)["made"], 0)
        self.assertRegex(done.stderr, r"^next: \S+ run ")

    def test_one_is_not_many(self):
        done = foreload("generate", self.top / "one", "--images", 1, "--classes", 1)
        self.assertIn(": 1 image in 1 class, ", done.stdout)
        done = foreload("run", self.top / "one", "--batch", 1, "--workers", 1)
        self.assertIn(": 1 sample, ", done.stdout)
        self.assertIn("; 1 prep thread, ", done.stdout)

    def test_shows_progress_only_on_a_terminal(self):
        arguments = [FORELOAD, "generate", str(self.top / "a"), "--images", "60"]
        self.assertEqual(subprocess.run(arguments, capture_output=True).stderr, b"")
        main, other = pty.openpty()
        arguments[2] = str(self.top / "b")
        done = subprocess.run(arguments, stdout=subprocess.DEVNULL, stderr=other, env={**os.environ, "TERM": "xterm"})
        os.close(other)
        self.assertEqual(done.returncode, 0)
        seen = os.read(main, 1 << 16).decode()
        os.close(main)
        self.assertRegex(seen, r"generating  \d+ / 60 images  \d+ %  \d+/s  \d:\d\d left")
        self.assertTrue(seen.endswith("\r\x1b[K"), seen)


class IndexTest(CliTest):
    def index(self, *arguments):
        done = foreload("index", *arguments, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_shows_count_bytes_classes_and_lengths(self):
        folder = self.generate("set")
        sizes = sorted(path.stat().st_size for path in folder.rglob("*.jpg"))
        report = self.index(folder)
        self.assertEqual(report["dataset"]["samples"], 12)
        self.assertEqual(report["dataset"]["bytes"], sum(sizes))
        self.assertEqual(report["classes"], ["class_00000", "class_00001", "class_00002"])
        self.assertEqual((report["length"]["min"], report["length"]["max"]), (sizes[0], sizes[-1]))
        self.assertEqual(report["labelled"], 12)
        text = foreload("index", folder)
        self.assertEqual(text.returncode, 0)
        self.assertIn(report["dataset"]["fingerprint"], text.stdout)

    def test_folder_and_tar_of_the_same_samples_have_one_fingerprint(self):
        folder, tars = self.generate("set"), self.generate("tars", "--tar", 5)
        one = self.index(folder)["dataset"]
        other = self.index(f"{tars}/shard-{{000000..000002}}.tar")["dataset"]
        self.assertEqual(one["fingerprint"], other["fingerprint"])
        self.assertEqual((one["samples"], one["bytes"]), (other["samples"], other["bytes"]))

    def test_a_list_has_a_line_per_sample(self):
        folder = self.generate("set")
        report = self.index(folder, "--list")
        found = [(row["id"], row["key"], row["bytes"], row["label"]) for row in report["list"]]
        files = sorted(path for path in folder.rglob("*.jpg"))
        self.assertEqual(found, [(number, str(path.relative_to(folder)), path.stat().st_size, int(path.parent.name[-1]))
                                 for number, path in enumerate(files)])
        self.assertNotIn("list", self.index(folder))
        text = foreload("index", folder, "--list")
        self.assertEqual((text.returncode, text.stderr), (0, ""))
        self.assertEqual(text.stdout, "".join("\t".join(map(str, row)) + "\n" for row in found))
        flat = self.top / "flat"
        flat.mkdir()
        (flat / "a\tb.jpg").write_bytes(files[0].read_bytes())
        self.assertEqual(foreload("index", flat, "--list").stdout, f"0\ta\\x09b.jpg\t{files[0].stat().st_size}\t\n")
        self.assertIsNone(self.index(flat, "--list")["list"][0]["label"])

    def test_dimensions_are_collected_once_and_kept(self):
        folder = self.generate("set")
        self.assertEqual(self.index(folder)["dimensions"]["known"], 0)
        collected = self.index(folder, "--dimensions")["dimensions"]
        self.assertEqual(collected["known"], 12)
        self.assertGreater(collected["width"]["min"], 0)
        self.assertEqual(self.index(folder)["dimensions"], collected)

    def test_an_undecodable_header_is_a_warning_that_names_it(self):
        folder = self.generate("set")
        (folder / "class_00001" / "bad.jpg").write_bytes(b"no picture")
        done = foreload("index", folder, "--dimensions", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("bad.jpg", done.stderr)
        self.assertEqual(json.loads(done.stdout)["dimensions"]["known"], 12)

    def test_subset_takes_ids_keys_and_files(self):
        folder = self.generate("set")
        self.assertEqual(self.index(folder, "--subset", "3,0,3")["dataset"]["samples"], 3)
        self.assertEqual(self.index(folder, "--subset", "class_00000/00000001.jpg")["dataset"]["samples"], 1)
        (self.top / "ids").write_text("1\n2\r\n\n5\n")
        self.assertEqual(self.index(folder, "--subset", f"@{self.top}/ids")["dataset"]["samples"], 3)
        self.assertNotEqual(foreload("index", folder, "--subset", "12").returncode, 0)

    def test_bad_places_are_named(self):
        self.assert_fails(foreload("index", self.top / "missing"), 1, "missing")
        (self.top / "empty").mkdir()
        done = foreload("index", self.top / "empty")
        self.assertIn(done.returncode, (1, 2))
        self.assertIn("empty", done.stderr)


    def test_a_folder_one_level_too_high_is_doubted(self):
        self.generate("data/train")
        done = foreload("index", self.top / "data")
        self.assertEqual((done.returncode, done.stderr.splitlines()),
                         (0, [f"foreload: warning: {self.top}/data: 1 class holds all samples: is its folder train meant?"]))
        shutil.copytree(self.top / "data" / "train", self.top / "data" / "val")
        self.assertIn("all 2 classes hold folders and no files: is one of them meant, as train?",
                      foreload("index", self.top / "data").stderr)
        self.assertEqual(foreload("index", self.top / "data" / "train").stderr, "")

    def test_a_new_index_tells_what_changed(self):
        folder = self.generate("set")
        self.assertEqual(foreload("index", folder).stderr, "")
        gone, kept = sorted(folder.rglob("*.jpg"))[:2]
        gone.unlink()
        for name in ("x.jpg", "y.jpg"):
            shutil.copy(kept, folder / "class_00002" / name)
        self.assertEqual(foreload("run", folder, "--batch", 4).stderr,
                         f"foreload: warning: {folder}: changed since it was indexed, +2 samples, -1: indexed anew\n")
        self.assertEqual(foreload("index", folder).stderr, "")


class RunTest(CliTest):
    def test_a_batch_that_is_too_large_is_refused_with_the_ways_out(self):
        folder = self.generate("set")
        self.assert_fails(foreload("run", folder), 2, "global batch of 64", "12 samples", "--last", "ragged", "pad")
        self.assertEqual(foreload("run", folder, "--last", "ragged").returncode, 0)

    def test_of_very_many_epochs_the_last_ones_are_reported(self):
        folder = self.top / "arrays"
        folder.mkdir()
        (folder / "sample.bin").write_bytes(bytes(500))
        done = foreload("run", folder, "--batch", 1, "--chain", "array(u8, 500, headerless=1)", "--epochs", 10_003, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        self.assertEqual([epoch["epoch"] for epoch in report["epochs"]], list(range(3, 10_003)))
        self.assertEqual(report["epochs_left_out"], 3)

    def test_table_and_progress_fit_80_columns(self):
        folder = self.generate("set")
        main, other = pty.openpty()
        termios.tcsetwinsize(other, (24, 80))
        done = subprocess.run([FORELOAD, "run", folder, "--batch", "2", "--accelerator", "20", "--workers", "1"],
                              stdout=subprocess.PIPE, stderr=other, text=True, env={**os.environ, "TERM": "xterm"})
        os.close(other)
        seen = os.read(main, 1 << 16).decode()
        os.close(main)
        self.assertEqual(done.returncode, 0, seen)
        table = done.stdout.splitlines()[1:]  # behind the line that begins with the dataset's name
        self.assertLessEqual(max(map(len, table)), 80, done.stdout)
        lines = [line for line in seen.split("\r\x1b[K") if line.startswith("epoch 0")]
        self.assertTrue(lines, seen)
        for line in lines:
            self.assertLess(len(line), 80)
            self.assertRegex(line, r"stall: fetch \d+ %, prep \d+ %$")


class BenchTest(CliTest):
    def test_bench_takes_whatever_run_takes(self):
        header = b"{'descr': '|u1', 'fortran_order': False, 'shape': (4, 4), }".ljust(117) + b"\n"
        (self.top / "arrays").mkdir()
        for number in range(8):
            array = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(16)
            (self.top / "arrays" / f"{number}.npy").write_bytes(array)
        done = foreload("bench", self.top / "arrays", "--batch", 4, "--rounds", 1, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(json.loads(done.stdout)["prep_one_thread_samples_per_s"], 0)

    def test_bench_prep_reports_figures_with_their_goals(self):
        done = foreload("bench", "prep", "--rounds", 1, "--images", 2, "--python", self.top / "none", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        figures = {figure["name"]: figure for figure in report["figures"]}
        self.assertLessEqual({"prep/raw_against_region_decode", "prep/resize_flip_normalise_share",
                              "prep/resize_against_scalar", "prep/converted_against_raw", "prep/converted_against_limit",
                              "prep/converted_size", "prep/converted_bytes_touched"}, set(figures))
        for figure in figures.values():
            self.assertEqual(list(figure), ["name", "value", "unit", "goal", "ok", "how"])
            self.assertGreater(figure["value"], 0)
        self.assertNotIn("prep/resize_against_pillow", figures)
        self.assertLessEqual({"Pillow", "torchvision"}, {reason.split(":")[0] for reason in report["skipped"]})

    def test_bench_prep_takes_photographs(self):
        folder = self.generate("photos")
        done = foreload("bench", "prep", "--photos", folder, "--rounds", 1, "--images", 3, "--python", self.top / "none")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("photographs", done.stdout)
        self.assertLessEqual(max(map(len, done.stdout.splitlines())), 100, done.stdout)
        self.assert_fails(foreload("bench", "prep", "--photos", self.top / "missing"), 1, "missing")
        self.assert_fails(foreload("bench"), 2, "URI")


if __name__ == "__main__":
    FORELOAD = os.path.abspath(sys.argv.pop(1))
    unittest.main()
