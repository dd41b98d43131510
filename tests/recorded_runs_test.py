#!/usr/bin/python3
"""foreload analyze --record on records of real runs: the stage that was made slow is the one that it names, its figures
are those of the run's own report, and its trace is one that Chrome and Perfetto open.

    tests/recorded_runs_test.py FORELOAD [unittest arguments]
"""
import collections
import json
import os
import signal

import ledger
import program
from program import ProgramTest, wait_until


def nanoseconds(microseconds):
    return round(microseconds * 1000)


class RecordedRunTest(ProgramTest):
    def recorded(self, name, *arguments):
        """A record of a run, and the run's own report."""
        file = self.top / name
        return file, self.report("run", *arguments, "--record", file)

    def explained(self, *arguments):
        return self.report("analyze", *arguments)

    def assert_trace_opens(self, path):
        """As the format's description has it: spans of a track follow each other or nest, and begin in rising order."""
        trace = json.loads(path.read_text())
        events = trace["traceEvents"]
        names = {(one["pid"], one["tid"]): one["args"]["name"] for one in events if one["name"] == "thread_name"}
        processes = {one["pid"] for one in events if one["name"] == "process_name"}
        tracks = collections.defaultdict(list)
        spans = collections.Counter()
        for one in events:
            self.assertIn(one["ph"], "MXiC")
            self.assertIn(one["pid"], processes)
            if one["ph"] == "M":
                continue
            self.assertGreaterEqual(one["ts"], 0)
            if one["ph"] == "X":
                tracks[one["pid"], one["tid"]].append((nanoseconds(one["ts"]), nanoseconds(one["dur"])))
                spans[one["name"]] += 1
        for track, list_of_spans in tracks.items():
            self.assertIn(track, names)
            stack, last = [], 0
            for begin, length in list_of_spans:
                self.assertGreaterEqual(begin, last, names[track])
                self.assertGreaterEqual(length, 0)
                last = begin
                while stack and stack[-1] <= begin:
                    stack.pop()
                if stack:
                    self.assertLessEqual(begin + length, stack[-1], names[track])
                stack.append(begin + length)
        return spans, names


