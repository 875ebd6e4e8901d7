"""The table of MPI's collective calls: each is described once, and everything else about it is derived."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple

__all__ = ["CALLS", "COLLECTIVES", "LEVELS", "NATIVE", "NO_NEEDS", "CallSpec", "Counts", "Form", "Needs", "calls_of"]

NATIVE, LEVELS = "native", "levels"  # the algorithms without a schedule: the MPI library's own, and leaders' stages


class Form(Enum):
    """The pattern of a call: which parts of the messages go to which ranks."""

    NOTHING = auto()  # ranks wait for each other
    BROADCAST = auto()  # the root's message to all
    GATHER = auto()  # a block of each rank to the root, or to all where there is no root
    SCATTER = auto()  # a block for each rank from the root
    ALLTOALL = auto()  # a block from each rank to each
    REDUCTION = auto()  # a vector of each rank combined, for the root or for all ranks
    REDUCE_SCATTER = auto()  # likewise, a part of the result for each rank


class Counts(Enum):
    """In what the blocks of a call may differ from each other."""

    EQUAL = auto()  # they are of one size
    COUNTED = auto()  # each has a size of its own
    TYPED = auto()  # each has a size and a datatype of its own


class Needs(NamedTuple):
    """The demands of a reduction's operation on the algorithm that applies it.

    :param order: whether operands are combined in the order of ranks: the operation does not commute.
    :param whole: whether each application gets the whole vector. MPI lets a library cut it at elements, but operations
        that users write relate one element to another, and work because libraries rarely cut.
    """

    order: bool = False
    whole: bool = False


NO_NEEDS = Needs()  # of predefined operations, and of calls without one


@dataclass(frozen=True)
class CallSpec:
    """A blocking collective on buffers, as mpi4py spells it; its other forms follow from it.

    :param name: mpi4py's; ``Igather``, ``Gather_init`` and ``gather`` stand for ``Gather``.
    :param parameters: in their order; ``root`` and ``op`` mean the same in all calls.
    :param collective: whose schedules can run it, a key of ``schedules.ALGORITHMS``; without schedules, its own name.
    :param form: its pattern.
    :param counts: in what its blocks may differ.
    :param sized_by: place among the parameters of a message that, as an array, has as many bytes as the size by which
        the call's algorithm is chosen (``sizes.nbytes``); None if no message has.
    :param leaders: whether ``execution.leaders`` can run it over the leaders of the job's levels.
    """

    name: str
    parameters: tuple[str, ...]
    collective: str
    form: Form
    counts: Counts = Counts.EQUAL
    sized_by: int | None = None
    leaders: bool = False

    @property
    def rooted(self) -> bool:
        """Whether one rank is the root."""
        return "root" in self.parameters

    @property
    def reduces(self) -> bool:
        """Whether an operation combines what the ranks send."""
        return "op" in self.parameters

    @property
    def local(self) -> bool:
        """Whether a rank other than the root knows the sizes of its own blocks only."""
        return self.counts is not Counts.EQUAL and (self.rooted or self.form is Form.ALLTOALL)

    @property
    def kind(self) -> tuple[bool, bool]:
        """What calls have in common whose messages over leaders keep apart by the collectives that carry them."""
        return self.rooted, self.local

    @property
    def uneven(self) -> bool:
        """Whether each rank has blocks of its own sizes for every other, so that none of them is the call's size."""
        return self.counts is not Counts.EQUAL and self.form is Form.ALLTOALL

    @property
    def number(self) -> int:
        """The number under which the dispatcher knows the call, from 1."""
        return _NUMBERS[self.name]


_BUFFERS = ("sendbuf", "recvbuf")
_ROOT = (*_BUFFERS, "root")
_OP = (*_BUFFERS, "op")
_COUNTED, _TYPED = Counts.COUNTED, Counts.TYPED

CALLS = {
    spec.name: spec
    for spec in (
        CallSpec("Barrier", (), "barrier", Form.NOTHING, leaders=True),
        CallSpec("Bcast", ("buf", "root"), "bcast", Form.BROADCAST, sized_by=0, leaders=True),
        CallSpec("Gather", _ROOT, "gather", Form.GATHER, sized_by=0, leaders=True),
        CallSpec("Gatherv", _ROOT, "gather", Form.GATHER, _COUNTED, leaders=True),
        CallSpec("Scatter", _ROOT, "scatter", Form.SCATTER, sized_by=1, leaders=True),
        CallSpec("Scatterv", _ROOT, "scatter", Form.SCATTER, _COUNTED, leaders=True),
        CallSpec("Allgather", _BUFFERS, "allgather", Form.GATHER, sized_by=1, leaders=True),
        CallSpec("Allgatherv", _BUFFERS, "allgather", Form.GATHER, _COUNTED, leaders=True),
        CallSpec("Reduce", (*_OP, "root"), "reduce", Form.REDUCTION, sized_by=0, leaders=True),
        CallSpec("Allreduce", _OP, "allreduce", Form.REDUCTION, sized_by=1, leaders=True),
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


def calls_of(collective: str) -> tuple[str, ...]:
    """Names of the calls that the schedules of a collective can run."""
    return tuple(name for name, spec in CALLS.items() if spec.collective == collective)
