#!/usr/bin/python3
"""foreload analyze: it names the bottleneck that was built in, its advice can be followed, and from nothing it concludes nothing.

    tests/analyze_test.py FORELOAD [unittest arguments]
"""
import json
import pathlib
import shlex
import signal
import time

import program
from program import RefusalTest

program.DEADLINE = 240  # an analysis takes up to a minute of a machine that has nothing else to do
IMAGES = 120
PRICES = "currency = EUR\ncore_hour = 0.04\ngb_hour = 0.005\ngpu_hour = 2.5\n"
KEYS = ["version", "dataset", "machine", "job", "measured", "missing", "prediction", "what_if", "choices", "remedies",
        "raw_against_record", "prices", "check", "seconds", "bytes_read"]


class AnalyzeTest(RefusalTest):
    def setUp(self):
        super().setUp()
        self.folder = self.images(count=IMAGES)

    def analyze(self, *arguments):
        report = self.report("analyze", self.folder, "--batch", 8, *arguments)
        self.assertEqual([key for key in KEYS if key not in report], [])
        return report

    def assert_shares(self, part):
        self.assertAlmostEqual(part["busy"] + part["fetch_stall"] + part["prep_stall"], 1, places=6)
        self.assertEqual(part["busy"], part["utilisation"])

    def assert_bound(self, report, bound):
        """The bottleneck, in the whole report."""
        prediction = report["prediction"]
        self.assertEqual(prediction["bound"], bound, report["measured"])
        self.assert_shares(prediction)
        self.assert_shares(prediction["first_epoch"])
        self.assertLessEqual(prediction["low"], prediction["samples_per_s"])
        self.assertGreaterEqual(prediction["high"], prediction["samples_per_s"])
        rates = {name: prediction[f"{name}_samples_per_s"] for name in ("fetch", "prep", "accelerator")}
        self.assertEqual(min(rates, key=lambda name: rates[name] if rates[name] is not None else float("inf")), bound)
        for curve in report["what_if"]:
            places = [point["x"] for point in curve["points"]]
            self.assertEqual(places, sorted(places), curve["name"])
            if curve["here"] is not None:
                here = min(curve["points"], key=lambda point: abs(point["x"] - curve["here"]))
                self.assertAlmostEqual(here["samples_per_s"] / prediction["samples_per_s"], 1, places=3, msg=curve["name"])


