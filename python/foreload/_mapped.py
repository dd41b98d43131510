"""A map-style dataset behind the same interface as the C++ loader: order, assignment, resume and error policy are
foreload's own, the samples are made by dataset[i] in the consuming thread, one after the other.

A dataset that offers read_bytes(i) and decode(bytes) has its bytes cached, up to the memory budget; never evicted, as every
sample is needed once per epoch.
"""
from __future__ import annotations

import json
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

from . import _foreload, _tensors
from .errors import ConfigError, LoaderClosed, SampleError

MOST_REPLACEMENTS = 1000
MOST_TRIES = 100
ORDER = ("seed", "shuffle", "weights", "epoch_samples", "echo", "echo_window", "reshuffle", "homes", "world", "last_batch")


class MappedBatch:
    """What the loader makes a batch of: the samples as the dataset made them."""

    empty = False  # its only sample is an example, so that a batch of none has the dtypes and shapes of the others

    def __init__(self, samples: List[Any], ids: List[int], positions: List[int], epoch: int, step: int) -> None:
        self.samples, self.ids, self.positions, self.epoch, self.step = samples, ids, positions, epoch, step

    def __len__(self) -> int:
        return len(self.ids)


class MappedLoader:
    held = copied = 0
    has_warnings = False

    def __init__(self, dataset: Any, options: Dict[str, Any]) -> None:
        self._dataset = dataset
        self._samples = length_of(dataset)
        self._rank, self._seed = options["rank"], options["seed"]
        self._batch = options["global_batch"] or options["batch"] * options["world"]
        order = {name: options[name] for name in ORDER if name in options}
        self._plan = _foreload.Plan({**order, "samples": self._samples, "global_batch": self._batch})
        self._replace = options["on_error"] == "replace"
        self._most_replacements = options.get("max_replacements", MOST_REPLACEMENTS)
        self._epochs_ahead = options.get("epochs", 0)
        self._budget = options["memory"] if options.get("cache", True) else 0
        self._budget -= min(self._budget, 8 * len(options.get("weights", ())))
        self._cache: Dict[int, bytes] = {}
        self._cached = 0
        self._cacheable = callable(getattr(dataset, "read_bytes", None)) and callable(getattr(dataset, "decode", None))
        self._fingerprint = fingerprint_of(dataset, self._samples)
        self._quarantine: List[Dict[str, Any]] = []
        self._stats: List[Dict[str, Any]] = []
        self._epoch = self._step = 0
        self._running: Optional[Dict[str, Any]] = None
        self.closed = False
        self.batches_per_epoch = self._plan.batches_per_epoch

    # --- batches

    def next(self) -> Optional[MappedBatch]:
        self._check_open()
        if self._epochs_ahead and self._epoch >= self._epochs_ahead:
            return None
        account = self._account()
        if self._step == self.batches_per_epoch:
            self._epoch, self._step, self._running = self._epoch + 1, 0, None
            return None
        begun = time.monotonic()
        first, count = self._plan.share(self._step, self._rank)
        pairs = [self._sample(position) for position in range(first, first + count)]
        batch = MappedBatch([sample for sample, _ in pairs], [id for _, id in pairs], list(range(first, first + count)),
                            self._epoch, self._step)
        if count == 0:
            batch.samples, batch.empty = [self._sample(0)[0]], True
        account["samples"] += count
        account["batches"] += 1
        account["padded"] += [id for id, position in zip(batch.ids, batch.positions) if position >= self._plan.samples_per_epoch]
        account["busy"] += time.monotonic() - begun
        account["end"] = time.monotonic()
        self._step += 1
        return batch

    def _account(self) -> Dict[str, Any]:
        if self._running is None:
            now = time.monotonic()
            self._running = {"epoch": self._epoch, "samples": 0, "batches": 0, "begin": now, "end": now, "busy": 0.0,
                             "memory": 0, "source": 0, "replaced": 0, "padded": []}
            self._stats = [*self._stats[-1023:], self._running]
        return self._running

    def _sample(self, position: int) -> Tuple[Any, int]:
        id = self._plan.sample_at(self._epoch, position)
        for k in range(1, MOST_TRIES):
            try:
                return self._load(id), id
            except Exception as error:
                self._judge(error, id, position)
            id = self._plan.substitute(self._epoch, position, k)
        raise SampleError(f"no substitute for position {position} of epoch {self._epoch} could be loaded in {MOST_TRIES} tries")

    def _judge(self, error: Exception, id: int, position: int) -> None:
        """Raises, or lists the sample as replaced."""
        text = f"sample {id} of {describe(self._dataset)}, position {position} of epoch {self._epoch}"
        if not self._replace:
            if hasattr(error, "add_note"):
                error.add_note(f"foreload: this was {text}")
            raise error
        self._quarantine.append({"epoch": self._epoch, "position": position, "id": id, "key": str(id),
                                 "reason": f"{type(error).__name__}: {error}"})
        self._account()["replaced"] += 1
        if len(self._quarantine) > self._most_replacements:
            raise SampleError(f"{len(self._quarantine)} samples had to be replaced, more than {self._most_replacements}; the "
                              f"last was {text}") from error

    def _load(self, id: int) -> Any:
        if not self._cacheable:
            return self._dataset[id]
        data = self._cache.get(id)
        if data is None:
            data = self._dataset.read_bytes(id)
            if not isinstance(data, (bytes, bytearray, memoryview)):
                raise SampleError(f"sample {id}: read_bytes of {describe(self._dataset)} returned {type(data).__name__}, no bytes")
            self._account()["source"] += len(data)
            if self._cached + len(data) <= self._budget:
                self._cache[id] = data
                self._cached += len(data)
        else:
            self._account()["memory"] += len(data)
        return self._dataset.decode(data)

    # --- position

    @property
    def place(self) -> Tuple[int, int]:
        return self._epoch, min(self._step * self._batch, self._plan.positions_per_epoch)

    def position(self) -> str:
        self._check_open()
        epoch, position = self.place
        return json.dumps({"version": 1, "fingerprint": self._fingerprint, "seed": f"{self._seed:016x}", "epoch": epoch,
                           "position": position, "plan": self._plan.hash})

    def seek(self, text: str) -> None:
        self._plan.check_state(text, self.position())
        saved = json.loads(_foreload.normal_state(text))
        place, behind = saved["position"], place_behind(saved["position"], self._batch)
        at_end = place >= self._plan.positions_per_epoch or behind
        self._epoch, self._step = saved["epoch"], self.batches_per_epoch if at_end else place // self._batch
        self._running = None

    def seek_epoch(self, epoch: int) -> None:
        self._check_open()
        self._epoch, self._step, self._running = epoch, 0, None

    def positions(self, epoch: int, step: int) -> List[int]:
        first, count = self._plan.share(step, self._rank)
        return list(range(first, first + count))

    # --- reports

    def stats(self) -> Dict[str, Any]:
        self._check_open()
        return {"epochs": [self._epoch_stats(account) for account in self._stats], "quarantine": list(self._quarantine),
                "memory_budget_bytes": self._budget, "cache": {"capacity_bytes": self._budget if self._cacheable else 0,
                                                               "used_bytes": self._cached, "rewritten": 0},
                "disk": {"capacity_bytes": 0, "used_bytes": 0, "damaged": 0},
                "requests": {"sent": 0, "retries": 0, "hedges": 0, "throttled": 0, "bytes": 0},
                "hosts": 1, "ring_slots": 0, "threads": 0, "io": "python", "held_batches": 0, "copied_batches": 0}

    @staticmethod
    def _epoch_stats(account: Dict[str, Any]) -> Dict[str, Any]:
        seconds = account["end"] - account["begin"]
        prep = account["busy"] / seconds if seconds > 0 else 0.0
        return {"epoch": account["epoch"], "samples": account["samples"], "batches": account["batches"], "seconds": seconds,
                "samples_per_s": account["samples"] / seconds if seconds > 0 else 0.0,
                "bytes": {"memory": account["memory"], "disk": 0, "peer": 0, "source": account["source"]},
                "filled_bytes": 0, "shared_batches": 0,
                "stall": {"total": prep, "fetch": 0.0, "prep": prep}, "prep_seconds": account["busy"],
                "replaced": account["replaced"], "damaged": 0, "padded": list(account["padded"])}

    def describe(self) -> Dict[str, Any]:
        return {"uri": describe(self._dataset), "samples": self._samples, "bytes": 0, "fingerprint": self._fingerprint,
                "classes": list(getattr(self._dataset, "classes", [])), "dtype": None, "shape": None}

    def locate(self, id: int) -> Dict[str, Any]:
        return {"id": id, "key": str(id), "label": None, "file": describe(self._dataset), "offset": id, "length": 0}

    def take_warnings(self) -> List[str]:
        return []

    def batch_memory(self) -> Tuple[int, int]:
        return 0, 0

    def _check_open(self) -> None:
        if self.closed:
            raise LoaderClosed("the loader was closed")

    def close(self) -> None:
        self.closed = True
        self._cache.clear()
        self._cached = 0


