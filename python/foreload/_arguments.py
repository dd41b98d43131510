"""Checks of arguments. A wrong one is a ConfigError that names the argument and what was given."""
from __future__ import annotations

import os
import warnings
from typing import Any, Iterable, List, Optional, Union

from . import _foreload
from .errors import ConfigError, ForeloadWarning

MOST = (1 << 63) - 1


def wrong(name: str, wanted: str, given: Any) -> ConfigError:
    text = repr(given)
    return ConfigError(f"{name} should be {wanted}, got {text if len(text) < 100 else text[:97] + '...'} "
                       f"of type {type(given).__name__}")


def whole(name: str, given: Any, least: int = 0, most: int = MOST) -> int:
    """A whole number of any kind that can be an index; no bool, no float."""
    if isinstance(given, bool) or not hasattr(given, "__index__"):
        raise wrong(name, f"a whole number of at least {least}", given)
    number = given.__index__()
    if not least <= number <= most:
        raise wrong(name, f"a whole number of at least {least}" if number < least else f"at most {most}", given)
    return number


def flag(name: str, given: Any) -> bool:
    # numpy's bool is no bool
    if isinstance(given, bool) or type(given).__name__ in ("bool_", "bool"):
        return bool(given)
    raise wrong(name, "True or False", given)


def word(name: str, given: Any, choices: Iterable[str]) -> str:
    choices = list(choices)
    if not isinstance(given, str) or given not in choices:
        raise wrong(name, "one of " + ", ".join(map(repr, choices)), given)
    return given


def memory(name: str, given: Union[None, int, str]) -> Optional[int]:
    """Bytes: a number, or text such as "8GiB"."""
    if given is None:
        return None
    if isinstance(given, str):
        try:
            count = _foreload.parse_bytes(given)
        except ConfigError as error:
            raise ConfigError(f"{name}: {error}") from None
        if count == 0:
            raise wrong(name, "more than nothing, such as '8GiB'", given)
        return int(count)
    return whole(name, given, 1)


def datasets(given: Any) -> Optional[List[str]]:
    """Paths of a dataset on disk; None when it is something else."""
    if isinstance(given, (str, os.PathLike)):
        given = [given]
    if isinstance(given, (bytes, bytearray, memoryview, dict)):
        raise wrong("dataset", "a path (str or os.PathLike), a list of paths or a map-style dataset", given)
    if not isinstance(given, (list, tuple)):
        return None
    named = sum(isinstance(item, (str, os.PathLike)) for item in given)
    if 0 < named < len(given):
        raise wrong("dataset", f"a list of paths; only {named} of its {len(given)} items are str or os.PathLike", given)
    if named == 0 and given:
        return None
    paths = [os.fspath(item) for item in given]
    if not paths or any(not isinstance(path, str) or not path for path in paths):
        raise wrong("dataset", "at least one path", given)
    return paths


_warned = set()
MOST_WARNINGS = 1000


def warn_once(text: str, depth: int = 3) -> None:
    """One warning per text and process, and no more than a thousand of them."""
    if text not in _warned and len(_warned) < MOST_WARNINGS:
        _warned.add(text)
        warnings.warn(text, ForeloadWarning, stacklevel=depth)
