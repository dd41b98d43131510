"""Python in the loop: callables as the last stage, and map-style datasets."""
import foreload
import numpy as np
import pytest
from conftest import ARRAY, MEMORY
from foreload import _foreload

torch = pytest.importorskip("torch")


class Squares:
    """Map-style; remembers what was asked for."""

    def __init__(self, count=30, bad=()):
        self.count, self.bad, self.asked = count, bad, []

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        self.asked.append(index)
        if index in self.bad:
            raise OSError(f"sample {index} is broken")
        return np.full((2, 3), index, np.float32), index * index


class Bytes(Squares):
    def read_bytes(self, index):
        self.asked.append(index)
        return bytes([index]) * 1000

    def decode(self, data):
        return torch.tensor(list(data[:4]))


def numbers(loader):
    return [int(value) for batch in loader for value in batch[0][:, 0, 0]]


def test_order_and_resume_are_those_of_the_schedule():
    dataset = Squares()
    with foreload.DataLoader(dataset, batch_size=4, shuffle=True, seed=3) as loader:
        plan = _foreload.Plan({"samples": 30, "seed": 3, "shuffle": True, "global_batch": 4, "world": 1, "last_batch": "auto"})
        wanted = [[plan.sample_at(epoch, position) for position in range(30)] for epoch in range(2)]
        assert len(loader) == 8 and loader.dataset is dataset
        assert [numbers(loader), numbers(loader)] == wanted
        loader.set_epoch(0)
        batches = iter(loader)
        images, labels = next(batches)
        assert isinstance(images, torch.Tensor) and images.shape == (4, 2, 3)
        assert labels.tolist() == [id * id for id in wanted[0][:4]]
        state = loader.state_dict()
    with foreload.DataLoader(Squares(), batch_size=4, shuffle=True, seed=3, output="numpy") as loader:
        loader.load_state_dict(state)
        assert numbers(loader) == wanted[0][4:]
    with foreload.DataLoader(Squares(31), batch_size=4, shuffle=True, seed=3) as loader:
        with pytest.raises(foreload.StateMismatch, match="fingerprint"):
            loader.load_state_dict(state)


def test_the_order_is_the_one_of_data_on_disk(arrays):
    with foreload.DataLoader(arrays, batch_size=10, shuffle=True, seed=4, transform=ARRAY, memory=MEMORY) as native, \
            foreload.DataLoader(Squares(100), batch_size=10, shuffle=True, seed=4) as mapped:
        assert [int(value) for images, _ in native for value in images[:, 0]] == numbers(mapped)


def test_ranks_share_the_samples():
    parts = []
    for rank in range(2):
        with foreload.DataLoader(Squares(), batch_size=4, shuffle=True, rank=rank, world_size=2) as loader:
            parts.append([batch[1].tolist() for batch in loader])
    assert len(parts[0]) == len(parts[1])
    assert sorted(label for part in parts for batch in part for label in batch) == [i * i for i in range(30)]


def test_errors_of_the_dataset_follow_the_policy():
    with foreload.DataLoader(Squares(bad={7}), batch_size=5) as loader:
        batches = iter(loader)
        next(batches)
        before = loader.state_dict()
        with pytest.raises(OSError, match="sample 7 is broken"):
            next(batches)
        assert loader.state_dict() == before
    with foreload.DataLoader(Squares(bad={7, 8}), batch_size=5, on_error="replace") as loader:
        assert sum(len(labels) for _, labels in loader) == 30
        assert [bad["id"] for bad in loader.stats()["quarantine"]][:2] == [7, 8]
        first = [label for _, labels in loader for label in labels.tolist()]
    with foreload.DataLoader(Squares(bad={7, 8}), batch_size=5, on_error="replace") as loader:
        loader.set_epoch(1)
        assert [label for _, labels in loader for label in labels.tolist()] == first
    with foreload.DataLoader(Squares(bad=range(30)), on_error="replace", max_replacements=20) as loader:
        with pytest.raises(foreload.SampleError, match="replaced"):
            list(loader)


def test_bytes_are_read_once_and_cached():
    dataset = Bytes()
    with foreload.DataLoader(dataset, batch_size=5, shuffle=True, memory="1MiB") as loader:
        for _ in range(3):
            for batch in loader:
                assert batch.shape == (5, 4)
        assert sorted(dataset.asked) == list(range(30))
        assert [epoch["bytes"]["source"] for epoch in loader.stats()["epochs"]] == [30_000, 0, 0]
    dataset = Bytes()
    with foreload.DataLoader(dataset, batch_size=5, memory=10_000) as loader:
        for _ in range(2):
            list(loader)
        assert len(dataset.asked) == 30 + 20 and loader.stats()["cache"]["used_bytes"] == 10_000


