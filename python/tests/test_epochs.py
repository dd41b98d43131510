"""Epochs, position, resume."""
import io
import json
import subprocess

import foreload
import pytest
from conftest import ARRAY, CLI, DEADLINE, MEMORY


def opened(arrays, **options):
    return foreload.DataLoader(arrays, **{"batch_size": 8, "shuffle": True, "seed": 5, "transform": ARRAY, "memory": MEMORY,
                                          "with_ids": True, **options})


def ids_of(batches):
    return [id for batch in batches for id in batch[2].tolist()]


@pytest.fixture(scope="module")
def epochs(arrays):
    """The ids of the first four epochs."""
    with opened(arrays) as loader:
        return [ids_of(loader) for _ in range(4)]


def test_every_epoch_has_every_sample_once_in_another_order(epochs):
    assert all(sorted(epoch) == list(range(100)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 4


def test_a_new_iterator_after_break_begins_the_next_epoch(arrays, epochs):
    with opened(arrays) as loader:
        for index, _ in enumerate(loader):
            if index == 2:
                break
        assert ids_of(loader) == epochs[1]
        assert ids_of(loader) == epochs[2]


def test_break_at_the_last_batch_is_a_break(arrays, epochs):
    with opened(arrays) as loader:
        for index, _ in enumerate(loader):
            if index + 1 == len(loader):
                break
        assert ids_of(loader) == epochs[1]


def test_set_epoch_chooses(arrays, epochs):
    with opened(arrays) as loader:
        loader.set_epoch(3)
        assert ids_of(loader) == epochs[3]
        loader.set_epoch(1)
        next(iter(loader))
        loader.set_epoch(1)
        assert ids_of(loader) == epochs[1]
        assert ids_of(loader) == epochs[2]


def test_without_shuffle_the_order_is_that_of_the_ids(arrays):
    with opened(arrays, shuffle=False) as loader:
        assert ids_of(loader) == list(range(100))


@pytest.mark.parametrize("done", [0, 1, 7, 13])
def test_resume_is_exact(arrays, epochs, done):
    with opened(arrays) as loader:
        loader.set_epoch(2)
        batches = iter(loader)
        for _ in range(done):
            next(batches)
        state = json.loads(json.dumps(loader.state_dict()))
    assert len(json.dumps(state)) <= 1024
    with opened(arrays, num_workers=1, batch_size=8) as loader:
        loader.load_state_dict(state)
        loader.set_epoch(2)  # the epoch of the state: its position stays
        assert ids_of(loader) == epochs[2][8 * done:]
        assert ids_of(loader) == epochs[3]


def test_set_epoch_to_another_epoch_leaves_a_loaded_position(arrays, epochs):
    with opened(arrays) as loader:
        next(iter(loader))
        state = loader.state_dict()
        loader.load_state_dict(state)
        loader.set_epoch(1)
        assert ids_of(loader) == epochs[1]


def test_state_survives_torch_save(arrays, epochs):
    torch = pytest.importorskip("torch")
    with opened(arrays) as loader:
        next(iter(loader))
        file = io.BytesIO()
        torch.save(loader.state_dict(), file)
        file.seek(0)
        loader.load_state_dict(torch.load(file))
        assert ids_of(loader) == epochs[0][8:]


def test_a_state_of_something_else_is_refused(arrays, images):
    with opened(arrays) as loader, opened(arrays, seed=6) as other_seed, opened(arrays, batch_size=4) as other_batch, \
            foreload.DataLoader(images, batch_size=8, shuffle=True, seed=5, memory=MEMORY) as other_data:
        state = loader.state_dict()
        for other, word in ((other_seed, "seed"), (other_batch, "plan"), (other_data, "fingerprint")):
            with pytest.raises(foreload.StateMismatch, match=word):
                other.load_state_dict(state)


def test_a_state_of_data_that_were_converted_since_is_refused(images, tmp_path):
    subprocess.run([CLI, "convert", images, tmp_path / "converted"], check=True, timeout=DEADLINE, stdout=subprocess.DEVNULL)
    options = {"batch_size": 8, "memory": MEMORY, "output": "numpy"}
    with foreload.DataLoader(images, **options) as before, foreload.DataLoader(tmp_path / "converted", **options) as after:
        batches = iter(before)
        next(batches), next(batches)
        with pytest.raises(foreload.StateMismatch, match="fingerprint.*open the dataset it was saved with"):
            after.load_state_dict(before.state_dict())
        assert len(after.dataset) == len(before.dataset)
        after.set_epoch(1)
        assert sum(len(labels) for _, labels in after) == len(after.dataset)


@pytest.mark.parametrize("state", [None, [], {}, {"version": 1}, {"version": 2}, {"epoch": object()}, {"epoch": float("nan")}])
def test_a_corrupt_state_is_refused(arrays, state):
    with opened(arrays) as loader:
        with pytest.raises(foreload.ConfigError):
            loader.load_state_dict(state)
        with pytest.raises((foreload.ConfigError, foreload.StateMismatch)):
            loader.load_state_dict({**loader.state_dict(), "position": 3})
        assert len(ids_of(loader)) == 100


def test_what_is_no_state_is_told_in_pythons_words(arrays):
    for dataset, transform in ((arrays, ARRAY), (range(100), None)):
        with opened(dataset, transform=transform) as loader, pytest.raises(foreload.ConfigError, match=r"state_dict\(\)") as caught:
            loader.load_state_dict({"version": 1})
        assert "::" not in str(caught.value)


def test_a_warning_that_is_an_error_does_not_count_the_batch(arrays, epochs):
    import warnings
    from foreload import _arguments
    _arguments._warned.clear()
    with opened(arrays, held_batches=1, output="numpy") as loader, warnings.catch_warnings():
        warnings.simplefilter("error")
        batches, held = iter(loader), []
        with pytest.raises(foreload.ForeloadWarning, match="held_batches"):
            while True:
                held.append(next(batches))
        assert loader.state_dict()["position"] == 8 * len(held)
        assert ids_of(held) + ids_of(batches) == epochs[0]


def test_an_older_iterator_is_refused(arrays):
    with opened(arrays) as loader:
        first = iter(loader)
        next(first)
        second = iter(loader)
        with pytest.raises(foreload.StaleIterator):
            next(first)
        assert len(ids_of(second)) == 100
        with pytest.raises(StopIteration):
            next(second)


def test_length_and_last_batches(arrays):
    for options, sizes in (({}, [8] * 12 + [4]), ({"drop_last": True}, [8] * 12), ({"batch_size": 200}, [100]),
                           ({"rank": 1, "world_size": 3, "batch_size": 8}, [8, 8, 8, 8, 2])):
        with opened(arrays, **options) as loader:
            assert len(loader) == len(sizes)
            assert [len(batch[1]) for batch in loader] == sizes


def test_a_changed_world_continues_the_same_global_batches(arrays, epochs):
    with opened(arrays, batch_size=4, global_batch=8, rank=0, world_size=2) as loader:
        batches = iter(loader)
        next(batches), next(batches)
        state = loader.state_dict()
    with opened(arrays, global_batch=8) as loader:
        loader.load_state_dict(state)
        assert ids_of(loader) == epochs[0][16:]
