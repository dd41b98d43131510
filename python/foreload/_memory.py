"""One memory budget per process, shared by its loaders.

The budget is half of what is free when the first loader opens, divided by the learners of this machine, or what
set_memory_budget() or FORELOAD_MEMORY says. A loader with `memory=` takes that much of it; one without takes three
quarters of what is left then, so open the largest one first. A closed loader gives its part back. A budget that was
set is never exceeded; the one found here yields to a `memory=` that is larger. Loaders of one host share one part;
where nobody said how much, it is the host's own affair and takes nothing of what was found.
"""
from __future__ import annotations

import os
import threading
import weakref
from typing import Any, Optional

from . import _arguments, _foreload
from .errors import OutOfMemory

LEAST = 32 << 20

_lock = threading.RLock()  # a loader that the collector ends gives back in the middle of anything
_total: Optional[int] = None
_was_set = False  # by a person
_taken: "weakref.WeakSet[Part]" = weakref.WeakSet()  # a loader that never came to be has none


def _start_anew() -> None:
    """In a forked child: its parent's loaders are not its own, and a thread that is gone may have held the lock."""
    global _lock, _taken
    _lock, _taken = threading.RLock(), weakref.WeakSet()


os.register_at_fork(after_in_child=_start_anew)


def set_memory_budget(memory: Any) -> None:
    """What all loaders of this process may use together: bytes, or text such as "32GiB"; None: half of what is free.

    Counts for loaders that are opened from now on. One that would exceed it is refused with OutOfMemory.
    """
    global _total, _was_set
    total = _arguments.memory("memory", memory)
    with _lock:
        _total, _was_set = total, total is not None


def _budget(learners: int) -> int:
    global _total, _was_set
    if _total is None:
        asked = os.environ.get("FORELOAD_MEMORY")
        total = _arguments.memory("FORELOAD_MEMORY", asked) if asked else None
        _was_set = total is not None
        _total = total or _foreload.available_memory() // 2 // learners
    return _total


def _sum() -> int:
    hosts = {part.host: part.bytes for part in _taken if part.host}
    return sum(hosts.values()) + sum(part.bytes for part in _taken if not part.host)


def take(asked: Optional[int], learners: int, host: str = "") -> "Part":
    """The part of a new loader, the same for all of one host. Give it back when the loader is closed."""
    part = Part(host)
    with _lock:
        budget = _budget(learners)
        same = next((other for other in _taken if host and other.host == host), None)
        if same is not None:
            part.bytes = same.bytes
        elif asked is not None or _was_set or not host:
            part.bytes = _checked(asked, budget, _sum())
        _taken.add(part)
    return part


def _checked(asked: Optional[int], budget: int, taken: int) -> int:
    rest = budget - taken
    if rest < LEAST if asked is None else _was_set and rest < asked:
        wanted = "" if asked is None else f", and this one asks for {_foreload.format_bytes(asked)}"
        raise OutOfMemory(f"the loaders of this process have taken {_foreload.format_bytes(taken)} of its memory budget of "
                          f"{_foreload.format_bytes(budget)}{wanted}: close one, pass a smaller memory= to each, or raise the "
                          "budget with foreload.set_memory_budget")
    return rest * 3 // 4 if asked is None else asked


class Part:
    """What one loader, or all of one host, have of the budget. Of a host 0 bytes: as much as it has."""

    bytes = 0

    def __init__(self, host: str) -> None:
        self.host = host

    def give_back(self) -> None:
        with _lock:
            _taken.discard(self)
