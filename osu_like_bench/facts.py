"""A function that gathers the circumstances of a run (hosts, libraries, processors) from all its ranks."""

from __future__ import annotations

import os
import platform
import sys
from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI

from topompi.errors import BenchmarkError
from topompi.inputs import parse_json

from .cpu import cpu_model
from .record import Circumstances

if TYPE_CHECKING:
    from topompi.topology import TopologyInterface

__all__ = ["gather_facts", "ranges"]


def gather_facts(comm: MPI.Intracomm, topology: TopologyInterface | None) -> Circumstances | None:
    """Return the circumstances of the run on rank 0, None on other ranks. Collective.

    :param comm: communicator of all ranks.
    :param topology: the placement of the ranks; if it is None, their hosts are the machines on which they run.
    """
    rows = comm.gather((MPI.Get_processor_name(), _affinity()))
    if rows is None:
        return None
    nodes, affinities = zip(*rows, strict=True)
    hosts = nodes if topology is None else tuple(topology.hosts[host] for host in topology.rank_host)
    vendor, number = MPI.get_vendor()
    return Circumstances(
        mpi=f"{vendor} {'.'.join(map(str, number))}",
        versions=_versions(),
        ranks=comm.size,
        nodes=nodes,
        hosts=hosts,
        virtual=topology is not None and topology.virtual,
        topology="" if topology is None else topology.source,
        description="" if topology is None else topology.describe(),
        affinity=tuple(map(ranges, affinities)),
        cpu=cpu_model(),
        cpus=os.cpu_count() or 1,
        load=os.getloadavg() if hasattr(os, "getloadavg") else (),
        oversubscribed=_oversubscribed(nodes, affinities),
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        **_arena(),
    )


def _arena() -> dict[str, Any]:
    """Return the facts that an emulated network passes to its ranks; empty if they do not run on one."""
    told = os.environ.get("OSU_EMULATED")
    if told is None:
        return {}
    return {"arena": "emulate", "about": parse_json(told, "OSU_EMULATED", BenchmarkError)}


def ranges(numbers: Iterable[int]) -> str:
    """Format numbers as ascending ranges, ``0-3,8``."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and number == parts[-1][-1] + 1:
            parts[-1][1:] = [number]
        else:
            parts.append([number])
    return ",".join("-".join(map(str, part)) for part in parts)


def _affinity() -> frozenset[int]:
    if hasattr(os, "sched_getaffinity"):  # Linux only
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(os.cpu_count() or 1))


def _oversubscribed(nodes: Iterable[str], affinities: Iterable[frozenset[int]]) -> bool:
    """Return whether a machine has more ranks than CPUs on which they may run."""
    cpus: dict[str, list[frozenset[int]]] = defaultdict(list)
    for node, affinity in zip(nodes, affinities, strict=True):
        cpus[node].append(affinity)
    return any(len(sets) > len(frozenset().union(*sets)) for sets in cpus.values())


def _versions() -> dict[str, str]:
    try:
        own = version("topompi")
    except PackageNotFoundError:
        own = "not installed, run from its source"
    return {
        "mpi": MPI.Get_library_version().splitlines()[0].strip(),
        "mpi4py": version("mpi4py"),
        "numpy": np.__version__,
        "python": sys.version.split()[0],
        "topompi": own,
        "system": platform.platform(),
    }
