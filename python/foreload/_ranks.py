"""Which learner this process is: from the arguments, or from what launched it."""
from __future__ import annotations

import os
from typing import Any, Iterator, List, Mapping, NamedTuple, Optional, Tuple

from . import _foreload
from ._arguments import whole
from .errors import ConfigError


class Launcher(NamedTuple):
    name: str
    rank: str
    world: str
    local: Tuple[str, ...]  # how many ranks this machine has; the first that is set counts
    job: Tuple[str, ...]    # which job it is, the same in all ranks of a machine; the first must be set. None: nobody knows


# The first whose rank and world are set counts.
LAUNCHERS = (
    Launcher("torchrun", "RANK", "WORLD_SIZE", ("LOCAL_WORLD_SIZE",),
             ("MASTER_PORT", "MASTER_ADDR", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT")),
    Launcher("Slurm", "SLURM_PROCID", "SLURM_NTASKS",
             ("SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE", "SLURM_NTASKS_PER_NODE"),
             ("SLURM_STEP_ID", "SLURM_JOB_ID")),  # of srun; a batch script is one process
    Launcher("Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", ("OMPI_COMM_WORLD_LOCAL_SIZE",), ("PMIX_NAMESPACE",)),
    Launcher("PMI", "PMI_RANK", "PMI_SIZE", ("MPI_LOCALNRANKS",), ()),
)


def _number(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ConfigError(f"the environment variable {name} should be a whole number, got {text!r}") from None


def launched(environment: Mapping[str, str] = os.environ) -> Optional[Tuple[int, int]]:
    """(rank, world size) as the launcher set them; None when there is none."""
    for launcher in LAUNCHERS:
        if launcher.rank in environment and launcher.world in environment:
            rank, world = (_number(name, environment[name]) for name in (launcher.rank, launcher.world))
            if not 0 <= rank < world:
                raise ConfigError(f"{launcher.name} set {launcher.rank}={rank} and {launcher.world}={world}: ranks are 0 to "
                                  f"{launcher.world} - 1; pass rank and world_size to overrule it")
            return rank, world
    return None


def resolve(rank: Any, world_size: Any, environment: Mapping[str, str] = os.environ) -> Tuple[int, int]:
    if rank is None and world_size is None:
        return launched(environment) or (0, 1)
    if rank is None or world_size is None:
        missing, given = ("rank", "world_size") if rank is None else ("world_size", "rank")
        raise ConfigError(f"{given} was given without {missing}: give both, or none to take them from the launcher")
    world_size = whole("world_size", world_size, 1, (1 << 32) - 1)
    rank = whole("rank", rank)
    if rank >= world_size:
        raise ConfigError(f"Invalid rank {rank}, rank should be in the interval [0, {world_size - 1}]")
    return rank, world_size


def _tasks_here(text: str, environment: Mapping[str, str]) -> Optional[int]:
    """Slurm's tasks of every node, "4(x2),3": those of this one. Of a single number: that."""
    counts: List[int] = []
    here = environment.get("SLURM_NODEID", "0")
    for part in text.split(","):
        count, _, times = part.rstrip(")").partition("(x")
        if not (count.isascii() and count.isdecimal() and (not times or times.isascii() and times.isdecimal())):
            return None
        counts += [int(count)] * min(int(times or 1), 1 << 16)
    place = int(here) if here.isascii() and here.isdecimal() else 0
    return counts[0] if len(counts) == 1 else counts[place] if place < len(counts) else None


def _local(launcher: Launcher, environment: Mapping[str, str]) -> Optional[int]:
    for name in launcher.local:
        count = _tasks_here(environment.get(name, ""), environment)
        if count:
            return count
    return None


def said_on_this_host(world_size: int, environment: Mapping[str, str] = os.environ) -> Optional[int]:
    """How many learners share this machine, if the launcher says."""
    for launcher in LAUNCHERS:
        count = _local(launcher, environment)
        if count:
            return min(world_size, count)
    return None


def on_this_host(world_size: int, environment: Mapping[str, str] = os.environ) -> int:
    """The same; all of them when nobody says."""
    return said_on_this_host(world_size, environment) or world_size


class Job(NamedTuple):
    """The ranks of this job on this machine."""

    name: str  # of the host that is theirs
    ranks: int


def _jobs(rank: int, world_size: int, environment: Mapping[str, str]) -> Iterator[Job]:
    for launcher in LAUNCHERS:
        given = (environment.get(launcher.rank), environment.get(launcher.world))
        if given != (str(rank), str(world_size)) or not launcher.job or not environment.get(launcher.job[0]):
            continue
        text = "\0".join(f"{name}={environment.get(name, '')}" for name in launcher.job)
        kind = launcher.name.lower().replace(" ", "")
        yield Job(f"{kind}-{_foreload.xxh3(os.fsencode(text)):016x}", min(world_size, _local(launcher, environment) or 1))


def job_of(rank: int, world_size: int, environment: Mapping[str, str] = os.environ) -> Optional[Job]:
    """None: no launcher names the job of this rank."""
    return next(_jobs(rank, world_size, environment), None)


def job_here(rank: int, world_size: int, environment: Mapping[str, str] = os.environ) -> Optional[Job]:
    """None: this is no rank of a job that has several of them on this machine, or nobody says so."""
    return next((job for job in _jobs(rank, world_size, environment) if job.ranks > 1), None)
