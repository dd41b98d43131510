"""Transforms, named and parameterised like torchvision's. They run in C++, keyed by (seed, epoch, position).

A transform is a value: it is checked when it is made, and has a text form (`str(t)`) which is the one of
`foreload run --chain`. What torchvision accepts and foreload does not is refused with a ConfigError.
"""
from __future__ import annotations

import numbers
import operator
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from . import _foreload
from ._arguments import same, shown, text, wrong
from .errors import ConfigError

Numbers = Union[float, Sequence[float]]

DTYPES = {"uint8": "u8", "int16": "i16", "uint16": "u16", "int32": "i32", "uint32": "u32", "int64": "i64",
          "float16": "f16", "half": "f16", "float32": "f32", "float": "f32", "float64": "f64", "double": "f64"}
WORDS = ("dtype", "interpolation", "padding_mode")  # parameters that are no numbers
INTERPOLATIONS = {"nearest": "nearest", "bilinear": "bilinear", 0: "nearest", 2: "bilinear"}


def dtype_name(given: Any) -> str:
    """'f32' from 'f32', 'float32', numpy.float32, numpy.dtype or torch.float32."""
    names = [given, getattr(given, "__name__", None), getattr(given, "name", None), shown(given)]
    name = next(name for name in names if isinstance(name, str)).rsplit(".", 1)[-1]
    return DTYPES.get(name, name)


def _number(given: Any) -> Union[None, int, float]:
    """A number of any kind, or the one of an array without dimensions."""
    try:
        return operator.index(given)
    except Exception:
        real = isinstance(given, numbers.Real) or getattr(given, "shape", None) == ()
        return float(given) if real else None


def _plain(owner: str, name: str, given: Any) -> Any:
    """A parameter as a bool, a number, a word or a list of numbers."""
    if name in WORDS and isinstance(given, str) and given.isidentifier():
        return given
    number = _number(given)
    if number is not None:
        return given if isinstance(given, bool) else number
    if isinstance(given, (list, tuple, range)) or hasattr(given, "tolist") and getattr(given, "ndim", 0) == 1:
        values = [_number(item) for item in given]
        if None not in values:
            return values
    raise wrong(f"{owner}: {name}", "a word" if name in WORDS else "a number or a sequence of numbers", given)


def _text(value: Any) -> str:
    """A parameter in the text form: 224, 0.08:1, 5:, f32."""
    if isinstance(value, list):
        numbers = [repr(int(item)) if item % 1 == 0 else repr(item) for item in value]
        return ":".join(numbers) if len(numbers) > 1 else ":".join([*numbers, ""])
    return value if isinstance(value, str) else str(int(value)) if isinstance(value, bool) else repr(value)


class Transform:
    """The base of all transforms: a value that is checked when it is made, compares by content and runs in C++.

    `str(t)` is its form in `foreload run --chain`; `params` are those parameters that differ from the defaults.
    """

    op = ""
    defaults: Dict[str, Any] = {}  # what the op does without the parameter

    def __init__(self, **params: Any) -> None:
        plain = {name: _plain(type(self).__name__, name, value) for name, value in params.items() if value is not None}
        self.params = {name: value for name, value in plain.items() if name not in self.defaults or value != self.defaults[name]}
        parts = ", ".join(f"{name}={_text(value)}" for name, value in self.params.items())
        self.text = _foreload.check_chain(f"{self.op}({parts})") if self.op else ""

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.params.items())})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.text == other.text  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((type(self), self.text))


def _size(given: Any) -> Any:
    # torchvision: a sequence of one means the same as the number
    return given[0] if isinstance(given, (list, tuple)) and len(given) == 1 else given


def _interpolation(owner: str, given: Any, accepted: Tuple[str, ...]) -> str:
    value = getattr(given, "value", given)
    name = INTERPOLATIONS.get(value) if isinstance(value, (str, int)) else None
    if name not in accepted:
        raise wrong(f"{owner}: interpolation", " or ".join(accepted), given)
    return name


def _refuse(owner: str, **unsupported: Any) -> None:
    for name, (value, default) in unsupported.items():
        if not same(value, default):
            raise ConfigError(f"{owner}: {name}={shown(value)} is not supported; only {name}={default!r}")


class RandomResizedCrop(Transform):
    """A crop of random area (a share `scale` of the picture) and aspect `ratio`, resized to `size` (a number or (h, w))."""

    op = "random_resized_crop"
    defaults = {"scale": [0.08, 1.0], "ratio": [3 / 4, 4 / 3]}

    def __init__(self, size: Numbers, scale: Sequence[float] = (0.08, 1.0), ratio: Sequence[float] = (3 / 4, 4 / 3),
                 interpolation: Any = "bilinear", antialias: Any = True) -> None:
        _interpolation("RandomResizedCrop", interpolation, ("bilinear",))
        super().__init__(size=_size(size), scale=scale, ratio=ratio)


