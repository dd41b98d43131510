"""Classes with torchvision's names, and the translation of torchvision's own objects."""
import inspect

import foreload
import pytest
from conftest import ARRAY, MEMORY

SAME = {
    "RandomResizedCrop(224)": "random_resized_crop(224)",
    "RandomResizedCrop((32, 48), scale=(0.5, 1), ratio=(1, 2))": "random_resized_crop(32:48, scale=0.5:1, ratio=1:2)",
    "Resize(256)": "resize(256)",
    "Resize([256])": "resize(256)",
    "Resize((20, 30))": "resize(20:30)",
    "CenterCrop(224)": "center_crop(224)",
    "RandomCrop(32, padding=4)": "random_crop(32, padding=4, padding_mode=constant)",
    "Pad(2, fill=7, padding_mode='edge')": "pad(2, fill=7, padding_mode=edge)",
    "RandomHorizontalFlip()": "random_flip",
    "RandomHorizontalFlip(0.25)": "random_flip(0.25)",
    "RandomVerticalFlip()": "random_vertical_flip(0.5)",
    "RandomRotation(30)": "random_rotation(30, interpolation=nearest)",
    "RandomAffine(10, translate=(0.1, 0.2), shear=5)": "random_affine(10, translate=0.1:0.2, shear=5, interpolation=nearest)",
    "ColorJitter(0.4, hue=0.1)": "color_jitter(0.4, hue=0.1)",
    "RandomGrayscale(0.2)": "random_grayscale(0.2)",
    "Grayscale(3)": "grayscale(3)",
    "GaussianBlur(5)": "gaussian_blur(5, sigma=0.1:2)",
    "TrivialAugmentWide()": "trivial_augment_wide(31, interpolation=nearest)",
    "RandAugment()": "rand_augment(2, magnitude=9, num_magnitude_bins=31, interpolation=nearest)",
    "RandomErasing(0.3)": "random_erasing(0.3, scale=0.02:0.33, ratio=0.3:3.3)",
    "Normalize((0.5, 0.5, 0.5), (0.25, 0.25, 0.25))": "normalize(0.5:0.5:0.5, std=0.25:0.25:0.25)",
    "MixUp(0.2)": "mixup(0.2)",
    "CutMix()": "cutmix(1)",
    "Array('float32', (3, 4))": "array(f32, shape=3:4)",
    "Array('u8', 64, headerless=True)": "array(u8, shape=64:, headerless=1)",
}


def canonical(text):
    return foreload._foreload.check_chain(text)


@pytest.mark.parametrize("call", SAME)
def test_a_class_is_its_op(call):
    made = eval(call, vars(foreload))
    assert canonical(str(made)) == canonical(SAME[call])
    assert eval(repr(made), vars(foreload)) == made or "interpolation" in repr(made) or made.params == {}


@pytest.mark.parametrize("name", ["RandomResizedCrop", "Resize", "CenterCrop", "RandomCrop", "Pad", "RandomHorizontalFlip",
                                  "RandomVerticalFlip", "RandomRotation", "RandomAffine", "ColorJitter", "Grayscale",
                                  "RandomGrayscale", "GaussianBlur", "TrivialAugmentWide", "RandAugment", "RandomErasing", "Normalize",
                                  "ToTensor", "PILToTensor", "ConvertImageDtype"])
def test_parameters_have_torchvisions_names_and_order(name):
    transforms = pytest.importorskip("torchvision.transforms")
    theirs = [p for p in inspect.signature(getattr(transforms, name).__init__).parameters if p not in ("self", "resample", "fillcolor")]
    ours = [p for p in inspect.signature(getattr(foreload, name).__init__).parameters if p not in ("self", "params")]
    assert ours[:len(theirs)] == theirs


def test_torchvisions_objects_are_translated():
    t = pytest.importorskip("torchvision.transforms")
    compose = t.Compose([t.RandomResizedCrop(32, scale=(0.2, 1)), t.Compose([t.RandomHorizontalFlip(0.3)]), t.ColorJitter(0.4, 0, 0.2),
                         t.RandomGrayscale(), t.GaussianBlur(3, (0.1, 1)), t.RandomRotation(10), t.ToTensor(),
                         t.Normalize([0.5] * 3, [0.5] * 3), t.RandomErasing()])
    names = [type(item).__name__ for item in foreload.from_torchvision(compose)]
    assert names == ["RandomResizedCrop", "RandomHorizontalFlip", "ColorJitter", "RandomGrayscale", "GaussianBlur", "RandomRotation",
                     "ToTensor", "Normalize", "RandomErasing"]
    translated = foreload.from_torchvision(compose)
    assert str(translated[0]) == "random_resized_crop(32:32, scale=0.2:1)"
    assert str(translated[2]) == "color_jitter(0.6:1.4, saturation=0.8:1.2)"


