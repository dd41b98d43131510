#!/usr/bin/python3
"""Processes of one machine that share a host, as whole programs.

    tests/host_test.py FORELOAD [unittest arguments]
"""
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

FORELOAD = ""
SOAK = os.environ.get("FORELOAD_SOAK") == "1"


def start(*arguments):
    return subprocess.Popen([FORELOAD, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def report(process, timeout=120):
    out, err = process.communicate(timeout=timeout)
    assert process.returncode == 0, err
    return json.loads(out)


def hashes(reports):
    """Of all ranks together, by epoch."""
    sums = {}
    for one in reports:
        for epoch in one["epochs"]:
            order, content = sums.get(epoch["epoch"], (0, 0))
            sums[epoch["epoch"]] = ((order + int(epoch["order_hash"], 16)) % 2**64,
                                    (content + int(epoch["content_hash"], 16)) % 2**64)
    return sums


class HostTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.top = pathlib.Path(tempfile.mkdtemp(prefix="foreload-host-"))
        cls.addClassCleanup(shutil.rmtree, cls.top)
        subprocess.run([FORELOAD, "generate", cls.top / "data", "--images", "240", "--classes", "4"], check=True,
                       capture_output=True)
        cls.bytes = report(start("index", cls.top / "data", "--json"))["dataset"]["bytes"]

    def setUp(self):
        self.host = f"test-{os.getpid()}-{self._testMethodName[-20:]}-{random.randrange(10**6)}"
        self.running = []
        self.addCleanup(lambda: [(p.kill(), p.communicate()) for p in self.running])

    def start(self, *arguments):
        process = start(*arguments)
        self.running.append(process)
        return process

    def run_of(self, *arguments):
        return ("run", self.top / "data", "--batch", 8, "--seed", 3, "--hash", "--json", *arguments)

    def in_host(self, *arguments):
        return self.run_of("--host", self.host, "--memory", "1GiB", *arguments)

    def agent(self):
        agent = self.start("agent", "--host", self.host, "--memory", "1GiB")
        self.assertIn("host", agent.stdout.readline())
        return agent

    def status(self):
        return report(start("agent", "--host", self.host, "--status", "--json"))

    def alone(self, epochs=2, world=1):
        return hashes([report(start(*self.run_of("--epochs", epochs, "--global-batch", 8 * world)))])

    def test_ranks_deliver_what_one_process_delivers_and_read_everything_once(self):
        ranks = [self.start(*self.in_host("--epochs", 2, "--world", 3, "--rank", rank)) for rank in range(3)]
        reports = [report(rank) for rank in ranks]
        self.assertEqual(hashes(reports), self.alone(2, 3))
        read = sum(epoch["bytes"]["source"] for one in reports for epoch in one["epochs"])
        self.assertLessEqual(read, self.bytes)

    def test_an_agent_keeps_the_cache_between_jobs_and_prepares_for_them(self):
        agent = self.agent()
        first = report(self.start(*self.in_host("--epochs", 1)))
        self.assertEqual(first["epochs"][0]["bytes"]["source"], self.bytes)
        second = report(self.start(*self.in_host("--epochs", 1)))
        self.assertEqual(second["epochs"][0]["bytes"]["source"], 0)
        self.assertEqual(hashes([second]), self.alone(1))
        status = self.status()
        self.assertEqual(len(status["members"]), 1)
        self.assertEqual(status["members"][0]["process"], agent.pid)
        self.assertEqual(status["arenas"][0]["users"], 0)
        agent.send_signal(signal.SIGTERM)
        self.assertEqual(agent.wait(5), 143)
        gone = subprocess.run([FORELOAD, "agent", "--host", self.host, "--status"], capture_output=True, text=True)
        self.assertEqual(gone.returncode, 1)
        self.assertIn("there is no host", gone.stderr)

    def test_without_workers_the_agent_prepares_everything(self):
        agent = self.agent()
        done = report(self.start(*self.in_host("--epochs", 2, "--workers", 0)))
        self.assertEqual(done["threads"], 0)
        self.assertEqual(hashes([done]), self.alone(2))
        job = self.start(*self.in_host("--epochs", 400, "--accelerator", "300", "--workers", 0))
        deadline = time.time() + 30
        learners = []
        while time.time() < deadline and not (learners and learners[0]["batches"] > 20):
            time.sleep(0.1)
            learners = self.status()["learners"]
        self.assertEqual([helper["process"] for helper in learners[0]["prepared_by"]], [agent.pid])
        workers = {member["process"]: member["workers"] for member in self.status()["members"]}
        self.assertEqual(workers[job.pid], 0)
        self.assertGreater(workers[agent.pid], 0)

    def test_without_workers_it_goes_on_when_the_agent_is_killed(self):
        agent = self.agent()
        job = self.start(*self.in_host("--epochs", 3, "--workers", 0, "--accelerator", "300"))
        time.sleep(random.uniform(0.3, 1.5))
        agent.kill()
        out, err = job.communicate(timeout=60)
        self.assertEqual(job.returncode, 0, err)
        done = json.loads(out)
        self.assertEqual(hashes([done]), self.alone(3))
        self.assertGreater(done["threads"], 0)
        self.assertEqual(err.count(f"foreload agent --host {self.host}"), 1, err)

    def test_a_cache_that_nobody_uses_makes_room_for_another(self):
        other = self.top / "other"
        subprocess.run([FORELOAD, "generate", other, "--images", "240", "--seed", "9"], check=True, capture_output=True)
        agent = self.start("agent", "--host", self.host, "--memory", "200MiB", "--workers", 1)
        self.assertIn("host", agent.stdout.readline())
        for data in (self.top / "data", other, self.top / "data", other):
            done = report(self.start("run", data, "--batch", 4, "--epochs", 2, "--host", self.host, "--memory", "200MiB",
                                     "--workers", 1, "--json"))
            self.assertEqual(done["epochs"][1]["samples"], 240)

    def test_one_that_is_killed_changes_nothing_for_the_others(self):
        expected = self.alone(3)
        for round in range(30 if SOAK else 3):
            agent = self.agent() if round % 2 == 0 else None
            victim = self.start(*self.in_host("--epochs", 50, "--seed", 5))
            job = self.start(*self.in_host("--epochs", 3))
            time.sleep(random.uniform(0.05, 0.5))
            (agent or victim).kill()
            self.assertEqual(hashes([report(job)]), expected, f"round {round}")
            for process in self.running:
                process.kill()
                process.communicate()
            self.running.clear()

    def test_top_shows_the_learners_and_who_works_for_them(self):
        agent = self.agent()
        job = self.start(*self.in_host("--epochs", 400, "--accelerator", "300"))
        deadline = time.time() + 30
        learners = []
        while time.time() < deadline and not (learners and learners[0]["batches"] > 20):
            time.sleep(0.1)
            learners = report(start("top", "--host", self.host, "--json"))["learners"]
        self.assertEqual(learners[0]["process"], job.pid)
        self.assertGreater(learners[0]["batches"], 20)
        self.assertGreater(learners[0]["step_s"], 0)
        self.assertGreater(sum(helper["samples"] for helper in learners[0]["prepared_by"]), 100)
        shown = subprocess.run([FORELOAD, "top", "--host", self.host], capture_output=True, text=True)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn(str(job.pid), shown.stdout)
        self.assertIn(f"{agent.pid}   no learner, ", shown.stdout)
        self.assertTrue(all(len(line) <= 100 for line in shown.stdout.splitlines()), shown.stdout)

    def test_an_agent_makes_credentials_once_and_joins_nothing(self):
        folder = self.top / "keys"
        for expected in (0, 2):
            made = subprocess.run([FORELOAD, "agent", "--make-credentials", folder], capture_output=True, text=True)
            self.assertEqual(made.returncode, expected, made.stderr)
        self.assertIn("never overwritten", made.stderr)
        self.assertEqual({path.name: path.stat().st_mode & 0o77 for path in folder.iterdir()},
                         {"ca.pem": 0o44, "agent.pem": 0o44, "agent.key": 0})

    def test_over_mpi_peers_and_credentials_are_refused(self):
        for words in (["--peers", "a,b"], ["--credentials", self.top]):
            for command in (["agent", "--host", self.host], ["run", self.top, "--host", self.host]):
                done = subprocess.run([FORELOAD, *command, "--transport", "mpi", *words], capture_output=True, text=True)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(f"{words[0]} is for --transport grpc", done.stderr)
        alone = subprocess.run([FORELOAD, "agent", "--host", self.host, "--credentials", self.top], capture_output=True, text=True)
        self.assertEqual(alone.returncode, 2, alone.stderr)
        self.assertIn("--peers", alone.stderr)

    def test_another_budget_is_refused_with_both_values(self):
        self.agent()
        refused = self.start(*self.run_of("--host", self.host, "--memory", "2GiB"))
        _, err = refused.communicate(timeout=30)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("1073741824", err)
        self.assertIn("2147483648", err)

    def test_nothing_is_left_behind(self):
        def left():
            return sorted(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else []
        before = left()
        for _ in range(20 if SOAK else 5):
            jobs = [self.start(*self.in_host("--epochs", 50, "--seed", seed)) for seed in range(2)]
            time.sleep(random.uniform(0.05, 0.4))
            for job in jobs:
                job.kill()
            for job in jobs:
                job.communicate()
        began = time.time()
        report(self.start(*self.in_host("--epochs", 1)))
        self.assertLess(time.time() - began, 30)
        self.assertEqual(left(), before)


if __name__ == "__main__":
    FORELOAD = sys.argv.pop(1)
    unittest.main(verbosity=1)
