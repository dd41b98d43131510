"""From a batch as the engine hands it out to what the caller gets: tensors, then callables or collation, then a pair or dict."""
from __future__ import annotations

from typing import Any, Callable, Dict, Optional

from . import _mapped, _tensors
from ._arguments import shown, warn_once
from ._settings import Settings
from .errors import SampleError

SPECIAL = ("ragged", "mixup", "cutmix")  # ops whose batches have more than images and labels


class Delivery:
    """Of one loader, in the thread that asks for the batch."""

    simple = False  # every batch is a pair of torch's tensors, which the loader makes by itself; known after the first one
    from_dlpack: Callable[[Any], Any]

    def __init__(self, engine: Any, given: Dict[str, Any], settings: Settings) -> None:
        self._engine, self._mapped = engine, isinstance(engine, _mapped.MappedLoader)
        self._output, self._pin = given["output"], given["pin_memory"]
        self._callables, self._batch_transform, self._collate_fn = settings.callables, given["batch_transform"], given["collate_fn"]
        self._shape = "dict" if given["as_dict"] else "ids" if given["with_ids"] else "pair"
        self._special = any(op in settings.options["chain"] for op in SPECIAL)
        # With ragged batches a rank may get none of the last samples, with rates a slow one none of a small batch, and torch
        # does not take an empty array by its address.
        options = settings.options
        self._never_empty = options["world"] == 1 or options["last_batch"] != "ragged" and "rates" not in options
        self._convert: Optional[Callable[[Any], Any]] = None
        self._pinned: Optional[Callable[[], None]] = None
        self._pin_each = self._mapped and self._pin  # batch, by a copy

    def deliver(self, batch: Any) -> Any:
        if self._convert is None:
            self._prepare()
        if self._mapped:
            item = self._mapped_item(batch)
        elif self._shape == "pair" and not self._special:
            item = (self._images(batch), self._convert(batch.labels))
        else:
            item = self._item(batch)
        if self._pin_each and self._output == "torch":
            item = _tensors.pinned(item)
        return self._batch_transform(item) if self._batch_transform else item

    def unpin(self) -> None:
        undo, self._pinned = self._pinned, None
        if undo is not None:
            undo()

    def _prepare(self) -> None:
        """What the first batch needs: torch or numpy, and the ring's memory known to CUDA."""
        self._output = _tensors.resolve(self._output)
        convert = _tensors.converter(self._output)
        if self._pin and not self._mapped and self._output == "torch" and self._pinned is None:
            address, size = self._engine.batch_memory()
            self._pin_each = size == 0 and _tensors.has_device()  # in a host batches come from several jobs' memory
            self._pinned = _pin(address, size) if size > 0 else None
        usual = self._shape == "pair" and not (self._mapped or self._special or self._callables or self._batch_transform
                                               or self._pin_each)
        if usual and self._output == "torch" and self._never_empty and self._engine.describe()["dtype"] not in ("u16", "u32"):
            self.from_dlpack = _tensors.dlpack_reader()
            self.simple = True
        self._convert = convert

    def _images(self, batch: Any) -> Any:
        images = self._convert(batch.data)
        return self._through_callables(batch, images) if self._callables else images

    def _item(self, batch: Any) -> Any:
        """A dict, or a tuple with more than images and labels."""
        arrays = {"offsets": batch.offsets, "labels": batch.labels, "other_labels": batch.other_labels,
                  "own_shares": batch.own_shares}
        if self._shape != "pair":
            arrays.update(ids=batch.ids, positions=batch.positions)
        tensors = {"images": self._images(batch)}
        tensors.update((name, self._convert(value)) for name, value in arrays.items() if value is not None)
        if self._shape != "dict":
            return tuple(tensors.values())
        return {**tensors, "epoch": batch.epoch, "step": batch.step}

    def _mapped_item(self, batch: Any) -> Any:
        for index, sample in enumerate(batch.samples if self._callables else ()):
            alone = not isinstance(sample, (tuple, list)) or not sample
            made = self._called(batch, index, sample if alone else sample[0])
            batch.samples[index] = made if alone else (made, *sample[1:])
        item = _mapped.collate(self._output, batch, self._collate_fn)
        if self._shape == "pair":
            return item
        ids, positions = (_tensors.stack(self._output, numbers) for numbers in (batch.ids, batch.positions))
        # A list of what is no list itself is one thing, as for samples that are strings.
        several = isinstance(item, (tuple, list)) and (self._collate_fn or isinstance(batch.samples[0], (tuple, list)))
        parts = item if several else (item,)
        if self._shape == "ids":
            return (*parts, ids, positions)
        names = ("images", "labels", *(f"item{number}" for number in range(2, len(parts))))
        fields = item if isinstance(item, dict) else dict(zip(names, parts))
        return {**fields, "ids": ids, "positions": positions, "epoch": batch.epoch, "step": batch.step}

    # --- callables

    def _called(self, batch: Any, index: int, sample: Any) -> Any:
        """What the callables make of a sample."""
        for function in self._callables:
            try:
                sample = function(sample)
            except Exception as error:
                if hasattr(error, "add_note") and not self._engine.closed:
                    error.add_note(f"foreload: this was {self._name(batch, index)}")
                raise
        return sample

    def _through_callables(self, batch: Any, images: Any) -> Any:
        samples = []
        for index in range(len(batch)):
            made = self._called(batch, index, images[index])
            try:
                sample = _tensors.tensor(self._output, made)
            except Exception as error:
                raise SampleError(f"{self._name(batch, index)}: the callable returned {shown(made)} of type {type(made).__name__}, "
                                  f"which is no tensor ({error})") from error
            if samples and _tensors.shape_of(sample) != _tensors.shape_of(samples[0]):
                raise SampleError(f"{self._name(batch, index)}: the callable returned shape {_tensors.shape_of(sample)}, but "
                                  f"{_tensors.shape_of(samples[0])} for the first sample of the batch: all samples of a batch must "
                                  "have one shape")
            samples.append(sample)
        return _tensors.stack(self._output, samples) if samples else images

    def _name(self, batch: Any, index: int) -> str:
        if self._mapped:
            return f"sample {(*batch.ids, 'at position 0')[index]} of {self._engine.describe()['uri']}"
        where = self._engine.locate(memoryview(batch.ids)[index])
        return f"sample {where['id']} \"{where['key']}\" ({where['file']}, offset {where['offset']})"


def _pin(address: int, size: int) -> Optional[Callable[[], None]]:
    """Registers the ring's memory with CUDA; returns what undoes it, or None without a device."""
    import torch

    if not _tensors.has_device():
        return None
    runtime = torch.cuda.cudart()
    code = int(runtime.cudaHostRegister(address, size, 0))
    if code != 0:
        warn_once(f"pin_memory: CUDA could not register {size} bytes of batches (error {code}); copies go through its own buffer")
        return None
    return lambda: runtime.cudaHostUnregister(address)
