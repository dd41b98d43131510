"""Checks of arguments. A wrong one is a ConfigError that names the argument and what was given."""
from __future__ import annotations

import operator
import os
import sys
import warnings
from typing import Any, Iterable, List, Optional, Union

from . import _foreload
from .errors import ConfigError, ForeloadWarning

MOST = (1 << 63) - 1


def shown(given: Any) -> str:
    """Short and in one line, whatever it is."""
    try:
        text = " ".join(repr(given).split())
    except Exception:
        text = object.__repr__(given)
    return text if len(text) < 100 else text[:97] + "..."


def wrong(name: str, wanted: str, given: Any) -> ConfigError:
    return ConfigError(f"{name} should be {wanted}, got {shown(given)} of type {type(given).__name__}")


def whole(name: str, given: Any, least: int = 0, most: int = MOST) -> int:
    """A whole number of any kind that can be an index; no bool, no float."""
    try:
        number = -1 if isinstance(given, bool) else operator.index(given)
    except Exception:
        number = -1
    if number < least:
        raise wrong(name, f"a whole number of at least {least}", given)
    if number > most:
        raise wrong(name, f"at most {most}", given)
    return number


def share(name: str, given: Any) -> float:
    """A number from 0 to 1."""
    try:
        number = -1.0 if isinstance(given, (bool, str, bytes)) else float(given)
    except Exception:
        number = -1.0
    if not 0 <= number <= 1:
        raise wrong(name, "a number from 0 to 1", given)
    return number


def same(given: Any, value: Any) -> bool:
    """Whether it is that plain value; arrays and the like are not asked."""
    return given is value or isinstance(given, (int, float, str)) and given == value


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


def text(name: str, given: Any, wanted: str = "a string") -> bytes:
    """Words and paths as the library takes them: the bytes of the file system, which need not be UTF-8."""
    try:
        encoded = os.fsencode(given) if isinstance(given, (str, os.PathLike)) else b"\0"
    except (TypeError, UnicodeError):
        encoded = b"\0"
    if b"\0" in encoded:
        raise wrong(name, wanted, given)
    return encoded


def memory(name: str, given: Union[None, int, str]) -> Optional[int]:
    """Bytes: a number, or text such as "8GiB"."""
    if given is None:
        return None
    if isinstance(given, str):
        try:
            count = _foreload.parse_bytes(text(name, given))
        except ConfigError as error:
            raise ConfigError(f"{name}: {error}") from None
        if count == 0:
            raise wrong(name, "more than nothing, such as '8GiB'", given)
        return int(count)
    return whole(name, given, 1)


def datasets(given: Any) -> Optional[List[bytes]]:
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
    paths = [text("dataset", item, "a path") for item in given]
    if not all(paths) or not paths:
        raise wrong("dataset", "at least one path", given)
    return paths


_warned = set()
MOST_WARNINGS = 1000


def warn_once(text: str) -> None:
    """One warning per text and process, and no more than a thousand of them; it points to the line that called foreload."""
    if text in _warned or len(_warned) >= MOST_WARNINGS:
        return
    _warned.add(text)
    depth, frame = 2, sys._getframe(1)
    while frame.f_back is not None and os.path.dirname(frame.f_code.co_filename) == os.path.dirname(__file__):
        depth, frame = depth + 1, frame.f_back
    warnings.warn(text, ForeloadWarning, stacklevel=depth)
