"""Jobs with the same batches in one host: each batch is prepared once and read by all, and nobody sees what another writes."""
import json
import subprocess
import uuid

import foreload
import torch
from conftest import ARRAY, finished, script

SAMPLES, LENGTH = 100, 64  # of the arrays

JOB = f"""
import hashlib, json, sys
import foreload
def say(**told): print(json.dumps(told), flush=True)
def digest(loader, writes):
    seen = hashlib.sha256()
    for values, labels in loader:
        seen.update(values.numpy().tobytes() + labels.numpy().tobytes())
        if writes:
            values.zero_()
            labels.zero_()
    return seen.hexdigest()
loader = foreload.DataLoader(sys.argv[1], batch_size=10, shuffle=True, seed=5, transform={ARRAY!r}, memory="64MiB",
                             output="torch", host=sys.argv[2] or False, follow=sys.argv[4] == "follow")
begins = loader.state_dict()
say(epoch=begins["epoch"] if "epoch" in begins else None)
sys.stdin.readline()
seen = [digest(loader, sys.argv[3] == "writes") for _ in range(3)]
say(seen=seen, source=sum(epoch["bytes"]["source"] for epoch in loader.stats()["epochs"]))
sys.stdin.readline()
loader.close()
"""


def started(arrays, host, writes="", follow=""):
    return script(JOB, arrays, host, writes, follow, stdin=subprocess.PIPE)


def go(process):
    process.stdin.write("\n")
    process.stdin.flush()


def told(process):
    return json.loads(process.stdout.readline() or "{}")


def ended(process):
    code, _, err = finished(process)
    assert code == 0, err


def test_jobs_share_every_batch_and_one_that_writes_to_its_own_changes_no_others(arrays):
    alone = started(arrays, "")
    told(alone)
    go(alone)
    expected = told(alone)["seen"]
    ended(alone)
    host = f"test-{uuid.uuid4().hex[:16]}"
    jobs = [started(arrays, host, writes) for writes in ("", "writes", "writes")]
    for job in jobs:
        assert told(job)
    for job in jobs:
        go(job)
    results = [told(job) for job in jobs]
    assert [result["seen"] for result in results] == [expected] * 3
    assert sum(result["source"] for result in results) == SAMPLES * LENGTH
    for job in jobs:
        ended(job)


def test_a_follower_begins_with_the_next_epoch_of_the_job_it_found(arrays):
    host = f"test-{uuid.uuid4().hex[:16]}"
    first = started(arrays, host)
    assert told(first)["epoch"] == 0
    go(first)
    told(first)  # it has read three epochs, and is still there
    follower = started(arrays, host, follow="follow")
    assert told(follower)["epoch"] >= 3
    ended(first)
    go(follower)
    assert len(told(follower)["seen"]) == 3
    ended(follower)


def test_follow_without_a_host_is_refused(arrays):
    try:
        foreload.DataLoader(arrays, transform=ARRAY, host=False, follow=True)
    except foreload.ConfigError as error:
        assert "follow" in str(error) and "host" in str(error)
    else:
        raise AssertionError("it was not")


def test_pinned_batches_of_a_host_are_copies(arrays, monkeypatch):
    pinned = []

    def pin(tensor):
        pinned.append(tensor.data_ptr())
        return tensor.clone()

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.Tensor, "pin_memory", pin)
    with foreload.DataLoader(arrays, batch_size=10, transform=ARRAY, memory="64MiB", pin_memory=True,
                             host=f"test-{uuid.uuid4().hex[:16]}") as loader:
        for values, labels in loader:
            assert values.data_ptr() not in pinned
    assert len(pinned) == 2 * SAMPLES // 10
