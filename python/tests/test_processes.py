"""Ctrl-C, exit, fork, spawn (R18), each in a process of its own."""
import os
import signal
import time

import pytest
from conftest import ARRAY, SOAK, finished, run_script, script

OPEN = f"""
import sys, time, os, signal
import foreload
def opened(**options):
    return foreload.DataLoader(sys.argv[1], **{{"batch_size": 10, "transform": {ARRAY!r}, "memory": "64MiB", "output": "numpy",
                                               **options}})
"""
TIMES = 50 if SOAK else 5


def wait_for(process, line):
    assert process.stdout.readline().strip() == line


def test_ctrl_c_ends_a_wait(arrays):
    """Storage that gives a byte per second: the batch never comes."""
    for _ in range(TIMES):
        process = script(OPEN + """
loader = opened(storage="1B/s,60s", shuffle=True)
batches = iter(loader)
print("waiting", flush=True)
try:
    next(batches)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    print(loader.state_dict()["position"], flush=True)
""", arrays)
        wait_for(process, "waiting")
        time.sleep(0.3)
        begun = time.monotonic()
        process.send_signal(signal.SIGINT)
        code, out, err = finished(process, 10)
        assert (code, out.split()) == (0, ["interrupted", "0"]), err
        assert time.monotonic() - begun < 5


def test_an_uncaught_ctrl_c_ends_the_program_by_the_signal(arrays):
    process = script(OPEN + """
loader = opened(storage="1B/s,60s")
print("waiting", flush=True)
for batch in loader: pass
""", arrays)
    wait_for(process, "waiting")
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    code, _, err = finished(process, 10)
    assert code in (-signal.SIGINT, 130) and "KeyboardInterrupt" in err


def test_the_loop_goes_on_after_ctrl_c(arrays):
    process = script(OPEN + """
import numpy
loader = opened(batch_size=1, storage="4kB/s", with_ids=True)
seen = []
batches = iter(loader)
print("waiting", flush=True)
while True:
    try:
        item = next(batches, None)
        if item is None: break
        seen += item[2].tolist()
    except KeyboardInterrupt:
        pass
# A signal may come when a batch has left the loader and not reached `item`: that one is lost, as with any iterator.
print(len(seen) >= 95 and seen == sorted(set(seen)), loader.stats()["epochs"][0]["stall"]["total"] > 0.5)
""", arrays)
    wait_for(process, "waiting")
    for _ in range(5):
        time.sleep(0.05)
        process.send_signal(signal.SIGINT)
    code, out, err = finished(process, 30)
    if code != 0:  # the signal came outside of the try
        assert err.strip().endswith("KeyboardInterrupt"), err
    else:
        assert out.split() == ["True", "True"]


def test_a_long_wait_is_counted_whole(arrays):
    out = run_script(OPEN + """
loader = opened(batch_size=50, storage="400ms", io="threads")
images, labels = next(iter(loader))
epoch = loader.stats()["epochs"][0]
print(epoch["stall"]["fetch"] * epoch["seconds"])
""", arrays)
    assert float(out) > 0.3


def test_sigterm_ends_the_program(arrays):
    process = script(OPEN + """
loader = opened(storage="1B/s,60s")
print("waiting", flush=True)
for batch in loader: pass
""", arrays)
    wait_for(process, "waiting")
    process.terminate()
    assert finished(process, 10)[0] == -signal.SIGTERM


@pytest.mark.parametrize("end", ["pass", "sys.exit(0)", "held = next(iter(loader))", "import threading; "
                                 "threading.Thread(target=lambda: [0 for _ in loader], daemon=True).start(); time.sleep(0.05)"])
def test_exit_with_a_live_loader_is_clean(arrays, end):
    for _ in range(TIMES):
        code, out, err = finished(script(OPEN + f"loader = opened(shuffle=True, storage='20ms')\n{end}", arrays), 20)
        assert (code, out, err) == (0, "", "")


def test_fork_after_use_is_detected_in_the_child(arrays):
    for _ in range(TIMES):
        out = run_script(OPEN + """
loader = opened()
batches = iter(loader)
first = next(batches)
sys.stdout.flush()
child = os.fork()
if child == 0:
    try:
        next(batches)
    except foreload.LoaderClosed as error:
        assert "forked child" in str(error) and "spawn" in str(error), error
        fresh = opened()
        assert sum(len(labels) for _, labels in fresh) == 100
        del loader, batches, first
        sys.exit(7)
    os._exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
print(sum(len(labels) for _, labels in batches))
""", arrays)
        assert out.split() == ["90"]


