"""Hosts with a network of their own: a network namespace for each, joined by a bridge in one more.

A namespace lives as long as its keeper, a process that ends when the test has ended, however that ends; then the kernel
removes the namespace with its devices. Nothing is made in the machine's own namespace, and nothing has a name there.
"""
import contextlib
import os
import shutil
import subprocess

TOOLS = ("unshare", "nsenter", "ip", "tc")


def refusal():
    """Why there can be no such hosts here; empty: there can."""
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    if missing:
        return f"network namespaces need {', '.join(missing)} (Debian: iproute2, util-linux)"
    if os.geteuid() != 0:
        return "network namespaces need root"
    try:
        Network(1).close()
    except (OSError, subprocess.SubprocessError) as problem:
        said = (getattr(problem, "stderr", "") or str(problem)).strip()
        return f"this kernel or container forbids network namespaces: {said}"
    return ""


class Namespace:
    def __init__(self):
        # It says a word when it is inside, and ends with its standard input.
        self.keeper = subprocess.Popen(["unshare", "--net", "sh", "-c", "echo ready; exec cat"], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, text=True)
        if self.keeper.stdout.readline() != "ready\n":
            raise OSError(self.keeper.communicate()[1])
        self.inside = ["nsenter", f"--net=/proc/{self.keeper.pid}/ns/net", "--"]

    def call(self, *words):
        subprocess.run([*self.inside, *map(str, words)], check=True, text=True, capture_output=True, timeout=20)

    def close(self):
        self.keeper.communicate()


class Network:
    """`hosts` namespaces with addresses 10.77.0.1 … that reach each other."""

    def __init__(self, hosts):
        with contextlib.ExitStack() as made:
            self.bridge = self.made(made)
            self.hosts = [self.made(made) for _ in range(hosts)]
            self.bridge.call("ip", "link", "add", "bridge", "type", "bridge")
            self.bridge.call("ip", "link", "set", "bridge", "up")
            for index in range(hosts):
                self.join(index)
            self.stack = made.pop_all()

    @staticmethod
    def made(stack):
        namespace = Namespace()
        stack.callback(namespace.close)
        return namespace

    def join(self, index):
        host, port = self.hosts[index], f"port{index}"
        self.bridge.call("ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", host.keeper.pid)
        self.bridge.call("ip", "link", "set", port, "master", "bridge", "up")
        host.call("ip", "link", "set", "lo", "up")
        host.call("ip", "address", "add", f"{self.address(index)}/16", "dev", "eth0")
        host.call("ip", "link", "set", "eth0", "up")

    def close(self):
        """What still runs inside keeps its namespace until it ends."""
        self.stack.close()

    @staticmethod
    def address(index):
        return f"10.77.0.{index + 1}"

    def inside(self, index):
        """The words that start a program in that host."""
        return self.hosts[index].inside

    def link(self, index, state):
        """Plugs the host's cable in ("up") or out ("down")."""
        self.bridge.call("ip", "link", "set", f"port{index}", state)

    def slow(self, index, rate):
        """What comes to the host and what it sends passes at that rate ("1mbit"); None: as fast as it can."""
        for namespace, device in ((self.bridge, f"port{index}"), (self.hosts[index], "eth0")):
            if rate is None:
                namespace.call("tc", "qdisc", "del", "dev", device, "root")
            else:
                namespace.call("tc", "qdisc", "replace", "dev", device, "root", "tbf", "rate", rate, "burst", "16kb",
                               "latency", "200ms")
