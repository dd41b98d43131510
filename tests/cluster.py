"""Several hosts of one job on this machine: each has an agent, learners and a cache of its own, and a name by which its
processes find each other. They talk over loopback; with credentials as over any network."""
import json
import os
import random
import re
import socket
import subprocess

import program


def free_ports(count):
    """Nobody has them now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [held.getsockname()[1] for held in sockets]
    for held in sockets:
        held.close()
    return ports


class Cluster:
    def __init__(self, test, hosts, learners=1, memory="64MiB", credentials=None):
        self.test, self.hosts, self.learners, self.memory, self.credentials = test, hosts, learners, memory, credentials
        self.name = f"test-{os.getpid()}-{random.randrange(10**9)}"
        self.peers = ",".join(f"127.0.0.1:{port}" for port in free_ports(hosts))
        self.agents = [None] * hosts

    def host(self, index):
        return f"{self.name}-{index}"

    def agent_arguments(self, index, *arguments):
        keys = ["--credentials", self.credentials] if self.credentials else []
        return ["agent", "--host", self.host(index), "--memory", self.memory, "--workers", 1, "--peers", self.peers,
                "--host-index", index, "--learners", self.learners, *keys, *arguments]

    def start_agent(self, index, *arguments):
        agent = self.test.start(*self.agent_arguments(index, *arguments))
        line = agent.stdout.readline()
        self.test.assertIn(self.host(index), line, agent.stderr.read() if not line else "")
        self.agents[index] = agent
        return agent

    def start_agents(self):
        for index in range(self.hosts):
            self.start_agent(index)

    def end_agents(self):
        for agent in self.agents:
            if agent is not None and agent.poll() is None:
                agent.terminate()
        for agent in filter(None, self.agents):
            agent.out, agent.err = agent.communicate(timeout=program.DEADLINE)

    def learner_arguments(self, rank, *arguments):
        return ["run", *arguments, "--host", self.host(rank // self.learners), "--memory", self.memory, "--peers", self.peers,
                "--rank", rank, "--world", self.hosts * self.learners, "--local-world", self.learners, "--json"]

    def start_learners(self, *arguments, own=lambda rank: []):
        """`own` gives each rank further arguments."""
        ranks = range(self.hosts * self.learners)
        return [self.test.start(*self.learner_arguments(rank, *arguments, *own(rank))) for rank in ranks]

    def reports(self, learners):
        reports = []
        for learner in learners:
            try:
                learner.out, learner.err = learner.communicate(timeout=program.DEADLINE)
            except subprocess.TimeoutExpired:
                self.test.fail("a learner does not end")
        for learner in learners:
            self.test.assertEqual(learner.returncode, 0, learner.err)
            reports.append(json.loads(learner.out))
        return reports

    def run(self, *arguments, **options):
        """The reports of all learners, by rank."""
        return self.reports(self.start_learners(*arguments, **options))


def epochs(reports):
    """What all learners together report of each epoch: hashes add up, and bytes."""
    found = []
    for index in range(len(reports[0]["epochs"])):
        parts = [report["epochs"][index] for report in reports]
        total = {name: sum(int(part[name], 16) for part in parts) % (1 << 64) for name in ("order_hash", "content_hash")}
        total["bytes"] = {tier: sum(part["bytes"][tier] for part in parts) for tier in parts[0]["bytes"]}
        total["samples"] = sum(part["samples"] for part in parts)
        found.append(total)
    return found


def metric(text, name, **labels):
    """The sum of the series that have these labels."""
    total = 0.0
    for found, inside, value in re.findall(r"^(\w+)\{(.*?)\} (\S+)$", text, re.M):
        if found == name and all(f'{label}="{wanted}"' in inside for label, wanted in labels.items()):
            total += float(value)
    return total
