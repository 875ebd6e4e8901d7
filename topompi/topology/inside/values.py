"""The inside of one host as a value."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...errors import FabricError
from .cpus import lowest

__all__ = ["CORE", "KINDS", "NUMA", "PACKAGE", "Adapter", "Inside", "Part", "guid_of"]

PACKAGE, NUMA, CORE = "package", "NUMA node", "core"
KINDS = (PACKAGE, NUMA, "L5", "L4", "L3", "L2", "L1")  # what can be a level inside a host, coarsest first
_DIGITS = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True)
class Part:
    """CPUs that share something.

    :param kind: one of KINDS, or ``core``.
    :param number: the system's own of a package or NUMA node; of a cache or core the lowest of its CPUs.
    :param cpus: bit i for CPU i; 0 for memory without CPUs.
    """

    kind: str
    number: int
    cpus: int


@dataclass(frozen=True)
class Adapter:
    """An adapter of a fabric.

    :param name: the system's, such as ``mlx5_0``.
    :param guid: of the device, as fabrics write it.
    :param ports: GUID of each port, in their order.
    :param cpus: those near it, bit i for CPU i; 0 where unknown.
    """

    name: str
    guid: str
    ports: tuple[str, ...] = ()
    cpus: int = 0

    def guids(self) -> tuple[str, ...]:
        """By what a fabric may know it: its ports', then its own."""
        return (*self.ports, self.guid)


@dataclass(frozen=True)
class Inside:
    """What one host is made of.

    :param source: where this came from, in words.
    :param host: its name, empty where the source does not say.
    :param cpus: all CPUs, bit i for CPU i.
    :param packages: disjoint, ascending by their lowest CPU, as all parts are.
    :param numa_nodes: two of the same CPUs are memories of two kinds.
    :param caches: those that several cores share; those of one kind are disjoint.
    :param cores: disjoint.
    :param adapters: of fabrics, those with a GUID.
    """

    source: str
    host: str
    cpus: int
    packages: tuple[Part, ...]
    numa_nodes: tuple[Part, ...]
    caches: tuple[Part, ...]
    cores: tuple[Part, ...]
    adapters: tuple[Adapter, ...] = ()

    @classmethod
    def of(cls, source: str, host: str, cpus: int, parts: Sequence[Part], adapters: Sequence[Adapter] = ()) -> Inside:
        """The value made of parts in any order, with caches of single cores among them.

        :param source: where this came from, in words.
        :param host: its name.
        :param cpus: all CPUs.
        :param parts: of all kinds; the same one may be there twice.
        :param adapters: of fabrics.
        :raises FabricError: where two packages, two cores or two caches of one kind have CPUs in common.
        """
        of_kind: dict[str, list[Part]] = {}
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
        """The number of the smallest part of each kind that holds these CPUs, -1 where none does."""
        found = {PACKAGE: -1, NUMA: -1} | {cache.kind: -1 for cache in self.caches}
        for part in sorted(self.parts(), key=lambda part: -part.cpus.bit_count()):
            if cpus and not cpus & ~part.cpus:
                found[part.kind] = part.number
        return found

    def parts(self) -> Iterator[Part]:
        """Packages, NUMA nodes and shared caches."""
        yield from self.packages
        yield from self.numa_nodes
        yield from self.caches

    def guids(self) -> tuple[str, ...]:
        """Those of all adapters, as fabrics write them."""
        return tuple(guid for adapter in self.adapters for guid in adapter.guids())


def _check_disjoint(source: str, kind: str, parts: Sequence[Part]) -> None:
    taken = 0
    for part in parts:
        if taken & part.cpus:
            twice = lowest(taken & part.cpus)
            raise FabricError(f"{source}: expecting CPU {twice} in one {kind}, got it in two")
        taken |= part.cpus


def _shared(caches: Sequence[Part], cores: Sequence[Part]) -> Iterator[Part]:
    """The caches whose CPUs are not all of one core."""
    core_of = {lowest(core.cpus): core.cpus for core in cores}
    return (cache for cache in caches if cache.cpus & ~core_of.get(lowest(cache.cpus), 0))


def guid_of(digits: str) -> str:
    """A GUID as fabrics write it, of what systems write: ``0002:c903:0006:dbf0``; of a GID its last half.

    :raises ValueError: if it is none, or nought.
    """
    plain = digits.strip().replace(":", "")[-16:].lower()
    if not _DIGITS.fullmatch(plain) or not int(plain, 16):
        raise ValueError(f"expecting a GUID, got {digits[:60]!r}")
    return f"0x{int(plain, 16):016x}"
