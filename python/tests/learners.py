"""What the tests of hosts share: learners in processes of their own, and what they say."""
import json

from conftest import ARRAY, DEADLINE, finished, script

MEMORY = "64MiB"
SAMPLES, LENGTH = 100, 64  # of the arrays

# A learner: reads epochs, and prints as JSON what it saw and where the bytes came from.
LEARNER = f"""
import hashlib, json, os, sys, time
import foreload
def opened(**options):
    return foreload.DataLoader(sys.argv[1], **{{"batch_size": 10, "shuffle": True, "seed": 5, "transform": {ARRAY!r},
                                               "memory": {MEMORY!r}, "output": "numpy", "with_ids": True, **options}})
def epoch(loader):
    digest = hashlib.sha256()
    for batch in loader:
        for array in batch: digest.update(array.tobytes())
    return digest.hexdigest()
def say(**told): print(json.dumps(told), flush=True)
def source(loader): return sum(epoch["bytes"]["source"] for epoch in loader.stats()["epochs"])
"""


def told(process):
    return json.loads(process.stdout.readline() or "{}")


def learners(text, arrays, count, *arguments, **options):
    return [script(LEARNER + text, arrays, rank, count, *arguments, **options) for rank in range(count)]


def all_of(processes, seconds=DEADLINE):
    """What each said last."""
    results = []
    for process in processes:
        code, out, err = finished(process, seconds)
        assert code == 0, err
        results.append(json.loads(out.splitlines()[-1]))
    return results
