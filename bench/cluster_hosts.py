#!/usr/bin/python3
"""bench/cluster_hosts: many hosts, one cache, measured over networks of namespaces that a bridge joins.

    cluster_hosts [--json] [--rounds N] [--only PART...]

Every host has a network of its own and one learner, which starts the host's agent; all read through one bucket that has
the rate of the shared storage. Bytes are counted and rates taken over whole epochs, without the first, in which memories
are filled, and the last, in which nothing is left to read ahead.
"""
import argparse
import json
import math
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests"))
import ledger  # noqa: E402
import namespaces  # noqa: E402
from cluster import epochs  # noqa: E402

SAMPLES = 8192
SIZE = 8192
DATA = SAMPLES * SIZE
TABLE = 4096 + 24 * SAMPLES  # bytes of a cache beside its samples
HOSTS = (2, 4, 8)
HELD = 0.65
STORAGE = 16_000_000  # bytes/s
DEADLINE = 600


def row(name, value, unit, goal, how, at_least=False):
    met = value >= goal if at_least else value <= goal
    wanted = f"{'≥' if at_least else '≤'} {goal:.4g}"
    return {"name": f"cluster/{name}", "value": value, "unit": unit, "goal": wanted, "ok": met, "how": how}


def skipped(name, why):
    return {"name": f"cluster/{name}", "value": None, "unit": "-", "goal": "-", "ok": True, "how": f"skipped: {why}"}


class Bench:
    def __init__(self, foreload, top, rounds):
        self.foreload, self.top, self.rounds = foreload, top, rounds
        self.folder = ledger.write_folder(top / "set", SAMPLES, SIZE)
        subprocess.run([foreload, "index", self.folder], check=True, stdout=subprocess.DEVNULL)
        self.credentials = top / "keys"
        subprocess.run([foreload, "agent", "--make-credentials", self.credentials], check=True, stdout=subprocess.DEVNULL)

    def run(self, hosts, *arguments, held=1.0, batch=32, count=5, peers=True):
        """What all learners report of the epochs that count, and samples per second, of all together."""
        network = namespaces.Network(hosts)
        try:
            addresses = ",".join(network.address(index) for index in range(hosts))
            together = ["--peers", addresses, "--credentials", self.credentials] if peers else []
            # Half of a host's memory is for samples that are at home there.
            memory = 2 * (math.ceil(held * SAMPLES / hosts) * SIZE + TABLE)
            words = [self.foreload, "run", self.folder, "--host", f"bench-{os.getpid()}-{random.randrange(10**9)}",
                     "--memory", memory, "--batch", batch, "--epochs", count, "--chain", ledger.chain(SIZE), "--seed", 7,
                     "--last", "drop", "--workers", 1, "--world", hosts, "--local-world", 1, *together, *arguments, "--json"]
            learners = [subprocess.Popen([*network.inside(rank), *map(str, words), "--rank", str(rank)], text=True,
                                         stdout=subprocess.PIPE, stderr=subprocess.PIPE) for rank in range(hosts)]
            reports = [self.report(learner) for learner in learners]
        finally:
            network.close()
        seconds = [sum(epoch["seconds"] for epoch in report["epochs"][2:-1]) for report in reports]
        rate = sum(sum(epoch["samples"] for epoch in report["epochs"][2:-1]) / took for report, took in zip(reports, seconds))
        return epochs(reports), rate

    @staticmethod
    def report(learner):
        out, err = learner.communicate(timeout=DEADLINE)
        if learner.returncode != 0:
            sys.exit(f"bench/cluster_hosts: a learner failed: {err}")
        return json.loads(out)

    def bucket(self):
        """Storage with one rate for all."""
        return ["--storage", f"{STORAGE // 1000}kB/s,bucket={self.top / f'bucket{random.randrange(10**9)}'}"]


def share(found, tier, first=2):
    """Of the bytes that all learners got in the epochs that count, how much came from there."""
    counted = [epoch["bytes"] for epoch in found[first:-1]]
    return sum(each[tier] for each in counted) / sum(sum(each.values()) for each in counted)


SET = f"{SAMPLES} samples of {SIZE} bytes"


