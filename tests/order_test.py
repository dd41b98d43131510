#!/usr/bin/python3
"""Orders that are relaxed: drawn by weight, echoed, partly shuffled. They too depend on data, seed and options only.

    tests/order_test.py FORELOAD [unittest arguments]
"""
import collections
import json

import ledger
import program
from program import ProgramTest

SAMPLES = 150
MASK = (1 << 64) - 1


class OrderTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.folder = self.ledger("ledger", SAMPLES)
        self.weights = self.top / "weights"
        self.weights.write_text("".join(f"{number % 3 / 4}\n" for number in range(SAMPLES)))
        self.orders = {"weighted": ("--weights", self.weights, "--epoch-samples", 400),
                       "echoed": ("--echo", 3), "in windows": ("--echo", 4, "--echo-window", 100),
                       "partly": ("--reshuffle", 0.2, "--homes", 3)}

    def run_job(self, *arguments, epochs=2):
        return self.report("run", self.folder, "--global-batch", 24, "--epochs", epochs, "--chain", ledger.chain(), "--seed", 5,
                           "--hash", "--last", "ragged", *arguments)

    def hashes(self, *arguments):
        return [(int(epoch["order_hash"], 16), int(epoch["content_hash"], 16)) for epoch in self.run_job(*arguments)["epochs"]]

    def ids(self, *arguments):
        log = self.top / "log"
        self.run_job("--log", log, *arguments, epochs=1)
        return [id for line in log.read_text().splitlines() for id in json.loads(line)["ids"]]

    def test_hashes_depend_on_nothing_else(self):
        seen = set(self.hashes())
        for name, order in self.orders.items():
            with self.subTest(name):
                reference = self.hashes(*order)
                self.assertTrue(seen.isdisjoint(reference), "another order")
                seen.update(reference)
                self.assertEqual(len(set(reference)), 2)
                self.assertEqual(self.hashes(*order, "--workers", 3, "--no-cache"), reference)
                self.assertEqual(self.hashes(*order, "--memory", "8MB", "--workers", 1, "--no-cache", "--io", "threads"),
                                 reference)
                ranks = [self.hashes(*order, "--world", 3, "--rank", rank) for rank in range(3)]
                sums = [tuple(sum(part) & MASK for part in zip(*epoch)) for epoch in zip(*ranks)]
                self.assertEqual(sums, reference)

    def test_how_often_each_sample_comes(self):
        everything = range(SAMPLES)
        self.assertEqual(collections.Counter(self.ids("--echo", 3)), {id: 3 for id in everything})
        self.assertEqual(sorted(self.ids("--reshuffle", 0.2, "--homes", 3)), list(everything))
        drawn = collections.Counter(self.ids("--weights", self.weights, "--epoch-samples", 5000))
        self.assertEqual(drawn.total(), 5000)
        self.assertEqual({id for id in everything if id % 3 == 0 and id in drawn}, set())
        twice, once = (sum(drawn[id] for id in everything if id % 3 == kind) for kind in (2, 1))
        self.assertTrue(1.8 < twice / once < 2.2, (twice, once))

    def test_echo_fetches_every_byte_once(self):
        for window in (24, SAMPLES):
            epoch = self.run_job("--echo", 4, "--echo-window", window, "--no-cache", epochs=1)["epochs"][0]
            self.assertEqual(epoch["samples"], 4 * SAMPLES)
            self.assertEqual(epoch["bytes"]["source"], SAMPLES * ledger.SIZE)

    def test_a_stopped_job_goes_on_where_it_was_also_with_another_world(self):
        for name, order in self.orders.items():
            with self.subTest(name):
                whole = self.hashes(*order)
                state = self.top / f"state {name}"
                first = self.run_job(*order, "--state", state, epochs=1)["epochs"]
                rest = [self.run_job(*order, "--resume", state, "--world", 2, "--rank", rank)["epochs"] for rank in (0, 1)]
                self.assertEqual(int(first[0]["order_hash"], 16), whole[0][0])
                self.assertEqual(sum(int(epochs[-1]["content_hash"], 16) for epochs in rest) & MASK, whole[1][1])
                other = self.foreload("run", self.folder, "--global-batch", 24, "--chain", ledger.chain(), "--seed", 5, "--last",
                                      "ragged", "--epochs", 2, "--resume", state)
                self.assertEqual(other.returncode, 1)
                self.assertIn("here it is", other.err)
                if name != "weighted":
                    self.assertIn("here it is every sample once", other.err)

    def test_bad_input_is_named(self):
        cases = [(("--weights", self.top / "none"), ["none"]), (("--epoch-samples", 5), ["epoch_samples 5", "--weights"]),
                 (("--weights", self.weights, "--in-order"), ["--weights", "--in-order"]),
                 (("--weights", self.weights, "--reshuffle", 0.5), ["--weights", "--reshuffle"]),
                 (("--echo", 2, "--reshuffle", 0.5), ["--echo", "--reshuffle"]), (("--echo-window", 5), ["echo_window 5", "--echo"]),
                 (("--reshuffle", "half"), ["--reshuffle", "half"]), (("--reshuffle", 2), ["--reshuffle", "2"]),
                 (("--homes", 2), ["homes 2", "--reshuffle"]), (("--echo", 1001), ["echo 1001"])]
        for number, (text, words) in enumerate([("1\n2\n", ["there are 2", "150"]), ("", ["is empty"]), ("1\n-2\n", ["line 2", "-2"]),
                                                ("1\nnan\n", ["line 2", "nan"]), ("1\n\n3\n", ["line 2"]), ("1 2\n", ["line 1", "1 2"]),
                                                ("1\n1e999\n", ["line 2", "1e999"]), ("x\u0007\n", ["line 1"]),
                                                ("0\n" * SAMPLES, ["all 150 are 0"])]):
            path = self.top / f"bad{number}"
            path.write_text(text)
            cases.append((("--weights", path), words))
        for flags, words in cases:
            done = self.foreload("run", self.folder, "--chain", ledger.chain(), *flags)
            self.assertIn(done.returncode, (1, 2), flags)
            for word in words:
                self.assertIn(word, done.err, flags)


if __name__ == "__main__":
    program.main()
