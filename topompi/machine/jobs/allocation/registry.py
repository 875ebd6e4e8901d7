"""The allocators by name, and the function that finds one."""

from __future__ import annotations

from collections.abc import Callable

from ....inputs.extensions import names_function
from ..cluster import Cluster
from ..errors import AllocationError
from ..named import imported_late, made_by
from .apart import Apart
from .blocks import BlockAllocator
from .disjoint import Disjoint, Exact
from .exclusive import Exclusive, LeafExclusive
from .isolated import Isolated
from .oblivious import BestFit, Contiguous, CountingAllocator, First
from .occupancy import Allocator
from .shared import SharingAllocator

__all__ = ["ALLOCATORS", "MADE_FROM", "find_allocator", "within_parts"]

ALLOCATORS: dict[str, Callable[[], Allocator]] = {
    one.name: one
    for one in (
        CountingAllocator,
        First,
        Contiguous,
        BestFit,
        Apart,
        Exclusive,
        BlockAllocator,
        Isolated,
        LeafExclusive,
        Disjoint,
        Exact,
        SharingAllocator,
    )
}

# Allocators of half nodes by name; ``matched`` takes a file of speed-ups after a colon.
MADE_FROM: dict[str, Callable[[str], Allocator]] = {
    "halves": imported_late("machine.colocation.scheduling.registered:halves"),
    "isolated-halves": imported_late("machine.colocation.scheduling.registered:isolated_halves"),
    "matched": imported_late("machine.colocation.scheduling.registered:matched"),
    "isolated-matched": imported_late("machine.colocation.scheduling.registered:isolated_matched"),
}


def find_allocator(name: str | Allocator) -> Allocator:
    """Return the allocator of this name, or the argument if it is an allocator.

    ``blocks-ab`` is ``blocks`` without its rules a and b. ``module:function`` makes an allocator of a user's own, which
    `check_allocator` can test. ``halves`` and ``matched:FILE`` are imported when they are asked for.

    :raises AllocationError: if no allocator has the name, or the function makes no allocator.
    """
    if isinstance(name, Allocator):
        return name
    if name.startswith("blocks-"):
        return BlockAllocator(off=name.removeprefix("blocks-"))
    if name in ALLOCATORS:
        return ALLOCATORS[name]()
    kind, _, word = name.partition(":")
    if kind in MADE_FROM:
        return MADE_FROM[kind](word)
    if not names_function(name):
        known = f"one of {', '.join((*ALLOCATORS, *MADE_FROM))}, or a module:function"
        raise AllocationError(f"allocator: expecting {known}, got {name!r}")
    made = made_by(name, Allocator, AllocationError)
    made.name = made.name or name
    return made


def within_parts(allocator: Allocator, cluster: Cluster) -> Allocator:
    """Return the allocator, restricted to one part per job if the cluster has several and the allocator names nodes."""
    if cluster.part is None or not allocator.names_nodes:
        return allocator
    from .parts import OnePart  # imported here, because few clusters have several parts

    return OnePart(allocator, cluster.part)
