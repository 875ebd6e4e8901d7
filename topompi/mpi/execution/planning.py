"""The making of plans: a rank's transfers in a schedule on the communicator's network, and their compiled form."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...schedules import ALGORITHMS, Network, Schedule, ScheduleError, check, find_algorithm
from ...schedules.alltoall.hostschedule import HostSchedule
from ...schedules.network import DEPTH_FIRST
from ...schedules.proof.contributions import ranges_of
from ...schedules.proof.history import History
from ...schedules.proof.places import BlockPlaces
from ...schedules.proof.values import Values
from ...schedules.schedule import ROOTED
from ...schedules.segments import cut, divides, segments_of
from .executor import Executor
from .operands import Operands
from .plan import Plan, PlanPart, compile_part
from .specs import CallSpec

__all__ = ["UNPLANNED", "part_of", "plan_of", "share_costly"]

Integers = NDArray[np.int64]

UNPLANNED = "no plan takes messages in a device's memory, or of so many blocks"
# Maximum number of ranks for which it is proved that a schedule keeps rank order. The proof has all ranks' transfers
# and blocks in memory.
MOST_PROVED = 512


def plan_of(executor: Executor, spec: CallSpec, algorithm: str, operands: Operands) -> Plan | None:
    """Make this rank's plan of a call; the result is None, on all ranks, if no plan can be made.

    :param executor: the executor, which caches the communicator's plans. If the result is None, the reason is put into
        its ``unplanned``.
    :param spec: the description of the call.
    :param algorithm: name of a schedule, with or without a segment size (``ring/32K``).
    :param operands: the operands of the call on this rank.

    Cost: generating the schedule as in ``part_of``, and compiling this rank's transfers; once per size, operation,
    root.
    """
    ordered = operands.op is not None and not operands.op.Is_commutative()
    if operands.empty:
        return Plan((), 1, 0, 0, False)
    counts = operands.counts
    name, segment = cut(algorithm)
    blocks, slices = _pieces(executor, spec.collective, name, segment, operands)
    sizes = operands.length, operands.shift, operands.scale, None if counts is None else counts.tobytes()
    refusal = executor.shared.get((spec.collective, name))
    # Not put into the cache of plans, because communicators that share it may have the schedule.
    if isinstance(refusal, str):
        executor.unplanned[spec.name, algorithm] = refusal
        return None
    key = ("plan", spec.collective, name, blocks, slices, operands.root, *sizes, ordered)

    def make() -> Plan | str:
        part = part_of(executor, spec.collective, name, operands.root, counts, ordered, blocks)
        if isinstance(part, str):
            return part
        try:
            return compile_part(part, operands.length, operands.shift, slices, operands.scale)
        except ValueError as error:
            return str(error)

    made = executor.plans.made(key, make)
    if isinstance(made, Plan):
        return made
    executor.unplanned[spec.name, algorithm] = str(made)
    return None


def _pieces(
    executor: Executor, collective: str, name: str, segment: int | None, operands: Operands
) -> tuple[int | None, int]:
    """The numbers of blocks and of slices into which a call's data are cut.

    Some algorithms cut the message into blocks; then the number of slices is 1. For the other ones every transfer is
    cut into slices; then the number of blocks is None, because the algorithm chooses it.

    :param executor: the executor.
    :param collective: a key of ``schedules.ALGORITHMS``.
    :param name: name of the algorithm.
    :param segment: maximum bytes of a segment; None if the algorithm's name has no size.
    :param operands: the operands of the call on this rank.
    """
    nbytes = (operands.length or 0) * operands.extent
    if segment is None:
        known = ALGORITHMS[collective].get(name)
        return (known.blocks_of(executor.network, nbytes) if known is not None and known.parts else None), 1
    if divides(collective, name):
        return segments_of(nbytes, segment), 1
    if operands.length is not None:
        longest = -(-operands.length // executor.groups.size)
    else:
        longest = operands.scale * (1 if operands.counts is None else int(operands.counts.max()))
    return None, segments_of(longest * operands.extent, segment)


def part_of(
    executor: Executor,
    collective: str,
    algorithm: str,
    root: int | None,
    counts: Integers | None,
    ordered: bool,
    blocks: int | None = None,
) -> PlanPart | str:
    """The transfers of a schedule in which this rank takes part, or the reason, equal on all ranks, why there are none.

    :param executor: the executor, which caches this rank's transfers in schedules.
    :param collective: a key of ``schedules.ALGORITHMS``.
    :param algorithm: a key of ``schedules.ALGORITHMS[collective]``, ``module:function``, or a schedule's JSON file.
    :param root: the root; None in a collective without one.
    :param counts: number of each rank's blocks, shape (ranks,), for calls with uneven blocks whose counts all ranks
        know; else None.
    :param ordered: True if reductions must keep rank order.
    :param blocks: number of blocks into which the message is divided; if it is None, the algorithm chooses it.

    Cost: generating the schedule and this rank's transfers, once per set of arguments. If ``ordered``, also the proof
    that the transfers of all ranks keep rank order; for more than ``MOST_PROVED`` ranks a reason is returned instead.
    """
    if isinstance(refusal := executor.shared.get((collective, algorithm)), str):
        return refusal
    key = ("part", collective, algorithm, root, None if counts is None else counts.tobytes(), ordered, blocks)
    wanted = _Wanted(collective, algorithm, root, counts, ordered, blocks)
    made: PlanPart | str = executor.plans.made(key, lambda: _made(executor, wanted))
    return made


def share_costly(executor: Executor, collective: str, algorithm: str) -> None:
    """Make the part of an algorithm that is costly to make on rank 0, and send it to all ranks; collective.

    It is a schedule or, for a routed algorithm, the order of hosts along rings and chains. It is called at the first
    call of the algorithm on a communicator (see ``eligibility.is_ready``), which is the same call on all ranks, because
    it does not depend on buffers and counts.

    :param executor: the communicator's executor, whose ``shared`` takes the schedule or the order.
    :param collective: a key of ``schedules.ALGORITHMS``.
    :param algorithm: a key of ``schedules.ALGORITHMS[collective]``.

    Cost: generating the schedule on rank 0, and one broadcast of its compact form, 12 bytes per pair of hosts; or the
    search of the order on rank 0, and one broadcast of 8 bytes per host.
    """
    entry = ALGORITHMS[collective][algorithm]
    if entry.routed:
        executor.take_order(executor.groups.talks.from_rank_0(lambda: _order_of(executor)))
        return

    def make() -> HostSchedule | Schedule | str:
        try:
            return entry.generate(executor.network)
        except (ValueError, ScheduleError) as error:
            return str(error)

    made = executor.groups.talks.from_rank_0(make)
    executor.shared[collective, algorithm] = made.expand() if isinstance(made, HostSchedule) else made


def _order_of(executor: Executor) -> Integers:
    from ...schedules.orders import with_order  # imported late because one rank needs it, and it imports scipy

    order = with_order(executor.network, executor.former_order).order
    return DEPTH_FIRST if order is None else order


class _Wanted(NamedTuple):
    """The arguments of ``part_of`` without the executor."""

    collective: str
    algorithm: str
    root: int | None
    counts: Integers | None
    ordered: bool
    blocks: int | None


def _made(executor: Executor, wanted: _Wanted) -> PlanPart | str:
    try:
        rank, schedule = executor.groups.rank, executor.shared.get((wanted.collective, wanted.algorithm))
        if not isinstance(schedule, Schedule):
            schedule = _generated(executor.network, wanted)
        rows = schedule.rows_of(rank)
        precedes = np.ones(len(rows), dtype=bool)
        if wanted.ordered:
            if schedule.size > MOST_PROVED:
                return f"rank order is proved for up to {MOST_PROVED} ranks, got {schedule.size}"
            precedes = _precedes(schedule)[schedule.of_rank(rank)]
    except (ValueError, ScheduleError) as error:
        return str(error)
    return PlanPart(rank, rows, precedes, schedule.blocks, schedule.independent, schedule.window)


def _generated(network: Network, wanted: _Wanted) -> Schedule:
    """The schedule, with the parameters that the algorithm takes; see ``schedules.make``."""
    chosen = find_algorithm(wanted.collective, wanted.algorithm)
    root = (wanted.root or 0) if wanted.collective in ROOTED else 0
    made = chosen.generate(network, root, wanted.blocks, wanted.counts, ordered=wanted.ordered)
    return made.expand() if isinstance(made, HostSchedule) else made


def _precedes(schedule: Schedule) -> NDArray[np.bool_]:
    """True for each transfer whose data must be the first operand of its reduction, shape (transfers,).

    They must if they come from lower ranks than the data with which they are combined.

    :raises ScheduleError: if the schedule does not keep rank order.
    :raises ValueError: if a transfer has both blocks from lower and blocks from higher ranks.
    """
    check(schedule, commutative=False)
    places = BlockPlaces(schedule)
    places.reach(schedule.num_rows)
    history = History(schedule, places, schedule.num_rows)
    reductions = Values(history).reductions()
    ranges = ranges_of(reductions, schedule.size, places.num_inputs // schedule.size)
    # Combines two values, because a schedule that keeps rank order adds one value at a time.
    brings = ranges[reductions.terms, 0] < ranges[reductions.start, 0]
    row = history.row[reductions.moves]
    precedes = np.ones(schedule.num_rows, dtype=bool)
    precedes[row] = brings
    if (precedes[row] != brings).any():
        raise ValueError("expecting rows whose blocks all come from lower ranks, or all from higher ones")
    return precedes
