"""The plan of one rank's part of a neighbourhood collective, bound to the memory of a call."""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ....schedules.schedule import INPUT, OUTPUT, SCRATCH
from ....schedules.sparse.exchange import EdgeBlocks, Exchange, ExchangeStage
from ..areas import Area, Call, Span
from ..binding import Sent
from ..compiled import Program, program_of
from ..contexts import Channel
from ..groups import Groups
from ..plan import Message, Moves, Plan, Step
from ..program import Flight, PlannedRun, Resumable
from ..resumable import Freeable, ResumableRun
from .arguments import Side

__all__ = ["bound", "plan_of", "resumable", "scratch_of"]

Integers = NDArray[np.int64]


# The steps of ``Exchange.middle`` but the first, which do not depend on a call's memory.
_later_steps: WeakKeyDictionary[Exchange, tuple[Step, ...]] = WeakKeyDictionary()


def plan_of(exchange: Exchange, sent: EdgeBlocks, received: EdgeBlocks) -> Plan:
    """The plan of an exchange, whose direct messages last until all stages are complete.

    :param exchange: one rank's part.
    :param sent: the blocks of the input.
    :param received: the blocks of the output.
    """
    later = _later_steps.get(exchange)
    if later is None:
        later = _later_steps[exchange] = tuple(map(_step, exchange.middle[1:]))
    first, collect, *_, last = exchange.stages(sent, received)
    return Plan((_step(first), _step(collect), *later, _step(last)), 2, exchange.scratch, 0, False, lasting=True)


def scratch_of(nbytes: int) -> Span:
    """Scratch memory of as many bytes."""
    return Span.of_bytes(np.empty(nbytes, dtype=np.uint8), 1)


def bound(
    exchange: Exchange, sent: Side, received: Side, groups: Groups, channel: Channel, scratch: Span
) -> tuple[list[Call], Program | None]:
    """The calls that run an exchange with the memory of a blocking call, and their program if it is the only one.

    :param exchange: this rank's part.
    :param sent: the memory of the send message.
    :param received: the memory of the receive message.
    :param groups: the communicator and its sub-communicators.
    :param channel: the channel of all messages.
    :param scratch: scratch memory, which all calls of the exchange may use one after the other.
    """
    plan, areas = _planned(exchange, sent, received, scratch)
    program = program_of(plan, areas, channel.comm, None, channel.tag)
    run = PlannedRun(plan, areas, channel.comm, groups.alone, None, channel.tag)
    calls = run.calls() if program is None else [(program.run, ())]
    return [*sent.before, *calls, *received.after], program if sent.by_address and received.by_address else None


def resumable(
    exchange: Exchange,
    sent: Side,
    received: Side,
    groups: Groups,
    channel: Channel,
    first: Sequence[Resumable] = (),
    *,
    lasting: bool,
) -> tuple[ResumableRun, Program | None]:
    """The run of an exchange, to be begun many times, and its program if it runs nothing else.

    :param exchange: this rank's part.
    :param sent: the memory of the send message.
    :param received: the memory of the receive message.
    :param groups: the communicator and its sub-communicators.
    :param channel: the channel of all messages.
    :param first: calls before all others.
    :param lasting: whether the run is a persistent request's, which keeps the memory of the messages alive, outlives
        the communicator, and says what it sends.
    """
    plan, areas = _planned(exchange, sent, received, scratch_of(exchange.scratch))
    run = PlannedRun(plan, areas, channel.comm, groups.alone, None, channel.tag)
    program = program_of(plan, areas, channel.comm, None, channel.tag)
    calls, flights = run.resumable_calls() if program is None else _in_parts(program)
    copies = ([Resumable(*call) for call in some] for some in (sent.before, received.after))
    before, after = copies
    alone = not first and sent.by_address and received.by_address
    held: list[Freeable] = [*flights, *([groups.held()] if lasting else [])]
    kept = (areas if lasting else areas[SCRATCH],)  # a program has addresses alone
    made = ResumableRun([*first, *before, *calls, *after], held, kept, Sent.of(plan, areas) if lasting else None)
    return made, program if alone else None


def _in_parts(program: Program) -> tuple[list[Resumable], list[Flight]]:
    return [Resumable(program.begin, ()), Resumable(program.finish, (), program.advance)], []


def _planned(exchange: Exchange, sent: Side, received: Side, scratch: Span) -> tuple[Plan, dict[int, Area]]:
    areas: dict[int, Area] = {INPUT: sent.area, OUTPUT: received.area, SCRATCH: scratch}
    return plan_of(exchange, sent.blocks, received.blocks), areas


def _step(stage: ExchangeStage) -> Step:
    receives, sends = (tuple(Message(*row) for row in some.tolist()) for some in (stage.receives, stage.sends))
    return Step(tuple(_moves(stage.moves)), receives, sends, ())


def _moves(rows: Integers) -> list[Moves]:
    """The copies, grouped by pairs of buffers."""
    found = []
    for here, there in sorted(set(map(tuple, rows[:, [0, 2]].tolist()))):
        some = rows[(rows[:, 0] == here) & (rows[:, 2] == there)]
        found.append(Moves(here, some[:, 1], there, some[:, 3], some[:, 4]))
    return found
