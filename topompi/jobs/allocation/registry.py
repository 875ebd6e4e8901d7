"""The allocators by name."""

from __future__ import annotations

from collections.abc import Callable

from ..errors import AllocationError
from .blocks import Blocks
from .disjoint import Disjoint, Exact
from .exclusive import Exclusive, LeafExclusive
from .isolated import Isolated
from .oblivious import BestFit, Contiguous, Counts, First
from .state import Allocator

__all__ = ["ALLOCATORS", "find_allocator"]

ALLOCATORS: dict[str, Callable[[], Allocator]] = {
    one.name: one
    for one in (
        Counts,
        First,
        Contiguous,
        BestFit,
        Exclusive,
        Blocks,
        Isolated,
        LeafExclusive,
        Disjoint,
        Exact,
    )
}


def find_allocator(name: str | Allocator) -> Allocator:
    """An allocator by its name, or the given one; ``blocks-ab`` is ``blocks`` without its rules a and b.

    :raises AllocationError: for a name that the registry does not have.
    """
    if isinstance(name, Allocator):
        return name
    if name.startswith("blocks-"):
        return Blocks(off=name.removeprefix("blocks-"))
    if name not in ALLOCATORS:
        raise AllocationError(f"allocator: expecting one of {', '.join(ALLOCATORS)}, got {name!r}")
    return ALLOCATORS[name]()
