"""Every argument of everything public, with values of every odd kind: accepted, or refused by a class of foreload's own with a
message that names the argument. Nothing of pybind11's, numpy's or torch's words."""
import inspect
import pathlib

import foreload
import numpy as np
import pytest
from conftest import ARRAY


pytestmark = pytest.mark.filterwarnings("ignore")


class Hostile:
    """Raises whatever it is asked."""

    def __index__(self):
        raise KeyError("index")

    def __repr__(self):
        raise KeyError("repr")

    def __bool__(self):
        raise KeyError("bool")

    def __eq__(self, other):
        raise KeyError("eq")

    __hash__ = None


ODD = [None, 0, -1, 1 << 31, 1 << 32, (1 << 63) - 1, 1 << 63, 10**400, float("nan"), float("inf"), 1.5, "", "x", "\udcff", "\ud800",
       "a\0b", "1, p=3", b"x", [], [1], [10**400], [float("nan")], ["a"], ["\ud800"], [None], [[1, 2]], {}, {1, 2}, {1: 2}, object(),
       (number for number in range(2)), np.int64(3), np.float32(2), np.bool_(True), np.array([1, 2]), np.array(3), np.array([]), True,
       len, int, Hostile(), range(0), range(3), pathlib.Path("x"), 1 + 2j, NotImplemented, Ellipsis]
NEEDED = {"RandomResizedCrop": {"size": 8}, "Resize": {"size": 8}, "CenterCrop": {"size": 8}, "RandomCrop": {"size": 8},
          "Pad": {"padding": 1}, "RandomRotation": {"degrees": 3}, "RandomAffine": {"degrees": 3}, "GaussianBlur": {"kernel_size": 3},
          "Normalize": {"mean": [0.5], "std": [0.5]}, "Array": {"dtype": "u8", "shape": 4}, "RandomWindow": {"size": 3},
          "CenterWindow": {"size": 3}, "Ragged": {"dtype": "u8", "max_length": 4}, "ConvertImageDtype": {"dtype": "f32"},
          "Grayscale": {"num_output_channels": 3}}
TRANSFORMS = [value for value in vars(foreload).values()
              if isinstance(value, type) and issubclass(value, foreload.Transform) and value is not foreload.Transform]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Some of the words are names of files that a loader then writes."""
    monkeypatch.chdir(tmp_path)


def arguments_of(function):
    return [name for name, parameter in inspect.signature(function).parameters.items()
            if name != "self" and parameter.kind is not parameter.VAR_KEYWORD]


def refused_in_our_words(function, value, word):
    """What the function returned, or None if it refused the value as it should."""
    try:
        return function(value)
    except foreload.ForeloadError as error:
        text = str(error)
        assert word in text and len(text) < 700 and "\n" not in text, (word, text)
    return None


@pytest.mark.parametrize("name", [name for name in arguments_of(foreload.DataLoader) if name != "dataset"])
@pytest.mark.parametrize("kind", ["native", "mapped"])
def test_arguments_of_the_loader(arrays, kind, name):
    def opened(value):
        dataset, chain = (arrays, ARRAY) if kind == "native" else (list(range(40)), None)
        with foreload.DataLoader(dataset, **{"memory": "64MiB", "transform": chain, "output": "numpy", name: value}) as loader:
            assert loader.state_dict()["position"] == 0 and repr(loader)

    for value in ODD:
        # Callables are only called with batches, and what is meaningless here stays so.
        refused_in_our_words(opened, value, "" if name in ("memory", "storage", "record", "subset") else name)


def test_datasets():
    for value in ODD:
        loader = refused_in_our_words(lambda value: foreload.DataLoader(value, memory="64MiB"), value, "")
        if loader is not None:
            loader.close()


@pytest.mark.parametrize("kind", TRANSFORMS)
def test_parameters_of_transforms(kind):
    for name in arguments_of(kind):
        for value in ODD:
            made = refused_in_our_words(lambda value: kind(**{**NEEDED.get(kind.__name__, {}), name: value}), value, "")
            if made is not None:
                assert made == made and hash(made) == hash(made) and repr(made) and "\n" not in str(made)


@pytest.mark.parametrize("value", ["1, p=3", "0.5)", {1, 2}, {1: 2}, iter([1, 2]), b"12", [[1, 2]], (None, 1)])
def test_what_only_looks_like_numbers_is_refused(value):
    with pytest.raises(foreload.ConfigError, match="ColorJitter: brightness should be a number or a sequence of numbers"):
        foreload.ColorJitter(brightness=value)


def test_numbers_of_any_kind_are_numbers():
    torch = pytest.importorskip("torch")
    wanted = foreload.Normalize([0.5, 0.25, 0.125], [1, 2, 3])
    for make in (np.array, torch.tensor, tuple, lambda values: list(map(np.float64, values))):
        assert foreload.Normalize(make([0.5, 0.25, 0.125]), make([1, 2, 3])) == wanted
    for make in (np.int64, np.array, torch.tensor, lambda size: [size]):
        assert foreload.Resize(make(24)) == foreload.Resize(24)
    assert foreload.Array(np.dtype("float32"), np.int32(4)) == foreload.Array(torch.float32, (4,)) == foreload.Array("f32", [4])


def test_states(arrays):
    deep = {}
    for _ in range(5000):
        deep = {"a": deep}
    for dataset, chain in ((arrays, ARRAY), (range(100), None)):
        with foreload.DataLoader(dataset, batch_size=8, transform=chain, memory="64MiB", output="numpy", with_ids=True) as loader:
            batches = iter(loader)
            first = next(batches)[-2].tolist()
            state = loader.state_dict()
            odd = [*ODD, "0" * 16, "f" * 16, "F" * 16, "g" * 16, "0" * 15, "0" * 17, "-1", 3, 9, 104, 1 << 53, 1.0]
            damaged = [{**state, name: value} for name in state for value in odd if value is not state[name]]
            damaged += [{other: state[other] for other in state if other != name} for name in state]
            moved = []
            for value in [*ODD, *damaged, {**state, "more": deep}, {**state, "more": "x" * 10**6}, {**state, (1, 2): 3}]:
                before = loader.state_dict()
                try:
                    loader.load_state_dict(value)
                    moved.append((loader.state_dict()["epoch"], loader.state_dict()["position"]))
                except (foreload.ConfigError, foreload.StateMismatch):
                    assert loader.state_dict() == before
            # Only places that exist.
            assert {(position % 8 == 0 or position == 100) and 0 <= epoch < 1 << 32 for epoch, position in moved} <= {True}
            loader.load_state_dict(state)
            assert first + [id for batch in loader for id in batch[-2].tolist()] == list(range(100))


def test_methods(arrays):
    with foreload.DataLoader(arrays, transform=ARRAY, memory="64MiB", output="numpy") as loader:
        for value in ODD:
            refused_in_our_words(loader.set_epoch, value, "epoch")
            refused_in_our_words(loader.dataset.locate, value, "")
            refused_in_our_words(foreload.from_torchvision, value, "")
    try:
        for value in ODD:
            refused_in_our_words(foreload.set_memory_budget, value, "memory")
    finally:
        foreload.set_memory_budget(None)


def test_a_sampler_of_ones_own_with_a_name_of_torchs_is_refused(arrays):
    class RandomSampler:
        data_source = range(100)

        def __len__(self):
            return 100

    with pytest.raises(foreload.ConfigError, match="sampler .*RandomSampler is not supported"):
        foreload.DataLoader(arrays, sampler=RandomSampler(), transform=ARRAY)
