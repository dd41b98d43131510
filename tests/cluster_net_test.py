#!/usr/bin/python3
"""Hosts with networks of their own: whatever becomes of agents and cables, every learner gets its samples, the right ones,
and hosts that are well again are used again (R3, R6, R15).

    tests/cluster_net_test.py FORELOAD [unittest arguments]
"""
import collections
import functools
import itertools
import json
import re
import shutil
import signal
import subprocess
import threading
import time

import cluster
import ledger
import namespaces
import program
from cluster import Cluster
from program import ProgramTest, amount, log_lines, seeded, wait_until

SAMPLES = 400
BATCH = 24
ENDLESS = 10**7
WORST_STALL = 2.0  # seconds, of 99 in 100 faults
WORST_OF_ALL = 10.0  # of every fault, on a busy machine, too

refusal = functools.lru_cache(maxsize=None)(namespaces.refusal)


class NetTest(ProgramTest):
    def setUp(self):
        super().setUp()
        if refusal():
            self.skipTest(refusal())
        if self.foreload("agent", "--host", "x", "--peers", "127.0.0.1:1", "--learners", 1, "--status").returncode == 2:
            self.skipTest("this foreload has no transport between hosts")
        self.folder = self.ledger("set", SAMPLES)
        self.report("index", self.folder)
        self.logs = collections.defaultdict(list)

    def cluster(self, hosts, **options):
        return Cluster(self, hosts, namespaces=True, **options)

    def run_of(self, *arguments, epochs=3):
        return [self.folder, "--global-batch", BATCH, "--epochs", epochs, "--chain", ledger.chain(), "--seed", 7, "--hash",
                "--last", "ragged", "--workers", 1, *arguments]

    def log_of(self, rank):
        """The arguments for another log of that rank."""
        self.logs[rank].append(self.top / f"log{rank}-{len(self.logs[rank])}")
        return ["--log", self.logs[rank][-1]]

    def lines(self):
        return [line for logs in self.logs.values() for log in logs for line in log_lines(log)]

    def batches(self, rank):
        return sum(log.read_bytes().count(b"\n") for log in self.logs[rank] if log.exists())

    @functools.lru_cache(maxsize=None)
    def reference(self, epochs):
        """{(epoch, position): id} of one process without peers."""
        lines, _ = self.logged(*self.run_of(epochs=epochs))
        return ledger.positions_of(lines)[0]

    def judge(self, lines):
        """Every line is what its ids say, and its ids are those of one process."""
        self.assertTrue(lines)
        self.assertEqual(ledger.judge_lines(lines, ledger.standard_samples(SAMPLES)), "")
        reference = self.reference(max(line["epoch"] for line in lines) + 1)
        for key, number in ledger.positions_of(lines)[0].items():
            self.assertEqual(number, reference[key], key)

    def judge_whole(self, lines, world):
        """Also that nothing is missing or twice, in all steps that the last of `world` learners has done."""
        self.judge(lines)
        ranks = collections.Counter((line["epoch"], line["step"]) for line in lines)
        whole = [line for line in lines if ranks[line["epoch"], line["step"]] == world]
        _, times = ledger.positions_of(whole)
        self.assertEqual(set(times.values()), {1})
        steps = {(line["epoch"], line["step"]) for line in whole}
        # Only the last steps, which some have done and others have not, are not whole.
        self.assertEqual(steps, set(sorted(ranks)[:len(steps)]))
        positions = sum(min(BATCH, SAMPLES - step * BATCH) for _, step in steps)
        self.assertEqual(len(times), positions)


    def check_warnings(self, agents):
        """An agent tells each cause once per peer."""
        for agent in agents:
            causes = collections.Counter(re.sub(r"\d+ m?s", "", line) for line in warnings_of(agent))
            self.assertEqual([line for line, times in causes.items() if times > 1], [])


def warnings_of(process):
    return [line for line in process.err.splitlines() if line.startswith("foreload: warning: ")]


