"""Several machines of a job: what all ranks get together is what one process gets, and errors are errors. Here the machines
are groups of processes with a host of their own; they talk over loopback."""
import itertools
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time

import foreload
import pytest
from conftest import ARRAY, CLI, DEADLINE, finished, script
from foreload import _peers
from learners import LEARNER, MEMORY, SAMPLES, all_of, told
from test_host_jobs import MPIRUN, srun, torchrun
from test_same_as_cli import MASK, cli_hashes

GLOBAL = 20  # samples per step
PROBE = subprocess.run([CLI, "agent", "--host", f"probe-{os.getpid()}", "--peers", "nobody:0"], capture_output=True, text=True)
pytestmark = pytest.mark.skipif("has no transport" in PROBE.stderr, reason="this foreload has no transport between hosts")


def addresses(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    found = [f"127.0.0.1:{held.getsockname()[1]}" for held in sockets]
    for held in sockets:
        held.close()
    return found


def traces(host):
    """Whatever of that host is still there: agents, sockets, names in shared memory."""
    agents = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            agents += [path] if host.encode() in path.read_bytes().split(b"\0") else []
        except OSError:
            pass  # it has ended meanwhile
    sockets = [line for line in pathlib.Path("/proc/net/unix").read_text().splitlines() if f"/{host}/" in line]
    return agents + sockets + [name for name in os.listdir("/dev/shm") if "foreload" in name]


def assert_gone(hosts):
    """Agents leave a second after the last learner."""
    until = time.monotonic() + 20
    while any(map(traces, hosts)) and time.monotonic() < until:
        time.sleep(0.1)
    assert [traces(host) for host in hosts] == [[] for _ in hosts]


# What a learner got: (epoch, step, positions, ids, bytes of every sample).
BATCHES = """
def told_batches(batches):
    return [[batch["epoch"], batch["step"], batch["positions"].tolist(), batch["ids"].tolist(),
             [bytes(sample.tolist()).hex() for sample in batch["images"]]] for batch in batches]
"""


def by_position(learners):
    """{(epoch, step): {position: (id, bytes)}} of all learners together; nothing comes twice."""
    found = {}
    for epoch, step, *columns in itertools.chain(*learners):
        batch = found.setdefault((epoch, step), {})
        for position, *sample in zip(*columns):
            assert position not in batch
            batch[position] = sample
    return found


def expected(arrays, epochs):
    text = LEARNER + BATCHES + f"""
with opened(batch_size={GLOBAL}, as_dict=True) as loader: say(got=[told_batches(loader) for _ in range({epochs})])
"""
    return by_position(all_of([script(text, arrays)])[0]["got"])


# ---- real torch

PROGRAM = LEARNER + BATCHES + """
import torch
folder, credentials, *peers = sys.argv[2:]
loader = opened(global_batch=GLOBAL, output="torch", as_dict=True, last_batch="ragged", peers=peers or None,
                credentials=credentials or None)
saved = folder + "/state"
if os.path.exists(saved): loader.load_state_dict(torch.load(saved))
got, resumed = [], os.path.exists(saved)
for epoch in range(2):
    batches = iter(loader)
    got += told_batches(batches if resumed or epoch == 0 else [next(batches), next(batches)])
state = loader.state_dict()
assert isinstance(next(iter(loader))["images"], torch.Tensor)
with open(f"{folder}/{'resumed' if resumed else 'begun'}{os.environ['RANK']}", "w") as file:
    json.dump({"got": got, "state": state, "host": loader.host, "hosts": loader.stats()["hosts"],
               "peer": sum(epoch["bytes"]["peer"] for epoch in loader.stats()["epochs"])}, file)
if os.environ["RANK"] == "0" and not resumed: torch.save(state, saved + ".new")
""".replace("GLOBAL", str(GLOBAL))


def start_torchrun(program, node, nodes, port, *arguments):
    return subprocess.Popen([sys.executable, "-B", "-m", "torch.distributed.run", "--redirects", "2", "--tee", "2", "--nnodes",
                             str(nodes), "--nproc_per_node", "2", "--node_rank", str(node), "--master_addr", "127.0.0.1",
                             "--master_port", port, program, *map(str, arguments)], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def run_torchrun(program, nodes, *arguments):
    port = addresses(1)[0].split(":")[1]
    for launcher in [start_torchrun(program, node, nodes, port, *arguments) for node in range(nodes)]:
        code, _, err = finished(launcher)
        assert code == 0, err


def test_two_nodes_with_two_ranks_each_get_what_one_process_gets_and_one_node_goes_on(arrays, tmp_path):
    pytest.importorskip("torch")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    credentials = tmp_path / "credentials"
    subprocess.run([CLI, "agent", "--make-credentials", credentials], check=True, stdout=subprocess.DEVNULL, timeout=DEADLINE)
    run_torchrun(program, 2, arrays, tmp_path, credentials, *addresses(2))
    begun = [json.loads((tmp_path / f"begun{rank}").read_text()) for rank in range(4)]
    assert [rank["hosts"] for rank in begun] == [2] * 4
    hosts = [rank["host"] for rank in begun]
    assert hosts[0] == hosts[1] != hosts[2] == hosts[3]
    assert_gone(set(hosts))

    one = expected(arrays, 2)
    assert set(one) == {(epoch, step) for epoch in range(2) for step in range(SAMPLES // GLOBAL)}
    two = by_position([rank["got"] for rank in begun])
    assert two == {key: batch for key, batch in one.items() if key < (1, 2)}
    assert all(len(batch[2]) == GLOBAL // 4 for rank in begun for batch in rank["got"])  # as many for each
    assert any(batch[2] != list(range(batch[2][0], batch[2][0] + 5)) for rank in begun for batch in rank["got"])  # no slices
    assert all(rank["state"] == begun[0]["state"] for rank in begun)
    assert (begun[0]["state"]["epoch"], begun[0]["state"]["position"]) == (1, 2 * GLOBAL)

    (tmp_path / "state.new").rename(tmp_path / "state")
    run_torchrun(program, 1, arrays, tmp_path, "")
    resumed = [json.loads((tmp_path / f"resumed{rank}").read_text()) for rank in range(2)]
    rest = by_position([rank["got"] for rank in resumed])
    assert {key: batch for key, batch in rest.items() if key[0] == 1} == {key: batch for key, batch in one.items() if key >= (1, 2)}
    assert {key for key in rest if key[0] == 2} == {(2, step) for step in range(SAMPLES // GLOBAL)}


# ---- without torch

def start_hosts(text, arrays, host, count, **options):
    """One rank on each."""
    peers = ",".join(addresses(count))
    return [script(LEARNER + BATCHES + text, arrays, rank, count, f"{host}-{rank}", peers, **options,
                   env={**os.environ, "GROUP_RANK": str(rank)}) for rank in range(count)]


OPENED = f"""
rank, world, host, peers = int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5]
def with_peers(**options):
    return opened(**{{"global_batch": {GLOBAL}, "as_dict": True, "rank": rank, "world_size": world, "host": host, "peers": peers,
                     "last_batch": "ragged", **options}})
"""


@pytest.mark.parametrize("options, shares", [({"assignment": "slice"}, [10, 10]), ({"rates": [3, 1]}, [15, 5]),
                                             ({"rates": [1000, 1]}, [20, 0])])
def test_shares_are_as_asked_for(arrays, host, options, shares):
    text = OPENED + f"with with_peers(**{options!r}) as loader: say(got=told_batches(loader), state=loader.state_dict()['position'])"
    ranks = all_of(start_hosts(text, arrays, host, 2))
    assert by_position([rank["got"] for rank in ranks]) == expected(arrays, 1)
    assert [rank["state"] for rank in ranks] == [0, 0]
    for rank, share in zip(ranks, shares):
        assert [len(batch[2]) for batch in rank["got"]] == [share] * (SAMPLES // GLOBAL)
    if "assignment" in options:
        assert [batch[2] for batch in ranks[1]["got"]] == [list(range(first + 10, first + 20)) for first in range(0, SAMPLES, GLOBAL)]


def test_positions_states_and_statistics_follow_the_assignment(arrays, host):
    """Hashes by position add up to the command's; a batch that was lost on its way, a state and set_epoch give the same again."""
    text = OPENED + """
from foreload import _foreload
loader = with_peers(as_dict=False)
order = content = 0
for step in range(len(loader)):
    batch = loader._engine.next()
    positions = loader._engine.positions(0, step)
    assert positions == sorted(memoryview(batch.positions).tolist()) == memoryview(batch.positions).tolist()
    hashes = _foreload.batch_hashes(batch, positions)
    order, content = order + hashes[0], content + hashes[1]
loader.close()

failing = [False]
def fails_at_times(batch):
    if failing[0]:
        failing[0] = False
        raise ValueError
    return batch
with with_peers(batch_transform=fails_at_times) as loader:
    batches = iter(loader)
    first = told_batches([next(batches), next(batches)])
    state = loader.state_dict()
    failing[0] = True
    try: next(batches)
    except ValueError: pass
    assert loader.state_dict() == state
    rest = told_batches(batches)
    loader.load_state_dict(state)
    again = told_batches(loader)
    loader.set_epoch(0)
    say(hashes=[order, content], same=[rest == again, told_batches(loader) == first + rest], place=state["position"],
        samples=[epoch["samples"] for epoch in loader.stats()["epochs"]][-1])
"""
    ranks = all_of(start_hosts(text, arrays, host, 2))
    assert all(rank["same"] == [True, True] and (rank["place"], rank["samples"]) == (2 * GLOBAL, SAMPLES // 2) for rank in ranks)
    sums = [f"{sum(rank['hashes'][which] for rank in ranks) & MASK:016x}" for which in range(2)]
    assert [sums] == cli_hashes(arrays, "--batch", GLOBAL, "--chain", ARRAY, "--seed", 5)
    assert_gone([f"{host}-0", f"{host}-1"])


def test_a_job_that_is_started_again_at_once_has_its_port(arrays, host):
    """The agent of the one before, which was killed, is still there then."""
    place = addresses(1)[0]
    text = LEARNER + f"opened(host=sys.argv[2], peers=['{place}']); say(ready=True); sys.stdin.readline()"
    for name in (f"{host}-0", f"{host}-1"):
        process = script(text, arrays, name, stdin=subprocess.PIPE)
        assert told(process) == {"ready": True}, finished(process)[2]
        assert traces(name)
        process.kill()
        assert finished(process)[0] == -signal.SIGKILL
    assert_gone([f"{host}-0", f"{host}-1"])


def test_ctrl_c_ends_the_wait_for_a_machine_that_does_not_come(arrays, host):
    peers = ",".join(addresses(2))
    process = script(LEARNER + OPENED + "with_peers()", arrays, 0, 2, host, peers, env={**os.environ, "GROUP_RANK": "0"})
    words = ""
    while "ForeloadWarning: waiting for 1 of 2 hosts" not in words:
        line = process.stderr.readline()
        assert line, words
        words += line
    assert peers.split(",")[1] in words
    begun = time.monotonic()
    process.send_signal(signal.SIGINT)
    code, _, err = finished(process)
    assert code == -signal.SIGINT and err.rstrip().endswith("KeyboardInterrupt")
    assert time.monotonic() - begun < 20
    assert_gone([host])


# ---- what is wrong, and names

@pytest.mark.parametrize("options, words", [
    ({"peers": 3}, "peers.*3"), ({"peers": []}, "peers"), ({"peers": ""}, "peers"), ({"peers": ["a", 3]}, "peers"),
    ({"peers": ["a,b"]}, "peers"), ({"peers": "a,,b"}, "peers"), ({"peers": ["auto", "a"]}, "peers"), ({"peers": b"a"}, "peers"),
    ({"peers": "a:b:c", "credentials": ""}, "credentials"), ({"peers": "a,b", "rank": 0, "world_size": 3}, "LOCAL_WORLD_SIZE"),
    ({"peers": "a", "assignment": "even"}, "assignment.*'even'"), ({"peers": "a", "rates": [1, 2]}, "rates"),
    ({"peers": "a", "rates": [0]}, r"rates\[0\]"), ({"peers": "a", "rates": "1"}, "rates"), ({"peers": "a", "host": False}, "host=False"),
    ({"assignment": "slice"}, "assignment.*peers"), ({"rates": [1]}, "rates.*peers"), ({"credentials": "keys"}, "credentials.*peers"),
    ({"peers": "a", "eviction": "lru"}, "eviction"), ({"peers": "a", "cache": False}, "caches"), ({"peers": "a", "rewrite": "on"}, "rewrite"),
    ({"peers": ["a:port"], "last_batch": "pad"}, "a:port"), ({"peers": "auto", "last_batch": "pad"}, "torchrun")])
def test_wrong_words_are_refused(arrays, host, options, words):
    with pytest.raises(foreload.ConfigError, match=words):
        foreload.DataLoader(arrays, **{"transform": ARRAY, "memory": MEMORY, "host": host, **options})


def test_a_map_style_dataset_has_no_peers():
    with pytest.raises(foreload.ConfigError, match="peers.*map-style"):
        foreload.DataLoader(list(range(10)), peers=["127.0.0.1"])


def test_whoever_can_not_have_its_peers_does_not_go_on_alone(arrays, tmp_path):
    """The agent can not begin: its port is taken, its credentials are missing, it is not there."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        for options, program, words in (("", CLI, place), (f", credentials='{tmp_path}'", CLI, "ca.pem"),
                                        ("", tmp_path / "nothing", "nothing")):
            text = LEARNER + f"opened(peers=['{place}'], last_batch='pad'{options})"
            environment = {**os.environ, **torchrun(0, 2, 2, int(taken.getsockname()[1])), "FORELOAD_PROGRAM": str(program)}
            code, _, err = finished(script(text, arrays, env=environment))
            last = err.splitlines()[-1]
            assert code == 1 and re.match(r"foreload\.errors\.(ReadError|ConfigError)", last) and words in last, err
            assert "ForeloadWarning" not in err


def test_machines_of_a_job_have_names_of_their_own():
    nodes = [torchrun(rank, 4, 2, GROUP_RANK=str(rank // 2)) for rank in range(4)]
    names = [_peers.host_here(rank, 4, nodes[rank]) for rank in range(4)]
    assert names[0] == names[1] != names[2] == names[3] and names[0].ranks == 2
    single = _peers.host_here(1, 2, srun(1, 2, "1(x2)", 1))  # one rank per machine
    assert single.ranks == 1 and single.name.startswith("slurm-")
    assert _peers.host_here(1, 4, MPIRUN).ranks == 2
    assert _peers.host_here(0, 2, {}) == ("peers", 1) == _peers.host_here(0, 2, torchrun(1))  # given by hand
    assert all(len(name.name) <= 48 for name in [*names, single])


def test_ranks_of_this_machine_are_counted_by_the_launcher_or_dealt_evenly(monkeypatch):
    given = {"peers": "a,b", "credentials": None, "assignment": "balanced", "rates": None}
    assert _peers.options(given, 6)["local_world"] == 3
    assert _peers.options({**given, "peers": True}, 6) == {"peers": "auto", "assignment": "balanced", "local_world": 6}
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    assert _peers.options({**given, "peers": [" a ", "b"]}, 6) == {"peers": "a,b", "assignment": "balanced", "local_world": 2}
    assert _peers.options({**given, "peers": False}, 6) == {}