class LimitTest(RecordedRunTest):
    def limit(self, *arguments):
        file, run = self.recorded("record", *arguments)
        return self.explained("--record", file)["records"][0], run

    def test_fetch(self):
        # Arrays cost nothing to prepare, however busy the machine is.
        record, _ = self.limit(self.ledger("set", 64, size=1 << 16), "--epochs", 1, "--batch", 4, "--storage", "2MB/s",
                               "--no-cache", "--chain", ledger.chain(1 << 16))
        self.assertEqual(record["limit"], "fetch")
        self.assertGreater(record["stall"]["fetch"], 0.5)
        self.assertIn("fetch", {phase["limit"] for phase in record["phases"]})

    def test_prep(self):
        record, _ = self.limit(self.images(count=40), "--epochs", 2, "--batch", 4, "--workers", 1)
        self.assertEqual(record["limit"], "prep")
        self.assertGreater(record["prep"]["busy_share"], 0.5)
        self.assertEqual(record["prep"]["threads"], 1)

    def test_consumer(self):
        folder = self.ledger("set", 240)
        record, _ = self.limit(folder, "--epochs", 1, "--batch", 8, "--chain", ledger.chain(ledger.SIZE),
                               "--accelerator", 30)
        self.assertEqual(record["limit"], "consumer")

    def test_figures_are_those_of_the_run(self):
        folder = self.images(count=60)
        record, run = self.limit(folder, "--epochs", 3, "--batch", 7, "--storage", "20MB/s", "--seed", 5)
        self.assertEqual(len(record["epochs"]), 3)
        for told, own in zip(record["epochs"], run["epochs"]):
            self.assertEqual(told["samples"], own["samples"])
            self.assertEqual(told["batches"], own["batches"])
            # What is read ahead of need while an epoch ends counts for it or for the next.
            for origin, length in own["bytes"].items():
                self.assertLessEqual(abs(told["bytes"][origin] - length), own["filled_bytes"], f"{told} {own}")
            self.assertAlmostEqual(told["seconds"], own["seconds"], delta=0.02 + 0.02 * own["seconds"])
            for cause in ("fetch", "prep"):
                self.assertAlmostEqual(told["stall"][cause], own["stall"][cause], delta=0.03)
        for origin in ("memory", "disk", "peer", "source"):
            self.assertEqual(sum(told["bytes"][origin] for told in record["epochs"]),
                             sum(own["bytes"][origin] for own in run["epochs"]), origin)
        self.assertEqual(sum(window["batches"] for window in record["windows"]["list"]),
                         sum(epoch["batches"] for epoch in run["epochs"]))

    def test_learners_that_are_unequal(self):
        folder = self.ledger("set", 64, size=1 << 16)
        files = []
        for rank, storage in ((0, "1GB/s"), (1, "700kB/s")):
            files.append(self.recorded(f"rank{rank}", folder, "--epochs", 1, "--batch", 4, "--world", 2, "--rank", rank,
                                       "--storage", storage, "--no-cache", "--accelerator", 60, "--chain",
                                       ledger.chain(1 << 16))[0])
        learners = self.explained("--record", files[0], "--record", files[1])["learners"]
        self.assertTrue(learners["unequal"])
        self.assertEqual(learners["steps"], 8)
        by_rank = {one["rank"]: one for one in learners["list"]}
        self.assertGreater(by_rank[1]["slowest_steps"], by_rank[0]["slowest_steps"])
        self.assertGreater(by_rank[1]["wait_s"]["fetch"], by_rank[0]["wait_s"]["fetch"])
        self.assertEqual(learners["worst_steps"][0]["rank"], 1)
        text = self.foreload("analyze", "--record", files[0], "--record", files[1])
        self.assertIn("imbalance", text.out)
        self.assertIn("rank 1", text.out)

    def test_the_slowest_samples_have_names_when_the_dataset_is_given(self):
        folder = self.images(count=40)
        keys = [line.split("\t")[1] for line in self.foreload("index", folder, "--list").out.splitlines()]
        file, _ = self.recorded("record", folder, "--epochs", 1, "--batch", 4, "--storage", "1MB/s", "--no-cache")
        without = self.explained("--record", file)["records"][0]["slowest"]["reads"]
        self.assertIsNone(without[0]["name"])
        named = self.explained(folder, "--record", file)["records"][0]["slowest"]["reads"]
        self.assertEqual([one["id"] for one in named], [one["id"] for one in without])
        self.assertEqual([one["name"] for one in named], [keys[one["id"]] for one in named])
        other = self.images("other", count=20)
        done = self.foreload("analyze", other, "--record", file)
        self.assertEqual(done.returncode, 0, done.err)
        self.assertIn("another dataset", done.err)

    def test_text_fits_a_screen(self):
        file, _ = self.recorded("record", self.images(count=40), "--epochs", 12, "--batch", 4)
        done = self.foreload("analyze", "--record", file)
        self.assertEqual(done.returncode, 0, done.err)
        self.assertLessEqual(len(done.out.splitlines()), 24, done.out)

    def test_evictions_are_counted(self):
        folder = self.ledger("set", 64, size=1 << 20)
        record, _ = self.limit(folder, "--epochs", 3, "--batch", 4, "--chain", ledger.chain(1 << 20), "--memory", "64MiB",
                               "--eviction", "lru")
        self.assertGreater(record["counts"]["evicted"], 0)


