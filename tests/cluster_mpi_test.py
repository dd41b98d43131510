#!/usr/bin/python3
"""Hosts whose agents mpirun started deliver what one process does, whatever becomes of the agents.

    tests/cluster_mpi_test.py FORELOAD [unittest arguments]

77: there is no mpirun.
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import cluster
import ledger
import program
from program import ProgramTest, wait_until

SAMPLES = 400
SIZE = 4096


class MpiTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.folder = self.ledger("set", SAMPLES, SIZE)
        self.session = tempfile.mkdtemp(prefix="foreload-mpi-")  # short: Open MPI puts sockets there
        self.addCleanup(shutil.rmtree, self.session, ignore_errors=True)

    def run_of(self, *arguments, epochs=5):
        return [self.folder, "--global-batch", 40, "--epochs", epochs, "--chain", ledger.chain(SIZE), "--seed", 7, "--hash",
                "--last", "ragged", *arguments]

    def start_agents(self, job):
        """One job of MPI; each host has a name of its own, as if it were another machine."""
        words = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
        for host in range(job.hosts):
            words += [":"] if host else []
            words += ["-n", "1", program.FORELOAD, "agent", "--transport", "mpi", "--host", job.host(host), "--memory", job.memory,
                      "--workers", "1", "--learners", str(job.learners)]
        output = open(self.top / f"agents{time.monotonic_ns()}", "w+")
        self.addCleanup(output.close)
        agents = subprocess.Popen(words, env={**self.environment, "TMPDIR": self.session}, stdout=output, stderr=output,
                                  start_new_session=True)
        self.addCleanup(self.end_agents, agents)
        agents.output = output
        met = wait_until(lambda: self.said(agents).count("hosts have met") == job.hosts or agents.poll() is not None)
        self.assertTrue(met and agents.poll() is None, self.said(agents))
        return agents

    @staticmethod
    def said(agents):
        agents.output.seek(0)
        return agents.output.read()

    def end_agents(self, agents):
        if agents.poll() is None:
            agents.terminate()
        try:
            agents.wait(timeout=30)
        except subprocess.TimeoutExpired:
            os.killpg(agents.pid, signal.SIGKILL)
            agents.wait()

    def members(self, job, host):
        done = self.foreload("agent", "--host", job.host(host), "--status", "--json")
        return json.loads(done.out)["members"] if done.returncode == 0 else []

    def learners(self, job, *arguments):
        ranks = range(job.hosts * job.learners)
        return [self.start("run", *arguments, "--transport", "mpi", "--host", job.host(rank // job.learners), "--memory",
                           job.memory, "--rank", rank, "--world", len(ranks), "--local-world", job.learners, "--json")
                for rank in ranks]

    def assert_same(self, reports, epochs=5):
        found = cluster.epochs(reports)
        expected = cluster.epochs([self.report("run", *self.run_of(epochs=epochs))])
        for epoch, wanted in zip(found, expected, strict=True):
            for name in ("order_hash", "content_hash", "samples"):
                self.assertEqual(epoch[name], wanted[name])
        return found

    def test_two_and_four_hosts_deliver_the_same(self):
        for hosts in (2, 4):
            for assignment in ("balanced", "slice"):
                with self.subTest(hosts=hosts, assignment=assignment):
                    job = cluster.Cluster(self, hosts)
                    agents = self.start_agents(job)
                    paced = ["--assignment", assignment, "--storage", "20MB/s,1ms", "--accelerator", 3000 // hosts]
                    found = self.assert_same(job.reports(self.learners(job, *self.run_of(*paced))))
                    self.assertGreater(sum(epoch["bytes"]["peer"] for epoch in found), 0, found)
                    self.end_agents(agents)

    def test_a_dead_agent_ends_the_agents_and_no_trainer_and_the_next_ones_are_used(self):
        job = cluster.Cluster(self, 2)
        agents = self.start_agents(job)
        paced = ["--assignment", "slice", "--storage", "20MB/s,1ms", "--accelerator", 400]
        learners = self.learners(job, *self.run_of(*paced, epochs=12))
        time.sleep(1)
        self.assertTrue(all(learner.poll() is None for learner in learners))
        agent = next(member["process"] for member in self.members(job, 0) if member["process"] != learners[0].pid)
        os.kill(agent, signal.SIGKILL)
        agents.wait(timeout=30)
        self.assertTrue(all(learner.poll() is None for learner in learners))
        again = self.start_agents(job)
        found = self.assert_same(job.reports(learners), epochs=12)
        self.assertGreater(found[-1]["bytes"]["peer"], 0, [epoch["bytes"] for epoch in found])
        self.end_agents(again)


if __name__ == "__main__":
    if shutil.which("mpirun") is None:
        print("skipped: there is no mpirun (Debian: openmpi-bin)", file=sys.stderr)
        sys.exit(77)
    program.main()
