#!/usr/bin/python3
"""bench/simulate: real runs of this machine against their simulation.

    simulate [--json] [--rounds N] [--only CASE...]

Every case is a job of one to four processes over storage of a known rate (--storage), with a cache from nothing to all of
the dataset, bound by fetching, by prep or by the accelerator. The simulator gets what the run was told and what a core
prepares, which is measured before, and nothing else of the run. Compared are the time of all epochs together and the bytes
of every epoch by origin. Runs are repeated, and the median counts: the machine may have other work.
"""
import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

IMAGES = 600
BATCH = 16
EPOCHS = 3
SEED = 7
DEADLINE = 600
CHAIN = ["--chain", "random_resized_crop(224),random_flip"]


class Case:
    def __init__(self, name, rate, latency=0.0, held=0.0, accelerator=None, workers=2, processes=1, system="foreload"):
        """`rate`: of storage, MB/s; `held`: of the dataset in memory; `accelerator`: samples/s of one process."""
        self.name, self.rate, self.latency, self.held = name, rate, latency, held
        self.accelerator, self.workers, self.processes, self.system = accelerator, workers, processes, system


CASES = [
    Case("fetch_nothing_held", 12),
    Case("fetch_half_held", 12, held=0.5),
    Case("fetch_quarter_held", 16, held=0.25),
    Case("fetch_lru_half_held", 16, held=0.5, system="lru"),
    Case("latency_nothing_held", 12, latency=0.02),
    Case("all_held", 12, held=1.2, accelerator=150),
    Case("accelerator_bound", 40, held=0.5, accelerator=60),
    Case("accelerator_and_fetch", 14, held=0.3, accelerator=140),
    Case("prep_one_worker", 200, held=1.2, workers=1),
    Case("prep_two_workers", 200, held=1.2, workers=2),
    Case("two_processes_fetch", 12, held=0.4, processes=2, workers=1),
    Case("two_processes_accelerator", 40, held=0.6, processes=2, workers=1, accelerator=40),
    Case("four_processes_fetch", 12, held=0.2, processes=4, workers=1),
]


def row(name, value, goal, how):
    return {"name": f"simulate/{name}", "value": value, "unit": "share", "goal": f"≤ {goal}", "ok": value <= goal, "how": how}


