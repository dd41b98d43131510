"""From settings to an engine and its part of the memory budget, alone or in a host.

A host that was named is joined, or it is an error. Without a name, the ranks of a job on this machine join the job's
host: its memory is that of one rank times their number, and part of its name, so that ranks never disagree about it. If
that does not work for whatever reason, the loader is alone, with one warning. With peers nobody goes on alone: all ranks
have to agree about who gets what.
"""
from __future__ import annotations

from typing import Any, Dict, Tuple

from . import _foreload, _mapped, _memory, _peers, _ranks
from ._arguments import datasets, warn_once
from ._settings import NO_SIZE, Settings
from .errors import ConfigError, ForeloadError, StateMismatch

Opened = Tuple[Any, _memory.Part, str]  # the engine, its part, the name of its host

EVICTIONS_IN_HOSTS = ("static", "frequency")


def opened(dataset: Any, settings: Settings) -> Opened:
    """Nothing is left behind on error."""
    paths = datasets(dataset)
    if paths is None:
        return _mapped_alone(dataset, settings)
    if settings.collates:
        raise ConfigError("collate_fn has nothing to collate: batches of data on disk come ready; use batch_transform")
    options = {**settings.options, "dataset": paths}
    try:
        if settings.host is None and "peers" in options:
            return _with_peers(options, settings)
        if settings.host is None:
            return _with_its_job(options, settings)
        return _in_host(options, settings) if settings.host else _alone(options, settings)
    except ConfigError as error:
        if settings.no_chain and str(error).startswith("normalize"):
            raise ConfigError(NO_SIZE) from None  # the default's Normalize, which nobody asked for
        raise


def _mapped_alone(dataset: Any, settings: Settings) -> Opened:
    _mapped.length_of(dataset)
    options = settings.options
    if settings.has_chain:
        raise ConfigError("transform: foreload's transforms are for data on disk; for the samples of "
                          f"{_mapped.describe(dataset)} use callables")
    if any(name.startswith("disk") for name in options):
        raise ConfigError("disk and disk_size are for data that foreload reads itself: a map-style dataset reads its own")
    if any(name.startswith("subset") for name in options):
        raise ConfigError("subset is for data on disk; for a map-style dataset use torch.utils.data.Subset")
    if "peers" in options:
        raise ConfigError("peers are for data that foreload reads itself: nobody else can make the samples of a map-style dataset")
    if settings.host or options["workers"] == 0:
        raise ConfigError(f"{'host' if settings.host else 'workers=0'} is for data that foreload reads itself: samples of a map-style dataset are made in its own process")
    part = _take(settings)
    options["memory"] = part.bytes
    return _keeping(part, lambda: _mapped.MappedLoader(dataset, options)), part, ""


def _alone(options: Dict[str, Any], settings: Settings) -> Opened:
    part = _take(settings)
    return _keeping(part, lambda: _native({**options, "memory": part.bytes})), part, ""


def _in_host(options: Dict[str, Any], settings: Settings) -> Opened:
    assert settings.host
    return _sharing(settings.host, 1, options, settings)


def _with_peers(options: Dict[str, Any], settings: Settings) -> Opened:
    """One host for all loaders, whatever they ask for: it has one agent, at one address."""
    return _sharing(*_peers.host_here(options["rank"], options["world"]), options, settings)


def _sharing(name: str, ranks: int, options: Dict[str, Any], settings: Settings) -> Opened:
    """`ranks` give their memory to that host."""
    part = _take(settings, name)
    memory = (part.bytes if settings.memory is None else settings.memory) * ranks
    try:
        return _keeping(part, lambda: _native({**options, "memory": memory, "host": name})), part, name
    except StateMismatch as error:  # no state was given
        raise ConfigError(str(error)) from None


def _with_its_job(options: Dict[str, Any], settings: Settings) -> Opened:
    job = _ranks.job_here(options["rank"], options["world"])
    if job is None or not _may_join(options):
        return _alone(options, settings)
    try:
        return _in_host_of(job, options, settings)
    except ForeloadError as error:
        reason = str(error)
    # Outside of the handler: what is wrong with the loader itself is not to be told as a consequence of the host.
    result = _alone({**options, "workers": options["workers"] or None}, settings)  # nobody else prepares for who is alone
    warn_once(f"this rank does not share cache and prep with the others of its job on this machine: {reason}. host=False if that "
              "is as it should be")
    return result


def _may_join(options: Dict[str, Any]) -> bool:
    return options["eviction"] in EVICTIONS_IN_HOSTS and options["rewrite"] != "on"


def _in_host_of(job: _ranks.Job, options: Dict[str, Any], settings: Settings) -> Opened:
    part = _take(settings, job.name if settings.memory is None else f"{job.name}-{settings.memory}")
    memory = part.bytes * job.ranks
    name = f"{job.name}-{memory}" if memory else job.name
    return _keeping(part, lambda: _native({**options, "memory": memory, "host": name})), part, name


def _take(settings: Settings, host: str = "") -> _memory.Part:
    return _memory.take(settings.memory, _ranks.on_this_host(settings.options["world"]), host)


def _keeping(part: _memory.Part, open_engine: Any) -> Any:
    try:
        return open_engine()
    except BaseException:
        part.give_back()
        raise


def _native(options: Dict[str, Any]) -> Any:
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
