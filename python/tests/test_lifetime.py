"""Who owns the memory of a batch, for how long, and what is left when everybody is gone."""
import gc
import os
import weakref

import foreload
import numpy as np
import pytest
from conftest import ARRAY, MEMORY, SOAK

torch = pytest.importorskip("torch")


def opened(arrays, **options):
    return foreload.DataLoader(arrays, **{"batch_size": 10, "transform": ARRAY, "memory": MEMORY, **options})


def held(loader):
    gc.collect()
    return loader._engine.held


def test_batches_view_the_ring_and_return_their_slot_with_the_last_view(arrays):
    with opened(arrays) as loader:
        address, size = loader._engine.batch_memory()
        batches = iter(loader)
        images, labels = next(batches)
        assert address <= images.data_ptr() < address + size and address <= labels.data_ptr() < address + size
        assert held(loader) == 1
        row = images[3]
        numbers = row.numpy()
        del images, labels
        assert held(loader) == 1 and numbers[0] == 3
        del row
        assert held(loader) == 1
        del numbers
        assert held(loader) == 0


def test_numpy_arrays_view_the_ring_too(arrays):
    with opened(arrays, output="numpy") as loader:
        address, size = loader._engine.batch_memory()
        images, labels = next(iter(loader))
        assert address <= images.__array_interface__["data"][0] < address + size
        assert images.flags.writeable and images.flags.c_contiguous
        del images
        assert held(loader) == 1
        del labels
        assert held(loader) == 0


def test_the_usual_loop_copies_nothing(arrays):
    with opened(arrays) as loader:
        for _ in range(3):
            for index, (images, labels) in enumerate(loader):
                assert images[0, 0] == index * 10
        assert loader.stats()["copied_batches"] == 0