class BottleneckTest(AnalyzeTest):
    def test_slow_storage_is_fetch_bound_the_advice_can_be_followed_and_the_check_runs_the_loader(self):
        page = self.top / "report.html"
        report = self.analyze("--storage", "8MB/s,1ms", "--memory", "64MiB", "--no-cache", "--accelerator", 5000,
                              "--report", page, "--check")
        self.assert_bound(report, "fetch")
        storage = [row for row in report["measured"] if row["group"] == "storage" and row["unit"] == "MB/s"]
        self.assertAlmostEqual(max(row["value"] for row in storage), 8, delta=1.5)
        titles = [remedy["title"] for remedy in report["remedies"]]
        self.assertTrue(any(title.startswith("storage of ") for title in titles), titles)
        cache = next(remedy for remedy in report["remedies"] if remedy["title"].startswith("cache "))
        self.assertGreater(cache["gain"], 0.5)
        self.follow(cache["command"])
        self.assertIn("Your accelerator waits", page.read_text())
        self.assertIn(cache["command"].replace("&", "&amp;").split(" --")[0], page.read_text())
        self.assert_checked(report)

    def assert_checked(self, report):
        """Storage of half the rate that is needed: with half of the samples cached it is enough, with none it is not."""
        here, nothing, half = report["check"]
        self.assertEqual(here["point"], "as it is")
        self.assertIn("nothing cached", nothing["point"])
        self.assertIn("half cached", half["point"])
        for point in report["check"]:
            self.assertGreater(point["measured"], 0)
            self.assertAlmostEqual(point["off"], point["predicted"] / point["measured"] - 1, places=6)
        self.assertGreater(half["predicted"], 1.4 * nothing["predicted"])
        self.assertLess(here["predicted"], 1.2 * 8e6 / report["dataset"]["mean_bytes"])

    def follow(self, command):
        words = shlex.split(command)
        self.assertEqual(words[:2], ["foreload", "run"])
        done = self.foreload(*words[1:], "--epochs", 2, "--json")
        self.assertEqual(done.returncode, 0, done.err)
        self.assertEqual(json.loads(done.out)["epochs"][1]["bytes"]["source"], 0)

    def test_few_cores_are_prep_bound(self):
        report = self.analyze("--workers", 1, "--accelerator", 100_000)
        self.assert_bound(report, "prep")
        self.assertNotIn("hosts", [curve["name"] for curve in report["what_if"]], "nobody knows the network")
        self.assertIn("network", [entry["what"] for entry in report["missing"]])
        self.assertGreater(report["prediction"]["prep_stall"], 0.5)
        forms = report["raw_against_record"]
        self.assertEqual({key for key, value in forms.items() if value}, {"raw", "record", "crop_addressable", "samples"})
        self.assertIn("form", [choice["name"] for choice in report["choices"]])

    def test_a_slow_accelerator_does_not_wait(self):
        prices, record = self.top / "prices", self.top / "run.events"
        prices.write_text(PRICES)
        few = self.images("few", count=12)
        self.report("run", few, "--batch", 2, "--accelerator", 2, "--record", record)  # its steps tell its rate
        report = self.analyze("--accelerator", record, "--prices", prices)
        self.assertLess(report["prediction"]["accelerator_samples_per_s"], 2.1)
        self.assertGreater(report["prediction"]["accelerator_samples_per_s"], 0.5)
        self.assert_bound(report, "accelerator")
        self.assertEqual(report["prediction"]["busy"], 1)
        self.assertEqual(report["remedies"], [])
        self.assertEqual(report["prices"]["currency"], "EUR")
        self.assertGreaterEqual(report["prices"]["cheapest"]["utilisation"], 0.949)
        self.assertLessEqual(report["prices"]["cheapest"]["per_million_samples"],
                             1.0001 * report["prices"]["here"]["per_million_samples"])

    def test_without_an_accelerator_nobody_is_said_to_wait(self):
        report = self.analyze("--storage", "8MB/s,1ms", "--memory", "64MiB", "--network", "1GB/s")
        for name in ("utilisation", "busy", "fetch_stall", "prep_stall", "accelerator_samples_per_s"):
            self.assertIsNone(report["prediction"][name], name)
        for point in (point for curve in report["what_if"] for point in curve["points"]):
            self.assertEqual((point["fetch_stall"], point["prep_stall"]), (None, None))
        self.assertIn("hosts", [curve["name"] for curve in report["what_if"]])
        self.assertNotIn("network", [entry["what"] for entry in report["missing"]])

    def test_the_summary_fits_a_screen_and_leaves_nothing_behind(self):
        before = self.tree()
        done = self.foreload("analyze", self.folder, "--batch", 8, "--accelerator", 100_000)
        self.assertEqual(done.returncode, 0, done.err)
        lines = done.out.splitlines()
        self.assertLessEqual(len(lines), 24, done.out)
        for word in ("Predicted: ", "prep limits", "Measured: ", "What would help:"):
            self.assertIn(word, done.out)
        self.assertEqual(self.tree(), before)


