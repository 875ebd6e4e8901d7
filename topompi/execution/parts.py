"""Each rank's part of an algorithm's schedule on a communicator's network, made once and cached."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..schedules import ALGORITHMS, Network, Schedule, ScheduleError, check, find_algorithm
from ..schedules.alltoall.hostschedule import HostSchedule
from ..schedules.proof.contributions import ranges_of
from ..schedules.proof.history import History
from ..schedules.proof.places import Places
from ..schedules.proof.values import Values
from ..schedules.schedule import ROOTED
from .executor import Executor
from .plan import Part

__all__ = ["is_shared", "part_of", "share_costly"]

Integers = NDArray[np.int64]

MOST_PROVED = 512  # ranks: the proof needs the rows of all ranks, and what each block of them holds


def part_of(
    executor: Executor,
    collective: str,
    algorithm: str,
    root: int | None,
    counts: Integers | None,
    ordered: bool,
    blocks: int | None = None,
) -> Part | str:
    """The rows of a schedule in which this rank takes part, or the reason why there is none, the same on all ranks.

    :param executor: the communicator's executor.
    :param collective: a key of ``schedules.ALGORITHMS``.
    :param algorithm: a key of ``schedules.ALGORITHMS[collective]``, ``module:function``, or a schedule's JSON file.
    :param root: the root; None in a collective without one.
    :param counts: blocks of each rank, shape (ranks,), for the v-forms whose counts all ranks know.
    :param ordered: whether reductions must keep rank order.
    :param blocks: number of blocks into which the message is divided; None for the algorithm's own number.
    Cost: that of the generator and of this rank's rows, once for each set of arguments. With ``ordered`` the rows of
    all ranks as well, to prove that they keep rank order: above ``MOST_PROVED`` ranks there is no part.
    """
    if isinstance(refusal := executor.shared.get((collective, algorithm)), str):
        return refusal
    key = ("part", collective, algorithm, root, None if counts is None else counts.tobytes(), ordered, blocks)
    wanted = _Wanted(collective, algorithm, root, counts, ordered, blocks)
    made: Part | str = executor.plans.made(key, lambda: _made(executor, wanted))
    return made


def is_shared(executor: Executor, collective: str, algorithm: str) -> bool:
    """Whether ``share_costly`` has nothing to do.

    :param executor: the communicator's executor.
    :param collective: a key of ``schedules.ALGORITHMS``.
    :param algorithm: a key of ``schedules.ALGORITHMS[collective]``, or any other name.
    """
    entry = ALGORITHMS[collective].get(algorithm)
    return entry is None or not entry.costly or (collective, algorithm) in executor.shared


def share_costly(executor: Executor, collective: str, algorithm: str) -> None:
    """Let rank 0 make the schedule of an algorithm for all ranks, if it is costly to make and not made yet.

    Collective at the first call of such an algorithm on a communicator, which is the same call on all ranks whatever
    their buffers and counts are; later ones do nothing.

    :param executor: the communicator's executor.
    :param collective: as ``part_of``.
    :param algorithm: a key of ``schedules.ALGORITHMS[collective]``.
    Cost: the generator's on rank 0, and one broadcast of the compact form: 12 bytes for each pair of hosts.
    """
    if is_shared(executor, collective, algorithm):
        return
    entry = ALGORITHMS[collective][algorithm]

    def make() -> HostSchedule | Schedule | str:
        try:
            return entry.generate(executor.network)
        except (ValueError, ScheduleError) as error:
            return str(error)

    made = executor.groups.talks.from_rank_0(make)
    executor.shared[collective, algorithm] = made.expand() if isinstance(made, HostSchedule) else made


class _Wanted(NamedTuple):
    """The arguments of ``part_of``."""

    collective: str
    algorithm: str
    root: int | None
    counts: Integers | None
    ordered: bool
    blocks: int | None


def _made(executor: Executor, wanted: _Wanted) -> Part | str:
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
    return Part(rank, rows, precedes, schedule.blocks, schedule.independent, schedule.window)


def _generated(network: Network, wanted: _Wanted) -> Schedule:
    """As ``schedules.make``, with the parameters that the algorithm has."""
    chosen = find_algorithm(wanted.collective, wanted.algorithm)
    root = (wanted.root or 0) if wanted.collective in ROOTED else 0
    made = chosen.generate(network, root, wanted.blocks, wanted.counts, ordered=wanted.ordered)
    return made.expand() if isinstance(made, HostSchedule) else made


def _precedes(schedule: Schedule) -> NDArray[np.bool_]:
    """Whether a row's contributions come from lower ranks than those that it is reduced into, shape (rows,).

    :raises ScheduleError: for a schedule that does not keep rank order.
    :raises ValueError: for a row of which only some blocks do.
    """
    check(schedule, commutative=False)
    places = Places(schedule)
    places.reach(schedule.num_rows)
    history = History(schedule, places, schedule.num_rows)
    reductions = Values(history).reductions()
    ranges = ranges_of(reductions, schedule.size, places.num_inputs // schedule.size)
    brings = ranges[reductions.terms, 0] < ranges[reductions.start, 0]  # each reduction in rank order has one term
    row = history.row[reductions.moves]
    precedes = np.ones(schedule.num_rows, dtype=bool)
    precedes[row] = brings
    if (precedes[row] != brings).any():
        raise ValueError("expecting rows whose blocks all come from lower ranks, or all from higher ones")
    return precedes