class SameHashesTest(NetTest):
    def test_one_two_and_four_hosts_deliver_what_one_process_does(self):
        expected = cluster.epochs([self.report("run", *self.run_of())])
        for hosts, assignment in itertools.product((1, 2, 4), ("balanced", "slice")):
            with self.subTest(hosts=hosts, assignment=assignment):
                job = self.cluster(hosts)
                job.start_agents()
                found = cluster.epochs(job.run(*self.run_of("--assignment", assignment)))
                for epoch, wanted in zip(found, expected, strict=True):
                    for name in ("order_hash", "content_hash", "samples"):
                        self.assertEqual(epoch[name], wanted[name])
                self.assertEqual(hosts > 1, sum(epoch["bytes"]["peer"] for epoch in found) > 0)
                job.end_agents()
                self.check_warnings(job.agents)


class Watch:
    """The longest time in which each of several learners got no batch, since the last look."""

    def __init__(self, logs):
        self.logs = logs
        self.stop = threading.Event()
        self.worst = [0.0] * len(logs)
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        sizes, since = [-1] * len(self.logs), [time.monotonic()] * len(self.logs)
        while not self.stop.wait(0.01):
            for index, log in enumerate(self.logs):
                now, size = time.monotonic(), log.stat().st_size
                self.worst[index] = max(self.worst[index], now - since[index])
                if size != sizes[index]:
                    sizes[index], since[index] = size, now

    def take(self):
        found = list(self.worst)
        self.worst[:] = [0.0] * len(found)
        return found

    def close(self):
        self.stop.set()
        self.thread.join()


