"""DataLoader: torch's, over foreload."""
from __future__ import annotations

import atexit
import json
import os
import sys
import threading
import weakref
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple, Union

from . import _foreload, _mapped, _memory, _ranks, _report, _settings, _tensors
from ._arguments import datasets, warn_once, whole
from .errors import ConfigError, LoaderClosed, SampleError, StaleIterator

Sample = Dict[str, Any]
WARNED, COPIED, LAST_STEP = 1, 2, 4  # of _foreload.Loader.next_capsules
_END: Any = object()  # of an epoch; None may be what a batch_transform made of a batch
_alive: "weakref.WeakSet[DataLoader]" = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    # Threads of a loader must not outlive the interpreter that their consumer needs.
    _foreload.interpreter_ends()
    for loader in list(_alive):
        loader.close()


class DatasetView:
    """What `loader.dataset` is for data on disk: length, classes and where each sample lies."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        about = engine.describe()
        self.uri: str = about["uri"]
        self.fingerprint: str = about["fingerprint"]
        self.classes: List[str] = about["classes"]
        self.class_to_idx = {name: index for index, name in enumerate(self.classes)}
        self.bytes: int = about["bytes"]
        self._samples: int = about["samples"]

    def __len__(self) -> int:
        return self._samples

    def locate(self, id: int) -> Sample:
        """Key, label, file, offset and length of a sample."""
        return self._engine.locate(whole("id", id))

    def __repr__(self) -> str:
        return f"DatasetView({self.uri!r}, samples={self._samples}, classes={len(self.classes)})"


class _Epoch:
    """One pass over the loader. Only the newest one of a loader goes on."""

    __slots__ = ("_loader", "_done", "__weakref__")

    def __init__(self, loader: "DataLoader") -> None:
        self._loader = loader
        self._done = False

    def __iter__(self) -> "_Epoch":
        return self

    def __len__(self) -> int:
        return len(self._loader)

    def __next__(self) -> Any:
        loader = self._loader
        loader._check_process()
        delivered = None
        try:
            with loader._lock:
                if loader._busy:
                    raise RuntimeError("next() was called while the same thread waits in next() of this loader: a callable, a "
                                       "dataset or a signal handler can not take batches of the loader that it serves")
                delivered = loader._engine.delivered
                try:
                    loader._busy = True
                    item = _END if self._done else loader._next(self)
                except StopIteration as error:
                    raise RuntimeError("a callable or the dataset raised StopIteration, which would have ended the epoch") from error
                finally:
                    loader._busy = False
                self._done = item is _END
            if item is _END:
                raise StopIteration
            return item
        except BaseException:  # Ctrl-C as well, which may come between any two steps
            if delivered is not None and loader._engine.delivered != delivered:
                loader._take_back(delivered)
            raise


class DataLoader:
    """Loads batches in C++ threads; iterate over it as over torch.utils.data.DataLoader.

    dataset: a folder, a tar file, a list of tars ("train-{000..099}.tar"), several of them in a list, or a map-style dataset,
    whose samples are then made in this thread. For data on disk the transforms run in C++; `transform=None` means
    RandomResizedCrop(224), RandomHorizontalFlip, Normalize for images, and arrays as they are.

    torch's arguments mean what they mean there, with num_workers counting threads (0: automatic). Foreload's own:
    seed, memory ("8GiB"; cache, batches and scratch together), on_error ("fail", "replace"), rank and world_size (default:
    from torchrun, Slurm, Open MPI or PMI), transform, batch_transform (called with what a batch would be), output ("torch",
    "numpy", "auto"), dtype, layout, as_dict, with_ids, held_batches, last_batch, global_batch, subset, epochs.
    """

    _simple = False  # every batch is a pair of torch's tensors; known when the first one is delivered
    _engine: Any = None
    _part: Optional[_memory.Part] = None

    def __init__(self, dataset: Any, batch_size: Optional[int] = 1, shuffle: Optional[bool] = None, sampler: Any = None,
                 batch_sampler: Any = None, num_workers: int = 0, collate_fn: Optional[Callable[[List[Any]], Any]] = None,
                 pin_memory: bool = False, drop_last: bool = False, timeout: float = 0,
                 worker_init_fn: Any = None, multiprocessing_context: Any = None, generator: Any = None, *,
                 prefetch_factor: Optional[int] = None, persistent_workers: bool = False, pin_memory_device: str = "",
                 seed: Optional[int] = None, transform: Any = None, batch_transform: Optional[Callable[[Any], Any]] = None,
                 memory: Union[None, int, str] = None, on_error: str = "fail", rank: Optional[int] = None,
                 world_size: Optional[int] = None, output: str = "auto", dtype: Any = None, layout: str = "nchw",
                 as_dict: bool = False, with_ids: bool = False, held_batches: int = 3, last_batch: Optional[str] = None,
                 global_batch: Optional[int] = None, subset: Any = None, epochs: Optional[int] = None, cache: bool = True,
                 decode: str = "exact", rewrite: str = "auto", max_replacements: int = 1000,
                 label_field: Optional[str] = None, index_folder: Optional[str] = None, io: Optional[str] = None,
                 storage: Optional[str] = None, record: Optional[str] = None) -> None:
        given = {name: value for name, value in locals().items() if name not in ("self", "dataset")}
        self._lock = threading.RLock()  # threads that share an iterator take turns
        self._busy = False              # whoever has the turn is inside next()
        folder = _settings.image_folder(dataset, transform)
        listed = dataset if folder is not None and subset is None else None
        if folder is not None:
            dataset, given["transform"] = folder
        settings = _settings.read(given)
        self.batch_size, self.drop_last, self.pin_memory = settings.options["batch"], settings.drop_last, pin_memory
        self.num_workers, self.rank, self.world_size = num_workers, settings.options["rank"], settings.options["world"]
        self._global_batch = settings.options["global_batch"] or self.batch_size * self.world_size
        self.sampler = self.batch_sampler = None
        self._output = output
        self._callables, self._batch_transform, self._collate_fn = settings.callables, batch_transform, collate_fn
        self._special = any(op in settings.options["chain"] for op in ("ragged", "mixup", "cutmix"))
        # With ragged batches a rank may get none of the last samples, and torch does not take an empty array by its address.
        self._never_empty = self.world_size == 1 or settings.options["last_batch"] != "ragged"
        self._shape: str = "dict" if as_dict else "ids" if with_ids else "pair"
        self._convert: Optional[Callable[[Any], Any]] = None
        self._turn: Optional["weakref.ref[_Epoch]"] = None
        self._wanted: Optional[int] = None  # the epoch that set_epoch asked for
        self._resumed = False               # the position of a loaded state is where the next iterator begins
        self._failed = False                # the loader has to be moved before it goes on
        self._at_end = False                # the epoch's last batch was delivered, and nothing after it
        self._process = os.getpid()
        self._open(dataset, settings, listed)
        _alive.add(self)

    def _open(self, dataset: Any, settings: _settings.Settings, listed: Any) -> None:
        paths = datasets(dataset)
        self._mapped = paths is None
        if self._mapped:
            _mapped.length_of(dataset)
            if settings.has_chain:
                raise ConfigError("transform: foreload's transforms are for data on disk; for the samples of "
                                  f"{_mapped.describe(dataset)} use callables")
        elif self._collate_fn is not None:
            raise ConfigError("collate_fn has nothing to collate: batches of data on disk come ready; use batch_transform")
        self._part = _memory.take(settings.memory, _ranks.on_this_host(self.world_size))
        settings.options["memory"] = self._part.bytes
        try:
            if self._mapped:
                if any(name.startswith("subset") for name in settings.options):
                    raise ConfigError("subset is for data on disk; for a map-style dataset use torch.utils.data.Subset")
                self._engine = _mapped.MappedLoader(dataset, settings.options)
                self.dataset = dataset
            else:
                self._engine = _open_native({**settings.options, "dataset": [os.fsencode(path) for path in paths]})
                self.dataset = DatasetView(self._engine)
                if settings.no_chain:
                    _settings.check_no_chain(self._engine)
            _settings.check_same(self._engine, settings.sampled, listed)
        except BaseException as error:
            if self._engine is not None:
                self._engine.close()
            self._part.give_back()
            if settings.no_chain and isinstance(error, ConfigError) and str(error).startswith("normalize"):
                raise ConfigError(_settings.NO_SIZE) from None  # the default's Normalize, which nobody asked for
            raise
        self._show_warnings()

    # --- iteration

    def __len__(self) -> int:
        return self._engine.batches_per_epoch

    def __iter__(self) -> Iterator[Any]:
        """Begins an epoch: the one after the last, set_epoch's, or the rest of the one of a loaded state."""
        self._check_process()
        with self._lock:
            if not self._resumed:
                self._begin_epoch()
            self._resumed = self._failed = self._at_end = False
            self._wanted = None
            epoch = _Epoch(self)
            self._turn = weakref.ref(epoch)
            return epoch

    def _begin_epoch(self) -> None:
        state = self.state_dict()
        if self._at_end and self._wanted in (None, state["epoch"] + 1) and not self._failed:
            self._engine.next()  # only turns the page; what was prepared ahead stays
            state = self.state_dict()
        begun = state["position"] != 0
        wanted = state["epoch"] + begun if self._wanted is None else self._wanted
        if self._failed or (state["epoch"], state["position"]) != (wanted, 0):
            self._engine.seek_epoch(wanted)

    def _check_process(self) -> None:
        """Before any lock, which a thread of the parent may have held when it forked."""
        if os.getpid() != self._process:
            raise LoaderClosed(f"this loader was opened by process {self._process} and can not be used in its forked child "
                               f"{os.getpid()}: open a loader in the child, or start it with spawn")

    def _next(self, epoch: _Epoch) -> Any:
        """What the caller gets, or _END."""
        if self._turn is None or self._turn() is not epoch:
            raise StaleIterator("this iterator can not go on: its loader has begun another epoch, was moved or has failed since")
        return self._next_tensors() if self._simple else self._next_item()

    def _next_tensors(self) -> Any:
        """The usual case, (images, labels) for torch, in as few steps as possible."""
        try:
            found = self._next_capsules()
        except Exception:
            self._failed, self._turn = True, None
            raise
        if found is None:
            self._at_end, self._turn = False, None
            return _END
        images, labels, notes = found
        self._at_end = notes >= LAST_STEP
        if notes & (WARNED | COPIED):
            self._note()
        return self._from_dlpack(images), self._from_dlpack(labels)

    def _next_item(self) -> Any:
        try:
            batch = self._engine.next()
        except Exception:
            self._failed, self._turn = True, None
            raise
        self._at_end = batch is not None and batch.step + 1 == self._engine.batches_per_epoch
        if self._engine.has_warnings or self._engine.copied:
            self._note()
        if batch is None:
            self._turn = None
            return _END
        return self._deliver(batch)

    def _take_back(self, delivered: int) -> None:
        """What came after `delivered` was lost on its way: a state that is saved now does not count it, and it comes again."""
        with self._lock:
            if self._engine.delivered != delivered + 1:
                return  # another thread has gone on from there
            self._at_end = False
            try:
                state = self.state_dict()
                state["position"] = (-(-state["position"] // self._global_batch) - 1) * self._global_batch
                self._engine.seek(json.dumps(state))
            except LoaderClosed:
                pass  # closed by the one whose exception is on its way, and which says more

    def _deliver(self, batch: Any) -> Any:
        if self._convert is None:
            self._prepare()
        if self._mapped:
            item = self._mapped_item(batch)
        elif self._shape == "pair" and not self._special:
            convert = self._convert
            images = convert(batch.data)
            item = (self._through_callables(batch, images) if self._callables else images, convert(batch.labels))
        else:
            item = self._item(batch)
        return self._batch_transform(item) if self._batch_transform else item

    def _prepare(self) -> None:
        """What the first batch needs: torch or numpy, and the ring's memory known to CUDA."""
        self._output = _tensors.resolve(self._output)
        self._convert = _tensors.converter(self._output)
        usual = self._shape == "pair" and not (self._mapped or self._special or self._callables or self._batch_transform)
        if usual and self._output == "torch" and self._never_empty and self._engine.describe()["dtype"] not in ("u16", "u32"):
            self._from_dlpack, self._next_capsules = _tensors.dlpack_reader(), self._engine.next_capsules
            self._simple = True
        if self.pin_memory and not self._mapped and self._output == "torch":
            self._pinned = _pin(*self._engine.batch_memory())

    def _item(self, batch: Any) -> Any:
        """A dict, or a tuple with more than images and labels."""
        convert = self._convert
        data = convert(batch.data)
        if self._callables:
            data = self._through_callables(batch, data)
        arrays = {"images": data, "offsets": batch.offsets, "labels": batch.labels, "other_labels": batch.other_labels,
                  "own_shares": batch.own_shares}
        if self._shape != "pair":
            arrays.update(ids=batch.ids, positions=batch.positions)
        tensors = {name: value if name == "images" else convert(value) for name, value in arrays.items() if value is not None}
        if self._shape != "dict":
            return tuple(tensors.values())
        return {**tensors, "epoch": batch.epoch, "step": batch.step}

    def _mapped_item(self, batch: Any) -> Any:
        for function in self._callables:
            batch.samples = [_applied(function, sample) for sample in batch.samples]
        item = _mapped.collate(self._output, batch, self._collate_fn)
        if self.pin_memory and self._output == "torch":
            item = _tensors.pinned(item)
        if self._shape == "pair":
            return item
        ids, positions = (_tensors.stack(self._output, numbers) for numbers in (batch.ids, batch.positions))
        if self._shape == "ids":
            return (*item, ids, positions) if isinstance(item, (tuple, list)) else (item, ids, positions)
        fields = item if isinstance(item, dict) else dict(zip(("images", "labels"), item)) if isinstance(item, (tuple, list)) \
            else {"images": item}
        return {**fields, "ids": ids, "positions": positions, "epoch": batch.epoch, "step": batch.step}

    def _through_callables(self, batch: Any, images: Any) -> Any:
        samples = []
        for index in range(len(batch)):
            sample = images[index]
            for function in self._callables:
                try:
                    sample = function(sample)
                except Exception as error:
                    if hasattr(error, "add_note") and not self._engine.closed:
                        error.add_note(f"foreload: this was {self._name(batch, index)}")
                    raise
            if samples and _tensors.shape_of(sample) != _tensors.shape_of(samples[0]):
                raise SampleError(f"{self._name(batch, index)}: the callable returned shape {_tensors.shape_of(sample)}, but "
                                  f"{_tensors.shape_of(samples[0])} for the first sample of the batch: all samples of a batch must "
                                  "have one shape")
            samples.append(sample)
        return _tensors.stack(self._output, samples) if samples else images

    def _name(self, batch: Any, index: int) -> str:
        where = self._engine.locate(memoryview(batch.ids)[index])
        return f"sample {where['id']} \"{where['key']}\" ({where['file']}, offset {where['offset']})"

    def _note(self) -> None:
        """Warnings that came up since the last batch."""
        self._show_warnings()
        if self._engine.copied:
            warn_once("more than held_batches batches are held at once, so the further ones are copies: raise held_batches, or "
                      "drop batches earlier", 6)

    def _show_warnings(self) -> None:
        for text in self._engine.take_warnings():
            warn_once(text, 6)

    # --- position

    def set_epoch(self, epoch: int) -> None:
        """The epoch that the next iterator begins. For the epoch of a loaded state its position is kept."""
        epoch = whole("epoch", epoch, 0, (1 << 32) - 1)
        self._check_process()
        with self._lock:
            if self._resumed and self.state_dict()["epoch"] == epoch:
                return
            self._resumed = False
            self._wanted = epoch

    def state_dict(self) -> Dict[str, Union[int, str]]:
        """Where the job stands after the last batch that was delivered: six numbers and strings."""
        return json.loads(self._engine.position())

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Continues exactly behind that batch; a state of another dataset, seed or plan raises StateMismatch."""
        if not isinstance(state, dict):
            raise ConfigError(f"state should be the dict that state_dict() returned, got {type(state).__name__}")
        try:
            text = json.dumps(state)
        except (TypeError, ValueError) as reason:
            raise ConfigError(f"this is no saved state: {reason}") from None
        self._check_process()
        with self._lock:
            try:
                self._engine.seek(text)
            except ConfigError as error:
                raise ConfigError(str(error).replace("Loader::position()", "state_dict()")) from None
            self._turn = None
            self._resumed, self._failed, self._at_end, self._wanted = True, False, False, None

    # --- reports

    def stats(self) -> Dict[str, Any]:
        """Per epoch: samples, seconds, stalls by cause, bytes by origin, replaced samples; cache, budget, threads."""
        return self._engine.stats()

    def epoch_summary(self) -> None:
        """Prints the line of `foreload run` for the last epoch."""
        print(_report.summary(self.stats()), flush=True)

    def _repr_html_(self) -> str:
        return _report.page(repr(self), self.stats()) if not self._engine.closed else repr(self)

    def __repr__(self) -> str:
        return f"DataLoader({self.dataset!r}, batch_size={self.batch_size}, rank={self.rank}, world_size={self.world_size})"

    # --- end

    def close(self) -> None:
        """Stops all threads and frees the cache. Tensors that are still held stay valid."""
        if self._engine is not None:
            self._engine.close()
            if getattr(self, "_pinned", None) and self._engine.held == 0 and os.getpid() == self._process:
                self._pinned()
            self._pinned = None
        if self._part is not None:
            self._part.give_back()

    def __enter__(self) -> "DataLoader":
        return self

    def __exit__(self, *unused: Any) -> None:
        self.close()

    def __del__(self) -> None:
        if sys.is_finalizing():
            return
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("a DataLoader can not be pickled: it owns threads and memory. Open one in the other process; the order is "
                        "the same there")


def _open_native(options: Dict[str, Any]) -> Any:
    try:
        return _foreload.Loader(options)
    except ConfigError as error:
        if options["last_batch"] != "auto":
            raise
        # As torch: a dataset that is smaller than one batch is one short batch.
        try:
            return _foreload.Loader({**options, "last_batch": "ragged" if options["world"] == 1 else "pad"})
        except ConfigError:
            raise error from None


def _applied(function: Callable[[Any], Any], sample: Any) -> Any:
    """The callable on the image of an (image, label) pair, or on the whole sample."""
    if isinstance(sample, (tuple, list)) and sample:
        return (function(sample[0]), *sample[1:])
    return function(sample)


def _pin(address: int, size: int) -> Optional[Callable[[], None]]:
    """Registers the ring's memory with CUDA; returns what undoes it, or None without a device."""
    import torch

    if not torch.cuda.is_available():
        return None
    runtime = torch.cuda.cudart()
    code = int(runtime.cudaHostRegister(address, size, 0))
    if code != 0:
        warn_once(f"pin_memory: CUDA could not register {size} bytes of batches (error {code}); copies go through its own buffer", 6)
        return None
    return lambda: runtime.cudaHostUnregister(address)
