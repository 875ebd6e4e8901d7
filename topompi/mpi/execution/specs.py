"""The table of MPI's collective calls. Each call is described once; all other facts about it are derived."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple

__all__ = [
    "CALLS",
    "COLLECTIVES",
    "NATIVE",
    "NEIGHBOUR_CALLS",
    "NO_NEEDS",
    "CallSpec",
    "Form",
    "Needs",
    "NeighbourSpec",
    "Varying",
    "calls_of",
]

NATIVE = "native"  # name of the algorithm without a schedule, the MPI library's own


class Form(Enum):
    """The pattern of a call: which parts of the messages go to which ranks."""

    NOTHING = auto()  # no data: a barrier
    BROADCAST = auto()  # the root's message to all ranks
    GATHER = auto()  # a block of each rank to the root, or, without a root, to all
    SCATTER = auto()  # a block for each rank from the root
    ALLTOALL = auto()  # a block from each rank to each rank
    REDUCTION = auto()  # a vector of each rank combined, for the root or for all ranks
    REDUCE_SCATTER = auto()  # a vector of each rank combined, a part of the result for each rank


class Varying(Enum):
    """The properties in which the blocks of a call may differ from each other."""

    EQUAL = auto()  # blocks differ in nothing: all have one size and datatype
    COUNTED = auto()  # blocks may differ in size
    TYPED = auto()  # blocks may differ in size and datatype


class Needs(NamedTuple):
    """The needs of a reduction's operation, which an algorithm must meet to run the call.

    :param order: True if operands must be combined in rank order, because the operation does not commute.
    :param whole: True if the operation must be applied to whole vectors. MPI allows a library to cut a vector at
        elements, but users' operations often relate elements to each other, and work only because libraries rarely cut
        vectors.
    """

    order: bool = False
    whole: bool = False


NO_NEEDS = Needs()  # for predefined operations, and for calls without one


@dataclass(frozen=True)
class CallSpec:
    """A blocking collective on buffers, as mpi4py defines it; the call's other forms are derived from it.

    :param name: name of mpi4py's method; ``Gather`` also stands for ``Igather``, ``Gather_init`` and ``gather``.
    :param parameters: names of the method's parameters in order; ``root`` and ``op`` mean the same in all calls.
    :param collective: the collective whose schedules can run the call, a key of ``schedules.ALGORITHMS``; if there are
        no schedules for the call, a name that is no key.
    :param form: pattern of the call.
    :param counts: properties in which its blocks may differ.
    :param sized_by: index of the parameter whose array has the size in bytes by which the call's algorithm is chosen
        (``sizes.nbytes``); None if no single parameter has this size.
    """

    name: str
    parameters: tuple[str, ...]
    collective: str
    form: Form
    counts: Varying = Varying.EQUAL
    sized_by: int | None = None

    @property
    def rooted(self) -> bool:
        """Whether the call has a root."""
        return "root" in self.parameters

    @property
    def reduces(self) -> bool:
        """Whether an operation combines the ranks' data."""
        return "op" in self.parameters

    @property
    def local(self) -> bool:
        """Whether a rank other than the root knows only the sizes of its own blocks."""
        return self.counts is not Varying.EQUAL and (self.rooted or self.form is Form.ALLTOALL)

    @property
    def uneven(self) -> bool:
        """Whether the blocks that a rank sends may differ in size, so that no single block size describes the call."""
        return self.counts is not Varying.EQUAL and self.form is Form.ALLTOALL

    @property
    def number(self) -> int:
        """The number of the call in the table of calls, from 1."""
        return _NUMBERS[self.name]


_BUFFERS = ("sendbuf", "recvbuf")
_ROOT = (*_BUFFERS, "root")
_OP = (*_BUFFERS, "op")
_COUNTED, _TYPED = Varying.COUNTED, Varying.TYPED

CALLS = {
    spec.name: spec
    for spec in (
        CallSpec("Barrier", (), "barrier", Form.NOTHING),
        CallSpec("Bcast", ("buf", "root"), "bcast", Form.BROADCAST, sized_by=0),
        CallSpec("Gather", _ROOT, "gather", Form.GATHER, sized_by=0),
        CallSpec("Gatherv", _ROOT, "gather", Form.GATHER, _COUNTED),
        CallSpec("Scatter", _ROOT, "scatter", Form.SCATTER, sized_by=1),
        CallSpec("Scatterv", _ROOT, "scatter", Form.SCATTER, _COUNTED),
        CallSpec("Allgather", _BUFFERS, "allgather", Form.GATHER, sized_by=1),
        CallSpec("Allgatherv", _BUFFERS, "allgather", Form.GATHER, _COUNTED),
        CallSpec("Reduce", (*_OP, "root"), "reduce", Form.REDUCTION, sized_by=0),
        CallSpec("Allreduce", _OP, "allreduce", Form.REDUCTION, sized_by=1),
        CallSpec("Scan", _OP, "scan", Form.REDUCTION, sized_by=1),
        CallSpec("Exscan", _OP, "exscan", Form.REDUCTION, sized_by=1),
        CallSpec(
            "Reduce_scatter",
            (*_BUFFERS, "recvcounts", "op"),
            "reduce_scatter",
            Form.REDUCE_SCATTER,
            _COUNTED,
            sized_by=0,
        ),
        CallSpec("Reduce_scatter_block", _OP, "reduce_scatter", Form.REDUCE_SCATTER, sized_by=0),
        CallSpec("Alltoall", _BUFFERS, "alltoall", Form.ALLTOALL, sized_by=1),
        CallSpec("Alltoallv", _BUFFERS, "alltoall", Form.ALLTOALL, _COUNTED),
        CallSpec("Alltoallw", _BUFFERS, "alltoall", Form.ALLTOALL, _TYPED),
    )
}
_NUMBERS = {name: number for number, name in enumerate(CALLS, 1)}
COLLECTIVES = tuple(dict.fromkeys(spec.collective for spec in CALLS.values()))


@dataclass(frozen=True)
class NeighbourSpec:
    """A blocking neighbourhood collective on buffers, as mpi4py defines it.

    :param name: name of mpi4py's method; ``Neighbor_allgather`` also stands for ``Neighbor_allgather_init``.
    :param shares: True for an allgather, in which a rank sends one block along all of its edges.
    :param counts: properties in which its blocks may differ.
    """

    name: str
    shares: bool
    counts: Varying = Varying.EQUAL


NEIGHBOUR_CALLS = {
    spec.name: spec
    for spec in (
        NeighbourSpec("Neighbor_allgather", True),
        NeighbourSpec("Neighbor_allgatherv", True, _COUNTED),
        NeighbourSpec("Neighbor_alltoall", False),
        NeighbourSpec("Neighbor_alltoallv", False, _COUNTED),
        NeighbourSpec("Neighbor_alltoallw", False, _TYPED),
    )
}


def calls_of(collective: str) -> tuple[str, ...]:
    """Names of the calls that the schedules of a collective can run."""
    return tuple(name for name, spec in CALLS.items() if spec.collective == collective)