def place_behind(position: int, batch: int) -> bool:
    """A position that is no whole number of batches is an epoch's end."""
    return position % batch != 0


def describe(dataset: Any) -> str:
    return f"{type(dataset).__module__}.{type(dataset).__qualname__}"


def length_of(dataset: Any) -> int:
    if not hasattr(dataset, "__getitem__") or not hasattr(dataset, "__len__"):
        raise ConfigError(f"dataset should be a path, a list of paths, or a map-style dataset with __getitem__ and __len__, got "
                          f"{describe(dataset)}; an iterable one has no order that could be shuffled, split or resumed")
    try:
        count = len(dataset)
    except (TypeError, ValueError, OverflowError) as error:  # an array without a dimension, or a number that is no length
        raise ConfigError(f"dataset {describe(dataset)} has no length: {error}") from error
    if count == 0:
        raise ConfigError(f"dataset {describe(dataset)} is empty")
    return count


def fingerprint_of(dataset: Any, samples: int) -> str:
    """Of what can be known: the dataset's own word, or its class and length."""
    own = getattr(dataset, "fingerprint", None)
    text = str(own() if callable(own) else own) if own is not None else describe(dataset)
    return f"{_foreload.xxh3(f'{text} {samples}'.encode('utf-8', 'surrogatepass')):016x}"