def test_other_shapes_are_refused_unless_collated():
    class Growing(Squares):
        def __getitem__(self, index):
            return np.zeros(index + 1)

    with foreload.DataLoader(Growing(), batch_size=3) as loader, pytest.raises(foreload.SampleError, match="sample 1 .*shape"):
        list(loader)
    with foreload.DataLoader(Growing(), batch_size=3, collate_fn=lambda samples: [len(sample) for sample in samples]) as loader:
        assert next(iter(loader)) == [1, 2, 3]


def test_torchs_own_datasets():
    data = torch.utils.data
    with foreload.DataLoader(data.TensorDataset(torch.arange(12.0)[:, None], torch.arange(12)), batch_size=4, as_dict=True) as loader:
        batch = next(iter(loader))
        assert batch["labels"].tolist() == batch["ids"].tolist() == [0, 1, 2, 3]

    class Endless(data.IterableDataset):
        def __iter__(self):
            return iter([])

    with pytest.raises(foreload.ConfigError, match="iterable"):
        foreload.DataLoader(Endless())


def test_torchvisions_image_folder_is_loaded_natively(example_data):
    torchvision = pytest.importorskip("torchvision")
    t = torchvision.transforms
    compose = t.Compose([t.Resize((16, 16)), t.ToTensor()])
    dataset = torchvision.datasets.ImageFolder(example_data, compose)
    with foreload.DataLoader(dataset, batch_size=16, memory=MEMORY) as loader:
        assert isinstance(loader.dataset, foreload.DatasetView) and len(loader.dataset) == len(dataset)
        assert loader.dataset.classes == dataset.classes
        images, labels = next(iter(loader))
        theirs = torch.stack([dataset[index][0] for index in range(16)])
        assert (images - theirs).abs().max() <= 1.001 / 255
        assert labels.tolist() == [dataset[index][1] for index in range(16)]


# --- callables

def test_callables_run_last_in_this_thread(arrays):
    import threading
    threads = set()

    def add_one(sample):
        threads.add(threading.get_ident())
        return sample.float() + 1

    with foreload.DataLoader(arrays, batch_size=10, transform=[foreload.Array("u8", 64, headerless=True), add_one, torch.neg],
                             batch_transform=lambda batch: (batch[0], batch[1], "mine"), memory=MEMORY) as loader:
        images, labels, word = next(iter(loader))
    assert threads == {threading.get_ident()} and word == "mine"
    assert images.dtype == torch.float32 and images[:, 0].tolist() == [-1.0 - id for id in range(10)]


def test_a_callable_that_fails_names_the_sample_and_can_be_resumed(arrays):
    def fussy(sample):
        if sample[0] == 25 and angry:
            raise KeyError("no 25")
        return sample

    angry = True
    with foreload.DataLoader(arrays, batch_size=10, transform=[foreload.Array("u8", 64, headerless=True), fussy],
                             memory=MEMORY) as loader:
        seen = []
        with pytest.raises(KeyError) as caught:
            for images, labels in loader:
                seen += images[:, 0].tolist()
        assert seen == list(range(20))
        if hasattr(caught.value, "__notes__"):
            assert "c1/025.bin" in caught.value.__notes__[0]
        state = loader.state_dict()
        assert state["position"] == 20
        angry = False
        loader.load_state_dict(state)
        assert [value for images, _ in loader for value in images[:, 0].tolist()] == list(range(20, 100))


def test_a_callable_that_returns_another_shape_is_a_sample_error(arrays):
    with foreload.DataLoader(arrays, batch_size=10, memory=MEMORY,
                             transform=[foreload.Array("u8", 64, headerless=True), lambda sample: sample[:int(sample[0]) + 1]]) as loader:
        with pytest.raises(foreload.SampleError, match=r"c0/001.bin.*offset 0.*shape \(2,\)"):
            next(iter(loader))


def test_an_exception_in_a_batch_callable_does_not_count_the_batch(arrays):
    def fail(batch):
        raise RuntimeError("no")

    with foreload.DataLoader(arrays, batch_size=10, transform=ARRAY, batch_transform=fail, memory=MEMORY) as loader:
        with pytest.raises(RuntimeError, match="no"):
            next(iter(loader))
        assert loader.state_dict()["position"] == 0


# --- what callables and datasets may do to the iterator

