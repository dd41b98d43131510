"""Several hosts of one job on this machine: each has an agent, learners and a cache of its own, and a name by which its
processes find each other. They talk over loopback, or over a network between namespaces, with credentials."""
import json
import os
import random
import re
import socket
import subprocess

import program
from namespaces import Network


def free_ports(count):
    """Nobody has them now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [held.getsockname()[1] for held in sockets]
    for held in sockets:
        held.close()
    return ports


class Cluster:
    """With `namespaces` every host has a network of its own (see namespaces.py), all have the same name, and their agents
    have credentials."""

    def __init__(self, test, hosts, learners=1, memory="64MiB", namespaces=False):
        self.test, self.hosts, self.learners, self.memory = test, hosts, learners, memory
        self.name = f"test-{os.getpid()}-{random.randrange(10**9)}"
        self.network = self.credentials = None
        if namespaces:
            self.network = Network(hosts)
            test.addCleanup(self.network.close)
            self.peers = ",".join(self.network.address(index) for index in range(hosts))
            self.credentials = self.new_credentials()
        else:
            self.peers = ",".join(f"127.0.0.1:{port}" for port in free_ports(hosts))
        self.agents = [None] * hosts

    def new_credentials(self):
        folder = self.test.top / f"keys{random.randrange(10**9)}"
        made = self.test.foreload("agent", "--make-credentials", folder)
        self.test.assertEqual(made.returncode, 0, made.err)
        return folder

    def host(self, index):
        return self.name if self.network else f"{self.name}-{index}"

    def place(self, index):
        """Where a program has to be started to belong to that host."""
        return {"before": self.network.inside(index)} if self.network else {}

    def keys(self):
        return ["--credentials", self.credentials] if self.credentials else []

    def agent_arguments(self, index, *arguments):
        # By its address a host knows which one it is, where it has one of its own.
        own = self.keys() if self.network else ["--host-index", index]
        return ["agent", "--host", self.host(index), "--memory", self.memory, "--workers", 1, "--peers", self.peers,
                "--learners", self.learners, *own, *arguments]

    def start_agent(self, index, *arguments):
        agent = self.test.start(*self.agent_arguments(index, *arguments), **self.place(index))
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
                "--rank", rank, "--world", self.hosts * self.learners, "--local-world", self.learners, "--json",
                *self.keys()]

    def start_learners(self, *arguments, own=lambda rank: []):
        """`own` gives each rank further arguments."""
        return [self.start_learner(rank, *arguments, *own(rank)) for rank in range(self.hosts * self.learners)]

    def start_learner(self, rank, *arguments):
        return self.test.start(*self.learner_arguments(rank, *arguments), **self.place(rank // self.learners))

    def traffic(self, index):
        """Bytes by origin that the learners of a host have got so far."""
        done = self.test.foreload("top", "--host", self.host(index), "--json", **self.place(index))
        learners = json.loads(done.out)["learners"] if done.returncode == 0 else []
        return {tier: sum(learner["bytes"][tier] for learner in learners) for tier in ("memory", "disk", "peer", "source")}

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


class Disturbed(AssertionError):
    """More was read than planned. That is right where hosts answered too late, which a busy machine does to them."""


def within_plan(condition, found):
    if not condition:
        raise Disturbed(found)


def undisturbed(attempt, attempts=3):
    """Content and order are right every time; traffic is as planned in one of three attempts."""
    for left in reversed(range(attempts)):
        try:
            return attempt()
        except Disturbed:
            if left == 0:
                raise


def epochs(reports):
    """What all learners together report of each epoch: hashes (0: not computed) add up, and bytes."""
    found = []
    for index in range(len(reports[0]["epochs"])):
        parts = [report["epochs"][index] for report in reports]
        total = {name: sum(int(part[name] or "0", 16) for part in parts) % (1 << 64) for name in ("order_hash", "content_hash")}
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
