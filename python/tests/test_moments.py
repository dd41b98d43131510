"""Things that come at an awkward moment: handlers that raise or call, threads that fail, forks under a lock."""
import collections
import os
import signal
import sys
import threading

import foreload
import pytest
from conftest import ARRAY, MEMORY
from foreload import _memory
from foreload import loader as loader_module

Pair = collections.namedtuple("Pair", "x y")


def opened(folder, **more):
    return foreload.DataLoader(folder, **{"batch_size": 10, "transform": ARRAY, "memory": MEMORY, "output": "numpy", **more})


class Alarm:
    """Calls `handler` once, in `seconds`."""

    def __init__(self, handler, seconds=0.1):
        self.handler, self.seconds = handler, seconds

    def __enter__(self):
        self.before = signal.signal(signal.SIGALRM, lambda *unused: self.handler())
        signal.setitimer(signal.ITIMER_REAL, self.seconds)

    def __exit__(self, *unused):
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self.before)


@pytest.mark.parametrize("output", ["numpy", "torch"])
def test_an_exception_of_a_signal_handler_costs_no_batch(arrays, output):
    def late():
        raise TimeoutError

    with opened(arrays, storage="4kB/s", output=output) as loader:
        batches = iter(loader)
        count = len([next(batches), next(batches)])
        with pytest.raises(TimeoutError), Alarm(late):
            for _ in batches:
                count += 1
        assert loader.state_dict()["position"] == 10 * count
        assert count + len(list(batches)) == 10
        assert loader.state_dict()["epoch"] == 1


def test_an_interrupted_iter_skips_no_epoch(arrays, monkeypatch):
    def interrupted(loader):
        raise KeyboardInterrupt

    with opened(arrays) as loader:
        for index, _ in enumerate(loader):
            if index + 1 == len(loader):
                break
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(loader_module, "_Epoch", interrupted)
            iter(loader)
        next(iter(loader))
        assert (loader.state_dict()["epoch"], loader.state_dict()["position"]) == (1, 10)


@pytest.mark.parametrize("call", [iter, lambda loader: loader.load_state_dict(loader.state_dict())])
def test_a_handler_can_not_move_the_loader_that_waits(arrays, call):
    with opened(arrays, storage="4kB/s", as_dict=True) as loader:
        batches = iter(loader)
        next(batches)
        with pytest.raises(RuntimeError, match="same thread waits"), Alarm(lambda: call(loader)):
            list(batches)
        steps = [batch["step"] for batch in batches]
        assert steps == list(range(10 - len(steps), 10))


def test_threads_that_share_an_iterator_and_fail_get_every_batch_once(arrays):
    turn = iter(range(1 << 30))

    def fails(batch):
        if next(turn) % 3 == 0:
            raise ValueError
        return batch["ids"].tolist()

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with opened(arrays, batch_size=2, as_dict=True, batch_transform=fails) as loader:
            for _ in range(15):
                batches, seen = iter(loader), []

                def work():
                    while True:
                        try:
                            for ids in batches:
                                seen.extend(ids)
                            return
                        except ValueError:
                            pass

                threads = [threading.Thread(target=work) for _ in range(6)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                assert sorted(seen) == list(range(100))
    finally:
        sys.setswitchinterval(before)


def test_a_fork_while_another_thread_counts_memory_does_not_hang_the_child(arrays):
    held, done = threading.Event(), threading.Event()

    def hold():
        with _memory._lock:
            held.set()
            done.wait()

    with opened(arrays) as loader:
        thread = threading.Thread(target=hold)
        thread.start()
        held.wait()
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            loader.close()
            os._exit(0 if not _memory._taken else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        done.set()
        thread.join()


@pytest.mark.parametrize("sample", [Pair(1.0, 2), (Pair(1, 2), {"k": (3,)}), [1, 2], ((), 1)])
def test_a_rank_without_samples_gets_an_empty_batch_of_the_same_kind(sample):
    last = []
    for rank in range(2):
        with foreload.DataLoader([sample] * 9, batch_size=4, rank=rank, world_size=2, last_batch="ragged") as loader:
            last.append(list(loader)[-1])
    assert type(last[0]) is type(last[1]) and len(last[0]) == len(last[1])
