"""Which learner this process is: from the arguments, or from what launched it."""
from __future__ import annotations

import os
from typing import Any, Mapping, Optional, Tuple

from ._arguments import whole
from .errors import ConfigError

# The first pair that is set completely counts.
LAUNCHERS = (
    ("torchrun", "RANK", "WORLD_SIZE"),
    ("Slurm", "SLURM_PROCID", "SLURM_NTASKS"),
    ("Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI", "PMI_RANK", "PMI_SIZE"),
)
LOCAL_SIZES = ("LOCAL_WORLD_SIZE", "SLURM_NTASKS_PER_NODE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS")


def _number(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ConfigError(f"the environment variable {name} should be a whole number, got {text!r}") from None


def launched(environment: Mapping[str, str] = os.environ) -> Optional[Tuple[int, int]]:
    """(rank, world size) as the launcher set them; None when there is none."""
    for launcher, rank_name, world_name in LAUNCHERS:
        if rank_name in environment and world_name in environment:
            rank, world = (_number(name, environment[name]) for name in (rank_name, world_name))
            if not 0 <= rank < world:
                raise ConfigError(f"{launcher} set {rank_name}={rank} and {world_name}={world}: ranks are 0 to "
                                  f"{world_name} - 1; pass rank and world_size to overrule it")
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


def on_this_host(world_size: int, environment: Mapping[str, str] = os.environ) -> int:
    """How many learners share this machine: all of them, unless the launcher says."""
    for name in LOCAL_SIZES:
        if environment.get(name, "").isdecimal():
            return max(1, min(world_size, int(environment[name])))
    return world_size
