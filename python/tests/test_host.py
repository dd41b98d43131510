"""Loaders of several processes in one host: each delivers what it would alone, whatever the others do."""
import json
import signal
import subprocess
import sys

import foreload
import pytest
from conftest import ARRAY, DEADLINE, SOAK, finished, run_script, script
from foreload import _memory
from learners import LEARNER, LENGTH, MEMORY, SAMPLES, all_of, learners, told

TIMES = 50 if SOAK else 5


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
