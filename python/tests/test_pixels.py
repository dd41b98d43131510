"""Pixels against torchvision on Pillow: decoding and flips exact, resizes within one level, normalised values accordingly."""
import foreload
import numpy as np
import pytest
from conftest import MEMORY

transforms = pytest.importorskip("torchvision.transforms")
from PIL import Image  # noqa: E402


def both(images, compose, **options):
    """(ours, theirs) over all images, as arrays; the chain must not be random."""
    with foreload.DataLoader(images, batch_size=40, transform=foreload.from_torchvision(compose), memory=MEMORY, with_ids=True,
                             **options) as loader:
        ours, theirs = [], []
        for tensors, _, ids, _ in loader:
            ours.append(tensors.clone().numpy())
            files = [images / loader.dataset.locate(id)["key"] for id in ids.tolist()]
            theirs.append(np.stack([np.asarray(compose(Image.open(file).convert("RGB"))) for file in files]))
    return np.concatenate(ours), np.concatenate(theirs)


def test_resize_and_crop_are_within_one_level(images):
    ours, theirs = both(images, transforms.Compose([transforms.Resize(80), transforms.CenterCrop(64), transforms.PILToTensor()]))
    assert ours.dtype == np.uint8 and ours.shape == theirs.shape == (120, 3, 64, 64)
    assert np.abs(ours.astype(int) - theirs.astype(int)).max() <= 1


def test_decoding_and_flipping_are_exact(images):
    ours, theirs = both(images, transforms.Compose([transforms.CenterCrop(96), transforms.RandomHorizontalFlip(1.0),
                                                    transforms.PILToTensor()]))
    assert np.array_equal(ours, theirs)


def test_normalised_values_differ_by_at_most_one_level(images):
    mean, std = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
    ours, theirs = both(images, transforms.Compose([transforms.Resize((48, 56)), transforms.ToTensor(),
                                                    transforms.Normalize(mean, std)]))
    assert ours.dtype == np.float32
    assert np.abs(ours - theirs).max() <= 1 / 255 / min(std) * 1.001
    exact = np.mean(ours == theirs)
    assert exact > 0.5, exact  # most pixels are the same to the bit


def test_the_default_chain_is_the_usual_one(images):
    with foreload.DataLoader(images, batch_size=8, memory=MEMORY) as plain, \
            foreload.DataLoader(images, batch_size=8, memory=MEMORY, transform=transforms.Compose([
                transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.ToTensor(),
                transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])])) as asked:
        for (a, _), (b, _), _ in zip(plain, asked, range(2)):
            assert a.shape == (8, 3, 224, 224) and bool((a == b).all())
