"""The same seed gives the same order and pixels as the command, whoever counts threads and ranks."""
import foreload
import pytest
from conftest import ARRAY, MEMORY, report
from foreload import _foreload

MASK = (1 << 64) - 1


def epoch_hashes(loader):
    """Order and content of one epoch, from what Python was given; positions follow from the assignment."""
    order = content = 0
    while True:
        batch = loader._engine.next()
        if batch is None:
            return [f"{order & MASK:016x}", f"{content & MASK:016x}"]
        positions = loader._engine.positions(batch.epoch, batch.step)
        assert len(positions) == len(batch)
        more = _foreload.batch_hashes(batch, positions)
        order, content = order + more[0], content + more[1]


def cli_hashes(*arguments):
    return [[epoch["order_hash"], epoch["content_hash"]] for epoch in report(*arguments, "--hash", "--memory", MEMORY)["epochs"]]


@pytest.mark.parametrize("threads", [1, 4])
def test_images_have_the_hashes_of_the_command(images, threads):
    with foreload.DataLoader(images, batch_size=16, shuffle=True, seed=11, num_workers=threads, memory=MEMORY) as loader:
        ours = [epoch_hashes(loader) for _ in range(2)]
    assert ours == cli_hashes(images, "--batch", 16, "--seed", 11, "--epochs", 2)


def test_a_chain_of_classes_is_the_chain_of_the_command(images):
    chain = [foreload.Resize(72), foreload.CenterCrop(64), foreload.RandomHorizontalFlip()]
    with foreload.DataLoader(images, batch_size=32, transform=chain, dtype="u8", layout="nhwc", memory=MEMORY) as loader:
        ours = epoch_hashes(loader)
    assert [ours] == cli_hashes(images, "--batch", 32, "--in-order", "--chain", "resize(72), center_crop(64), random_flip",
                                "--dtype", "u8", "--layout", "nhwc")


def test_the_ranks_hashes_add_up(arrays):
    sums = [0, 0]
    for rank in range(3):
        with foreload.DataLoader(arrays, batch_size=4, shuffle=True, transform=ARRAY, rank=rank, world_size=3, last_batch="ragged",
                                 memory=MEMORY) as loader:
            sums = [(total + int(part, 16)) & MASK for total, part in zip(sums, epoch_hashes(loader))]
    assert [[f"{total:016x}" for total in sums]] == cli_hashes(arrays, "--batch", 12, "--chain", ARRAY)


def test_what_torch_and_numpy_see_is_what_was_hashed(arrays):
    torch = pytest.importorskip("torch")
    for output in ("torch", "numpy"):
        with foreload.DataLoader(arrays, batch_size=10, shuffle=True, transform=ARRAY, memory=MEMORY, with_ids=True,
                                 output=output) as loader:
            for step, (data, labels, ids, positions) in enumerate(loader):
                assert isinstance(data, torch.Tensor) == (output == "torch")
                assert data.shape == (10, 64) and str(data.dtype).endswith("uint8")
                assert [int(value) for value in data[:, 0]] == ids.tolist()
                assert labels.tolist() == [id // 25 for id in ids.tolist()]
                assert positions.tolist() == list(range(10 * step, 10 * step + 10))


def test_a_state_of_the_command_resumes_here(arrays, tmp_path):
    import json
    state = tmp_path / "state.json"
    report(arrays, "--batch", 10, "--seed", 3, "--chain", ARRAY, "--memory", MEMORY, "--state", state)
    with foreload.DataLoader(arrays, batch_size=10, shuffle=True, seed=3, transform=ARRAY, memory=MEMORY) as loader:
        loader.load_state_dict(json.loads(state.read_text()))
        assert loader.state_dict()["epoch"] == 1 and loader.state_dict()["position"] == 0