class FaultTest(NetTest):
    """R6."""
    HOSTS = 3

    def setUp(self):
        super().setUp()
        self.past = []  # agents that are no more
        self.job = self.cluster(self.HOSTS)

    def start_job(self, own):
        """Learners that go on and on, slowly: what they need from each other comes in no time."""
        self.job.start_agents()
        self.options = self.run_of("--assignment", "slice", "--accelerator", 300, epochs=ENDLESS)
        return self.job.start_learners(*self.options, own=own)

    def is_well(self, hosts):
        """Whether these hosts get samples from peers, and none from the source."""
        before = [self.job.traffic(index) for index in hosts]
        time.sleep(0.7)
        after = [self.job.traffic(index) for index in hosts]
        return all(new["peer"] > old["peer"] and new["source"] == old["source"] for old, new in zip(before, after))

    def wait_until_well(self, learners, hosts=range(HOSTS)):
        deadline = time.monotonic() + program.DEADLINE
        while not self.is_well(hosts):
            for learner in learners:
                self.assertIsNone(learner.poll(), learner.stderr.read() if learner.poll() is not None else "")
            self.assertLess(time.monotonic(), deadline, f"peers are not used again: {self.state()}")

    def state(self):
        return [self.job.traffic(index) for index in range(self.HOSTS)]

    def end_agent(self, index, number):
        agent = self.job.agents[index]
        agent.send_signal(number)
        agent.out, agent.err = agent.communicate(timeout=program.DEADLINE)
        self.past.append(agent)

    def kill(self, index, seconds):
        self.end_agent(index, signal.SIGKILL)
        time.sleep(seconds)
        self.job.start_agent(index)

    def restart(self, index, seconds):
        self.end_agent(index, signal.SIGTERM)
        time.sleep(seconds)
        self.job.start_agent(index)

    def suspend(self, index, seconds):
        self.job.agents[index].send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.job.agents[index].send_signal(signal.SIGCONT)

    def cut(self, index, seconds):
        self.job.network.link(index, "down")
        time.sleep(seconds)
        self.job.network.link(index, "up")

    def slow(self, index, seconds):
        self.job.network.slow(index, "8kbit")
        time.sleep(seconds)
        self.job.network.slow(index, None)

    def end_job(self, learners):
        for learner in learners:
            learner.send_signal(signal.SIGTERM)
        for learner in learners:
            learner.out, learner.err = learner.communicate(timeout=program.DEADLINE)
            self.assertEqual(learner.returncode, program.stop_code(signal.SIGTERM), learner.err)
            self.assertEqual(warnings_of(learner), [])
        self.job.end_agents()

    def test_learners_go_on_and_use_what_is_well_again(self):
        chance = seeded("faults")
        learners = self.start_job(self.log_of)
        self.wait_until_well(learners)
        watch = Watch([self.logs[rank][0] for rank in range(self.HOSTS)])
        self.addCleanup(watch.close)
        watch.take()
        stalls = []
        kinds = [self.kill, self.restart, self.suspend, self.cut, self.slow]
        for turn in range(amount(50)):
            if turn % len(kinds) == 0:
                chance.shuffle(kinds)
            fault, index, seconds = kinds[turn % len(kinds)], chance.randrange(self.HOSTS), chance.uniform(0.2, 1.5)
            with self.subTest(turn=turn, fault=fault.__name__, host=index, seconds=seconds):
                fault(index, seconds)
                self.wait_until_well(learners)
                stalls += watch.take()
        self.end_job(learners)
        self.judge_whole(self.lines(), self.HOSTS)
        self.check_warnings(self.past + self.job.agents)
        self.assertLessEqual(sorted(stalls)[int(0.99 * (len(stalls) - 1))], WORST_STALL, stalls)
        self.assertLessEqual(max(stalls), WORST_OF_ALL, stalls)

    def test_a_host_that_returns_with_a_warm_disk_is_used_again(self):
        def own(rank):
            disk = ["--disk", self.top / "disk", "--state", self.top / "state"] if rank == 1 else []
            return [*self.log_of(rank), *disk]

        learners = self.start_job(own)
        self.wait_until_well(learners, (0, 2))
        for _ in range(amount(50) // 5):
            self.end_agent(1, signal.SIGKILL)
            learners[1].kill()
            learners[1].communicate()
            self.job.start_agent(1)
            learners[1] = self.job.start_learner(1, *self.options, *own(1), "--resume", self.top / "state")
            self.wait_until_well(learners, (0, 2))
            traffic = self.job.traffic(1)
            self.assertGreater(traffic["disk"], 0)
            self.assertEqual(traffic["source"], 0)
        self.end_job(learners)
        self.judge(self.lines())
        self.check_warnings(self.past + self.job.agents)


class ElasticTest(NetTest):
    """R3: saved on two hosts, continued on another number of them."""

    def test_the_rest_is_the_same_on_other_hosts(self):
        chance = seeded("elastic_hosts")
        epochs = 2
        for turn in range(amount(50) // 5 + 1):
            after, assignment = (4, 1)[turn % 2], chance.choice(("balanced", "slice"))
            stop = chance.randrange(1, epochs * (SAMPLES // BATCH) - 5)
            with self.subTest(after=after, assignment=assignment, stop=stop):
                state = self.save_on_two(epochs, assignment, stop)
                saved = json.loads(state.read_text())
                self.logs.clear()
                job = self.cluster(after)
                job.start_agents()
                job.run(*self.run_of("--assignment", assignment, "--resume", state, epochs=epochs), own=self.log_of)
                job.end_agents()
                lines = self.lines()
                self.judge(lines)
                _, times = ledger.positions_of(lines)
                rest = [key for key in self.reference(epochs) if key >= (saved["epoch"], saved["position"])]
                self.assertEqual(times, collections.Counter(rest))

    def save_on_two(self, epochs, assignment, stop):
        """The state of a learner that was killed after so many batches, or a little later."""
        self.logs.clear()
        job = self.cluster(2)
        job.start_agents()
        learners = job.start_learners(*self.run_of("--assignment", assignment, "--accelerator", 40 * BATCH, epochs=epochs),
                                      own=lambda rank: [*self.log_of(rank), "--state", self.top / f"state{rank}"])
        wait_until(lambda: self.batches(0) >= stop or learners[0].poll() is not None)
        self.assertIsNone(learners[0].poll())
        for learner in learners:
            learner.kill()
            learner.communicate()
        job.end_agents()
        self.judge(self.lines())
        for log in itertools.chain(*self.logs.values()):
            log.unlink()
        return self.top / "state0"


class TrustTest(NetTest):
    """R15. How connections are refused is shown by peers_test; this is what a job makes of it."""

    def wait_for_epochs(self, count):
        done = self.batches(0)
        self.assertTrue(wait_until(lambda: self.batches(0) > done + count * SAMPLES // BATCH))

    def test_without_credentials_nobody_listens_beyond_this_machine(self):
        job = self.cluster(2)
        job.credentials = None
        for listen in ([], ["--listen", "0.0.0.0:7777"], ["--listen", f"{job.network.address(0)}:7777"]):
            done = self.foreload(*job.agent_arguments(0, *listen), **job.place(0))
            self.assert_fails(done, "--make-credentials")

    def test_expired_credentials_are_refused_at_the_start(self):
        job = self.cluster(2)
        if not shutil.which("openssl"):
            self.skipTest("openssl makes what foreload does not: certificates that have expired")
        make_expired(job.credentials)
        done = self.foreload(*job.agent_arguments(0), **job.place(0))
        self.assert_fails(done, "agent.pem", "expired")

    def test_hosts_of_different_jobs_do_not_meet(self):
        job = self.cluster(2)
        own, other = job.credentials, job.new_credentials()
        job.start_agent(0)
        job.credentials = other
        job.start_agent(1)
        job.credentials = own
        learner = job.start_learner(0, *self.run_of())
        line = learner.stderr.readline()  # after five seconds
        self.assertIn("waiting for 1 of 2 hosts", line)
        self.assertIn(job.network.address(1), line)
        job.agents[1].terminate()
        job.agents[1].communicate(timeout=program.DEADLINE)
        job.start_agent(1)
        learners = [learner, job.start_learner(1, *self.run_of())]
        self.assertEqual(cluster.epochs(job.reports(learners))[0]["samples"], SAMPLES)
        job.end_agents()

    def test_an_agent_of_another_job_in_a_hosts_place_is_not_asked(self):
        job = self.cluster(2)
        other = job.new_credentials()
        job.start_agents()
        learners = job.start_learners(*self.run_of("--assignment", "slice", "--accelerator", 300, epochs=ENDLESS),
                                      own=self.log_of)
        self.assertTrue(wait_until(lambda: job.traffic(0)["peer"] > 0))
        job.agents[1].kill()
        job.agents[1].communicate()
        job.credentials = other
        job.start_agent(1)
        # At first the learners still have what came before, and in the first epoch they read their own samples.
        self.wait_for_epochs(3)
        before = job.traffic(0)
        self.wait_for_epochs(2)
        after = job.traffic(0)
        self.assertEqual(after["peer"], before["peer"])
        self.assertGreater(after["source"], before["source"])
        for learner in learners:
            learner.terminate()
            learner.communicate(timeout=program.DEADLINE)
        job.end_agents()
        self.judge_whole(self.lines(), 2)
        self.assertEqual(len(warnings_of(job.agents[0])), 1, job.agents[0].err)


def make_expired(folder):
    """Credentials as foreload makes them, but of yesterday."""
    def openssl(*words):
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True, timeout=program.DEADLINE)

    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "ca.key", "-subj",
            "/CN=job", "-days", "1", "-out", "ca.pem")
    openssl("req", "-new", "-key", "agent.key", "-subj", "/CN=foreload-peer", "-out", "agent.csr")
    openssl("x509", "-req", "-in", "agent.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-days", "-1", "-out", "agent.pem")


if __name__ == "__main__":
    program.main()