class Resize(Transform):
    """To `size`: (height, width), or a number for the shorter side. Bilinear with antialias, as Pillow does it."""

    op = "resize"

    def __init__(self, size: Numbers, interpolation: Any = "bilinear", max_size: Optional[int] = None,
                 antialias: Any = True) -> None:
        _interpolation("Resize", interpolation, ("bilinear",))
        _refuse("Resize", max_size=(max_size, None))
        super().__init__(size=_size(size))


class CenterCrop(Transform):
    """The middle of the picture, `size` = a number or (height, width); a smaller picture is padded with black."""

    op = "center_crop"

    def __init__(self, size: Numbers) -> None:
        super().__init__(size=_size(size))


class RandomCrop(Transform):
    """A crop of `size` anywhere, after padding by `padding` (one, two or four numbers)."""

    op = "random_crop"
    defaults = {"pad_if_needed": False, "fill": 0}

    def __init__(self, size: Numbers, padding: Optional[Numbers] = None, pad_if_needed: bool = False, fill: Numbers = 0,
                 padding_mode: str = "constant") -> None:
        super().__init__(size=_size(size), padding=padding, pad_if_needed=pad_if_needed, fill=fill,
                         padding_mode=padding_mode)


class Pad(Transform):
    """A border of `padding` (one, two or four numbers) pixels: `fill`, or the picture's own edge by `padding_mode`."""

    op = "pad"
    defaults = {"fill": 0}

    def __init__(self, padding: Numbers, fill: Numbers = 0, padding_mode: str = "constant") -> None:
        super().__init__(padding=padding, fill=fill, padding_mode=padding_mode)


class RandomHorizontalFlip(Transform):
    """Mirrors left and right with probability `p`."""

    op = "random_flip"
    defaults = {"p": 0.5}

    def __init__(self, p: float = 0.5) -> None:
        super().__init__(p=p)


class RandomVerticalFlip(Transform):
    """Mirrors top and bottom with probability `p`."""

    op = "random_vertical_flip"

    def __init__(self, p: float = 0.5) -> None:
        super().__init__(p=p)


class RandomRotation(Transform):
    """Turns by an angle from -degrees to degrees, or of the range (least, most), around the middle."""

    op = "random_rotation"
    defaults = {"fill": 0}

    def __init__(self, degrees: Numbers, interpolation: Any = "nearest", expand: bool = False, center: Any = None,
                 fill: Numbers = 0) -> None:
        _refuse("RandomRotation", expand=(expand, False), center=(center, None))
        super().__init__(degrees=degrees, fill=fill,
                         interpolation=_interpolation("RandomRotation", interpolation, ("nearest", "bilinear")))


class RandomAffine(Transform):
    """Turns, shifts (by at most the shares `translate` of the sides), scales and shears (degrees) around the middle."""

    op = "random_affine"
    defaults = {"fill": 0}

    def __init__(self, degrees: Numbers, translate: Optional[Sequence[float]] = None,
                 scale: Optional[Sequence[float]] = None, shear: Optional[Numbers] = None,
                 interpolation: Any = "nearest", fill: Numbers = 0, center: Any = None) -> None:
        _refuse("RandomAffine", center=(center, None))
        super().__init__(degrees=degrees, translate=translate, scale=scale, shear=shear, fill=fill,
                         interpolation=_interpolation("RandomAffine", interpolation, ("nearest", "bilinear")))


class ColorJitter(Transform):
    """Changes each by a random factor from [1 - x, 1 + x], or of the range given; hue by a shift from [-x, x]."""

    op = "color_jitter"
    defaults = {"brightness": 0, "contrast": 0, "saturation": 0, "hue": 0}

    def __init__(self, brightness: Optional[Numbers] = 0, contrast: Optional[Numbers] = 0,
                 saturation: Optional[Numbers] = 0, hue: Optional[Numbers] = 0) -> None:
        super().__init__(brightness=brightness, contrast=contrast, saturation=saturation, hue=hue)


class Grayscale(Transform):
    """Shades of grey. Pictures keep three equal channels, so only num_output_channels=3 is accepted."""

    op = "grayscale"

    def __init__(self, num_output_channels: int = 1) -> None:
        super().__init__(num_output_channels=num_output_channels)


class RandomGrayscale(Transform):
    """Grayscale with probability `p`, in three equal channels."""

    op = "random_grayscale"

    def __init__(self, p: float = 0.1) -> None:
        super().__init__(p=p)


class GaussianBlur(Transform):
    """A blur of `kernel_size` (odd; a number or two) with `sigma` drawn from a range, or fixed."""

    op = "gaussian_blur"

    def __init__(self, kernel_size: Numbers, sigma: Numbers = (0.1, 2.0)) -> None:
        super().__init__(kernel_size=kernel_size, sigma=sigma)


class TrivialAugmentWide(Transform):
    """One random operation of random strength (Müller and Hutter 2021, the wide space)."""

    op = "trivial_augment_wide"

    def __init__(self, num_magnitude_bins: int = 31, interpolation: Any = "nearest", fill: Optional[Numbers] = None) -> None:
        super().__init__(num_magnitude_bins=num_magnitude_bins, fill=fill,
                         interpolation=_interpolation("TrivialAugmentWide", interpolation, ("nearest", "bilinear")))