def all_held(bench):
    """Memories that together hold the dataset."""
    for hosts in HOSTS:
        found, _ = bench.run(hosts)
        after = sum(epoch["bytes"]["source"] for epoch in found[1:])
        yield row(f"source_after_first_{hosts}", after, "bytes", 0,
                  f"from storage in epochs 1 to {len(found) - 1}, by {hosts} hosts that together hold {SET}; in epoch 0: "
                  f"{found[0]['bytes']['source'] / DATA:.3f} of the dataset")


def part_held(bench):
    """65 % held: what comes from storage, and how fast."""
    best = 1.0
    for hosts in HOSTS:
        with_peers, alone = [], []
        for _ in range(bench.rounds):
            with_peers.append(bench.run(hosts, *bench.bucket(), held=HELD))
            alone.append(bench.run(hosts, *bench.bucket(), held=HELD, peers=False))
        source = share(with_peers[0][0], "source")
        yield row(f"source_65_off_{hosts}", abs(source / (1 - HELD) - 1), "share", 0.01,
                  f"{source:.4f} of the bytes came from storage, {hosts} hosts that together hold 65 % of {SET}; 0.35 is right")
        speedup = statistics.median(ours[1] / theirs[1] for ours, theirs in zip(with_peers, alone))
        model = (1 - HELD / hosts) / (1 - HELD)
        how = (f"samples/s of {hosts} hosts with peers ({with_peers[0][1]:.0f}) / without ({alone[0][1]:.0f}), storage of "
               f"{STORAGE / 1e6:.0f} MB/s shared by all, each with memory for {HELD / hosts:.4f} of {SET}; without peers each host "
               f"reads all but that ({share(alone[0][0], 'source'):.4f}), with peers all but 65 %: model {model:.3f}")
        yield row(f"speedup_{hosts}", speedup, "ratio", best, how + "; goal: more than with fewer hosts", at_least=True)
        yield row(f"speedup_off_model_{hosts}", abs(speedup / model - 1), "share", 0.1, how)
        best = speedup


def balanced(bench):
    """What goes over the network when positions go to the host that has the sample."""
    for batch in (32, 64, 128):
        found, _ = bench.run(max(HOSTS), batch=batch)
        formula = 1 / math.sqrt(2 * math.pi * batch)
        yield row(f"peer_share_balanced_{batch}", share(found, "peer"), "share", 1.15 * formula,
                  f"of the bytes came from peers, {max(HOSTS)} hosts that together hold {SET}, {batch} samples per host and "
                  f"step; 1/sqrt(2·pi·m) is {formula:.4f}")


def slices(bench):
    """The same with consecutive positions."""
    for hosts in HOSTS:
        found, _ = bench.run(hosts, "--assignment", "slice")
        peer = share(found, "peer")
        yield row(f"peer_share_slice_off_{hosts}", abs(peer / (1 - 1 / hosts) - 1), "share", 0.02,
                  f"{peer:.4f} of the bytes came from peers, {hosts} hosts that together hold {SET}; 1 - 1/p is {1 - 1 / hosts}")


PARTS = {"all_held": all_held, "part_held": part_held, "balanced": balanced, "slice": slices}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--foreload", default=os.environ.get("FORELOAD_CLI", "foreload"), help="the command (default: FORELOAD_CLI, PATH)")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    found = []
    refusal = namespaces.refusal()
    if refusal:
        found = [skipped(f"hosts_{name}", refusal) for name in arguments.only]
    else:
        with tempfile.TemporaryDirectory(prefix="foreload-bench-") as top:
            bench = Bench(arguments.foreload, pathlib.Path(top), arguments.rounds)
            for name in arguments.only:
                for each in PARTS[name](bench):
                    found.append(each)
                    if not arguments.json:
                        show(each)
    if arguments.json:
        print(json.dumps(found, indent=1, ensure_ascii=False))
    return 0 if all(each["ok"] for each in found) else 1


def show(each):
    print(f"{'ok  ' if each['ok'] else 'MISS'} {each['name']:<40} {each['value']:>12,.4g} {each['unit']:<7} "
          f"goal {each['goal']:<9} {each['how']}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