class BadInputTest(AnalyzeTest):
    def test_a_dataset_that_is_not_there(self):
        self.refused("analyze", self.top / "nowhere", words=[self.top / "nowhere"])

    def test_wrong_usage(self):
        self.refused("analyze", words=["URI"], codes=(2,))
        self.refused("analyze", self.folder, "--accelerator", "fast", words=["fast", "resnet50-a100"], codes=(2,))
        self.refused("analyze", self.folder, "--chrome", self.top / "x", words=["--record"], codes=(2,))
        self.refused("analyze", self.folder, "--workers", 0, words=["--workers 0"], codes=(2,))
        self.refused("analyze", self.folder, "--network", "fast", words=["--network fast", "1GB/s"], codes=(2,))
        self.refused("analyze", self.folder, "--report", self.top / "none" / "x.html", words=[self.top / "none"])
        self.refused("analyze", self.folder, "--report", self.top, words=["folder"], codes=(2,))

    def test_wrong_prices_are_refused_before_anything_is_measured(self):
        prices = self.top / "prices"
        for text, words in (("", ["has no core_hour"]), (PRICES + "core_hour = 1", ["line 5", "twice"]),
                            (PRICES.replace("2.5", "a lot"), ["line 4", "a lot"]), ("{}", ["line 1"]),
                            ("\0" * 100, ["line 1"]), ("x" * 100_000, [])):
            prices.write_text(text)
            started = time.monotonic()
            self.refused("analyze", self.folder, "--prices", prices, words=[prices, *words])
            self.assertLess(time.monotonic() - started, 20)
        self.refused("analyze", self.folder, "--prices", self.top / "nothing", words=[self.top / "nothing"])

    def test_too_few_samples_give_no_prediction(self):
        few = self.top / "few" / "a"
        few.mkdir(parents=True)
        for path in sorted(pathlib.Path(self.folder).rglob("*.jpg"))[:2]:
            path.rename(few / path.name)
        report = self.report("analyze", few.parent, "--batch", 1, "--accelerator", 1000)
        self.assertIsNone(report["prediction"])
        self.assertEqual((report["what_if"], report["choices"], report["remedies"]), ([], [], []))
        self.assertTrue(all(entry["what"] and entry["why"] for entry in report["missing"]))
        self.assertIn("prep", [entry["what"] for entry in report["missing"]])
        text = self.foreload("analyze", few.parent, "--batch", 1, "--accelerator", 1000, "--report", self.top / "r.html")
        self.assertEqual(text.returncode, 0, text.err)
        self.assertIn("Too little could be measured", text.out)
        self.assertIn("Too little could be measured", (self.top / "r.html").read_text())

    def test_samples_that_are_no_images_are_told(self):
        self.refused("analyze", self.ledger("set", 50), "--batch", 8, words=["transforms"])

    def test_a_signal_ends_it_at_once_and_nothing_is_left(self):
        self.report("index", self.folder)
        before = self.tree()
        for number, wait in ((signal.SIGINT, 1), (signal.SIGTERM, 3), (signal.SIGHUP, 7)):
            process = self.start("analyze", self.folder, "--batch", 8, "--json")
            time.sleep(wait)
            process.send_signal(number)
            sent = time.monotonic()
            out, err = process.communicate(timeout=program.DEADLINE)
            self.assertLess(time.monotonic() - sent, 15)
            self.assertEqual(process.returncode, program.stop_code(number), err)
            self.assertTrue(program.is_group_empty(process.pid))
            self.assertEqual(self.tree(), before)
            if out:
                self.assertEqual(json.loads(out)["error"]["code"], "Cancelled")


class RecordTest(AnalyzeTest):
    def test_a_recorded_run_is_explained(self):
        record, trace = self.top / "run.events", self.top / "trace.json"
        self.report("run", self.folder, "--batch", 8, "--epochs", 2, "--record", record)
        report = self.report("analyze", "--record", record, "--chrome", trace)
        self.assertEqual(report["command"], "analyze")
        self.assertTrue(json.loads(trace.read_text()))

    def test_a_record_that_is_not_there(self):
        self.refused("analyze", "--record", self.top / "nothing", words=[self.top / "nothing"])


if __name__ == "__main__":
    program.main()
