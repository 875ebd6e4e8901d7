"""Where this process is bound inside its host, as the system or a file of hwloc's tells."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from ...errors import FabricError
from .cpus import cpu_mask, lowest
from .linux import SYSFS, read_system
from .values import Inside

__all__ = ["XML_FILE", "Place", "own_place"]

XML_FILE = "HWLOC_XMLFILE"  # hwloc's own variable; an MPI library that reads it places ranks by the same file


class Place(NamedTuple):
    """Where a process is.

    :param domains: number of the package, the NUMA node and of each shared cache that hold all its CPUs, -1 where the
        process may run on several or the system does not say.
    :param guids: of the host's adapters, as fabrics write them.
    """

    domains: dict[str, int]
    guids: tuple[str, ...]


def own_place(
    root: Path = SYSFS, cpus: Iterable[int] | None = None, environment: Mapping[str, str] = os.environ
) -> Place:
    """Where this process is, by the CPUs that it may run on.

    :param root: where Linux's sysfs is mounted.
    :param cpus: CPU numbers; by default those of the process's affinity mask.
    :param environment: where HWLOC_XMLFILE may name a file of hwloc's to read instead; one that cannot be read is
        passed over, as hwloc does.
    Cost: some twenty small files, or that one.
    """
    mask = cpu_mask(_affinity() if cpus is None else cpus)
    inside = _inside(root, mask, environment.get(XML_FILE))
    return Place(inside.domains(mask), inside.guids())


def _affinity() -> set[int]:
    # macOS and Windows have no such call, and no sysfs either
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()


def _inside(root: Path, mask: int, file: str | None) -> Inside:
    if file:
        from .hwlocxml import read_file  # most jobs have no such file

        try:
            return read_file(file)
        except FabricError:
            pass
    try:
        return read_system(root, lowest(mask)) if mask else Inside.of("no CPUs", "", 0, [])
    except FabricError:  # files that contradict each other
        return Inside.of("nothing sound", "", 0, [])
