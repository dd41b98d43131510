"""workers=0: an agent prepares, nothing is decoded in the trainer; and nothing is lost when there is none."""
import json
import subprocess

import pytest
from conftest import CLI, DEADLINE, finished, script
from learners import LEARNER, all_of, told

MEMORY = "256MiB"


@pytest.fixture
def agent(host):
    process = subprocess.Popen([CLI, "agent", "--host", host, "--memory", MEMORY, "--workers", "1"], text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert host in process.stdout.readline()
    yield process
    process.kill()
    process.communicate()


TRAINER = LEARNER + f"""
with opened(transform="random_resized_crop(32), random_flip, normalize", memory={MEMORY!r}, host=sys.argv[2] or False,
            workers=0 if sys.argv[2] else None) as loader:
    seen = [epoch(loader)]
    say(seen=seen)
    sys.stdin.readline()
    seen += [epoch(loader) for _ in range(2)]
    say(seen=seen, threads=loader.stats()["threads"])
    sys.stdin.readline()
"""


def trainer(images, host):
    return script(TRAINER, images, host, stdin=subprocess.PIPE)


def go_on(process):
    process.stdin.write("go on\n")
    process.stdin.flush()


def prepared_by(host):
    """How many samples of the one learner each process has prepared."""
    done = subprocess.run([CLI, "agent", "--host", host, "--status", "--json"], check=True, timeout=DEADLINE, capture_output=True,
                          text=True)
    learner, = json.loads(done.stdout)["learners"]
    return {helper["process"]: helper["samples"] for helper in learner["prepared_by"]}


def test_an_agent_prepares_everything(images, host, agent):
    alone = all_of([trainer(images, "")])[0]["seen"]
    process = trainer(images, host)
    assert told(process)["seen"] == alone[:1]
    go_on(process)
    last = told(process)
    assert last == {"seen": alone, "threads": 0}
    samples = prepared_by(host)
    assert list(samples) == [agent.pid] and samples[agent.pid] >= 3 * 120
    code, _, err = finished(process)
    assert (code, err) == (0, "")


def test_when_the_agent_is_killed_the_trainer_prepares_for_itself(images, host, agent):
    alone = all_of([trainer(images, "")])[0]["seen"]
    process = trainer(images, host)
    assert told(process)["seen"] == alone[:1]
    agent.kill()
    agent.wait()
    go_on(process)
    last = told(process)
    assert last["seen"] == alone and last["threads"] > 0
    assert process.pid in prepared_by(host)
    code, _, err = finished(process)
    assert code == 0 and err.count("ForeloadWarning") == 1 and f"foreload agent --host {host}" in err
