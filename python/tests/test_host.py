"""Loaders of several processes in one host: each delivers what it would alone, whatever the others do."""
import json
import os
import signal
import subprocess
import sys
import uuid

import foreload
import pytest
from conftest import ARRAY, DEADLINE, SOAK, finished, run_script, script
from foreload import _memory, _ranks

TIMES = 50 if SOAK else 5
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


@pytest.fixture
def host():
    return f"test-{uuid.uuid4().hex[:16]}"


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


TWO_EPOCHS = """
rank, world, name = int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
with opened(rank=rank, world_size=world, host=name or False) as loader:
    say(ready=True)
    seen = [epoch(loader) for _ in range(3)]
    sys.stdin.readline()  # nobody leaves before all have read
    say(seen=seen, source=source(loader), host=loader.host, budget=loader.stats()["memory_budget_bytes"])
"""


def test_ranks_see_what_they_would_alone_and_the_dataset_is_read_once(arrays, host):
    results = {}
    for name in ("", host):
        ranks = learners(TWO_EPOCHS, arrays, 2, name, stdin=subprocess.PIPE)
        for rank in ranks:
            assert told(rank) == {"ready": True}
        results[name] = all_of(ranks)
    assert [rank["seen"] for rank in results[host]] == [rank["seen"] for rank in results[""]]
    assert [rank["host"] for rank in results[host]] == [host, host]
    assert [rank["budget"] for rank in results[host]] == [64 << 20, 64 << 20]
    everything = SAMPLES * LENGTH
    # What is read ahead of need may belong to a batch that nobody took; nothing is read twice.
    assert everything / 2 < sum(rank["source"] for rank in results[host]) <= everything
    assert sum(rank["source"] for rank in results[""]) > everything  # alone, each has its own copy


def test_images_have_the_pixels_of_a_private_loader(images, host):
    text = LEARNER + """
with opened(transform="random_resized_crop(32), random_flip, normalize", host=sys.argv[2] or False) as loader:
    say(ready=True)
    seen = [epoch(loader) for _ in range(2)]
    sys.stdin.readline()
    say(seen=seen)
"""
    alone = all_of([script(text, images, "", stdin=subprocess.PIPE)])[0]
    assert all_of([script(text, images, host, stdin=subprocess.PIPE) for _ in range(2)]) == [alone, alone]


def test_killing_one_leaves_the_others_stream_intact(arrays, host):
    text = LEARNER + """
with opened(host=sys.argv[2] or False, seed=int(sys.argv[3]), batch_size=1) as loader:
    say(ready=True)
    say(seen=[epoch(loader) for _ in range(int(sys.argv[4]))])
    if int(sys.argv[4]) > 100: say(seen="too early")
"""
    expected = all_of([script(text, arrays, "", 1, 4)])[0]
    for round in range(TIMES):
        victim = script(text, arrays, f"{host}-{round}", 2, 1_000_000)
        assert told(victim) == {"ready": True}
        survivor = script(text, arrays, f"{host}-{round}", 1, 4)
        assert told(survivor) == {"ready": True}
        victim.kill()
        assert all_of([survivor]) == [expected], round
        assert finished(victim)[0] == -signal.SIGKILL


def test_another_budget_is_refused_with_both_values(arrays, host):
    with foreload.DataLoader(arrays, transform=ARRAY, memory=MEMORY, host=host, output="numpy"):
        out = run_script(LEARNER + """
try:
    opened(memory="32MiB", host=sys.argv[2])
except foreload.ConfigError as error:
    say(error=str(error))
with opened(memory=None, host=sys.argv[2]) as loader:  # whatever the host has
    say(budget=loader.stats()["memory_budget_bytes"])
""", arrays, host)
        refused, joined = map(json.loads, out.splitlines())
        assert host in refused["error"] and str(64 << 20) in refused["error"] and str(32 << 20) in refused["error"]
        assert joined == {"budget": 64 << 20}
        with pytest.raises(foreload.ConfigError, match=f"{64 << 20}.*{32 << 20}"):
            foreload.DataLoader(arrays, transform=ARRAY, memory="32MiB", host=host)