def test_fork_while_another_thread_waits(arrays):
    """The child inherits the iterator's lock as it is held."""
    out = run_script(OPEN + """
import threading
def hold(batch):
    inside.set()
    release.wait()
    return batch
inside, release = threading.Event(), threading.Event()
loader = opened(batch_transform=hold)
batches = iter(loader)
thread = threading.Thread(target=next, args=(batches,))
thread.start()
inside.wait()
child = os.fork()
if child == 0:
    signal.alarm(20)
    try:
        next(batches)
    except foreload.LoaderClosed as error:
        os._exit(7 if "forked child" in str(error) and "spawn" in str(error) else 1)
    os._exit(1)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
release.set()
thread.join()
print(code, sum(len(labels) for _, labels in batches))
""", arrays)
    assert out.split() == ["7", "90"]


def test_next_in_a_signal_handler_does_not_hang(arrays):
    out = run_script(OPEN + """
def handler(*unused):
    try:
        next(batches)
    except RuntimeError as error:
        print("refused" if "same thread" in str(error) else error)
signal.signal(signal.SIGALRM, handler)
def interrupted(batch):
    signal.raise_signal(signal.SIGALRM)
    return batch
loader = opened(batch_size=50, batch_transform=interrupted)
batches = iter(loader)
print(sum(len(labels) for _, labels in batches))
""", arrays)
    assert out.split() == ["refused", "refused", "100"]


@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_multiprocessing(arrays, method, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(OPEN + f"""
import multiprocessing
def work(queue, path):
    sys.argv[1:] = [path]
    with opened(shuffle=True) as loader:
        queue.put([id for batch in loader for id in batch[0][:, 0].tolist()])
if __name__ == "__main__":
    context = multiprocessing.get_context({method!r})
    loader = opened(shuffle=True)
    mine = [id for batch in loader for id in batch[0][:, 0].tolist()]
    queue = context.Queue()
    process = context.Process(target=work, args=(queue, sys.argv[1]))
    process.start()
    theirs = queue.get(timeout=60)
    process.join(60)
    print(process.exitcode, mine == theirs)
""")
    import subprocess
    import sys
    done = subprocess.run([sys.executable, "-B", program, arrays], capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["0", "True"], done.stderr


def test_torch_is_imported_late_and_not_at_all_for_numpy(arrays):
    out = run_script(OPEN + """
loader = opened()
next(iter(loader))
print("torch" in sys.modules)
""", arrays)
    assert out.split() == ["False"]


def test_the_lock_is_free_while_waiting(arrays):
    out = run_script(OPEN + """
import threading
loader = opened(batch_size=50, storage="300ms", io="threads")
count = 0
def work():
    global count
    while not done:
        count += 1
        time.sleep(0.001)
done = False
thread = threading.Thread(target=work)
thread.start()
next(iter(loader))
done = True
thread.join()
print(count)
""", arrays)
    assert int(out) > 50


def test_two_threads_share_a_loader(arrays):
    out = run_script(OPEN + """
import threading
loader = opened(batch_size=1, with_ids=True)
batches = iter(loader)
seen = []
def work():
    for batch in batches: seen.extend(batch[2].tolist())
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(sorted(seen) == list(range(100)))
""", arrays)
    assert out.split() == ["True"]


def test_close_ends_the_wait_of_another_thread(arrays):
    out = run_script(OPEN + """
import threading
loader = opened(storage="1B/s,60s")
caught = []
def work():
    try:
        next(iter(loader))
    except foreload.LoaderClosed as error:
        caught.append(error)
thread = threading.Thread(target=work)
thread.start()
time.sleep(0.2)
loader.close()
thread.join(10)
print(len(caught))
""", arrays)
    assert out.split() == ["1"]


def test_stats_do_not_wait_for_a_batch(arrays):
    out = run_script(OPEN + """
import threading
loader = opened(storage="1B/s,60s")
thread = threading.Thread(target=lambda: next(iter(loader)), daemon=True)
thread.start()
time.sleep(0.2)
begun = time.monotonic()
loader.stats()
print(time.monotonic() - begun < 1)
""", arrays)
    assert out.split() == ["True"]