class Bench:
    def __init__(self, foreload, top):
        self.foreload, self.top = foreload, top
        self.set = top / "set"
        self.call("generate", self.set, "--images", IMAGES, "--seed", 1)
        self.bytes = self.call("index", self.set)["dataset"]["bytes"]
        self.prep = {}

    def call(self, *words):
        done = subprocess.run([self.foreload, *map(str, words), "--json"], stdout=subprocess.PIPE, check=True, timeout=DEADLINE)
        return json.loads(done.stdout)

    def prep_rate(self, workers):
        """Samples per second of one worker, when as many work: everything in memory, nobody else to wait for."""
        if workers not in self.prep:
            rates = []
            for _ in range(3):
                report = self.call("run", self.set, "--batch", BATCH, "--epochs", 3, "--workers", workers, *CHAIN)
                rates.append(report["epochs"][-1]["samples_per_s"])
            self.prep[workers] = statistics.median(rates) / workers
        return self.prep[workers]

    def budget(self, case):
        """That keeps about so much of the dataset; both are told the same one."""
        return int(40e6 * case.workers + case.held * self.bytes)

    def run(self, case):
        """Reports of all processes of the job, added up: seconds of the slowest, bytes of all."""
        storage = f"{case.rate}MB/s,{case.latency * 1000:g}ms,bucket={self.top / f'bucket{random.randrange(10**9)}'}"
        words = [self.foreload, "run", self.set, "--batch", BATCH, "--epochs", EPOCHS, "--seed", SEED, "--storage", storage,
                 "--workers", case.workers, *CHAIN, "--hash", "--json"]
        words += ["--memory", self.budget(case)] if case.held else ["--no-cache"]
        words += ["--eviction", "lru"] if case.system == "lru" else []
        words += ["--accelerator", case.accelerator] if case.accelerator else []
        if case.processes > 1:
            words += ["--host", f"bench-{os.getpid()}-{random.randrange(10**9)}", "--world", case.processes]
        learners = [subprocess.Popen([*map(str, words), *(["--rank", str(rank)] if case.processes > 1 else [])],
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for rank in range(case.processes)]
        reports = []
        for learner in learners:
            out, err = learner.communicate(timeout=DEADLINE)
            if learner.returncode != 0:
                sys.exit(f"bench/simulate: {case.name}: a run failed: {err}")
            reports.append(json.loads(out))
        return reports

    def simulate(self, case):
        workers = case.workers * case.processes
        words = ["simulate", self.set, "--system", case.system, "--batch", BATCH, "--epochs", EPOCHS, "--seed", SEED,
                 "--storage-rate", f"{case.rate}MB/s", "--storage-latency", f"{case.latency * 1000:g}ms", "--learners",
                 case.processes, "--cores", workers, "--prep", self.prep_rate(min(workers, os.cpu_count())),
                 "--storage-on-network", 0]
        words += ["--budget", self.budget(case), *CHAIN] if case.held else ["--cache", 0]
        words += ["--accelerator", case.accelerator] if case.accelerator else []
        return self.call(*words)["systems"][0]


def compared(bench, case, rounds):
    simulated = bench.simulate(case)
    runs = [bench.run(case) for _ in range(rounds)]
    real = statistics.median(max(sum(epoch["seconds"] for epoch in report["epochs"]) for report in run) for run in runs)
    took = sum(epoch["seconds"] for epoch in simulated["epochs"])
    yield row(f"{case.name}_time", abs(took / real - 1), 0.08,
              f"{took:.2f} s simulated, {real:.2f} s real ({EPOCHS} epochs of {IMAGES} images, storage {case.rate} MB/s, "
              f"{case.held:.0%} held, {case.processes} processes with {case.workers} workers, accelerator {case.accelerator}; "
              f"median of {rounds})")
    off = 0.0
    said = []
    for number, epoch in enumerate(simulated["epochs"]):
        found = {place: sum(report["epochs"][number]["bytes"][place] for report in runs[0]) for place in epoch["bytes"]}
        total = sum(found.values())
        off = max(off, max(abs(epoch["bytes"][place] - found[place]) / total for place in found))
        said.append(f"epoch {number}: source {epoch['bytes']['source'] / total:.4f} / {found['source'] / total:.4f}")
    yield row(f"{case.name}_bytes", off, 0.01, "largest difference of an origin's share; simulated / real: " + ", ".join(said))
    same = all(epoch["order_hash"] == f"{sum(int(report['epochs'][number]['order_hash'], 16) for report in runs[0]) % 2**64:016x}"
               for number, epoch in enumerate(simulated["epochs"]))
    yield row(f"{case.name}_order", 0.0 if same else 1.0, 0, "the same samples at the same positions, by order_hash")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--foreload", default=os.environ.get("FORELOAD_CLI", "foreload"), help="the command (default: FORELOAD_CLI, PATH)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=[case.name for case in CASES], default=[case.name for case in CASES])
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    found = []
    with tempfile.TemporaryDirectory(prefix="foreload-bench-") as top:
        bench = Bench(arguments.foreload, pathlib.Path(top))
        for case in CASES:
            if case.name not in arguments.only:
                continue
            for each in compared(bench, case, arguments.rounds):
                found.append(each)
                if not arguments.json:
                    show(each)
    if arguments.json:
        print(json.dumps(found, indent=1, ensure_ascii=False))
    return 0 if all(each["ok"] for each in found) else 1


def show(each):
    print(f"{'ok  ' if each['ok'] else 'MISS'} {each['name']:<40} {each['value']:>10.4f} goal {each['goal']:<7} {each['how']}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
