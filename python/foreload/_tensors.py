"""From the arrays of a batch to tensors: torch's through DLPack, numpy's through the buffer protocol. No copies."""
from __future__ import annotations

import importlib.util
from typing import Any, Callable, Iterable, List

from .errors import ConfigError

# What torch can not hold before 2.3 goes over as the next wider type, which is a copy.
WIDER = {"uint16": "int32", "uint32": "int64"}


def resolve(output: str) -> str:
    if output == "auto":
        output = "torch" if importlib.util.find_spec("torch") else "numpy"
    if importlib.util.find_spec(output) is None:
        raise ConfigError(f"output={output!r} needs the package {output}, which is not installed")
    return output


def _to_numpy() -> Callable[[Any], Any]:
    import numpy

    return numpy.asarray


def _to_torch() -> Callable[[Any], Any]:
    import torch
    from torch.utils.dlpack import from_dlpack

    def convert(array: Any) -> Any:
        if array.dtype in WIDER and not hasattr(torch, array.dtype):
            import numpy

            return torch.from_numpy(numpy.asarray(array).astype(WIDER[array.dtype]))
        if 0 in array.shape:  # its address may be null, which torch does not like
            import numpy

            return torch.from_numpy(numpy.zeros(array.shape, array.dtype))
        return from_dlpack(array.__dlpack__())

    return convert


def dlpack_reader() -> Callable[[Any], Any]:
    from torch.utils.dlpack import from_dlpack

    return from_dlpack


def converter(output: str) -> Callable[[Any], Any]:
    """array -> tensor. Imports torch or numpy: called when the first batch is needed, not before."""
    return _to_torch() if output == "torch" else _to_numpy()


def tensor(output: str, value: Any) -> Any:
    """Numbers of any kind; raises for what is none."""
    if output == "torch":
        import torch

        return torch.as_tensor(value)
    import numpy

    array = numpy.asarray(value)
    if array.dtype.hasobject:
        raise TypeError(f"numpy has no numbers for {type(value).__name__}")
    return array


def stack(output: str, samples: List[Any]) -> Any:
    """Samples of one shape as one tensor."""
    if output == "torch":
        import torch as package
    else:
        import numpy as package
    if not samples:
        return tensor(output, package.zeros(0, dtype=package.int64))
    return package.stack([tensor(output, sample) for sample in samples])


def collated(samples: List[Any]) -> Any:
    """As torch's own loader does it."""
    from torch.utils.data import default_collate

    return default_collate(samples)


def emptied(item: Any) -> Any:
    """A batch without its samples: tensors keep their other dimensions."""
    if isinstance(item, dict):
        return {name: emptied(part) for name, part in item.items()}
    if isinstance(item, (tuple, list)) and item and not isinstance(item[0], (str, bytes)):
        return like(item, map(emptied, item))
    return item[:0]


def like(item: Any, parts: Iterable[Any]) -> Any:
    """A tuple, list or namedtuple of other parts."""
    return type(item)(*parts) if hasattr(item, "_fields") else type(item)(parts)


def has_device() -> bool:
    import torch

    return bool(torch.cuda.is_available())


def pinned(item: Any) -> Any:
    """The tensors of a batch in page-locked memory, if there is a CUDA device."""
    import torch

    if not has_device():
        return item
    if isinstance(item, torch.Tensor):
        return item.pin_memory()
    if isinstance(item, dict):
        return {name: pinned(part) for name, part in item.items()}
    return like(item, map(pinned, item)) if isinstance(item, (tuple, list)) else item


def shape_of(value: Any) -> Any:
    return tuple(value.shape) if hasattr(value, "shape") else ()