class TraceTest(RecordedRunTest):
    def test_a_trace_opens_and_has_everything(self):
        file, run = self.recorded("record", self.images(count=60), "--epochs", 2, "--batch", 4, "--workers", 2,
                                  "--storage", "20MB/s")
        trace = self.top / "trace.json"
        before = file.read_bytes()
        self.explained("--record", file, "--chrome", trace)
        self.assertEqual(file.read_bytes(), before)
        spans, names = self.assert_trace_opens(trace)
        samples = sum(epoch["samples"] for epoch in run["epochs"])
        batches = sum(epoch["batches"] for epoch in run["epochs"])
        self.assertEqual(spans["prep"], samples)
        self.assertEqual(spans["batch"], batches)
        self.assertEqual(spans["read"] + spans["fill"], 60)
        self.assertTrue(any(name.startswith("prep thread") for name in names.values()))
        self.assertIn("consumer: next()", names.values())

    def test_learners_share_one_trace(self):
        folder = self.images(count=40)
        files = [self.recorded(f"rank{rank}", folder, "--epochs", 1, "--batch", 4, "--world", 2, "--rank", rank)[0]
                 for rank in range(2)]
        trace = self.top / "trace.json"
        self.explained("--record", files[0], "--record", files[1], "--chrome", trace)
        _, names = self.assert_trace_opens(trace)
        self.assertEqual({process for process, _ in names}, {1, 2})

    def test_the_record_itself_is_not_overwritten(self):
        file, _ = self.recorded("record", self.images(count=20), "--epochs", 1, "--batch", 4)
        before = file.read_bytes()
        link = self.top / "link"
        link.symlink_to(file)
        for out in (file, link):
            self.assert_fails(self.foreload("analyze", "--record", file, "--chrome", out), "record itself")
            self.assertEqual(file.read_bytes(), before)


class BadRecordTest(RecordedRunTest):
    def test_what_is_no_record(self):
        cases = {"empty": b"", "text": b"hello\n" * 100, "other": b"foreload\x02\0\0\0\x30\0\0\0",
                 "damaged": b"foreload\x01\0\0\0\x30\0\0\0" + b"\x7f" * 480}
        for name, content in cases.items():
            with self.subTest(name):
                (self.top / name).write_bytes(content)
                self.assert_fails(self.foreload("analyze", "--record", self.top / name), name)
        self.assert_fails(self.foreload("analyze", "--record", self.top / "missing"), "missing")
        self.assert_fails(self.foreload("analyze", "--record", self.top), "regular file")

    def test_a_record_without_events(self):
        (self.top / "none").write_bytes(b"foreload\x01\0\0\0\x30\0\0\0")
        self.assert_fails(self.foreload("analyze", "--record", self.top / "none"), "no events")

    def test_a_cut_record_is_read_as_far_as_it_goes(self):
        file, _ = self.recorded("record", self.images(count=40), "--epochs", 2, "--batch", 4)
        content = file.read_bytes()
        file.write_bytes(content[:len(content) // 2 + 13])
        record = self.explained("--record", file)["records"][0]
        self.assertEqual(record["events"], (len(content) // 2 + 13 - 16) // 48)

    def test_a_killed_run(self):
        folder = self.ledger("set", 2000)
        file = self.top / "record"
        process = self.start("run", folder, "--batch", 4, "--epochs", 100000, "--chain", ledger.chain(ledger.SIZE),
                             "--record", file)
        self.assertTrue(wait_until(lambda: file.exists() and file.stat().st_size > 1 << 20))
        process.send_signal(signal.SIGKILL)
        process.wait()
        record = self.explained("--record", file, "--chrome", self.top / "trace.json")["records"][0]
        self.assertGreater(record["batches"], 0)
        self.assert_trace_opens(self.top / "trace.json")

    def test_records_of_different_jobs(self):
        folder = self.images(count=40)
        one, _ = self.recorded("one", folder, "--epochs", 1, "--batch", 4)
        two, _ = self.recorded("two", folder, "--epochs", 1, "--batch", 8)
        self.assert_fails(self.foreload("analyze", "--record", one, "--record", two), "not of one job")
        self.assert_fails(self.foreload("analyze", "--record", one, "--record", one), "both of rank 0")

    def test_a_full_disk_is_an_error(self):
        file, _ = self.recorded("record", self.images(count=20), "--epochs", 1, "--batch", 4)
        if not os.path.exists("/dev/full"):
            self.skipTest("there is no /dev/full")
        self.assert_fails(self.foreload("analyze", "--record", file, "--chrome", "/dev/full"), "/dev/full")


if __name__ == "__main__":
    program.main()
