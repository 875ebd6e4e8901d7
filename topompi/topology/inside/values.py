"""The hardware topology of one host as an immutable value: its parts and its adapters."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...errors import FabricError
from .cpus import lowest

__all__ = ["CORE", "KINDS", "NUMA", "PACKAGE", "Adapter", "HostPart", "Inside", "guid_of"]

PACKAGE, NUMA, CORE = "package", "NUMA node", "core"
KINDS = (PACKAGE, NUMA, "L5", "L4", "L3", "L2", "L1")  # kinds of parts that can be levels inside a host, coarsest first
_DIGITS = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True)
class HostPart:
    """A part of a host: the set of CPUs that share a package, memory, a cache or a core.

    :param kind: one of KINDS, or ``core``.
    :param number: number of the part: that of the system if it is a package or NUMA node, else that of its lowest CPU.
    :param cpus: set of CPUs, bit i for CPU i; 0 for memory without CPUs.
    """

    kind: str
    number: int
    cpus: int


@dataclass(frozen=True)
class Adapter:
    """A network adapter of a host.

    :param name: the system's name of the device, for example ``mlx5_0``.
    :param guid: GUID of the device, in the spelling of ``Fabric.adapter_ids``.
    :param ports: GUID of each port, in the order of the ports.
    :param cpus: set of CPUs near the adapter, bit i for CPU i; 0 if unknown.
    """

    name: str
    guid: str
    ports: tuple[str, ...] = ()
    cpus: int = 0

    def guids(self) -> tuple[str, ...]:
        """The GUIDs by which a fabric may identify this adapter: those of its ports, then that of the device."""
        return (*self.ports, self.guid)


@dataclass(frozen=True)
class Inside:
    """The hardware topology of one host.

    :param source: source of the description, in words.
    :param host: name of the host, empty if the source does not contain it.
    :param cpus: set of all CPUs, bit i for CPU i.
    :param packages: packages, disjoint. All parts are in ascending order of their lowest CPU.
    :param numa_nodes: NUMA nodes; two nodes may have the same CPUs if a host has two kinds of memory.
    :param caches: caches that several cores share; caches of one kind are disjoint.
    :param cores: cores, disjoint.
    :param adapters: network adapters that have a GUID.
    """

    source: str
    host: str
    cpus: int
    packages: tuple[HostPart, ...]
    numa_nodes: tuple[HostPart, ...]
    caches: tuple[HostPart, ...]
    cores: tuple[HostPart, ...]
    adapters: tuple[Adapter, ...] = ()

    @classmethod
    def of(
        cls, source: str, host: str, cpus: int, parts: Sequence[HostPart], adapters: Sequence[Adapter] = ()
    ) -> Inside:
        """Make the hardware topology from unsorted parts; caches that belong to a single core are left out.

        :param source: source of the description, in words.
        :param host: name of the host.
        :param cpus: set of all CPUs, bit i for CPU i.
        :param parts: parts of all kinds, duplicates allowed.
        :param adapters: network adapters that have a GUID.
        :raises FabricError: if two packages, two cores or two caches of one kind have CPUs in common.
        """
        of_kind: dict[str, list[HostPart]] = {}
        for part in sorted(set(parts), key=lambda part: (lowest(part.cpus), part.number)):
            of_kind.setdefault(part.kind, []).append(part)
        for kind, members in of_kind.items():
            if kind != NUMA:
                _check_disjoint(source, kind, members)
        cores = tuple(of_kind.get(CORE, ()))
        return cls(
            source,
            host,
            cpus,
            tuple(of_kind.get(PACKAGE, ())),
            tuple(of_kind.get(NUMA, ())),
            tuple(part for kind in KINDS[2:] for part in _shared(of_kind.get(kind, []), cores)),
            cores,
            tuple(sorted(adapters, key=lambda adapter: adapter.name)),
        )

    def domains(self, cpus: int) -> dict[str, int]:
        """Map each kind of part to the number of the smallest part that contains all these CPUs, -1 if none does."""
        found = {PACKAGE: -1, NUMA: -1} | {cache.kind: -1 for cache in self.caches}
        for part in sorted(self.parts(), key=lambda part: -part.cpus.bit_count()):
            if cpus and not cpus & ~part.cpus:
                found[part.kind] = part.number
        return found

    def parts(self) -> Iterator[HostPart]:
        """Iterate over all packages, NUMA nodes and shared caches."""
        yield from self.packages
        yield from self.numa_nodes
        yield from self.caches

    def guids(self) -> tuple[str, ...]:
        """The GUIDs of all adapters and their ports, in the spelling of ``Fabric.adapter_ids``."""
        return tuple(guid for adapter in self.adapters for guid in adapter.guids())


def _check_disjoint(source: str, kind: str, parts: Sequence[HostPart]) -> None:
    taken = 0
    for part in parts:
        if taken & part.cpus:
            twice = lowest(taken & part.cpus)
            raise FabricError(f"{source}: expecting CPU {twice} in one {kind}, got it in two")
        taken |= part.cpus


def _shared(caches: Sequence[HostPart], cores: Sequence[HostPart]) -> Iterator[HostPart]:
    """The caches whose CPUs belong to more than one core."""
    core_of = {lowest(core.cpus): core.cpus for core in cores}
    return (cache for cache in caches if cache.cpus & ~core_of.get(lowest(cache.cpus), 0))


def guid_of(digits: str) -> str:
    """Convert the system's spelling of a GUID, ``0002:c903:0006:dbf0``, or a GID's last half, to that of fabrics.

    :raises ValueError: if the text contains no GUID, or the GUID is 0.
    """
    plain = digits.strip().replace(":", "")[-16:].lower()
    if not _DIGITS.fullmatch(plain) or not int(plain, 16):
        raise ValueError(f"expecting a GUID, got {digits[:60]!r}")
    return f"0x{int(plain, 16):016x}"
