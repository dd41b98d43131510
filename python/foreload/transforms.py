"""Transforms, named and parameterised like torchvision's. They run in C++, keyed by (seed, epoch, position).

A transform is a value: it is checked when it is made, and has a text form (`str(t)`) which is the one of
`foreload run --chain`. What torchvision accepts and foreload does not is refused with a ConfigError.
"""
from __future__ import annotations

from typing import Any, List, Optional, Sequence, Tuple, Union

from . import _foreload
from .errors import ConfigError

Numbers = Union[float, Sequence[float]]

DTYPES = {"uint8": "u8", "int16": "i16", "uint16": "u16", "int32": "i32", "uint32": "u32", "int64": "i64",
          "float16": "f16", "half": "f16", "float32": "f32", "float": "f32", "float64": "f64", "double": "f64"}
INTERPOLATIONS = {"nearest": "nearest", "bilinear": "bilinear", 0: "nearest", 2: "bilinear"}


def dtype_name(given: Any) -> str:
    """'f32' from 'f32', 'float32', numpy.float32, numpy.dtype or torch.float32."""
    name = given if isinstance(given, str) else getattr(given, "__name__", None) or str(given)
    name = name.rsplit(".", 1)[-1]
    return DTYPES.get(name, name)


def _text(name: str, value: Any, transform: str) -> str:
    """A parameter in the text form: 224, 0.08:1, 5:, f32."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, (int, float)):
        return repr(value)
    try:
        numbers = [repr(float(item)) if not float(item).is_integer() else repr(int(item)) for item in value]
    except (TypeError, ValueError):
        raise ConfigError(f"{transform}: {name} should be a number or a sequence of numbers, got {value!r}") from None
    return ":".join(numbers) if len(numbers) > 1 else ":".join([*numbers, ""])


class Transform:
    """The base of all of them. `params` are those of the C++ op; None and defaults are left out."""

    op = ""

    def __init__(self, **params: Any) -> None:
        parts = [f"{name}={_text(name, value, type(self).__name__)}" for name, value in params.items() if value is not None]
        self.text = _foreload.check_chain(f"{self.op}({', '.join(parts)})") if self.op else ""
        self.params = {name: value for name, value in params.items() if value is not None}

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
        raise ConfigError(f"{owner}: interpolation should be {' or '.join(accepted)}, got {given!r}")
    return name


def _refuse(owner: str, **unsupported: Any) -> None:
    for name, (value, default) in unsupported.items():
        if value != default:
            raise ConfigError(f"{owner}: {name}={value!r} is not supported; only {name}={default!r}")


class RandomResizedCrop(Transform):
    op = "random_resized_crop"

    def __init__(self, size: Numbers, scale: Sequence[float] = (0.08, 1.0), ratio: Sequence[float] = (3 / 4, 4 / 3),
                 interpolation: Any = "bilinear", antialias: Any = True) -> None:
        _interpolation("RandomResizedCrop", interpolation, ("bilinear",))
        params = {"size": _size(size), "scale": scale, "ratio": ratio}
        if tuple(scale) == (0.08, 1.0):
            del params["scale"]
        if tuple(ratio) == (3 / 4, 4 / 3):
            del params["ratio"]
        super().__init__(**params)


class Resize(Transform):
    op = "resize"

    def __init__(self, size: Numbers, interpolation: Any = "bilinear", max_size: Optional[int] = None,
                 antialias: Any = True) -> None:
        _interpolation("Resize", interpolation, ("bilinear",))
        _refuse("Resize", max_size=(max_size, None))
        super().__init__(size=_size(size))


class CenterCrop(Transform):
    op = "center_crop"

    def __init__(self, size: Numbers) -> None:
        super().__init__(size=_size(size))


class RandomCrop(Transform):
    op = "random_crop"

    def __init__(self, size: Numbers, padding: Optional[Numbers] = None, pad_if_needed: bool = False, fill: Numbers = 0,
                 padding_mode: str = "constant") -> None:
        super().__init__(size=_size(size), padding=padding, pad_if_needed=pad_if_needed or None, fill=fill or None,
                         padding_mode=padding_mode)


class Pad(Transform):
    op = "pad"

    def __init__(self, padding: Numbers, fill: Numbers = 0, padding_mode: str = "constant") -> None:
        super().__init__(padding=padding, fill=fill or None, padding_mode=padding_mode)


class RandomHorizontalFlip(Transform):
    op = "random_flip"

    def __init__(self, p: float = 0.5) -> None:
        super().__init__(p=None if p == 0.5 else p)


class RandomVerticalFlip(Transform):
    op = "random_vertical_flip"

    def __init__(self, p: float = 0.5) -> None:
        super().__init__(p=p)


class RandomRotation(Transform):
    op = "random_rotation"

    def __init__(self, degrees: Numbers, interpolation: Any = "nearest", expand: bool = False, center: Any = None,
                 fill: Numbers = 0) -> None:
        _refuse("RandomRotation", expand=(expand, False), center=(center, None))
        super().__init__(degrees=degrees, fill=fill or None,
                         interpolation=_interpolation("RandomRotation", interpolation, ("nearest", "bilinear")))


class RandomAffine(Transform):
    op = "random_affine"

    def __init__(self, degrees: Numbers, translate: Optional[Sequence[float]] = None,
                 scale: Optional[Sequence[float]] = None, shear: Optional[Numbers] = None,
                 interpolation: Any = "nearest", fill: Numbers = 0, center: Any = None) -> None:
        _refuse("RandomAffine", center=(center, None))
        super().__init__(degrees=degrees, translate=translate, scale=scale, shear=shear, fill=fill or None,
                         interpolation=_interpolation("RandomAffine", interpolation, ("nearest", "bilinear")))


class ColorJitter(Transform):
    op = "color_jitter"

    def __init__(self, brightness: Optional[Numbers] = 0, contrast: Optional[Numbers] = 0,
                 saturation: Optional[Numbers] = 0, hue: Optional[Numbers] = 0) -> None:
        given = {"brightness": brightness, "contrast": contrast, "saturation": saturation, "hue": hue}
        super().__init__(**{name: value for name, value in given.items() if value != 0})


class Grayscale(Transform):
    """Pictures keep three equal channels: num_output_channels=3 only."""

    op = "grayscale"

    def __init__(self, num_output_channels: int = 1) -> None:
        super().__init__(num_output_channels=num_output_channels)


class RandomGrayscale(Transform):
    op = "random_grayscale"

    def __init__(self, p: float = 0.1) -> None:
        super().__init__(p=p)


class GaussianBlur(Transform):
    op = "gaussian_blur"

    def __init__(self, kernel_size: Numbers, sigma: Numbers = (0.1, 2.0)) -> None:
        super().__init__(kernel_size=kernel_size, sigma=sigma)


class TrivialAugmentWide(Transform):
    op = "trivial_augment_wide"

    def __init__(self, num_magnitude_bins: int = 31, interpolation: Any = "nearest", fill: Optional[Numbers] = None) -> None:
        super().__init__(num_magnitude_bins=num_magnitude_bins, fill=fill,
                         interpolation=_interpolation("TrivialAugmentWide", interpolation, ("nearest", "bilinear")))


class RandAugment(Transform):
    op = "rand_augment"

    def __init__(self, num_ops: int = 2, magnitude: int = 9, num_magnitude_bins: int = 31, interpolation: Any = "nearest",
                 fill: Optional[Numbers] = None) -> None:
        super().__init__(num_ops=num_ops, magnitude=magnitude, num_magnitude_bins=num_magnitude_bins, fill=fill,
                         interpolation=_interpolation("RandAugment", interpolation, ("nearest", "bilinear")))


class RandomErasing(Transform):
    op = "random_erasing"

    def __init__(self, p: float = 0.5, scale: Sequence[float] = (0.02, 0.33), ratio: Sequence[float] = (0.3, 3.3),
                 value: Numbers = 0, inplace: bool = False) -> None:
        if isinstance(value, str):
            raise ConfigError(f"RandomErasing: value={value!r} is not supported; a number or three of them")
        super().__init__(p=p, scale=scale, ratio=ratio, value=value or None)


class Normalize(Transform):
    op = "normalize"

    def __init__(self, mean: Sequence[float], std: Sequence[float], inplace: bool = False) -> None:
        super().__init__(mean=mean, std=std)


class MixUp(Transform):
    """Last of a chain: mixes the samples of positions 2i and 2i+1. The batch has other labels and shares as well."""

    op = "mixup"

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__(alpha=alpha)


class CutMix(Transform):
    """As MixUp, with a rectangle of the other picture."""

    op = "cutmix"

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__(alpha=alpha)


class Array(Transform):
    """Samples that are arrays: .npy files, or headerless bytes."""

    op = "array"

    def __init__(self, dtype: Any, shape: Union[int, Sequence[int]], headerless: bool = False) -> None:
        shape = shape if isinstance(shape, (list, tuple)) else (shape,)
        super().__init__(dtype=dtype_name(dtype), shape=shape, headerless=headerless or None)


class RandomWindow(Transform):
    """After Array: a window of its last dimensions, anywhere."""

    op = "random_window"

    def __init__(self, size: Union[int, Sequence[int]]) -> None:
        super().__init__(size=size if isinstance(size, (list, tuple)) else (size,))


class CenterWindow(Transform):
    """After Array: a window of its last dimensions, in the middle."""

    op = "center_window"

    def __init__(self, size: Union[int, Sequence[int]]) -> None:
        super().__init__(size=size if isinstance(size, (list, tuple)) else (size,))


class Ragged(Transform):
    """One-dimensional arrays of varying length, delivered as values and offsets."""

    op = "ragged"

    def __init__(self, dtype: Any, max_length: int, headerless: bool = False, truncate: bool = False) -> None:
        super().__init__(dtype=dtype_name(dtype), max_length=max_length, headerless=headerless or None,
                         truncate=truncate or None)


class ToTensor(Transform):
    """float32 in [0, 1], NCHW: what foreload delivers anyway. Here so that a list can be moved over as it is."""

    dtype = "f32"


class PILToTensor(Transform):
    """uint8, not scaled."""

    dtype = "u8"


class ConvertImageDtype(Transform):
    """The dtype of the batches: uint8, float16 or float32."""

    def __init__(self, dtype: Any) -> None:
        super().__init__()
        self.dtype = dtype_name(dtype)
        self.params = {"dtype": self.dtype}
        if self.dtype not in ("u8", "f16", "f32"):
            raise ConfigError(f"ConvertImageDtype: dtype should be uint8, float16 or float32, got {dtype!r}")


MARKERS = (ToTensor, PILToTensor, ConvertImageDtype)


def split(transforms: Any) -> Tuple[str, Optional[str], List[Any]]:
    """A list as the user wrote it: (chain as text, dtype that its markers ask for, callables at its end)."""
    if isinstance(transforms, str):
        return _foreload.check_chain(transforms), None, []
    if isinstance(transforms, Transform) or callable(transforms) and not isinstance(transforms, (list, tuple)):
        transforms = [transforms]
    if not isinstance(transforms, (list, tuple)):
        raise ConfigError(f"transform should be a list of transforms, got {transforms!r} of type {type(transforms).__name__}")
    texts: List[str] = []
    callables: List[Any] = []
    dtype = None
    for item in transforms:
        if isinstance(item, Transform):
            if callables:
                raise ConfigError(f"transform: {item!r} stands after the Python callable {callables[-1]!r}; callables come last")
            dtype = item.dtype if isinstance(item, MARKERS) else dtype
            texts += [item.text] if item.text else []
        elif callable(item):
            callables.append(item)
        else:
            raise ConfigError(f"transform: {item!r} of type {type(item).__name__} is neither a foreload transform nor callable")
    return ", ".join(texts), dtype, callables
