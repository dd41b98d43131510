"""What foreload raises. Every class is a ForeloadError; where Python has a matching class of its own, it is that as well."""
from __future__ import annotations

from typing import Dict, Type


class ForeloadError(Exception):
    """The base of all of them."""


class ConfigError(ForeloadError, ValueError):
    """Arguments that can not work: the message names the argument and what was given."""


class DatasetNotFound(ForeloadError, FileNotFoundError):
    """A path, dataset or key that does not exist."""


class DataChanged(ForeloadError):
    """A file differs from what the index recorded."""


class SampleError(ForeloadError):
    """A sample that can not be decoded, breaks a limit, or came out of a callable in another shape than the others."""


class ReadError(ForeloadError, OSError):
    """Reading failed after all retries."""


class OutOfMemory(ForeloadError, MemoryError):
    """The memory budget or the machine can not hold what was asked."""


class StateMismatch(ForeloadError, ValueError):
    """A saved state belongs to another dataset, seed or plan."""


class LoaderClosed(ForeloadError, RuntimeError):
    """The loader was closed, or belongs to the parent of this forked process."""


class StaleIterator(ForeloadError, RuntimeError):
    """An iterator of a loader that has begun another one, or was moved by load_state_dict, since."""


class ForeloadWarning(UserWarning):
    """Something is accepted but will not do what it does elsewhere."""


# By the name of the C++ code (include/foreload/result.h).
BY_CODE: Dict[str, Type[ForeloadError]] = {
    "Invalid": ConfigError,
    "NotFound": DatasetNotFound,
    "DataChanged": DataChanged,
    "BadSample": SampleError,
    "Io": ReadError,
    "NoMemory": OutOfMemory,
    "Mismatch": StateMismatch,
    "Cancelled": LoaderClosed,
}
