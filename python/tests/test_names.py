"""Names of files and classes that are not UTF-8: as os.fsdecode gives them, everywhere."""
import os
import pathlib

import foreload
import pytest
from conftest import ARRAY, MEMORY

CLASS, FILE = os.fsdecode(b"caf\xe9"), os.fsdecode(b"\xff\xfe.bin")  # Latin 1 and nothing at all


@pytest.fixture
def named(tmp_path):
    folder = tmp_path / os.fsdecode(b"data-\xe4")
    for name in (CLASS, "plain"):
        (folder / name).mkdir(parents=True)
        (folder / name / FILE).write_bytes(b"a" * 64)
    return folder


def opened(dataset, **options):
    return foreload.DataLoader(dataset, **{"transform": ARRAY, "memory": MEMORY, "output": "numpy", **options})


def test_samples_and_classes_keep_their_names(named):
    with opened(named, batch_size=2) as loader:
        images, labels = next(iter(loader))
        assert images.shape == (2, 64) and labels.tolist() == [0, 1]
        dataset = loader.dataset
        assert dataset.classes == [CLASS, "plain"] and dataset.class_to_idx[CLASS] == 0 and dataset.uri == str(named)
        where = dataset.locate(0)
        assert where["key"] == f"{CLASS}/{FILE}" and where["file"] == str(named / CLASS / FILE)
        assert os.path.exists(where["file"])
        assert loader._repr_html_() and repr(loader) and loader.state_dict()


def test_a_subset_by_such_keys(named):
    with opened(named, subset=[f"plain/{FILE}"]) as loader:
        assert [labels.tolist() for _, labels in loader] == [[1]]


def test_errors_name_them(named, tmp_path):
    (named / CLASS / FILE).write_bytes(b"short")
    with opened(named) as loader, pytest.raises(foreload.SampleError) as caught:
        list(loader)
    assert f"{CLASS}/{FILE}" in str(caught.value)
    with opened(named, on_error="replace") as loader:
        list(loader)
        assert loader.stats()["quarantine"][0]["key"] == f"{CLASS}/{FILE}"
    with pytest.raises(foreload.DatasetNotFound) as caught:
        opened(tmp_path / FILE)
    assert FILE in str(caught.value)


def test_a_callable_that_fails_on_one_is_told_its_name(named):
    def fail(sample):
        raise KeyError("mine")

    with opened(named, transform=[foreload.Array("u8", 64, headerless=True), fail]) as loader, pytest.raises(KeyError) as caught:
        next(iter(loader))
    if hasattr(caught.value, "__notes__"):
        assert CLASS in caught.value.__notes__[0]


@pytest.mark.parametrize("name", ["index_folder", "record"])
def test_other_paths_may_have_such_names(named, tmp_path, name):
    path = tmp_path / os.fsdecode(b"own-\xfc")
    if name == "index_folder":
        path.mkdir()
    with opened(named, **{name: path}) as loader:
        list(loader)
    assert path.is_file() or list(path.iterdir())


def test_an_image_folder_with_such_names(tmp_path, example_data):
    torchvision = pytest.importorskip("torchvision")
    t = torchvision.transforms
    (tmp_path / CLASS).mkdir()
    picture = next(path for path in pathlib.Path(example_data).glob("*/*") if path.stat().st_size)
    (tmp_path / CLASS / os.fsdecode(b"\xff.jpg")).write_bytes(picture.read_bytes())
    dataset = torchvision.datasets.ImageFolder(tmp_path, t.Compose([t.Resize((8, 8)), t.ToTensor()]))
    with foreload.DataLoader(dataset, memory=MEMORY) as loader:
        assert loader.dataset.classes == dataset.classes == [CLASS]
        assert len(list(loader)) == 1
