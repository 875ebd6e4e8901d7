"""The parts of its host to which this process is bound, and the host of a fabric that has the same adapters."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ...errors import FabricError
from .cpus import cpu_mask, lowest
from .linux import SYSFS, read_system
from .values import Inside

if TYPE_CHECKING:
    from ..fabric import Fabric

__all__ = ["XML_FILE", "ProcessPlace", "host_of", "own_place"]

XML_FILE = "HWLOC_XMLFILE"  # hwloc's variable, read here because MPI libraries with hwloc place ranks by the same file


class ProcessPlace(NamedTuple):
    """The place of a process inside its host.

    :param domains: kind of part (package, NUMA node, shared cache) -> number of the part that contains all the
        process's CPUs, -1 if it may run on several or the system does not tell.
    :param guids: GUIDs of the host's adapters, in the spelling of ``Fabric.adapter_ids``.
    """

    domains: dict[str, int]
    guids: tuple[str, ...]


def own_place(
    root: Path = SYSFS, cpus: Iterable[int] | None = None, environment: Mapping[str, str] = os.environ
) -> ProcessPlace:
    """Find the place of this process inside its host, derived from the CPUs that it may run on.

    :param root: mount point of Linux's sysfs.
    :param cpus: CPU numbers; by default the process's affinity mask.
    :param environment: environment variables; HWLOC_XMLFILE may name an hwloc file to read instead of sysfs. An
        unreadable file is ignored, as it is by hwloc.
    Cost: reading some twenty small files, or the hwloc file.
    """
    mask = cpu_mask(_affinity() if cpus is None else cpus)
    inside = _inside(root, mask, environment.get(XML_FILE))
    return ProcessPlace(inside.domains(mask), inside.guids())


def _affinity() -> set[int]:
    # macOS and Windows have neither this call nor sysfs
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()


def _inside(root: Path, mask: int, file: str | None) -> Inside:
    if file:
        from .hwlocxml import read_file  # imported here, because most jobs have no hwloc file

        try:
            return read_file(file)
        except FabricError:
            pass
    try:
        return read_system(root, lowest(mask)) if mask else Inside.of("no CPUs", "", 0, [])
    except FabricError:  # sysfs contradicts itself, which must not stop a job
        return Inside.of("nothing sound", "", 0, [])


def host_of(fabric: Fabric, guids: Iterable[str]) -> str | None:
    """The host that has the first of these adapters that the fabric contains, None if it contains none of them.

    :param fabric: the fabric to search.
    :param guids: GUIDs of the adapters of one host.
    """
    known = next((fabric.adapter_index[guid] for guid in guids if guid in fabric.adapter_index), None)
    return None if known is None else fabric.hosts[fabric.adapter_host[known]]
