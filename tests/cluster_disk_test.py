#!/usr/bin/python3
"""Homes on the disks of hosts: what memories do not hold, disks do, for all hosts, over restarts, deaths and damage.

    tests/cluster_disk_test.py FORELOAD [unittest arguments]
"""
import json
import os
import signal
import time

import cluster
import ledger
import program
from cluster import Cluster
from program import ProgramTest, wait_until

SAMPLES = 1600
SIZE = 64 << 10
BATCH = 40
MEMORY = 32 << 20  # of a host, for each learner: two such hosts hold a third of the dataset
ENDLESS = 10**7


class DiskTest(ProgramTest):
    def setUp(self):
        super().setUp()
        if self.foreload("agent", "--host", "x", "--peers", "127.0.0.1:1", "--learners", 1, "--host-index", 0, "--status").returncode == 2:
            self.skipTest("this foreload has no transport between hosts")
        self.folder = self.ledger("set", SAMPLES, SIZE)
        self.bytes = SAMPLES * SIZE

    def job(self, hosts=2, learners=1, disk_size=None):
        """Agents are started by the learners."""
        self.disk = self.top / f"disks{time.monotonic_ns()}"
        self.disk.mkdir()
        self.disk_size = ["--disk-size", disk_size] if disk_size else []
        return Cluster(self, hosts, learners=learners, memory=MEMORY * learners)

    def run_of(self, *arguments, epochs=6):
        return [self.folder, "--global-batch", BATCH, "--epochs", epochs, "--chain", ledger.chain(SIZE), "--seed", 7, "--hash",
                "--last", "ragged", "--workers", 1, *arguments]

    def start_learner(self, job, rank, *arguments):
        host = rank // job.learners
        self.environment["GROUP_RANK"] = str(host)
        return job.start_learner(rank, *arguments, "--disk", self.disk / f"host{host}", *self.disk_size)

    def start_learners(self, job, *arguments, own=lambda rank: []):
        return [self.start_learner(job, rank, *arguments, *own(rank)) for rank in range(job.hosts * job.learners)]

    def run_job(self, job, *arguments, epochs=6):
        """What all learners report of each epoch, which is what one process delivers."""
        # Learners that leave cores to those who serve them: an epoch takes a second.
        pace = ["--accelerator", SAMPLES // (job.hosts * job.learners)]
        reports = job.reports(self.start_learners(job, *self.run_of(*pace, *arguments, epochs=epochs)))
        found = cluster.epochs(reports)
        expected = cluster.epochs([self.report("run", *self.run_of(epochs=epochs))])
        for epoch, wanted in zip(found, expected, strict=True):
            for name in ("order_hash", "content_hash", "samples"):
                self.assertEqual(epoch[name], wanted[name])
        self.wait_for_agents(job)
        return [epoch["bytes"] for epoch in found]

    def wait_for_agents(self, job):
        gone = wait_until(lambda: all(self.foreload("agent", "--host", job.host(host), "--status").returncode == 1
                                      for host in range(job.hosts)), 20)
        self.assertTrue(gone, "agents are left")


class SharedDisksTest(DiskTest):
    def assert_read_once(self, job, found):
        source = sum(epoch["source"] for epoch in found)
        # What is not there in time is read again: the machine may be slow.
        cluster.within_plan(source <= self.bytes * 1.3, found)
        self.assertGreaterEqual(source, self.bytes * 0.9, found)
        last = [epoch["source"] for epoch in found[2:]]
        cluster.within_plan(min(last) == 0, found)
        cluster.within_plan(max(last) <= self.bytes * 0.01, found)
        self.assertGreater(found[-1]["disk"], self.bytes * 0.2, found)
        self.assertGreater(found[-1]["memory"], self.bytes * 0.1, found)
        if job.hosts > 1:
            self.assertGreater(found[-1]["peer"], 0, found)

    def test_disks_hold_what_memories_do_not(self):
        for hosts, learners, assignment in ((2, 1, "balanced"), (2, 1, "slice"), (2, 2, "balanced"), (1, 2, "slice")):
            with self.subTest(hosts=hosts, learners=learners, assignment=assignment):
                cluster.undisturbed(lambda: self.check_hosts(hosts, learners, assignment))

    def check_hosts(self, hosts, learners, assignment):
        job = self.job(hosts, learners)
        self.assert_read_once(job, self.run_job(job, "--assignment", assignment))
        again = self.run_job(job, "--assignment", assignment, epochs=2)
        cluster.within_plan(sum(epoch["source"] for epoch in again) <= self.bytes * 0.05, again)

    def test_small_disks_hold_their_part(self):
        job = self.job(disk_size="20MB")
        found = self.run_job(job)
        for host in range(2):
            size = sum(file.stat().st_blocks * 512 for file in (self.disk / f"host{host}").rglob("*") if file.is_file())
            self.assertLessEqual(size, 20_100_000)
        held = 2 * (16 << 20) + 2 * 20_000_000
        last = found[-1]["source"]
        self.assertGreater(last, 0)
        self.assertLessEqual(last, self.bytes - held * 0.9, found)

    def test_damage_is_never_delivered(self):
        job = self.job()
        self.run_job(job, epochs=3)
        for data in self.disk.glob("*/*/data"):
            with open(data, "r+b") as file:
                for at in range(1000, data.stat().st_size, 5 * SIZE):
                    file.seek(at)
                    file.write(b"damage")
        again = self.run_job(job, "--assignment", "slice", epochs=4)
        self.assertGreater(again[0]["source"], 0, again)
        self.assertEqual(again[-1]["source"], 0, again)


class ReturnTest(DiskTest):
    def pids(self, job, host):
        done = self.foreload("agent", "--host", job.host(host), "--status", "--json")
        return [member["process"] for member in json.loads(done.out)["members"]] if done.returncode == 0 else []

    def is_well(self, job):
        """Host 0 gets samples of the other one, and neither reads the source."""
        before = [job.traffic(host) for host in range(2)]
        time.sleep(0.7)
        after = [job.traffic(host) for host in range(2)]
        return after[0]["peer"] > before[0]["peer"] and all(new["source"] == old["source"] and new["memory"] > old["memory"]
                                                            for old, new in zip(before, after))

    def test_a_host_that_returns_with_a_warm_disk_is_used_again(self):
        job = self.job()
        options = self.run_of("--assignment", "slice", "--accelerator", 400, epochs=ENDLESS)
        own = ["--state", self.top / "state", "--log", self.top / "log"]
        learners = self.start_learners(job, *options, own=lambda rank: own if rank == 1 else [])
        self.assertTrue(wait_until(lambda: self.is_well(job)), [job.traffic(host) for host in range(2)])
        for _ in range(2):
            for pid in self.pids(job, 1):
                os.kill(pid, signal.SIGKILL)
            learners[1].communicate(timeout=program.DEADLINE)
            learners[1] = self.start_learner(job, 1, *options, *own, "--resume", self.top / "state")
            self.assertTrue(wait_until(lambda: self.is_well(job)), [job.traffic(host) for host in range(2)])
            returned = job.traffic(1)
            self.assertGreater(returned["disk"], 0)
            # What it has in memory was on its disk, too.
            self.assertLessEqual(returned["source"], self.bytes * 0.05)
        for learner in learners:
            learner.terminate()
            learner.communicate(timeout=program.DEADLINE)
            self.assertEqual(learner.returncode, program.stop_code(signal.SIGTERM))
        self.wait_for_agents(job)


if __name__ == "__main__":
    program.main()
