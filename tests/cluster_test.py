#!/usr/bin/python3
"""Several hosts keep every sample once and read it once, whatever becomes of them.

    tests/cluster_test.py FORELOAD [unittest arguments]
"""
import cluster
import ledger
import program
from cluster import Cluster
from program import ProgramTest

SAMPLES = 400
SIZE = 4096


class ClusterTest(ProgramTest):
    def setUp(self):
        super().setUp()
        if self.foreload("agent", "--host", "x", "--peers", "127.0.0.1:1", "--learners", 1, "--host-index", 0, "--status").returncode == 2:
            self.skipTest("this foreload has no transport between hosts")
        self.folder = self.ledger("set", SAMPLES, SIZE)
        self.bytes = SAMPLES * SIZE

    def run_of(self, *arguments, epochs=3, batch=40):
        return [self.folder, "--global-batch", batch, "--epochs", epochs, "--chain", ledger.chain(SIZE), "--seed", 7, "--hash",
                "--last", "ragged", *arguments]

    def reference(self, **options):
        return cluster.epochs([self.report("run", *self.run_of(**options))])

    def assert_same(self, reports, **options):
        """What one process delivers."""
        found = cluster.epochs(reports)
        for epoch, expected in zip(found, self.reference(**options), strict=True):
            for name in ("order_hash", "content_hash", "samples"):
                self.assertEqual(epoch[name], expected[name])
        return found


class SameHashesTest(ClusterTest):
    def test_one_two_and_four_hosts_deliver_the_same_and_read_it_once(self):
        for hosts in (1, 2, 4):
            for assignment in ("balanced", "slice"):
                with self.subTest(hosts=hosts, assignment=assignment):
                    job = Cluster(self, hosts)
                    job.start_agents()
                    found = self.assert_same(job.run(*self.run_of("--assignment", assignment, "--storage", f"8MB/s,2ms,bucket={self.top}/bucket{hosts}{assignment}", epochs=6)), epochs=6)
                    # What is read ahead counts for the epoch that runs meanwhile.
                    source = sum(epoch["bytes"]["source"] for epoch in found)
                    self.assertGreaterEqual(source, self.bytes)
                    self.assertLessEqual(source, self.bytes * 1.05, found)
                    self.assertEqual(found[-1]["bytes"]["source"], 0, found)
                    self.assertEqual(hosts > 1, sum(epoch["bytes"]["peer"] for epoch in found) > 0)
                    job.end_agents()


if __name__ == "__main__":
    program.main()