def test_train_and_validation_loader_share_a_host(arrays, images, host):
    text = LEARNER + """
train = opened(memory="128MiB", host=sys.argv[3])
validation = foreload.DataLoader(sys.argv[2], batch_size=40, transform="resize(72), center_crop(64)", host=sys.argv[3], output="numpy")
hosts = [loader.host for loader in (train, validation)]
budgets = [loader.stats()["memory_budget_bytes"] for loader in (train, validation)]
seen = []
for _ in range(3):
    ids = sorted(id for batch in train for id in batch[2].tolist())
    seen.append([ids == list(range(100)), sum(len(labels) for _, labels in validation)])
train.close()
validation.close()
say(hosts=hosts, budgets=budgets, seen=seen, after=opened(memory="32MiB", host=sys.argv[3]).stats()["memory_budget_bytes"])
"""
    for round in range(TIMES):
        name = f"{host}-{round}"
        # The host ends with its last loader: then another budget is possible.
        assert all_of([script(text, arrays, images, name)], 30) == [
            {"hosts": [name, name], "budgets": [128 << 20] * 2, "seen": [[True, 120]] * 3, "after": 32 << 20}]


def test_what_one_process_writes_into_its_batches_no_other_sees(arrays, host):
    text = LEARNER + """
zeroes = sys.argv[3] == "zeroes"
with opened(host=sys.argv[2], shuffle=False) as loader:
    say(ready=True)
    sys.stdin.readline()
    wrong = 0
    for _ in range(20):
        for data, labels, ids, positions in loader:
            if zeroes:
                data[:] = 0
                labels[:] = -1
                ids[:] = -1
            else:
                wrong += (data[:, 0] != ids).sum() + (data[:, 63] != 55).sum() + (labels != ids // 25).sum()
    say(wrong=int(wrong))
"""
    jobs = [script(text, arrays, host, kind, stdin=subprocess.PIPE) for kind in ("zeroes", "reads", "reads")]
    for job in jobs:
        assert told(job) == {"ready": True}
    for job in jobs:
        job.stdin.write("go\n")
        job.stdin.flush()
    assert all_of(jobs) == [{"wrong": 0}] * 3


FORK = LEARNER + """
loader = opened(host=sys.argv[2], shuffle=False)
batches = iter(loader)
held = next(batches)
sys.stdout.flush()
child = os.fork()
if child == 0:
    try:
        next(batches)
    except foreload.LoaderClosed:
        with opened(host=sys.argv[2], shuffle=False) as fresh:
            assert sum(len(batch[1]) for batch in fresh) == 100
        del loader, batches, held  # what is the parent's stays the parent's
        sys.exit(7)
    os._exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
rest = [batch[2].tolist() for batch in batches for _ in [time.sleep(0.002)]]  # meanwhile free slots are filled anew
assert held[2].tolist() == list(range(10)) and held[0][:, 0].tolist() == list(range(10)), held
assert rest == [list(range(i, i + 10)) for i in range(10, 100, 10)]
for _ in range(3):
    assert [id for batch in loader for id in batch[2].tolist()] == list(range(100))
say(done=True)
"""


def test_fork_after_use(arrays, host):
    for round in range(TIMES):
        assert all_of([script(FORK, arrays, f"{host}-{round}")]) == [{"done": True}]


