"""The host's own levels, as the operating system tells them: package and NUMA node."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

__all__ = ["host_domains", "parse_cpu_list"]


def host_domains(root: Path = Path("/sys"), cpus: Iterable[int] | None = None) -> tuple[int, int]:
    """The package and the NUMA node of the CPUs this process may run on.

    :param root: where Linux's sysfs is mounted.
    :param cpus: CPU numbers; by default those of the process's affinity mask.
    :returns: (package, NUMA node), each -1 where the CPUs span several or the system does not say.
    """
    chosen = _affinity() if cpus is None else set(cpus)
    return _package(root, chosen), _numa_node(root, chosen)


def _affinity() -> set[int]:
    # macOS and Windows have no such call, and no sysfs either
    return set(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else set()


def _package(root: Path, cpus: set[int]) -> int:
    try:
        packages = {
            int((root / f"devices/system/cpu/cpu{cpu}/topology/physical_package_id").read_text()) for cpu in cpus
        }
    except (OSError, ValueError):
        return -1
    return packages.pop() if len(packages) == 1 else -1


def _numa_node(root: Path, cpus: set[int]) -> int:
    for path in (root / "devices/system/node").glob("node[0-9]*/cpulist"):
        try:
            if cpus and cpus <= parse_cpu_list(path.read_text()):
                return int(path.parent.name.removeprefix("node"))
        except (OSError, ValueError):
            continue
    return -1


def parse_cpu_list(text: str) -> set[int]:
    """The numbers of a list as the Linux kernel writes it: ``0-3,8``.

    :raises ValueError: if it is none.
    """
    cpus: set[int] = set()
    for entry in filter(None, text.strip().split(",")):
        first, _, last = entry.partition("-")
        cpus.update(range(int(first), int(last or first) + 1))
    return cpus