def test_what_can_not_be_translated_is_named():
    t = pytest.importorskip("torchvision.transforms")
    with pytest.raises(foreload.ConfigError, match="FiveCrop.*RandomPerspective"):
        foreload.from_torchvision(t.Compose([t.FiveCrop(8), t.RandomPerspective(), t.ToTensor()]))
    with pytest.raises(foreload.ConfigError, match="max_size"):
        foreload.from_torchvision([t.Resize(8, max_size=10), t.ToTensor()])
    with pytest.raises(foreload.ConfigError, match="interpolation"):
        foreload.from_torchvision([t.Resize(8, interpolation=t.InterpolationMode.BICUBIC), t.ToTensor()])


def test_what_stands_last_is_kept_as_a_callable(images):
    t = pytest.importorskip("torchvision.transforms")
    with pytest.warns(foreload.ForeloadWarning, match="Lambda"):
        chain = foreload.from_torchvision(t.Compose([t.Resize((8, 8)), t.ToTensor(), t.Lambda(lambda image: image * 0 + 2)]))
    with foreload.DataLoader(images, batch_size=4, transform=chain, memory=MEMORY) as loader:
        tensors, _ = next(iter(loader))
        assert tensors.shape == (4, 3, 8, 8) and bool((tensors == 2).all())


@pytest.mark.parametrize("call, words", [
    ("RandomResizedCrop(0)", "size"), ("RandomResizedCrop('a')", "size"), ("Resize((1, 2, 3))", "size"),
    ("RandomHorizontalFlip(2)", "p"), ("Normalize([0.5], [0.5])", "mean"), ("Normalize([0, 0, 0], [1, 1, 0])", "std"),
    ("Grayscale()", "num_output_channels"), ("RandomErasing(value='random')", "value"), ("Array('f99', 3)", "dtype"),
    ("RandomRotation(10, expand=True)", "expand"), ("RandomResizedCrop(8, interpolation='bicubic')", "interpolation"),
    ("ConvertImageDtype('int64')", "dtype"), ("Resize(object())", "size"), ("GaussianBlur(4)", "kernel_size")])
def test_wrong_parameters_are_refused_by_name(call, words):
    with pytest.raises(foreload.ConfigError, match=words):
        eval(call, vars(foreload))


def test_markers_choose_the_dtype(images):
    for markers, dtype in (([foreload.ToTensor()], "float32"), ([foreload.PILToTensor()], "uint8"),
                           ([foreload.ConvertImageDtype("float16")], "float16")):
        with foreload.DataLoader(images, batch_size=2, transform=[foreload.Resize((8, 8)), *markers], memory=MEMORY,
                                 output="numpy") as loader:
            assert str(next(iter(loader))[0].dtype) == dtype


def test_mixing_delivers_the_other_label_and_the_share(images):
    with foreload.DataLoader(images, batch_size=8, memory=MEMORY, as_dict=True, output="numpy",
                             transform=[foreload.Resize((8, 8)), foreload.ToTensor(), foreload.MixUp(0.5)]) as loader:
        batch = next(iter(loader))
    assert batch["other_labels"].shape == batch["own_shares"].shape == (8,)
    assert batch["other_labels"].tolist() == [label for pair in batch["labels"].reshape(-1, 2).tolist() for label in reversed(pair)]
    assert all(0 <= share <= 1 for share in batch["own_shares"].tolist())


def test_ragged_batches_are_values_and_offsets(tmp_path):
    import numpy as np
    for number in range(6):
        (tmp_path / "a").mkdir(exist_ok=True)
        (tmp_path / "a" / f"{number}.bin").write_bytes(np.arange(number + 1, dtype="<u2").tobytes())
    with foreload.DataLoader(tmp_path, batch_size=6, memory=MEMORY, output="numpy",
                             transform=foreload.Ragged("uint16", 10, headerless=True)) as loader:
        values, offsets, labels = next(iter(loader))
    assert offsets.tolist() == [0, 1, 3, 6, 10, 15, 21]
    assert values.tolist() == [i for number in range(6) for i in range(number + 1)]


def test_u16_goes_to_torch_as_wider_numbers(tmp_path):
    torch = pytest.importorskip("torch")
    (tmp_path / "a").mkdir()
    for number in range(4):
        (tmp_path / "a" / f"{number}.bin").write_bytes(b"\xff\xff\x01\x00")
    with foreload.DataLoader(tmp_path, batch_size=4, memory=MEMORY, transform="array(u16, 2, headerless=1)") as loader:
        values, _ = next(iter(loader))
    assert values.tolist() == [[65535, 1]] * 4
    assert values.dtype in (torch.int32, getattr(torch, "uint16", None))
