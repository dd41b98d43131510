"""Weighted draws, echo and partial shuffle through Python."""
import collections
import json

import foreload
import numpy as np
import pytest
from conftest import ARRAY, MEMORY, report

WEIGHTS = [number % 4 for number in range(100)]


def opened(dataset, **options):
    given = {"batch_size": 10, "seed": 3, "transform": ARRAY, "memory": MEMORY, "output": "numpy", "with_ids": True, **options}
    return foreload.DataLoader(dataset, **given)


def ids(dataset, epochs=1, **options):
    with opened(dataset, **options) as loader:
        return [[int(id) for batch in loader for id in batch[2]] for _ in range(epochs)]


class Numbers:
    """Map-style."""

    def __len__(self):
        return 100

    def __getitem__(self, index):
        return np.full(3, index, np.int64), index


@pytest.mark.parametrize("options, samples", [
    ({"weights": WEIGHTS}, 100), ({"weights": WEIGHTS, "num_samples": 250}, 250), ({"shuffle": True, "echo": 3}, 300),
    ({"echo": 2, "echo_window": 25}, 200), ({"shuffle": True, "reshuffle": 0.25, "homes": 4}, 100),
    ({"weights": WEIGHTS, "num_samples": 30, "echo": 2}, 60),
])
def test_lengths_and_order_are_the_plans_for_files_and_map_style_datasets(arrays, options, samples):
    with opened(arrays, **options) as loader:
        assert len(loader) == samples // 10
    drawn = ids(arrays, 2, **options)
    assert [len(epoch) for epoch in drawn] == [samples, samples]
    assert drawn == ids(Numbers(), 2, **{**options, "transform": None})
    assert (drawn[0] != drawn[1]) == (options.get("shuffle", False) or "weights" in options)


def test_echo_repeats_every_sample_and_stats_count_them(arrays):
    with opened(arrays, shuffle=True, echo=4, cache=False) as loader:
        counts = collections.Counter(int(id) for batch in loader for id in batch[2])
        epoch = loader.stats()["epochs"][0]
    assert counts == {id: 4 for id in range(100)}
    assert epoch["samples"] == 400 and epoch["padded"] == []
    assert epoch["bytes"]["source"] == 100 * 64


def test_a_map_style_dataset_lists_only_what_is_padded(arrays):
    with opened(Numbers(), transform=None, echo=2, rank=0, world_size=3, batch_size=7) as loader:
        given = [int(id) for batch in loader for id in batch[2]]
        assert loader.stats()["epochs"][0]["padded"] == []
    with opened(Numbers(), transform=None, echo=2, rank=2, world_size=3, batch_size=7) as loader:
        last = [int(id) for batch in loader for id in batch[2]]
        assert loader.stats()["epochs"][0]["padded"] == last[-1:]
    assert len(given) == len(last) == 67


def test_weights_may_be_any_sequence_and_torchs_sampler(arrays):
    wanted = ids(arrays, weights=WEIGHTS)
    assert set(wanted[0]) <= {id for id in range(100) if id % 4}
    assert ids(arrays, weights=tuple(WEIGHTS)) == ids(arrays, weights=np.array(WEIGHTS, np.float32)) == wanted
    assert ids(arrays, weights=(weight / 2 for weight in WEIGHTS)) == wanted  # only shares count
    torch = pytest.importorskip("torch")
    assert ids(arrays, weights=torch.tensor(WEIGHTS)) == wanted
    sampler = torch.utils.data.WeightedRandomSampler(WEIGHTS, 30)
    assert ids(arrays, sampler=sampler) == ids(arrays, weights=WEIGHTS, num_samples=30)
    with pytest.raises(foreload.ConfigError, match="without replacement"):
        ids(arrays, sampler=torch.utils.data.WeightedRandomSampler(WEIGHTS, 30, replacement=False))


def test_the_order_is_the_commands(arrays, tmp_path):
    (tmp_path / "weights").write_text("".join(f"{weight}\n" for weight in WEIGHTS))
    log = tmp_path / "log"
    for flags, options in (
            (["--weights", tmp_path / "weights", "--epoch-samples", 130], {"weights": WEIGHTS, "num_samples": 130}),
            (["--echo", 3, "--echo-window", 20], {"shuffle": True, "echo": 3, "echo_window": 20}),
            (["--reshuffle", 0.5, "--homes", 2], {"shuffle": True, "reshuffle": 0.5, "homes": 2})):
        report(arrays, "--batch", 10, "--seed", 3, "--chain", ARRAY, "--memory", MEMORY, "--log", log, *flags)
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        assert [id for line in lines for id in line["ids"]] == ids(arrays, **options)[0]


def test_a_loaded_state_goes_on_exactly_and_one_of_another_order_is_refused(arrays):
    for dataset, transform in ((arrays, ARRAY), (Numbers(), None)):
        with opened(dataset, shuffle=True, echo=2, transform=transform) as loader:
            whole = [int(id) for batch in loader for id in batch[2]]
            loader.set_epoch(0)
            next(iter(loader))
            state = loader.state_dict()
        with opened(dataset, shuffle=True, echo=2, transform=transform) as loader:
            loader.load_state_dict(state)
            assert [int(id) for batch in loader for id in batch[2]] == whole[10:]
        with opened(dataset, shuffle=True, echo=3, transform=transform) as loader:
            with pytest.raises(foreload.StateMismatch, match="echo 2 in windows of 10, here it is echo 3 in windows of 10"):
                loader.load_state_dict(state)


@pytest.mark.parametrize("options, words", [
    ({"weights": [1.0] * 99}, "weights: there are 99.*100 samples"), ({"weights": [-1.0] * 100}, "weights.*sample 0 is -1"),
    ({"weights": [float("nan")] * 100}, "weights.*nan"), ({"weights": [0] * 100}, "weights: all 100 are 0"),
    ({"weights": []}, "weights should be"), ({"weights": 7}, "weights should be"), ({"weights": "1" * 100}, "weights should be"),
    ({"weights": [1, "2"]}, r"weights\[1\] should be a number"), ({"weights": [[1]] * 100}, r"weights\[0\]"),
    ({"weights": [10 ** 400] * 100}, r"weights\[0\]"),
    ({"weights": WEIGHTS, "shuffle": False}, "weights.*shuffle"), ({"weights": WEIGHTS, "sampler": object()}, "sampler.*weights"),
    ({"weights": WEIGHTS, "reshuffle": 0.5}, "weights.*reshuffle"), ({"num_samples": 5}, "num_samples.*weights"),
    ({"num_samples": 0, "weights": WEIGHTS}, "num_samples should be"),
    ({"echo": 0}, "echo should be"), ({"echo": 1.5}, "echo should be"), ({"echo": 1001}, "echo should be"),
    ({"echo_window": 5}, "echo_window.*echo"), ({"echo": 2, "reshuffle": 0.5, "shuffle": True}, "echo.*reshuffle"),
    ({"reshuffle": 1.5}, "reshuffle should be"), ({"reshuffle": "half"}, "reshuffle should be"), ({"reshuffle": 0.5}, "shuffle"),
    ({"homes": 2}, "homes.*reshuffle"), ({"homes": 0, "reshuffle": 0.5, "shuffle": True}, "homes should be"),
])
def test_wrong_and_contradicting_arguments_are_named(arrays, options, words):
    with pytest.raises(foreload.ConfigError, match=words):
        opened(arrays, **options)
    with pytest.raises(foreload.ConfigError, match=words):
        opened(Numbers(), **{**options, "transform": None})
