"""Translation of torchvision's transforms, by class name and attributes: torchvision itself is never imported."""
from __future__ import annotations

from typing import Any, Callable, Dict, List

from . import transforms as ours
from ._arguments import shown, warn_once
from .errors import ConfigError


def _attributes(cls: Any, *names: str) -> Callable[[Any], Any]:
    """Ours from theirs, attribute by attribute; those that an older or newer torchvision lacks are left out."""
    return lambda t: cls(**{name: getattr(t, name) for name in names if hasattr(t, name)})


def _jitter(t: Any) -> Any:
    given = {name: getattr(t, name) for name in ("brightness", "contrast", "saturation", "hue")}
    return ours.ColorJitter(**{name: 0 if value is None else value for name, value in given.items()})


def _to_dtype(t: Any) -> Any:
    dtype = ours.dtype_name(t.dtype)
    if dtype != "u8" and not getattr(t, "scale", True):
        raise ConfigError("ToDtype: scale=False is not supported; floating-point images are scaled to [0, 1]")
    return ours.ConvertImageDtype(dtype)


TABLE: Dict[str, Callable[[Any], Any]] = {
    "RandomResizedCrop": _attributes(ours.RandomResizedCrop, "size", "scale", "ratio", "interpolation"),
    "Resize": _attributes(ours.Resize, "size", "interpolation", "max_size"),
    "CenterCrop": _attributes(ours.CenterCrop, "size"),
    "RandomCrop": _attributes(ours.RandomCrop, "size", "padding", "pad_if_needed", "fill", "padding_mode"),
    "Pad": _attributes(ours.Pad, "padding", "fill", "padding_mode"),
    "RandomHorizontalFlip": _attributes(ours.RandomHorizontalFlip, "p"),
    "RandomVerticalFlip": _attributes(ours.RandomVerticalFlip, "p"),
    "RandomRotation": _attributes(ours.RandomRotation, "degrees", "interpolation", "expand", "center", "fill"),
    "RandomAffine": _attributes(ours.RandomAffine, "degrees", "translate", "scale", "shear", "interpolation", "fill", "center"),
    "ColorJitter": _jitter,
    "Grayscale": _attributes(ours.Grayscale, "num_output_channels"),
    "RandomGrayscale": _attributes(ours.RandomGrayscale, "p"),
    "GaussianBlur": _attributes(ours.GaussianBlur, "kernel_size", "sigma"),
    "TrivialAugmentWide": _attributes(ours.TrivialAugmentWide, "num_magnitude_bins", "interpolation", "fill"),
    "RandAugment": _attributes(ours.RandAugment, "num_ops", "magnitude", "num_magnitude_bins", "interpolation", "fill"),
    "RandomErasing": _attributes(ours.RandomErasing, "p", "scale", "ratio", "value"),
    "Normalize": _attributes(ours.Normalize, "mean", "std"),
    "ToTensor": lambda t: ours.ToTensor(),
    "ToImage": lambda t: ours.PILToTensor(),
    "PILToTensor": lambda t: ours.PILToTensor(),
    "ConvertImageDtype": _attributes(ours.ConvertImageDtype, "dtype"),
    "ToDtype": _to_dtype,
}


def _flat(transform: Any) -> List[Any]:
    if type(transform).__name__ == "Compose":
        return [item for part in transform.transforms for item in _flat(part)]
    if type(transform).__name__ == "Sequential" or isinstance(transform, (list, tuple)):
        return [item for part in transform for item in _flat(part)]
    return [transform]


def is_torchvision(transform: Any) -> bool:
    return type(transform).__module__.split(".")[0] == "torchvision"


def _translated(transform: Any) -> Any:
    """Ours, or the reason why not."""
    if isinstance(transform, ours.Transform):
        return transform
    name = type(transform).__name__
    if not is_torchvision(transform) or name not in TABLE:
        return f"{shown(transform)} (foreload has no such transform)"
    try:
        return TABLE[name](transform)
    except ConfigError as reason:
        return f"{shown(transform)} ({reason})"


def from_torchvision(transform: Any) -> List[Any]:
    """A Compose, Sequential or list of torchvision's transforms as a list for `transform=`.

    What can not be translated is named. If it stands behind everything that can, and behind ToTensor, it is kept as a
    Python callable (slower) with a warning; otherwise a ConfigError names all of it.
    """
    theirs = _flat(transform)
    done = [_translated(item) for item in theirs]
    unknown = [index for index, item in enumerate(done) if isinstance(item, str)]
    if not unknown:
        return done
    tail = unknown[0]
    tensors = any(isinstance(item, ours.MARKERS) for item in done[:tail])
    if tensors and all(isinstance(item, str) or isinstance(item, ours.MARKERS) for item in done[tail:]):
        warn_once("runs in Python, one sample after the other, because foreload can not do it: " +
                  "; ".join(done[index] for index in unknown))
        return done[:tail] + [theirs[index] for index in unknown]
    raise ConfigError("can not be translated: " + "; ".join(done[index] for index in unknown) +
                      ". Leave it out, or put it at the end, where it can run as a Python callable")
