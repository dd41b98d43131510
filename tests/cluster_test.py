#!/usr/bin/python3
"""Several hosts keep every sample once and read it once, whatever becomes of them.

    tests/cluster_test.py FORELOAD [unittest arguments]
"""
import os
import signal
import time

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
                    cluster.undisturbed(lambda: self.check_hosts(hosts, assignment))

    def check_hosts(self, hosts, assignment):
        job = Cluster(self, hosts)
        job.start_agents()
        bucket = self.top / f"bucket-{time.monotonic_ns()}"
        paced = ["--storage", f"8MB/s,2ms,bucket={bucket}", "--accelerator", 1600 // hosts]
        found = self.assert_same(job.run(*self.run_of("--assignment", assignment, *paced, epochs=6)), epochs=6)
        job.end_agents()
        self.assertEqual(hosts > 1, sum(epoch["bytes"]["peer"] for epoch in found) > 0)
        # What is read ahead counts for the epoch that runs meanwhile; what a learner that ends has begun, for none.
        source = sum(epoch["bytes"]["source"] for epoch in found)
        self.assertGreaterEqual(source, self.bytes * 0.9)
        cluster.within_plan(source <= self.bytes * 1.02, found)
        cluster.within_plan(found[-1]["bytes"]["source"] == 0, found)


class CropTest(ClusterTest):
    PICTURES = 200

    def setUp(self):
        super().setUp()
        self.records = self.top / "records"
        self.report("convert", self.images(count=self.PICTURES), self.records)
        self.bytes = self.report("index", self.records)["dataset"]["bytes"]

    def run_of(self, *arguments, epochs=3):
        return [self.records, "--global-batch", 16, "--epochs", epochs, "--chain", "random_resized_crop(96),random_flip",
                "--dtype", "u8", "--seed", 7, "--hash", "--last", "ragged", "--workers", 1, *arguments]

    def run_two_hosts(self, *arguments):
        """With room for its own half on each host, and not for the other's: half of the memory is for that. Members start
        the agents, which then need none."""
        job = Cluster(self, 2, memory=self.bytes + 4_000_000)
        environment, learners = self.environment, []
        for rank in range(2):
            self.environment = {**environment, "GROUP_RANK": str(rank)}
            learners.append(job.start_learner(rank, *self.run_of("--assignment", "slice", *arguments)))
        self.environment = environment
        found = self.assert_same(job.reports(learners))
        for learner in learners:
            self.assertNotRegex(learner.err, "not the sample's|as a peer should")
        return found[-1]["bytes"]

    def test_a_home_sends_only_what_a_crop_needs_and_the_batches_are_the_same(self):
        cluster.undisturbed(self.check_cutting)

    def check_cutting(self):
        cut = self.run_two_hosts()
        # Where bad samples would be replaced, nobody takes parts of samples.
        whole = self.run_two_hosts("--on-error", "replace")
        for each in (cut, whole):
            cluster.within_plan(each["source"] < 0.1 * self.bytes, each)
        self.assertGreater(whole["peer"], 0.2 * self.bytes, whole)
        self.assertLess(cut["peer"], 0.65 * whole["peer"], (cut, whole))
        self.assertGreater(cut["peer"], 0.3 * whole["peer"], (cut, whole))

    def test_pictures_without_markers_come_whole(self):
        self.report("convert", self.images("again", count=self.PICTURES), self.top / "originals", "--keep-original")
        self.records = self.top / "originals"
        self.bytes = self.report("index", self.records)["dataset"]["bytes"]
        plain = self.run_two_hosts()
        self.assertGreater(plain["peer"], 0.2 * self.bytes)


class FaultTest(ClusterTest):
    EPOCHS = 30

    def setUp(self):
        super().setUp()
        self.job = Cluster(self, 2)
        self.job.start_agents()

    def slow_run(self, epochs=EPOCHS, rate=4000):
        """Some seconds; what one learner does not keep is asked of the other again and again. They have begun with that."""
        learners = self.job.start_learners(*self.run_of("--assignment", "slice", "--storage", "20MB/s,1ms", "--accelerator", rate,
                                                        epochs=epochs))
        program.wait_until(lambda: self.job.traffic(0)["peer"] > 0 or learners[0].poll() is not None)
        return learners

    def assert_harmless(self, learners, epochs=EPOCHS):
        reports = self.job.reports(learners)
        return self.assert_same(reports, epochs=epochs), reports

    def test_an_agent_that_is_killed_costs_the_source_some_reads(self):
        learners = self.slow_run()
        self.job.agents[1].kill()
        found, _ = self.assert_harmless(learners)
        self.assertGreater(sum(epoch["bytes"]["peer"] for epoch in found), 0)
        # A quarter of the samples are in memory on the other host only.
        self.assertEqual(found[-1]["bytes"]["peer"], 0, found[-1])
        self.assertGreater(found[-1]["bytes"]["source"], 0.1 * self.bytes, found[-1])

    def test_an_agent_that_comes_back_is_used_again(self):
        learners = self.slow_run(epochs=60, rate=1000)
        self.job.agents[1].kill()
        self.job.agents[1].wait()
        self.job.start_agent(1)
        found, _ = self.assert_harmless(learners, epochs=60)
        self.assertGreater(found[-1]["bytes"]["peer"], 0, [epoch["bytes"] for epoch in found])

    def test_an_agent_that_is_stopped_holds_nobody_up(self):
        learners = self.slow_run()
        for agent in self.job.agents:
            os.kill(agent.pid, signal.SIGSTOP)
        _, reports = self.assert_harmless(learners)
        # Who waits for a sample of a stopped agent waits for a second: without a breaker nearly every batch would.
        batches = self.EPOCHS * SAMPLES // 40
        for report in reports:
            self.assertLess(sum(epoch["seconds"] for epoch in report["epochs"]), batches / 2)
        for agent in self.job.agents:
            os.kill(agent.pid, signal.SIGCONT)
        again, _ = self.assert_harmless(self.slow_run(epochs=5), epochs=5)
        self.assertGreater(sum(epoch["bytes"]["peer"] for epoch in again), 0)


class MeasureTest(ClusterTest):
    def test_analyze_measures_the_way_to_the_other_hosts(self):
        job = Cluster(self, 2)
        job.start_agents()
        words = ["analyze", self.images(count=4), "--batch", 2, "--peers", job.peers, "--world", 2, "--rank", 0, "--local-world", 1]
        network = [row for row in self.report(*words, *job.keys())["measured"] if row["group"] == "network"]
        self.assertEqual(len(network), 1)
        self.assertGreater(network[0]["value"], 1)
        job.end_agents()


class StartedAgentTest(ClusterTest):
    def test_the_first_member_starts_an_agent_which_leaves_with_the_last(self):
        job = Cluster(self, 2, learners=2)
        job.credentials = job.new_credentials()
        environments = [{**self.environment, "GROUP_RANK": str(host)} for host in range(2)]
        learners = []
        for rank in range(4):
            self.environment = environments[rank // 2]
            learners.append(job.start_learner(rank, *self.run_of()))
        self.assert_same(job.reports(learners))
        gone = program.wait_until(lambda: all(self.foreload("agent", "--host", job.host(host), "--status").returncode == 1
                                              for host in range(2)), 10)
        self.assertTrue(gone, "agents are left")


if __name__ == "__main__":
    program.main()