def test_spawn_after_use(arrays, host, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(LEARNER + """
import multiprocessing
def work(queue, arguments):
    sys.argv[1:] = arguments
    with opened(host=arguments[1]) as loader:
        queue.put(epoch(loader))
if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    loader = opened(host=sys.argv[2])
    mine = epoch(loader)
    queue = context.Queue()
    process = context.Process(target=work, args=(queue, sys.argv[1:]))
    process.start()
    theirs = queue.get(timeout=60)
    process.join(60)
    say(code=process.exitcode, same=mine == theirs)
""")
    done = subprocess.run([sys.executable, "-B", program, arrays, host], capture_output=True, text=True, timeout=DEADLINE)
    assert json.loads(done.stdout) == {"code": 0, "same": True}, done.stderr


@pytest.mark.parametrize("end", ["pass", "sys.exit(0)", "held = next(iter(loader))"])
def test_exit_with_a_live_loader_is_clean(arrays, host, end):
    for _ in range(TIMES):
        code, out, err = finished(script(LEARNER + f"loader = opened(host=sys.argv[2], storage='20ms')\n{end}", arrays, host), 20)
        assert (code, out, err) == (0, "", "")


def test_ctrl_c_ends_a_wait(arrays, host):
    process = script(LEARNER + """
loader = opened(host=sys.argv[2], storage="1B/s,60s")
say(ready=True)
try:
    next(iter(loader))
except KeyboardInterrupt:
    say(position=loader.state_dict()["position"])
""", arrays, host)
    assert told(process) == {"ready": True}
    for _ in range(50):  # whenever the wait has begun
        process.send_signal(signal.SIGINT)
        try:
            process.wait(0.2)
            break
        except subprocess.TimeoutExpired:
            pass
    code, out, err = finished(process, 10)
    assert (code, out.strip()) == (0, '{"position": 0}') or "KeyboardInterrupt" in err


def test_a_folder_can_be_a_host(arrays, tmp_path):
    folder = tmp_path / "host"
    with foreload.DataLoader(arrays, batch_size=50, transform=ARRAY, memory=MEMORY, host=folder) as loader:
        assert loader.host == str(folder) and len(list(loader)) == 2


@pytest.mark.parametrize("wrong", [True, 7, b"name", "a b", "x" * 49, ["name"]])
def test_what_can_not_be_a_host_is_refused(arrays, wrong):
    with pytest.raises(foreload.ConfigError):
        foreload.DataLoader(arrays, transform=ARRAY, memory=MEMORY, host=wrong)


@pytest.mark.parametrize("options", [{"eviction": "belady"}, {"eviction": "lru"}, {"rewrite": "on"}])
def test_what_does_not_go_with_a_host_is_refused(arrays, host, options):
    with pytest.raises(foreload.ConfigError, match="host"):
        foreload.DataLoader(arrays, transform=ARRAY, memory=MEMORY, host=host, **options)


def test_a_map_style_dataset_has_no_host(host):
    with pytest.raises(foreload.ConfigError, match="host"):
        foreload.DataLoader(list(range(10)), host=host)
    with foreload.DataLoader(list(range(10)), host=False) as loader:
        assert loader.host == ""


# --- ranks of one job

def torchrun(rank, world=2, local=2, port=29500, **more):
    return {"RANK": str(rank), "WORLD_SIZE": str(world), "LOCAL_WORLD_SIZE": str(local), "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port), "TORCHELASTIC_RUN_ID": "none", "TORCHELASTIC_RESTART_COUNT": "0", **more}


def srun(rank, world, tasks, node=0):
    return {"SLURM_PROCID": str(rank), "SLURM_NTASKS": str(world), "SLURM_STEP_TASKS_PER_NODE": tasks, "SLURM_NODEID": str(node),
            "SLURM_JOB_ID": "41", "SLURM_STEP_ID": "0"}


MPIRUN = {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_SIZE": "2", "PMIX_NAMESPACE": "99"}


def test_ranks_of_one_job_on_one_machine_find_the_same_name():
    job = _ranks.job_here(0, 4, torchrun(0, 4))
    assert job.ranks == 2 and job == _ranks.job_here(1, 4, torchrun(1, 4))
    others = [_ranks.job_here(0, 4, torchrun(0, 4, port=29501)), _ranks.job_here(0, 4, torchrun(0, 4, TORCHELASTIC_RUN_ID="7")),
              _ranks.job_here(2, 7, srun(2, 7, "2(x2),3", 1)), _ranks.job_here(1, 4, MPIRUN)]
    assert len({job.name} | {other.name for other in others}) == 5
    assert all(len(other.name) <= 26 for other in others)  # a host's name has 48 letters; the budget comes behind


@pytest.mark.parametrize("tasks, node, ranks", [("2(x2),3", 0, 2), ("2(x2),3", 1, 2), ("2(x2),3", 2, 3), ("4", 3, 4), ("1,2", 1, 2)])
def test_slurm_says_how_many_tasks_a_node_has(tasks, node, ranks):
    assert _ranks.job_here(0, 7, srun(0, 7, tasks, node)).ranks == ranks
    assert _ranks.on_this_host(7, srun(0, 7, tasks, node)) == ranks


@pytest.mark.parametrize("environment", [
    {}, torchrun(0, local=1), {**torchrun(0), "LOCAL_WORLD_SIZE": "?"}, {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"},
    torchrun(1), torchrun(0, world=3), srun(0, 2, "1(x2)"), srun(0, 2, "2(y2)"), srun(0, 2, "1,1", 5),
    {**srun(0, 2, "2"), "SLURM_STEP_ID": ""}, {"PMI_RANK": "0", "PMI_SIZE": "2", "MPI_LOCALNRANKS": "2"}])
def test_who_is_alone_or_not_of_the_job_is_not_taken_into_its_host(environment):
    """Rank 0 of 2: alone on its machine, unnamed, or given by hand while the launcher says otherwise."""
    assert _ranks.job_here(0, 2, environment) is None


JOB = """
with opened(memory=sys.argv[2] or None) as loader:
    say(ready=True)
    seen = [epoch(loader) for _ in range(3)]
    sys.stdin.readline()
    say(seen=seen, source=source(loader), host=loader.host, budget=loader.stats()["memory_budget_bytes"])
"""


def start_job(arrays, memory, port, text=JOB, **more):
    ranks = [script(LEARNER + text, arrays, memory, stdin=subprocess.PIPE, env={**os.environ, **torchrun(rank, port=port, **more)})
             for rank in range(2)]
    for rank in ranks:
        assert told(rank) == {"ready": True}, finished(rank)[2]
    return all_of(ranks)


def a_port():
    return uuid.uuid4().int % 60000


def test_ranks_of_a_job_put_their_memory_together(arrays):
    port = a_port()
    with_memory, without, budget_set = (start_job(arrays, MEMORY, port), start_job(arrays, "", port),
                                        start_job(arrays, "", port, FORELOAD_MEMORY="256MiB"))
    everything = SAMPLES * LENGTH
    for ranks in (with_memory, without, budget_set):
        assert ranks[0]["host"] == ranks[1]["host"] and ranks[0]["budget"] == ranks[1]["budget"]
        assert everything / 2 < sum(rank["source"] for rank in ranks) <= everything
        assert [rank["seen"] for rank in ranks] == [rank["seen"] for rank in with_memory]
    assert with_memory[0]["budget"] == 2 * (64 << 20)
    assert budget_set[0]["budget"] == 2 * (192 << 20)  # three quarters, as for a loader that is alone
    assert len({ranks[0]["host"] for ranks in (with_memory, without, budget_set)}) == 3


def test_ranks_that_ask_for_other_amounts_have_what_they_asked_for(arrays):
    text = JOB.replace("opened(memory=sys.argv[2] or None)", "opened(memory=['64MiB', '32MiB'][int(os.environ['RANK'])])")
    ranks = start_job(arrays, "", a_port(), text)
    assert [rank["budget"] for rank in ranks] == [2 * (64 << 20), 2 * (32 << 20)]


@pytest.mark.parametrize("options", ["host=False", "host=''", "rank=0, world_size=1", "eviction='lru'", "rewrite='on'"])
def test_a_rank_that_wants_to_be_alone_is(arrays, options):
    text = LEARNER + f"""
with opened({options}) as loader:
    epoch(loader)
    say(host=loader.host, budget=loader.stats()["memory_budget_bytes"])
"""
    code, out, err = finished(script(text, arrays, env={**os.environ, **torchrun(0)}))
    assert (code, json.loads(out), err) == (0, {"host": "", "budget": 64 << 20}, "")


def test_ranks_of_a_job_over_several_machines_are_alone(arrays):
    """A host would keep room for the streams of all of them."""
    text = LEARNER + "say(host=opened().host)"
    code, out, err = finished(script(text, arrays, env={**os.environ, **torchrun(0, world=4, local=2)}))
    assert (code, json.loads(out), err) == (0, {"host": ""}, "")


def test_a_rank_that_can_not_join_goes_on_alone_with_one_warning(arrays):
    """Somebody else listens at all places of the host."""
    environment = torchrun(0, port=a_port())
    name = f"{_ranks.job_here(0, 2, environment).name}-{2 * (64 << 20)}"
    text = LEARNER + f"""
import socket
places = []
for index in range(64):
    places.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
    places[-1].bind(f"\\0foreload/{{os.geteuid()}}/{name}/{{index}}")
    places[-1].listen()
with opened() as loader, opened(seed=6) as other:
    epoch(loader), epoch(other)
    say(host=loader.host, budget=loader.stats()["memory_budget_bytes"])
"""
    code, out, err = finished(script(text, arrays, env={**os.environ, **environment}))
    assert code == 0 and json.loads(out) == {"host": "", "budget": 64 << 20}, err
    assert err.count("ForeloadWarning") == 1 and name in err and "host=False" in err


def test_what_is_wrong_with_the_loader_itself_is_told_without_a_word_of_hosts(tmp_path):
    code, out, err = finished(script(LEARNER + "opened()", tmp_path / "missing", env={**os.environ, **torchrun(0, port=a_port())}))
    assert code == 1 and "DatasetNotFound" in err and "host" not in err.splitlines()[-1] and "ForeloadWarning" not in err
    assert "During handling" not in err and "direct cause" not in err


def test_torchrun_needs_no_extra_line(arrays, tmp_path):
    pytest.importorskip("torch")
    program = tmp_path / "program.py"
    program.write_text(LEARNER + """
loader = opened()
seen = [epoch(loader) for _ in range(3)]
open(sys.argv[2] + "/done" + os.environ["RANK"], "w").close()
while not all(os.path.exists(f"{sys.argv[2]}/done{rank}") for rank in range(2)): time.sleep(0.01)
with open(sys.argv[2] + "/" + os.environ["RANK"], "w") as file:
    json.dump({"seen": seen, "source": source(loader), "host": loader.host}, file)
""")
    done = subprocess.run([sys.executable, "-B", "-m", "torch.distributed.run", "--redirects", "2", "--tee", "2", "--nproc_per_node", "2",
                           "--master_port", str(1024 + a_port()), program, arrays, tmp_path], capture_output=True, text=True,
                          timeout=DEADLINE)
    assert done.returncode == 0, done.stderr
    ranks = [json.loads((tmp_path / str(rank)).read_text()) for rank in range(2)]
    assert ranks[0]["host"] == ranks[1]["host"] != ""
    assert sum(rank["source"] for rank in ranks) <= SAMPLES * LENGTH
    alone = all_of(learners("with opened(rank=int(sys.argv[2]), world_size=int(sys.argv[3])) as loader: "
                            "say(seen=[epoch(loader) for _ in range(3)])", arrays, 2))
    assert [rank["seen"] for rank in ranks] == [rank["seen"] for rank in alone]


# --- the process's budget

@pytest.fixture
def budget():
    foreload.set_memory_budget("100MiB")
    yield 100 << 20
    foreload.set_memory_budget(None)


def test_a_host_counts_once_in_the_budget_of_a_process(budget):
    first, second = _memory.take(60 << 20, 1, "a"), _memory.take(None, 1, "a")
    assert first.bytes == second.bytes == 60 << 20
    with pytest.raises(foreload.OutOfMemory):
        _memory.take(60 << 20, 1, "b")
    first.give_back()
    first.give_back()
    with pytest.raises(foreload.OutOfMemory):
        _memory.take(60 << 20, 1)
    second.give_back()
    alone = _memory.take(None, 1)
    assert alone.bytes == 75 << 20
    alone.give_back()


def test_a_host_whose_memory_nobody_set_takes_nothing_of_what_was_found():
    part = _memory.take(None, 1, "a")
    assert part.bytes == 0
    part.give_back()