class RandAugment(Transform):
    """`num_ops` random operations of one strength (Cubuk et al. 2020)."""

    op = "rand_augment"

    def __init__(self, num_ops: int = 2, magnitude: int = 9, num_magnitude_bins: int = 31, interpolation: Any = "nearest",
                 fill: Optional[Numbers] = None) -> None:
        super().__init__(num_ops=num_ops, magnitude=magnitude, num_magnitude_bins=num_magnitude_bins, fill=fill,
                         interpolation=_interpolation("RandAugment", interpolation, ("nearest", "bilinear")))


class RandomErasing(Transform):
    """With probability `p` a rectangle (share `scale` of the area, aspect `ratio`) is set to `value`, a number or three."""

    op = "random_erasing"
    defaults = {"value": 0}

    def __init__(self, p: float = 0.5, scale: Sequence[float] = (0.02, 0.33), ratio: Sequence[float] = (0.3, 3.3),
                 value: Numbers = 0, inplace: bool = False) -> None:
        super().__init__(p=p, scale=scale, ratio=ratio, value=value)


class Normalize(Transform):
    """(value - mean) / std per channel, of values in [0, 1]."""

    op = "normalize"

    def __init__(self, mean: Sequence[float], std: Sequence[float], inplace: bool = False) -> None:
        super().__init__(mean=mean, std=std)


class MixUp(Transform):
    """Last of a chain: mixes the samples of positions 2i and 2i+1; batches are (images, labels, other_labels, own_shares)."""

    op = "mixup"

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__(alpha=alpha)


class CutMix(Transform):
    """As MixUp, with a rectangle of the other picture in place of a mean of both; its area is drawn by `alpha`."""

    op = "cutmix"

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__(alpha=alpha)


def _dimensions(given: Any) -> Any:
    return given if _number(given) is None else [given]


class Array(Transform):
    """Samples that are arrays of one dtype and shape: .npy files, or headerless bytes."""

    op = "array"
    defaults = {"headerless": False}

    def __init__(self, dtype: Any, shape: Union[int, Sequence[int]], headerless: bool = False) -> None:
        super().__init__(dtype=dtype_name(dtype), shape=_dimensions(shape), headerless=headerless)


class RandomWindow(Transform):
    """After Array: a window of its last dimensions, anywhere."""

    op = "random_window"

    def __init__(self, size: Union[int, Sequence[int]]) -> None:
        super().__init__(size=_dimensions(size))


class CenterWindow(Transform):
    """After Array: a window of its last dimensions, in the middle."""

    op = "center_window"

    def __init__(self, size: Union[int, Sequence[int]]) -> None:
        super().__init__(size=_dimensions(size))


class Ragged(Transform):
    """One-dimensional arrays of varying length up to `max_length`, delivered as (values, offsets, labels).

    A longer one is a bad sample, or is cut off with truncate=True.
    """

    op = "ragged"
    defaults = {"headerless": False, "truncate": False}

    def __init__(self, dtype: Any, max_length: int, headerless: bool = False, truncate: bool = False) -> None:
        super().__init__(dtype=dtype_name(dtype), max_length=max_length, headerless=headerless, truncate=truncate)


class ToTensor(Transform):
    """float32 in [0, 1], NCHW: what foreload delivers anyway. Here so that a list can be moved over as it is."""

    dtype = "f32"


class PILToTensor(Transform):
    """uint8, not scaled: the dtype of the batches, like ConvertImageDtype("uint8")."""

    dtype = "u8"


class ConvertImageDtype(Transform):
    """The dtype of the batches: uint8, float16 or float32."""

    def __init__(self, dtype: Any) -> None:
        super().__init__()
        self.dtype = dtype_name(dtype)
        self.params = {"dtype": self.dtype}
        if self.dtype not in ("u8", "f16", "f32"):
            raise wrong("ConvertImageDtype: dtype", "uint8, float16 or float32", dtype)


MARKERS = (ToTensor, PILToTensor, ConvertImageDtype)


def split(transforms: Any) -> Tuple[str, Optional[str], List[Any]]:
    """A list as the user wrote it: (chain as text, dtype that its markers ask for, callables at its end)."""
    if isinstance(transforms, str):
        return _foreload.check_chain(text("transform", transforms)), None, []
    if isinstance(transforms, Transform) or callable(transforms) and not isinstance(transforms, (list, tuple)):
        transforms = [transforms]
    if not isinstance(transforms, (list, tuple)):
        raise wrong("transform", "a list of transforms", transforms)
    texts: List[str] = []
    callables: List[Any] = []
    dtype = None
    for item in transforms:
        if isinstance(item, Transform):
            if callables:
                raise ConfigError(f"transform: {item!r} stands after the Python callable {shown(callables[-1])}; callables come last")
            dtype = item.dtype if isinstance(item, MARKERS) else dtype
            texts += [item.text] if item.text else []
        elif callable(item):
            callables.append(item)
        else:
            raise wrong("transform", "a list of foreload's transforms and callables; one item of it is neither", item)
    return ", ".join(texts), dtype, callables
