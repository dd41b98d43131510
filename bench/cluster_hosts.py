#!/usr/bin/python3
"""bench/cluster_hosts: many hosts, one cache, measured over networks of namespaces that a bridge joins.

    cluster_hosts [--json] [--rounds N] [--only PART...]

Every host has a network of its own and one learner, which starts the host's agent; all read through one bucket that has
the rate of the shared storage. Shares of bytes are of whole epochs without the first two; rates are of whole jobs, with
the first epoch, so that what is read ahead of an epoch counts once.

The model of the rates, in which only storage takes time: a job of E epochs reads the dataset once, and then in every epoch
what no memory of the job has. Without peers a host has a sample in memory when it has consumed it before, and there is
room: that is a share c(1 - (1 - 1/p)^e) of epoch e, for memory that holds c of the dataset on each of p hosts.
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
TABLE = 16384 + 24 * SAMPLES  # bytes of a cache beside its samples, or a little more
HOSTS = (2, 4, 8)
HELD = 0.65
EACH = 0.1  # of the dataset in the memory of each host, where rates are compared
EPOCHS = 5
PICTURES = 1000  # of the part with crops
STORAGE = 20_000_000  # bytes/s
DEADLINE = 600


def row(name, value, unit, goal, how, at_least=False):
    met = value >= goal if at_least else value <= goal
    wanted = f"{'≥' if at_least else '≤'} {goal:.4g}"
    return {"name": f"cluster/{name}", "value": value, "unit": unit, "goal": wanted, "ok": met, "how": how}


def skipped(name, why):
    return {"name": f"cluster/{name}", "value": None, "unit": "-", "goal": "-", "ok": True, "how": f"skipped: {why}"}


class Dataset:
    def __init__(self, folder, samples, size, chain):
        """`size`: the memory that a sample takes on average."""
        self.folder, self.samples, self.size, self.chain = folder, samples, size, chain


class Bench:
    def __init__(self, foreload, top, rounds):
        self.foreload, self.top, self.rounds = foreload, top, rounds
        self.set = Dataset(ledger.write_folder(top / "set", SAMPLES, SIZE), SAMPLES, SIZE, ["--chain", ledger.chain(SIZE)])
        self.call("index", self.set.folder)
        self.credentials = top / "keys"
        self.call("agent", "--make-credentials", self.credentials)

    def call(self, *words):
        done = subprocess.run([self.foreload, *map(str, words), "--json"], check=True, stdout=subprocess.PIPE)
        return json.loads(done.stdout)

    def pictures(self):
        """Crop-addressable, as RandomResizedCrop(224) takes them."""
        self.call("generate", self.top / "pictures", "--images", PICTURES)
        self.call("convert", self.top / "pictures", self.top / "records")
        size = math.ceil(self.call("index", self.top / "records")["dataset"]["bytes"] / PICTURES) + 64
        return Dataset(self.top / "records", PICTURES, size, ["--chain", "random_resized_crop(224),random_flip", "--dtype", "u8"])

    def run(self, hosts, *arguments, held=1.0, batch=32, peers=True, data=None):
        """What all learners together report of each epoch, and their samples per second over the whole job."""
        data = data or self.set
        network = namespaces.Network(hosts)
        try:
            addresses = ",".join(network.address(index) for index in range(hosts))
            together = ["--peers", addresses, "--credentials", self.credentials] if peers else []
            # Half of a host's memory is for samples that are at home there.
            memory = 2 * (math.ceil(held * data.samples / hosts) * data.size + TABLE)
            words = [self.foreload, "run", data.folder, "--host", f"bench-{os.getpid()}-{random.randrange(10**9)}",
                     "--memory", memory, "--batch", batch, "--epochs", EPOCHS, *data.chain, "--seed", 7, "--last",
                     "drop", "--workers", 1, "--world", hosts, "--local-world", 1, *self.storage(), *together, *arguments, "--json"]
            learners = [subprocess.Popen([*network.inside(rank), *map(str, words), "--rank", str(rank)], text=True,
                                         stdout=subprocess.PIPE, stderr=subprocess.PIPE) for rank in range(hosts)]
            reports = [self.report(learner) for learner in learners]
        finally:
            network.close()
        seconds = max(sum(epoch["seconds"] for epoch in report["epochs"]) for report in reports)
        found = epochs(reports)
        return found, sum(epoch["samples"] for epoch in found) / seconds

    @staticmethod
    def report(learner):
        out, err = learner.communicate(timeout=DEADLINE)
        if learner.returncode != 0:
            sys.exit(f"bench/cluster_hosts: a learner failed: {err}")
        return json.loads(out)

    def storage(self):
        """With one rate for all."""
        return ["--storage", f"{STORAGE // 1000}kB/s,bucket={self.top / f'bucket{random.randrange(10**9)}'}"]


def share(found, tier):
    """Of the bytes that all learners got in the epochs that count, how much came from there."""
    counted = [epoch["bytes"] for epoch in found[2:]]
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
    """Memories that together hold 65 %."""
    for hosts in HOSTS:
        found, _ = bench.run(hosts, held=HELD)
        source = share(found, "source")
        yield row(f"source_65_off_{hosts}", abs(source / (1 - HELD) - 1), "share", 0.01,
                  f"{source:.4f} of the bytes came from storage, {hosts} hosts that together hold 65 % of {SET}; 0.35 is right")


def modelled_speedup(hosts):
    with_peers = 1 + (EPOCHS - 1) * (1 - EACH * hosts)
    alone = sum(1 - EACH * (1 - (1 - 1 / hosts)**epoch) for epoch in range(EPOCHS))
    return alone / with_peers


def speedup(bench):
    """Hosts with the same memory each: more hosts hold more."""
    fewer = 1.0
    for hosts in HOSTS:
        rates = []
        for _ in range(bench.rounds):
            rates.append([bench.run(hosts, held=EACH * hosts, peers=peers)[1] for peers in (True, False)])
        ratio = statistics.median(ours / theirs for ours, theirs in rates)
        model = modelled_speedup(hosts)
        how = (f"samples/s over {EPOCHS} epochs of {hosts} hosts with peers ({statistics.median(rate[0] for rate in rates):.0f}) / "
               f"without ({statistics.median(rate[1] for rate in rates):.0f}), storage of {STORAGE / 1e6:.0f} MB/s shared by all, each "
               f"host with memory for {EACH} of {SET}; median of {bench.rounds}; model {model:.3f}")
        yield row(f"speedup_{hosts}", ratio, "ratio", fewer, how + "; goal: more than with fewer hosts", at_least=True)
        yield row(f"speedup_off_model_{hosts}", abs(ratio / model - 1), "share", 0.1, how)
        fewer = ratio


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


def push_down(bench):
    """What goes over the network when a picture's home cuts out the crop."""
    pictures = bench.pictures()
    found = {}
    # A job that would replace bad samples takes no parts of samples: the same batches, from whole ones.
    for way, arguments in (("crops", []), ("whole", ["--on-error", "replace"])):
        epochs_of, _ = bench.run(2, "--assignment", "slice", "--hash", *arguments, batch=16, data=pictures)
        found[way] = {"peer": sum(epoch["bytes"]["peer"] for epoch in epochs_of[2:]),
                      "hashes": [epoch["content_hash"] for epoch in epochs_of]}
    same = found["crops"]["hashes"] == found["whole"]["hashes"]
    ratio = found["crops"]["peer"] / found["whole"]["peer"] if same else math.inf
    yield row("pushdown_bytes", ratio, "ratio", 0.6,
              f"bytes from peers with crops cut out at home ({found['crops']['peer']}) / of whole samples "
              f"({found['whole']['peer']}), epochs 2 to {EPOCHS - 1}, RandomResizedCrop(224) of {PICTURES} generated pictures "
              f"after foreload convert, 2 hosts, slice; {'the same' if same else 'NOT the same'} content hashes")


PARTS = {"all_held": all_held, "part_held": part_held, "speedup": speedup, "balanced": balanced, "slice": slices,
         "push_down": push_down}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--foreload", default=os.environ.get("FORELOAD_CLI", "foreload"), help="the command (default: FORELOAD_CLI, PATH)")
    parser.add_argument("--rounds", type=int, default=3)
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
