"""Bindings: a plan (one rank's steps of a collective) with the buffers of a call, as a list of calls to run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from ...schedules.schedule import INPUT, OUTPUT, SCRATCH
from .areas import Area, Areas, Call, Span
from .buffers import Block, Blocks, Bytes
from .contexts import Channel
from .groups import Groups
from .operands import Operands
from .plan import ARRIVED, Plan
from .program import Flight, PlannedRun, Resumable, message_of

__all__ = ["Binding", "Sent", "bind", "bind_persistent"]


@dataclass(frozen=True, eq=False)
class Sent:
    """The messages that this rank sends in one run of a plan.

    :param peers: destination rank of each message, shape (messages,).
    :param nbytes: bytes of each message, shape (messages,).
    """

    peers: NDArray[np.int64]
    nbytes: NDArray[np.int64]

    @classmethod
    def of(cls, plan: Plan, areas: Mapping[int, Area]) -> Sent:
        """The messages that a plan sends from given areas of memory; units without data are not sent."""
        sends = [(one.peer, message_of(one, areas)) for step in plan.steps for one in step.sends]
        rows = [(peer, message[1] * message[2].Get_size()) for peer, message in sends if message is not None]
        table = np.array(rows, dtype=np.int64).reshape(-1, 2)
        return cls(table[:, 0], table[:, 1])


@dataclass(frozen=True, eq=False)
class Binding:
    """A collective call, ready to run: a plan with the addresses of the call's buffers, as a list of function calls.

    A binding with a plan does not keep the user's memory alive; only a call with buffers at the same addresses may run
    it again.

    :param calls: the function calls, in the order in which they are made.
    :param weight: bytes of memory that the binding owns.
    :param plan: the plan; None if carriers run the call.
    :param areas: memory of each buffer, by number of the buffer.
    :param kept: arguments with memory of topompi, which are used in place of the user's; None if the user's are used.
    """

    calls: list[Call]
    weight: int = 0
    plan: Plan | None = None
    areas: Mapping[int, Area] = field(default_factory=dict)
    kept: tuple[object, ...] | None = None

    @cached_property
    def sent(self) -> Sent:
        """The messages that this rank sends in one run."""
        return Sent.of(self.plan or Plan((), 1, 0, 0, False), self.areas)


def bind(plan: Plan, operands: Operands, groups: Groups, channel: Channel) -> Binding:
    """Make the binding of a plan and the operands of a call, a list of function calls that can be run repeatedly.

    Data without gaps are sent from, and received into, the user's memory. Input with gaps is packed into memory of the
    binding once before the run, and output with gaps is unpacked once after it. Pieces (blocks of different sizes or
    datatypes) are not packed.

    :param plan: this rank's plan.
    :param operands: buffers, extent and operation of the call.
    :param groups: the communicator and its sub-communicators.
    :param channel: the channel of all messages.
    :raises ValueError: if the call is in place, has pieces, and the plan moves or overwrites them.
    """
    areas, before, after = _areas(plan, operands, groups.alone)
    calls = PlannedRun(plan, areas, channel.comm, groups.alone, operands.op, channel.tag).calls()
    weight = (plan.scratch + plan.arrived + plan.overwrites * operands.shared) * operands.extent
    return Binding([*before, *calls, *after], weight, plan, areas)


def bind_persistent(
    plan: Plan, operands: Operands, groups: Groups, channel: Channel
) -> tuple[list[Resumable], list[Flight], Sent]:
    """Bind a plan as ``bind`` does, for a persistent collective, whose run can be interrupted and resumed.

    :param plan: this rank's plan.
    :param operands: buffers, extent and operation of the call.
    :param groups: the communicator and its sub-communicators.
    :param channel: the channel of all messages.
    :returns: the calls of a run; the requests that they start, which the caller frees; and the peers and sizes of the
        messages that a run sends.
    :raises ValueError: if the call is in place, has pieces, and the plan moves or overwrites them.
    """
    areas, before, after = _areas(plan, operands, groups.alone)
    run = PlannedRun(plan, areas, channel.comm, groups.alone, operands.op, channel.tag)
    calls, flights = run.resumable_calls()
    whole = [*(Resumable(*call) for call in before), *calls, *(Resumable(*call) for call in after)]
    return whole, flights, Sent.of(plan, areas)


def _areas(plan: Plan, operands: Operands, alone: MPI.Intracomm) -> tuple[dict[int, Area], list[Call], list[Call]]:
    """The areas of all buffers, the calls that run before the plan's own, and the calls that run after them."""
    if operands.shift is not None and operands.extent == 0 and (plan.overwrites or _moves_any(plan)):
        raise ValueError("expecting pieces that are neither moved nor overwritten")
    areas, before, after = _own_sides(operands, alone)
    _add_areas(plan, operands, areas, before)
    return areas, before, after


def _moves_any(plan: Plan) -> bool:
    return any(step.moves for step in plan.steps)


def _own_sides(operands: Operands, alone: MPI.Intracomm) -> tuple[dict[int, Area], list[Call], list[Call]]:
    """The areas of the user's buffers, the calls that pack data into them, and the calls that unpack data from them."""
    own: dict[int, Area] = {}
    before: list[Call] = []
    after: list[Call] = []
    for buffer, side in ((INPUT, operands.input), (OUTPUT, operands.output)):
        if side is None:
            continue
        if isinstance(side, Areas):
            own[buffer] = side
        elif operands.op is not None and isinstance(side, Block):
            own[buffer] = Span(side.memory(), operands.extent, side.datatype, 1, side.dense)
        elif isinstance(side, Block) and side.dense:
            own[buffer] = Span(side.memory(), operands.extent, MPI.BYTE, operands.extent, True)
        else:
            packed = np.empty(_size(side), dtype=np.uint8)
            own[buffer] = Span.of_bytes(packed, operands.extent)
            if buffer == INPUT or operands.shift is not None:
                before.append(_pack(side, packed, alone))
            if buffer == OUTPUT:
                after.append(_unpack(side, packed, alone))
    return own, before, after


def _size(side: Block | Blocks) -> int:
    return side.size if isinstance(side, Block) else int(side.sizes.sum())


def _pack(side: Block | Blocks, packed: Bytes, alone: MPI.Intracomm) -> Call:
    if isinstance(side, Block):
        return side.copy_to, (packed, alone)
    return side.pack, (packed, np.arange(len(side.counts)), alone)


def _unpack(side: Block | Blocks, packed: Bytes, alone: MPI.Intracomm) -> Call:
    if isinstance(side, Block):
        return side.copy_from, (packed, alone)
    return side.unpack, (packed, np.arange(len(side.counts)), alone)


def _add_areas(plan: Plan, operands: Operands, areas: dict[int, Area], before: list[Call]) -> None:
    """Add the areas of all buffers that are not the user's."""
    given_is_output = OUTPUT in areas
    given = areas.get(OUTPUT if given_is_output else INPUT)
    if not isinstance(given, Span):
        return
    areas[SCRATCH], areas[ARRIVED] = given.like(plan.scratch), given.like(plan.arrived)
    if operands.shift is not None:
        standing = given.within(operands.shift if given_is_output else -operands.shift, operands.shared)
        other = given.like(operands.shared) if plan.overwrites else standing
        areas[INPUT if given_is_output else OUTPUT] = other
        if plan.overwrites and given_is_output:
            before.append((np.copyto, (other.view(), standing.view())))
