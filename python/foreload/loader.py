"""DataLoader: torch's, over foreload."""
from __future__ import annotations

import atexit
import json
import os
import sys
import threading
import weakref
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple, Union

from . import _delivery, _foreload, _mapped, _memory, _opening, _report, _settings
from ._arguments import warn_once, whole
from .errors import ConfigError, ForeloadError, LoaderClosed, StaleIterator

Sample = Dict[str, Any]
Path = Union[None, str, "os.PathLike[str]"]
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
    """What `loader.dataset` is for data on disk: its length, uri, fingerprint, classes, class_to_idx, bytes and where each
    sample lies. Names that are not UTF-8 are as os.fsdecode gives them."""

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
        """Where a sample lies: a dict of id, key, label, file, offset and length."""
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
        place = None
        try:
            with loader._lock:
                if self._done:
                    raise StopIteration
                item = loader._next(self)
                self._done = item is _END
                place = loader._handed = loader._engine.place
        except BaseException:  # Ctrl-C as well, which may come after any call
            if place is not None and loader._handed is place:
                loader._handed, self._done = None, False
            raise
        # Nothing is called from here on, so nothing can come between: what is counted now does arrive.
        if loader._handed is place:
            loader._place = place
        if item is _END:
            raise StopIteration
        return item


class DataLoader:
    """Loads batches in C++ threads; iterate over it as over torch.utils.data.DataLoader.

    dataset: a folder, a tar file, a list of tars ("train-{000..099}.tar"), one of these by URL (http, https, s3), several
    of them in a list, or a map-style dataset, whose samples are then made in this thread. For data in files the transforms
    run in C++; `transform=None` means RandomResizedCrop(224), RandomHorizontalFlip, Normalize for images, and arrays as they
    are.

    torch's arguments mean what they mean there, with num_workers counting threads (0: automatic). Foreload's own:
      seed              fixes order and augmentation, on every machine
      transform         list of foreload's transforms, torchvision's Compose, text as of `foreload run --chain`; callables last
      batch_transform   called with every batch, in this thread
      memory            "8GiB" or bytes, for cache, batches and scratch together; default: a part of the process's budget
      host              name: all processes of this machine that give it share cache and prep, and `memory` is for all of them;
                        default: ranks of one job on this machine put their memory together and share by themselves; False: alone
      workers           as num_workers, and 0 means none: with a host, others of it prepare (`foreload agent`)
      follow            with host: begin with the next epoch of a job that has the same batches, and share them with it
      peers             other machines of the job, ["host:port", ...] in the order of ranks, or "auto", as torchrun or Slurm
                        say: together they keep every sample once; default: none are asked. credentials: folder of `foreload
                        agent --make-credentials`; assignment: "balanced" (ranks take what their machine keeps) or "slice";
                        rates: samples of each rank per step, as weights
      disk              folder on a local disk that keeps samples between epochs and runs; disk_size: "200GB" of it at most
      on_error          "fail" or "replace": what a bad sample does; max_replacements
      rank, world_size  default: from torchrun, Slurm, Open MPI or PMI
      output            "torch", "numpy" or "auto"; dtype "f32", "f16", "u8"; layout "nchw", "nhwc"
      as_dict, with_ids batches as dicts, or tuples with ids and positions
      held_batches      how many batches may be held at once without copies
      last_batch        "ragged", "pad", "drop"; global_batch: samples per step over all ranks
      subset            ids or keys; epochs: how many will be read
      eviction          "static", "frequency", "belady", "lru": what memory keeps when it does not hold the whole dataset
      weights           a number per sample: draws with replacement, num_samples per epoch
      echo              how often each sample comes in an epoch, augmented anew; echo_window: so many are repeated together
      reshuffle         share of the samples that an epoch deals to any of `homes` parts of a batch; the others stay in theirs
      trust_index       use an index that is there without asking whether the dataset has changed
      cache, decode, rewrite, label_field, index_folder, io, storage, record: as in `foreload run --help`

    Wrong arguments raise ConfigError, which names the argument and what was given. docs/python.md has the rest.
    """

    _engine: Any = None
    _part: Optional[_memory.Part] = None
    _delivery: Any = None

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
                 label_field: Optional[str] = None, index_folder: Path = None, io: Optional[str] = None,
                 storage: Optional[str] = None, record: Path = None, disk: Path = None,
                 disk_size: Union[None, int, str] = None, weights: Any = None, num_samples: Optional[int] = None,
                 echo: Optional[int] = None, echo_window: Optional[int] = None, reshuffle: Optional[float] = None,
                 homes: Optional[int] = None, eviction: str = "static", trust_index: bool = False,
                 host: Union[None, bool, str, "os.PathLike[str]"] = None, workers: Optional[int] = None,
                 follow: bool = False, peers: Union[None, bool, str, List[str]] = None, credentials: Path = None,
                 assignment: str = "balanced", rates: Optional[List[int]] = None) -> None:
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
        self.sampler = self.batch_sampler = None
        self._turn: Optional["weakref.ref[_Epoch]"] = None
        self._wanted: Optional[int] = None  # the epoch that set_epoch asked for
        self._resumed = False               # the position of a loaded state is where the next iterator begins
        self._failed = False                # the loader has to be moved before it goes on
        self._at_end = False                # the epoch's last batch was delivered, and nothing after it
        self._process = os.getpid()
        self._open(dataset, settings, listed)
        self._delivery = _delivery.Delivery(self._engine, given, settings)
        # What ends an epoch. A map-style dataset may raise anything; from C++ another exception is a signal handler's.
        self._failures = Exception if isinstance(self._engine, _mapped.MappedLoader) else ForeloadError
        # (epoch, position) behind the last batch that reached the caller, and that some thread is about to deliver. If the
        # engine is elsewhere, the batch between was lost on its way, to an exception or Ctrl-C, and comes again.
        self._place = self._handed = self._engine.place
        _alive.add(self)

    def _open(self, dataset: Any, settings: _settings.Settings, listed: Any) -> None:
        self._engine, self._part, self.host = _opening.opened(dataset, settings)
        try:
            if isinstance(self._engine, _mapped.MappedLoader):
                self.dataset = dataset
            else:
                self.dataset = DatasetView(self._engine)
                if settings.no_chain:
                    _settings.check_no_chain(self._engine)
            _settings.check_same(self._engine, settings.sampled, listed)
        except BaseException:
            self.close()
            raise
        self._show_warnings()

    # --- iteration

    def __len__(self) -> int:
        return self._engine.batches_per_epoch

    def __iter__(self) -> Iterator[Any]:
        """Begins an epoch: the one after the last, set_epoch's, or the rest of the one of a loaded state."""
        self._check_process()
        with self._lock:
            self._check_idle("iter()")
            if not self._resumed:
                self._begin_epoch()
            epoch = _Epoch(self)
            self._turn = weakref.ref(epoch)
            self._resumed = self._failed = self._at_end = False
            self._wanted = None
            return epoch

    def _begin_epoch(self) -> None:
        self._go_back()
        if self._at_end and self._wanted in (None, self._place[0] + 1) and not self._failed:
            self._at_end = False
            self._engine.next()  # only turns the page; what was prepared ahead stays
        epoch, position = self._engine.place
        begun = position != 0 or self._failed
        wanted = epoch + begun if self._wanted is None else self._wanted
        if self._failed or (epoch, position) != (wanted, 0):
            self._engine.seek_epoch(wanted)
        self._place = self._handed = self._engine.place

    def _go_back(self) -> None:
        """To what the caller has; nearly always there is nothing to do."""
        if self._engine.place != self._handed:
            self._at_end = False
            state = self.state_dict()
            state["epoch"], state["position"] = self._handed or self._place
            self._engine.seek(json.dumps(state))
            self._handed = self._engine.place

    def _check_process(self) -> None:
        """Before any lock, which a thread of the parent may have held when it forked."""
        if os.getpid() != self._process:
            raise LoaderClosed(f"this loader was opened by process {self._process} and can not be used in its forked child "
                               f"{os.getpid()}: open a loader in the child, or start it with spawn")

    def _check_idle(self, call: str) -> None:
        if self._busy:
            raise RuntimeError(f"{call} was called while the same thread waits in next() of this loader: a callable, a dataset or "
                               "a signal handler can not move the loader that it serves")

    def _next(self, epoch: _Epoch) -> Any:
        """What the caller gets, or _END."""
        self._check_idle("next()")
        if self._turn is None or self._turn() is not epoch:
            raise StaleIterator("this iterator can not go on: its loader has begun another epoch, was moved or has failed since")
        try:
            self._busy = True
            self._go_back()
            return self._next_tensors() if self._delivery.simple else self._next_item()
        except StopIteration as error:
            raise RuntimeError("a callable or the dataset raised StopIteration, which would have ended the epoch") from error
        finally:
            self._busy = False

    def _next_tensors(self) -> Any:
        """The usual case, (images, labels) for torch, in as few steps as possible."""
        try:
            found = self._engine.next_capsules()
        except ForeloadError:  # not what a signal's handler raised meanwhile
            self._failed, self._turn = True, None
            raise
        if found is None:
            self._at_end = False
            return _END
        images, labels, notes = found
        self._at_end = notes >= LAST_STEP
        if notes & (WARNED | COPIED):
            self._note()
        from_dlpack = self._delivery.from_dlpack
        return from_dlpack(images), from_dlpack(labels)

    def _next_item(self) -> Any:
        try:
            batch = self._engine.next()
        except self._failures:
            self._failed, self._turn = True, None
            raise
        self._at_end = batch is not None and batch.step + 1 == self._engine.batches_per_epoch
        if self._engine.has_warnings or self._engine.copied:
            self._note()
        return _END if batch is None else self._delivery.deliver(batch)

    def _note(self) -> None:
        """Warnings that came up since the last batch."""
        self._show_warnings()
        if self._engine.copied:
            warn_once("more than held_batches batches are held at once, so the further ones are copies: raise held_batches, or "
                      "drop batches earlier")

    def _show_warnings(self) -> None:
        for text in self._engine.take_warnings():
            warn_once(text)

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
        """Where the job stands behind the last batch that the loop got: six numbers and strings.

        Never waits; also for callables and signal handlers, where the batch that is on its way does not count.
        """
        self._check_process()
        state = json.loads(self._engine.position())
        state["epoch"], state["position"] = self._place
        return state

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """The next iter() continues exactly behind that batch; a state of another dataset, seed or plan raises StateMismatch."""
        if not isinstance(state, dict):
            raise ConfigError(f"state should be the dict that state_dict() returned, got {type(state).__name__}")
        try:
            text = json.dumps(state)
        except (TypeError, ValueError, RecursionError) as reason:
            raise ConfigError(f"state should be the dict that state_dict() returned: {reason}") from None
        self._check_process()
        with self._lock:
            self._check_idle("load_state_dict()")
            try:
                self._engine.seek(text)
            except ConfigError as error:
                raise ConfigError(str(error).replace("Loader::position()", "state_dict()")) from None
            self._turn = None
            self._place = self._handed = self._engine.place
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
        if self._delivery is not None and os.getpid() == self._process:
            self._delivery.unpin()  # while the memory is still there; tensors over it live on unpinned
        if self._engine is not None:
            self._engine.close()
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
        raise TypeError("a DataLoader can not be pickled or copied: it owns threads and memory. Open one in the other process; the "
                        "order is the same there")
