"""Kinds of programs: the resource that bounds a program, and how it uses that resource."""

from __future__ import annotations

from enum import Enum

from ..profiles.system import KindLimits, Tag

__all__ = ["WAITING", "Kind", "kind_of"]

# Calls whose time is mostly that of a late partner, by lower-case names without MPI_.
WAITING = frozenset({"wait", "waitall", "waitany", "waitsome", "barrier", "recv", "probe"})


class Kind(Enum):
    """A kind of program. The value stands in files."""

    C_HEAVY = "C_HEAVY"
    C_MEM = "C_MEM"
    C_COMM = "C_COMM"
    M = "M"
    M_IRR = "M_IRR"
    X_USEFUL = "X_USEFUL"
    X_IDLE = "X_IDLE"

    @property
    def words(self) -> str:
        """The kind in words."""
        return _WORDS[self]


_WORDS = {
    Kind.C_HEAVY: "heavily compute-bound",
    Kind.C_MEM: "compute-bound with memory accesses",
    Kind.C_COMM: "compute-bound with communication",
    Kind.M: "memory-bound",
    Kind.M_IRR: "memory-bound with irregular accesses",
    Kind.X_USEFUL: "communication-bound, data moves",
    Kind.X_IDLE: "communication-bound, waits",
}


def kind_of(tag: Tag, thresholds: KindLimits) -> Kind:
    """Return the kind of a program: its largest axis of FLOPS, memory and MPI time, divided by a second axis.

    Communication is tested before memory, because LU and BT differ in communication only.

    :param tag: the program's profile on normalised axes.
    :param thresholds: limits between the kinds.
    :raises ColocationError: if an axis that decides is unknown.
    """
    tag.require("flops", "memory", "mpi")
    most = max(tag.flops, tag.memory, tag.mpi)
    if tag.flops == most:
        if tag.mpi >= thresholds.communication:
            return Kind.C_COMM
        return Kind.C_MEM if tag.memory >= thresholds.memory else Kind.C_HEAVY
    if tag.memory == most:
        tag.require("misses")
        return Kind.M_IRR if tag.misses >= thresholds.irregular else Kind.M
    return Kind.X_IDLE if waiting_share(tag) >= thresholds.idle else Kind.X_USEFUL


def waiting_share(tag: Tag) -> float:
    """Return the share of the time in MPI that the program spends in calls of ``WAITING``.

    :param tag: the program's profile.
    """
    return sum(share for call, share in tag.shares.items() if call.lower().removeprefix("mpi_") in WAITING)
