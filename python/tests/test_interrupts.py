"""Ctrl-C at any moment: no batch is lost and none comes twice. Real signals, each in a process of its own."""
import json
import random

import pytest
from conftest import ARRAY, SOAK, finished, run_script, script

SAMPLES = 100
# The handler raises only while the loop is on: what follows an interrupt is not meant. `seen += ids` calls nothing, so that
# every signal comes either before it, in next(), or after it.
PROGRAM = """
import json, os, random, signal, sys, threading, time
import foreload
import numpy  # whose own import does not survive an interrupt

folder, mode, how, seed, count = sys.argv[1], *sys.argv[2:4], *map(int, sys.argv[4:])
random.seed(seed)

class Numbers:
    def __len__(self): return SAMPLES
    def __getitem__(self, index): return index

def to_ids(batch):
    return [(batch["epoch"], int(id)) for id in batch["ids"]]

def opened():
    chain, storage = (None, None) if mode == "mapped" else (CHAIN, {"native": None, "slow": "40kB/s"}[mode])
    return foreload.DataLoader(Numbers() if mode == "mapped" else folder, batch_size=4, shuffle=True, transform=chain,
                               storage=storage, memory="64MiB", output="numpy", as_dict=True, batch_transform=to_ids)

def interrupted(*unused):
    global armed, state
    if armed:
        armed = False
        state = loader.state_dict() if how == "in the handler" else None
        raise KeyboardInterrupt

def bother():
    for _ in range(count):
        time.sleep(random.random() * 0.01)
        if not armed: time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

seen, times, state, armed, batches = [], 0, None, False, None
signal.signal(signal.SIGINT, interrupted)
loader = opened()
bothering = threading.Thread(target=bother)
bothering.start()
while True:
    try:
        armed = True
        while bothering.is_alive() or loader.state_dict()["position"] != 0:
            batches = batches or iter(loader)
            for ids in batches:
                seen += ids
            batches = None
        armed = False
        break
    except KeyboardInterrupt:
        times += 1
    if how == "not at all":
        continue
    batches, state = None, state or loader.state_dict()
    if times % 5 == 0:
        loader.close()
        loader = opened()
    loader.load_state_dict(json.loads(json.dumps(state)))
print(json.dumps([seen, times]))
""".replace("SAMPLES", str(SAMPLES)).replace("CHAIN", repr(ARRAY))


@pytest.mark.parametrize("how", ["in the handler", "after the loop", "not at all"])
@pytest.mark.parametrize("mode", ["native", "slow", "mapped"])
def test_ctrl_c_leaves_no_gap_and_repeats_no_batch(arrays, mode, how):
    """The state is saved in one of three ways; "not at all": the same iterator goes on."""
    seed = random.randrange(1 << 30)
    print("seed", seed)
    seen, times = json.loads(run_script(PROGRAM, arrays, mode, how, seed, 1000 if SOAK else 60))
    assert times >= 5
    epochs = {}
    for epoch, id in seen:
        epochs.setdefault(epoch, []).append(id)
    assert list(epochs) == list(range(len(epochs)))
    assert all(sorted(ids) == list(range(SAMPLES)) for ids in epochs.values())


# What a signal handler or another thread sees while a batch is on its way. No luck is needed for these.

OPEN = f"""
import os, signal, sys, threading, time
import foreload
def opened(**options):
    return foreload.DataLoader(sys.argv[1], **{{"batch_size": 10, "transform": {ARRAY!r}, "memory": "64MiB", "output": "numpy",
                                               **options}})
"""


def test_a_handler_that_returns_sees_the_state_without_the_batch_on_its_way(arrays):
    out = run_script(OPEN + """
def handler(*unused):
    print(loader.state_dict()["position"])
signal.signal(signal.SIGALRM, handler)
def interrupted(batch):
    signal.raise_signal(signal.SIGALRM)
    return batch
loader = opened(batch_size=40, batch_transform=interrupted)
print(sum(len(labels) for _, labels in loader), loader.state_dict())
""", arrays)
    assert out.split()[:4] == ["0", "40", "80", "100"] and "'epoch': 1, 'position': 0" in out


def test_an_interrupt_at_the_end_of_an_epoch_comes_to_the_same_end(arrays):
    out = run_script(OPEN + """
class Lock:  # interrupts the third release: that of the call which finds the epoch's end
    def __init__(self): self.lock, self.count = threading.RLock(), 0
    def __enter__(self): self.lock.acquire()
    def __exit__(self, *unused):
        self.lock.release()
        self.count += 1
        if self.count == 3: raise KeyboardInterrupt
loader = opened(batch_size=50)
batches = iter(loader)
loader._lock = Lock()
next(batches), next(batches)
try:
    next(batches)
except KeyboardInterrupt:
    print(loader.state_dict()["epoch"], loader.state_dict()["position"])
print(list(batches), list(batches), loader.state_dict()["epoch"], loader.state_dict()["position"])
print(sum(len(labels) for _, labels in loader))
""", arrays)
    assert out.split() == ["0", "100", "[]", "[]", "1", "0", "100"]


def test_state_does_not_wait_for_another_thread(arrays):
    """Storage that gives nothing for a minute, and a dataset that is as slow."""
    out = run_script(OPEN + """
class Slow:
    def __len__(self): return 10
    def __getitem__(self, index): time.sleep(60)
for loader in (opened(storage="1B/s,60s"), foreload.DataLoader(Slow(), output="numpy")):
    thread = threading.Thread(target=lambda: next(iter(loader)), daemon=True)
    thread.start()
    time.sleep(0.3)
    begun = time.monotonic()
    position = loader.state_dict()["position"]
    print(position, time.monotonic() - begun < 0.2, thread.is_alive())
    sys.stdout.flush()
os._exit(0)
""", arrays)
    assert out.split() == ["0", "True", "True"] * 2


@pytest.mark.parametrize("order", ["before", "after"])
def test_a_daemon_thread_that_waits_can_be_joined_at_exit(arrays, order):
    """Hooks run last registered first: this one before foreload's own, with a time limit, or after it, with none."""
    register = "import atexit\natexit.register(lambda: print('ended', thread.join(60), not thread.is_alive()))\n"
    program = """
loader = opened(storage="1B/s,60s")
thread = threading.Thread(target=lambda: next(iter(loader)), daemon=True)
thread.start()
time.sleep(0.3)
"""
    if order == "after":
        program = register + OPEN + program
    else:
        program = OPEN + register.replace("thread.join(60)", "loader.close() or thread.join(60)") + program
    process = script(program, arrays)
    code, out, err = finished(process, 20)
    assert (code, out.split()) == (0, ["ended", "None", "True"])
    assert "LoaderClosed" in err if order == "before" else err == ""
