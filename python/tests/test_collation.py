"""Samples and what callables make of them, put together to batches: what can not be, what is not a pair, what is empty."""
import foreload
import pytest
from conftest import ARRAY, MEMORY
from test_datasets import Bytes, Squares

NO_TENSORS = [lambda sample: None, lambda sample: "text", lambda sample: {"a": 1}, lambda sample: (sample, 1),
              lambda sample: [1, [2, 3]], lambda sample: object()]


@pytest.mark.parametrize("output", ["torch", "numpy"])
@pytest.mark.parametrize("function", NO_TENSORS)
def test_a_callable_that_returns_no_tensor_is_a_sample_error(arrays, output, function):
    if output == "numpy" and function("") == "text":
        pytest.skip("numpy has arrays of strings")
    with foreload.DataLoader(arrays, batch_size=10, transform=[foreload.Array("u8", 64, headerless=True), function],
                             memory=MEMORY, output=output) as loader:
        with pytest.raises(foreload.SampleError, match=r"c0/000.bin.*offset 0.*the callable returned .* no tensor"):
            next(iter(loader))
        assert loader.state_dict()["position"] == 0


@pytest.mark.parametrize("output", ["torch", "numpy"])
@pytest.mark.parametrize("sample", [None, object(), [None], {"a": None}])
def test_samples_that_are_no_numbers_need_a_collate_fn(output, sample):
    with foreload.DataLoader([sample] * 4, batch_size=2, output=output) as loader:
        with pytest.raises(foreload.SampleError, match="sample 0 .*position 0 of epoch 0.*collate_fn"):
            next(iter(loader))
    with foreload.DataLoader([sample] * 4, batch_size=2, output=output, collate_fn=len) as loader:
        assert list(loader) == [2, 2]


def test_the_sample_of_a_failing_callable_is_named_for_map_style_too():
    with foreload.DataLoader(Squares(), transform=[lambda sample: sample[100]]) as loader, pytest.raises(IndexError) as caught:
        next(iter(loader))
    if hasattr(caught.value, "__notes__"):
        assert "sample 0 of" in caught.value.__notes__[0]


@pytest.mark.parametrize("given", [None, "text", 3])
def test_read_bytes_that_gives_no_bytes_is_a_sample_error(given):
    class Wrong(Bytes):
        def read_bytes(self, index):
            return given

    with foreload.DataLoader(Wrong()) as loader, pytest.raises(foreload.SampleError, match="sample 0: read_bytes"):
        next(iter(loader))


@pytest.mark.parametrize("length", [-1, 1 << 63, 1.5, None, "3"])
def test_a_length_that_is_none_is_refused(length):
    class Odd(Squares):
        def __len__(self):
            return length

    with pytest.raises(foreload.ConfigError, match="dataset .*Odd has no length"):
        foreload.DataLoader(Odd())


@pytest.mark.parametrize("output", ["torch", "numpy"])
def test_dicts_and_ids_of_samples_that_are_not_pairs(output):
    def first(samples, **options):
        with foreload.DataLoader(samples, batch_size=2, output=output, **options) as loader:
            return next(iter(loader))

    batch = first([(1, 2, 3, 4)] * 2, as_dict=True)
    assert [batch[name].tolist() for name in ("images", "labels", "item2", "item3")] == [[1, 1], [2, 2], [3, 3], [4, 4]]
    assert list(first([(b"a",), (b"b",)], as_dict=True)["images"]) == [b"a", b"b"]
    assert list(first([b"a", b"b"], as_dict=True)["images"]) == list(first([b"a", b"b"], with_ids=True)[0]) == [b"a", b"b"]


@pytest.mark.parametrize("output", ["torch", "numpy"])
def test_a_rank_without_samples_gets_an_empty_batch(output):
    """Nine samples, eight per step: the second step has one."""
    sizes = []
    for rank in range(2):
        with foreload.DataLoader(Squares(9), batch_size=4, rank=rank, world_size=2, last_batch="ragged", output=output,
                                 with_ids=True) as loader:
            sizes.append([tuple(map(len, batch)) for batch in loader])
            assert all(batch[0].shape[1:] == (2, 3) and len(batch) == 4 for batch in loader)
    assert sorted(sizes) == [[(4,) * 4, (0,) * 4], [(4,) * 4, (1,) * 4]]


@pytest.mark.parametrize("kind", ["native", "mapped"])
def test_203_samples_over_two_ranks(tmp_path, kind):
    """Neither the batch nor the world divides them."""
    (tmp_path / "a").mkdir()
    for number in range(203 if kind == "native" else 0):
        (tmp_path / "a" / f"{number:03}.bin").write_bytes(bytes(64))
    dataset, chain = (tmp_path, ARRAY) if kind == "native" else (Squares(203), None)
    for last, total in ((None, 204), ("pad", 204), ("ragged", 203), ("drop", 192)):
        parts = []
        for rank in range(2):
            with foreload.DataLoader(dataset, batch_size=16, shuffle=True, transform=chain, memory=MEMORY, rank=rank, world_size=2,
                                     with_ids=True, last_batch=last) as loader:
                parts.append([batch[-2].tolist() for batch in loader])
                assert len(parts[-1]) == len(loader)
                assert loader.state_dict()["epoch"] == 1
        assert len(parts[0]) == len(parts[1])
        ids = [id for part in parts for batch in part for id in batch]
        assert len(ids) == total and len(set(ids)) == min(total, 203)
        if last is None:
            assert list(map(len, parts[0])) == list(map(len, parts[1]))
