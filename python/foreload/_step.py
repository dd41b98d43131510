"""measure_step: what a training step takes when data never has to be waited for."""
from __future__ import annotations

import statistics
import sys
import time
from math import comb
from typing import Any, Callable, List, Sequence, Tuple

from .errors import ConfigError

WARM_UP_STEPS = 3
WINDOWS = 15
LEAST_WINDOWS = 5


class StepRate(float):
    """Samples per second: the median of repeated windows. `low` and `high` enclose it with 95 % confidence."""

    low: float
    high: float
    windows: int

    def __new__(cls, rates: Sequence[float]) -> "StepRate":
        made = super().__new__(cls, statistics.median(rates))
        ordered = sorted(rates)
        at = _interval(len(ordered))
        made.low, made.high, made.windows = ordered[at], ordered[-1 - at], len(ordered)
        return made


def _interval(count: int) -> int:
    """Between which of `count` sorted values the median lies with 95 % confidence: from this one to the same from the end."""
    at, outside = 0, 0.0
    while at < (count - 1) // 2:
        outside += 2 * comb(count, at) / 2 ** count
        if outside > 0.05:
            break
        at += 1
    return max(at - 1, 0)


def _leaves(batch: Any) -> List[Any]:
    if isinstance(batch, dict):
        return [leaf for value in batch.values() for leaf in _leaves(value)]
    if isinstance(batch, (list, tuple)):
        return [leaf for value in batch for leaf in _leaves(value)]
    return [batch]


def _size(batch: Any) -> int:
    for leaf in _leaves(batch):
        shape = getattr(leaf, "shape", None)
        if shape is not None and len(shape) > 0:
            if int(shape[0]) == 0:
                break
            return int(shape[0])
    raise ConfigError(f"batch has no samples: measure_step needs a batch as a loader gives it, a tensor or a tuple, list or dict "
                      f"of tensors whose first dimension counts samples, got {type(batch).__name__}")


def _wait_for_device() -> None:
    """A step on a GPU is over when the GPU says so. Nothing happens where none is used."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.synchronize()


def _timed(step: Callable[[], Any], least: float) -> Tuple[int, float]:
    """Steps until `least` seconds have passed, and how long they took."""
    _wait_for_device()
    begin = time.perf_counter()
    steps = 0
    while True:
        step()
        steps += 1
        if time.perf_counter() - begin >= least:
            _wait_for_device()
            return steps, time.perf_counter() - begin


def measure_step(fn: Callable[..., Any], batch: Any, *, seconds: float = 3.0) -> StepRate:
    """Samples per second that a training step takes, with data that is there already: for `foreload analyze --accelerator`.

    fn is the step, as in the training loop: forward, backward, optimiser. It is called with the one batch again and again,
    for about `seconds`: `fn(*batch)` for a tuple or list, `fn(batch)` for anything else. It does train: give it a copy of the
    model if that matters. The first steps do not count; work on a GPU is waited for.
    """
    if not callable(fn):
        raise ConfigError(f"fn must be callable, a function of a batch that does one training step, got {type(fn).__name__}")
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 < seconds <= 3600:
        raise ConfigError(f"seconds must be a number from 0 to 3600, got {seconds!r}")
    size = _size(batch)
    step = (lambda: fn(*batch)) if isinstance(batch, (list, tuple)) else (lambda: fn(batch))
    for _ in range(WARM_UP_STEPS):
        step()
    _timed(step, seconds / 10)
    rates: List[float] = []
    end = time.perf_counter() + seconds
    while len(rates) < LEAST_WINDOWS or (len(rates) < WINDOWS and time.perf_counter() < end):
        steps, took = _timed(step, seconds / WINDOWS)
        rates.append(steps * size / took)
    return StepRate(rates)
