"""Other machines of the job: which they are, and what this one is called among its own processes."""
from __future__ import annotations

import os
from typing import Any, Dict, List, Mapping, Optional

from . import _ranks
from ._arguments import same, text, whole, word, wrong
from .errors import ConfigError

AUTO = "auto"  # as the launcher says, or the agent that runs here already
MOST_RATE = 1_000_000
NAMELESS = "peers"  # a host without a launcher's job, here as in `foreload run`
WANTED = "a list of 'host:port', one for each machine, in the order of ranks, or 'auto'"


def options(given: Dict[str, Any], world: int) -> Dict[str, Any]:
    """Of a loader; nothing when there are no peers."""
    assignment = word("assignment", given["assignment"], ["balanced", "slice"])
    names = _names(given["peers"])
    if names is None:
        for name, unused in (("credentials", None), ("rates", None), ("assignment", "balanced")):
            if not same(given[name], unused):
                raise ConfigError(f"{name} is for jobs over several machines: give peers, too, or leave it out")
        return {}
    found = {"peers": ",".join(names), "assignment": assignment, "local_world": _local_world(names, world)}
    if given["credentials"] is not None:
        found["credentials"] = text("credentials", given["credentials"], "the path of a folder")
        if not found["credentials"]:
            raise wrong("credentials", "the path of a folder", given["credentials"])
    if given["rates"] is not None:
        found["rates"] = _rates(given["rates"], world)
    return found


def _names(given: Any) -> Optional[List[str]]:
    if given is None or given is False:
        return None
    if given is True or same(given, AUTO):
        return [AUTO]
    names = given.split(",") if isinstance(given, str) else given
    if not isinstance(names, (list, tuple)) or not names:
        raise wrong("peers", WANTED, given)
    for name in names:
        if not isinstance(name, str) or not name.strip() or "," in name or "\0" in name or name.strip() == AUTO:
            raise wrong("peers", WANTED, given)
    return [name.strip() for name in names]


def _local_world(names: List[str], world: int) -> int:
    here = _ranks.said_on_this_host(world)
    if here or names == [AUTO]:
        return here or world
    if world % len(names) != 0:
        raise ConfigError(f"{world} ranks are not dealt evenly to {len(names)} peers, and no launcher says how many are on this "
                          "machine: set the environment variable LOCAL_WORLD_SIZE, as torchrun does")
    return world // len(names)


def _rates(given: Any, world: int) -> List[int]:
    values = given.tolist() if callable(getattr(given, "tolist", None)) else given
    if not isinstance(values, (list, tuple)) or len(values) != world:
        raise wrong("rates", f"a list of whole numbers, one for each of {world} ranks", given)
    return [whole(f"rates[{rank}]", rate, 1, MOST_RATE) for rank, rate in enumerate(values)]


def host_here(rank: int, world: int, environment: Mapping[str, str] = os.environ) -> _ranks.Job:
    """What the ranks of this machine call their host when nobody named it; `ranks` are 1 when no launcher counts them.

    Machines that a launcher tells apart have different names even where one machine plays several of them.
    """
    job = _ranks.job_of(rank, world, environment)
    if job is None:
        return _ranks.Job(NAMELESS, 1)
    node = environment.get("GROUP_RANK") or environment.get("SLURM_NODEID") or "0"
    return _ranks.Job(f"{job.name}-{node[:8]}", job.ranks)
