"""Reader of a host's hardware topology from Linux's sysfs: ``/sys/devices/system`` and ``/sys/class/infiniband``."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ...inputs.kernel import kernel_text
from .cpus import lowest, numbers_of, read_cpu_list
from .values import CORE, NUMA, PACKAGE, Adapter, HostPart, Inside, guid_of

__all__ = ["NAME", "SYSFS", "read_system"]

NAME = "Linux's own files"
SYSFS = Path("/sys")


def read_system(root: Path = SYSFS, around: int | None = None) -> Inside:
    """Read the hardware topology of a host from sysfs; files that are missing or malformed are ignored.

    :param root: mount point of sysfs.
    :param around: number of a CPU: only the parts that contain it are read, from some twenty files; None for the whole
        host, from some twenty files per CPU.
    :raises FabricError: if the files contradict each other.
    """
    cpus = _list(root / "devices/system/cpu/online") if around is None else 1 << around
    parts = [
        *_parts(root, cpus, PACKAGE, ("topology/package_cpus_list", "topology/core_siblings_list")),
        *_parts(root, cpus, CORE, ("topology/core_cpus_list", "topology/thread_siblings_list")),
        *_nodes(root, cpus, around is None),
        *_caches(root, cpus),
    ]
    return Inside.of(NAME, platform.node() if root == SYSFS else "", cpus, parts, list(_adapters(root)))


def _parts(root: Path, cpus: int, kind: str, names: tuple[str, str]) -> Iterator[HostPart]:
    """Yield the parts of one kind that contain one or more of the given CPUs.

    :param root: mount point of sysfs.
    :param cpus: set of CPUs, bit i for CPU i.
    :param kind: package or core.
    :param names: name of the file, in each CPU's folder, that lists the CPUs of its part, and that name in older
        kernels.
    """
    while cpus:
        folder = root / f"devices/system/cpu/cpu{lowest(cpus)}"
        members = _list(folder / names[0]) or _list(folder / names[1])
        if members:
            number = _number(folder / "topology/physical_package_id") if kind == PACKAGE else lowest(members)
            yield HostPart(kind, number, members)
        cpus &= ~(members | cpus & -cpus)


def _nodes(root: Path, cpus: int, whole: bool) -> Iterator[HostPart]:
    for folder in (root / "devices/system/node").glob("node[0-9]*"):
        members = _list(folder / "cpulist")
        if folder.name[4:].isdecimal() and (members & cpus or whole):
            yield HostPart(NUMA, int(folder.name[4:]), members)


def _caches(root: Path, cpus: int) -> Iterator[HostPart]:
    for cpu in numbers_of(cpus):
        for folder in (root / f"devices/system/cpu/cpu{cpu}/cache").glob("index[0-9]*"):
            members, level = _list(folder / "shared_cpu_list"), _number(folder / "level")
            if members and 1 <= level <= 5 and kernel_text(folder / "type") != "Instruction":
                yield HostPart(f"L{level}", lowest(members), members)


def _adapters(root: Path) -> Iterator[Adapter]:
    for folder in (root / "class/infiniband").glob("*"):
        ports = sorted(folder.glob("ports/[0-9]*/gids/0"), key=lambda path: int(path.parts[-3]))
        with suppress(ValueError):
            guid = guid_of(kernel_text(folder / "node_guid"))
            yield Adapter(folder.name, guid, tuple(_guids(ports)), _list(folder / "device/local_cpulist"))


def _guids(paths: list[Path]) -> Iterator[str]:
    for path in paths:
        with suppress(ValueError):
            yield guid_of(kernel_text(path))


def _list(path: Path) -> int:
    try:
        return read_cpu_list(kernel_text(path))
    except ValueError:
        return 0


def _number(path: Path) -> int:
    text = kernel_text(path)
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else -1