def collate(output: str, batch: MappedBatch, collate_fn: Optional[Callable[[List[Any]], Any]]) -> Any:
    if collate_fn is not None:
        return collate_fn([] if batch.empty else batch.samples)
    check_shapes(batch)
    try:
        item = _stacked(batch.samples) if output == "numpy" else _tensors.collated(batch.samples)
    except (TypeError, ValueError, RuntimeError) as error:
        first = f"sample {batch.ids[0]} and the others of its batch (position {batch.positions[0]} of epoch {batch.epoch})" \
            if batch.ids else "samples"
        raise SampleError(f"{first} can not be put together: {error}; change the dataset, or pass a collate_fn") from error
    return _tensors.emptied(item) if batch.empty else item


def check_shapes(batch: MappedBatch) -> None:
    def shapes(sample: Any) -> Any:
        if isinstance(sample, (tuple, list)):
            return tuple(shapes(item) for item in sample)
        if isinstance(sample, dict):
            return tuple((name, shapes(item)) for name, item in sample.items())
        return _tensors.shape_of(sample)

    for id, position, sample in zip(batch.ids, batch.positions, batch.samples):
        if shapes(sample) != shapes(batch.samples[0]):
            raise SampleError(f"sample {id} (position {position} of epoch {batch.epoch}) has shape {shapes(sample)}, but sample "
                              f"{batch.ids[0]} of the same batch has {shapes(batch.samples[0])}: samples of one batch must be "
                              "alike, or pass a collate_fn")


def _stacked(samples: List[Any]) -> Any:
    first = samples[0]
    if isinstance(first, (tuple, list)):
        return tuple(_stacked([sample[i] for sample in samples]) for i in range(len(first)))
    if isinstance(first, dict):
        return {name: _stacked([sample[name] for sample in samples]) for name in first}
    return _tensors.stack("numpy", samples)