def test_holding_more_than_held_batches_gives_copies_and_never_hangs(arrays):
    with opened(arrays, held_batches=2) as loader, pytest.warns(foreload.ForeloadWarning, match="held_batches"):
        from foreload import _arguments
        _arguments._warned.clear()
        batches = list(loader)
        assert loader.stats()["copied_batches"] == len(batches) - 2
        assert [int(value) for images, _ in batches for value in images[:, 0]] == list(range(100))
        assert [int(label) for _, labels in batches for label in labels] == [id // 25 for id in range(100)]


def test_tensors_outlive_the_loader(arrays):
    loader = opened(arrays, with_ids=True)
    images, labels, ids, positions = next(iter(loader))
    before = images.clone()
    loader.close()
    del loader
    gc.collect()
    assert torch.equal(images, before) and ids.tolist() == list(range(10))


@pytest.mark.parametrize("order", ["loader first", "iterator first", "batch first"])
def test_del_in_any_order(arrays, order):
    loader = opened(arrays)
    things = {"iterator": iter(loader), "loader": loader, "batch": None}
    things["batch"] = next(things["iterator"])
    gone = weakref.ref(loader)
    del loader
    first = order.split()[0]
    del things[first]
    gc.collect()
    things.clear()
    gc.collect()
    assert gone() is None


def test_a_capsule_that_nobody_takes_frees_its_batch(arrays):
    with opened(arrays) as loader:
        batch = loader._engine.next()
        capsule = batch.data.__dlpack__()
        del batch
        assert held(loader) == 1
        del capsule
        assert held(loader) == 0
        batch = loader._engine.next()
        assert batch.data.__dlpack_device__() == (1, 0)
        array = np.from_dlpack(batch.data) if hasattr(np, "from_dlpack") else np.asarray(batch.data)
        assert array[0, 0] == 10


def test_an_exception_in_the_loop_leaves_a_usable_loader(arrays):
    with opened(arrays) as loader:
        with pytest.raises(ZeroDivisionError):
            for images, labels in loader:
                1 / 0
        del images, labels
        assert sum(len(labels) for _, labels in loader) == 100


def test_a_closed_loader_says_so(arrays):
    loader = opened(arrays)
    batches = iter(loader)
    loader.close()
    loader.close()
    with pytest.raises(foreload.LoaderClosed, match="closed"):
        next(batches)
    with pytest.raises(foreload.LoaderClosed, match="closed"):
        loader.stats()


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def test_ten_thousand_batches_do_not_grow_the_process(arrays):
    batches = 100_000 if SOAK else 10_000
    with opened(arrays, batch_size=1, shuffle=True) as loader:
        for _ in range(10):  # what grows once
            for images, labels in loader:
                pass
        memory, files = resident(), descriptors()
        for _ in range(batches // 100):
            for images, labels in loader:
                pass
        assert descriptors() == files
        assert resident() - memory < 2 << 20


def test_a_hundred_loaders_leave_nothing(arrays):
    def one():
        with opened(arrays) as loader:
            next(iter(loader))

    for _ in range(10):
        one()
    memory, files, threads = resident(), descriptors(), len(os.listdir("/proc/self/task"))
    for _ in range(1000 if SOAK else 100):
        one()
    assert descriptors() == files
    assert len(os.listdir("/proc/self/task")) <= threads
    assert resident() - memory < 8 << 20


def test_loaders_side_by_side_share_one_budget(arrays):
    try:
        foreload.set_memory_budget("512MiB")
        with opened(arrays, memory=None) as train, opened(arrays, memory=None) as valid:
            parts = [loader.stats()["memory_budget_bytes"] for loader in (train, valid)]
            assert sum(parts) <= 512 << 20 and parts[0] == 384 << 20
            assert [len(train), len(valid)] == [10, 10]
            for (a, _), (b, _) in zip(train, valid):
                assert torch.equal(a, b)
        with opened(arrays, memory=None) as again:  # closed ones give their part back
            assert again.stats()["memory_budget_bytes"] == 384 << 20
        foreload.set_memory_budget("40MiB")
        with opened(arrays, memory="30MiB"), pytest.raises(foreload.OutOfMemory, match="set_memory_budget"):
            opened(arrays, memory=None)
    finally:
        foreload.set_memory_budget(None)


def test_a_budget_that_was_set_is_never_exceeded(arrays, monkeypatch):
    try:
        foreload.set_memory_budget("100MiB")
        with opened(arrays, memory="64MiB"):
            with pytest.raises(foreload.OutOfMemory, match=r"taken 64 MiB of its memory budget of 100 MiB.*asks for 40 MiB"):
                opened(arrays, memory="40MiB")
            opened(arrays, memory="36MiB").close()
        opened(arrays, memory="100MiB").close()
        with pytest.raises(foreload.OutOfMemory, match="101 MiB"):
            opened(arrays, memory="101MiB")
        monkeypatch.setenv("FORELOAD_MEMORY", "80MiB")
        foreload.set_memory_budget(None)
        with pytest.raises(foreload.OutOfMemory, match="of 80 MiB"):
            opened(arrays, memory="100MiB")
    finally:
        foreload.set_memory_budget(None)


def test_a_budget_that_was_only_found_yields_to_what_is_asked_for(arrays, monkeypatch):
    from foreload import _foreload
    monkeypatch.setattr(_foreload, "available_memory", lambda: 128 << 20)
    try:
        foreload.set_memory_budget(None)
        with opened(arrays, memory="80MiB") as train, opened(arrays, memory="40MiB") as valid:  # the order does not matter
            assert [loader.stats()["memory_budget_bytes"] for loader in (train, valid)] == [80 << 20, 40 << 20]
            with pytest.raises(foreload.OutOfMemory, match="budget of 64 MiB"):
                opened(arrays, memory=None)
    finally:
        foreload.set_memory_budget(None)


def test_a_loader_may_end_while_the_budget_is_locked(arrays):
    """As when the collector ends it in the middle of opening another one."""
    from foreload import _memory
    loader = opened(arrays)
    with _memory._lock:
        loader.close()
    assert loader._part not in _memory._taken


def test_a_refused_loader_gives_its_memory_back(images):
    from foreload import _memory
    before = set(_memory._taken)
    with pytest.raises(foreload.ConfigError):
        foreload.DataLoader(images, transform=[], memory=MEMORY)
    assert set(_memory._taken) == before


def test_memory_is_registered_with_cuda_once(arrays, monkeypatch):
    calls = []

    class Runtime:
        def cudaHostRegister(self, address, size, flags):
            calls.append(("register", address, size))
            return 0

        def cudaHostUnregister(self, address):
            assert f"{address:x}-" in open("/proc/self/maps").read(), "it is gone already"
            calls.append(("unregister", address))
            return 0

    with opened(arrays, pin_memory=True) as loader:  # no device: nothing happens
        assert len(list(next(iter(loader)))) == 2
    assert calls == []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "cudart", lambda: Runtime())
    with opened(arrays, pin_memory=True) as loader:
        address, size = loader._engine.batch_memory()
        for _ in range(2):
            for images, labels in loader:
                pass
        del images, labels
    assert calls == [("register", address, size), ("unregister", address)]