def fill(kind, arrays, function):
    """A loader whose batch_transform, callable, collate_fn or __getitem__ calls `function`."""
    class Calling(Squares):
        def __getitem__(self, index):
            function()
            return super().__getitem__(index)

    def call(item):
        function()
        return item

    if kind == "__getitem__":
        return foreload.DataLoader(Calling(), batch_size=10)
    if kind == "collate_fn":
        return foreload.DataLoader(Squares(), batch_size=10, collate_fn=call)
    options = {"batch_transform": call} if kind == "batch_transform" else {}
    chain = [foreload.Array("u8", 64, headerless=True)] + ([call] if kind == "callable" else [])
    return foreload.DataLoader(arrays, batch_size=10, transform=chain, memory=MEMORY, **options)


KINDS = ["batch_transform", "callable", "collate_fn", "__getitem__"]


def test_none_is_a_batch_like_any_other(arrays):
    with foreload.DataLoader(arrays, batch_size=10, transform=ARRAY, batch_transform=lambda batch: None, memory=MEMORY) as loader:
        assert list(loader) == [None] * 10
    with foreload.DataLoader(Squares(), batch_size=10, collate_fn=lambda samples: None) as loader:
        assert list(loader) == [None] * 3


@pytest.mark.parametrize("kind", KINDS)
def test_stop_iteration_of_a_callable_does_not_end_the_epoch(arrays, kind):
    def stop():
        raise StopIteration

    with fill(kind, arrays, stop) as loader:
        with pytest.raises(RuntimeError, match="StopIteration") as caught:
            list(loader)
        assert isinstance(caught.value.__cause__, StopIteration)
        assert loader.state_dict()["position"] == 0


@pytest.mark.parametrize("kind", KINDS)
def test_next_inside_next_is_refused_and_does_not_hang(arrays, kind):
    asking = True

    def ask():
        if asking:
            next(batches)

    with fill(kind, arrays, ask) as loader:
        batches = iter(loader)
        with pytest.raises(RuntimeError, match="while the same thread waits in next"):
            next(batches)
        asking = False
        assert len(list(loader)) == len(loader)


@pytest.mark.parametrize("kind", KINDS[:3])
def test_an_exception_after_close_goes_through(arrays, kind):
    def close():
        loader.close()
        raise KeyError("mine")

    with fill(kind, arrays, close) as loader, pytest.raises(KeyError, match="mine"):
        next(iter(loader))


def test_an_image_folder_with_other_samples_than_its_root_is_refused(example_data):
    torchvision = pytest.importorskip("torchvision")
    t = torchvision.transforms
    dataset = torchvision.datasets.ImageFolder(example_data, t.Compose([t.Resize((16, 16)), t.ToTensor()]))
    del dataset.samples[5:]
    with pytest.raises(foreload.ConfigError, match="has 5 samples.*Subset"):
        foreload.DataLoader(dataset, memory=MEMORY)
    with foreload.DataLoader(torch.utils.data.Subset(dataset, range(5)), batch_size=5) as loader:
        assert len(next(iter(loader))[1]) == 5
    with foreload.DataLoader(dataset, subset=range(5), batch_size=5, memory=MEMORY) as loader:
        assert len(next(iter(loader))[1]) == 5


@pytest.mark.parametrize("change, words", [
    (lambda data: data.samples.reverse(), "targets"),
    (lambda data: (data.samples.reverse(), data.targets.reverse()), "another order"),
    (lambda data: data.samples.__setitem__(0, (data.samples[0][0], 1 + data.samples[0][1])), "targets"),
    (lambda data: (data.samples.__setitem__(0, (data.samples[0][0], 1)), data.targets.__setitem__(0, 1)), "another sample or label"),
    (lambda data: data.samples.__setitem__(0, data.samples[1]), "another sample or label"),
    (lambda data: data.targets.__setitem__(0, 1 + data.targets[0]), "targets"),
    (lambda data: data.targets.pop(), "targets"),
    (lambda data: data.imgs.pop(), "samples"),
    (lambda data: data.classes.reverse(), "other classes"),
    (lambda data: data.classes.append("more"), "other classes"),
    (lambda data: data.samples.__setitem__(0, "no pair"), "another sample or label"),
    (lambda data: data.samples.__setitem__(0, (3, 0)), "another sample or label"),
])
def test_a_changed_image_folder_is_refused(example_data, change, words):
    torchvision = pytest.importorskip("torchvision")
    t = torchvision.transforms
    dataset = torchvision.datasets.ImageFolder(example_data, t.Compose([t.Resize((16, 16)), t.ToTensor()]))
    change(dataset)
    with pytest.raises(foreload.ConfigError, match=f"dataset: this ImageFolder.*{words}"):
        foreload.DataLoader(dataset, memory=MEMORY)
