"""The neighbours that jobs of a schedule had on the other halves of their nodes, and when."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...jobs import Outcome
from ..prices.worth import NOBODY, OWN, Intervals
from .occupancy import HALVES
from .table import ALONE, ITSELF, RateTable, program_numbers

__all__ = ["intervals_of"]

Integers = NDArray[np.int64]
Reals = NDArray[np.float64]


def intervals_of(outcome: Outcome, table: RateTable) -> Intervals:
    """Return the time of each job that ran, cut where the neighbour changes that slows it most.

    Of neighbours that slow a job equally, the one with the lowest number counts.

    Cost: sorts of the pairs of a half that a job held and a job that was beside it there.

    :param outcome: the schedule of jobs on half nodes.
    :param table: true rates of the programs.
    :raises ColocationError: if a job that shares nodes has no program, or an unknown one.
    """
    met = _meetings(outcome)
    program = program_numbers(outcome.workload, table.programs)
    own, nobody = met.beside == OWN, met.beside == NOBODY
    column = np.where(own, ITSELF, np.where(nobody, ALONE, program[np.maximum(met.beside, 0)]))
    row = program[met.job]
    rate, solo = (np.where(row < 0, 1.0, table.rates[row, at]) for at in (column, np.where(own, ITSELF, ALONE)))
    alone = np.full(len(program), np.inf)
    np.minimum.at(alone, met.job, solo)
    return _slowest(met, rate / alone[met.job])


@dataclass(frozen=True, eq=False)
class _Meetings:
    """Neighbours of jobs, one per row: the job, who is beside it (or NOBODY, or OWN), from when, and until when."""

    job: Integers
    beside: Integers
    start: Integers
    end: Integers


def _meetings(outcome: Outcome) -> _Meetings:
    """Return all neighbours of all jobs, each pair of jobs once."""
    start, end = outcome.start.astype(np.int64), outcome.end.astype(np.int64)
    ran = np.flatnonzero(end > start)
    job = np.repeat(np.arange(len(start)), np.diff(outcome.offset))
    slots = np.full(len(job), -1) if outcome.slots is None else outcome.slots
    held = np.flatnonzero((slots >= 0) & (end > start)[job])
    half, job = HALVES * outcome.nodes[held].astype(np.int64) + slots[held], job[held]
    order = np.lexsort((start[job], half))
    half, job = half[order], job[order]
    # One number for a half and a second; no two jobs hold a half at once, so that ends ascend as starts do.
    second = np.int64(end.max(initial=0) + 1)
    begins, ends, other = half * second + start[job], half * second + end[job], (half ^ 1) * second
    first = np.searchsorted(ends, other + start[job], "right")
    count = np.searchsorted(begins, other + end[job], "left") - first
    row, at = _expanded(first, count)
    pairs = np.unique(job[row] * np.int64(len(start)) + job[at])
    one, beside = np.divmod(pairs, max(1, len(start)))
    whole = np.setdiff1d(ran, job)
    alone = _gaps(start, end, job, first, count, second)
    own = np.union1d(whole, one[one == beside])
    one, beside = one[one != beside], beside[one != beside]
    return _Meetings(
        np.concatenate((one, alone.job, own)),
        np.concatenate((beside, alone.beside, np.full(len(own), OWN))),
        np.concatenate((np.maximum(start[one], start[beside]), alone.start, start[own])),
        np.concatenate((np.minimum(end[one], end[beside]), alone.end, end[own])),
    )


def _expanded(first: Integers, count: Integers) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return, for each row and each of its ``count`` entries from ``first`` on, the row and the entry."""
    row = np.repeat(np.arange(len(first)), count)
    return row, np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count) + first[row]


def _gaps(
    start: Integers, end: Integers, job: Integers, first: Integers, count: Integers, second: np.int64
) -> _Meetings:
    """Return the times in which a half beside a job is empty; of times with the same begin the longest counts.

    :param start: start of each job.
    :param end: end of each job.
    :param job: the job on each held half, ordered by half and start.
    :param first: for each held half, the position of the first job beside it.
    :param count: number of jobs beside each held half.
    :param second: a second after all ends.
    """
    row, after = _expanded(first, count + 1)
    one, beginning, ending = job[row], after == first[row], after == (first + count)[row]
    begin = np.where(beginning, start[one], end[job[after - 1]])
    until = np.where(ending, end[one], start[job[np.minimum(after, len(job) - 1)]])
    empty = np.flatnonzero(begin < until)
    key = (one * second + begin)[empty]
    order = np.lexsort((until[empty], key))
    last = np.append(key[order][1:] != key[order][:-1], np.ones(min(1, len(order)), bool))
    found = empty[order[last]]
    return _Meetings(one[found], np.full(len(found), NOBODY), begin[found], until[found])


def _slowest(met: _Meetings, share: Reals) -> Intervals:
    """Return the neighbour with the lowest rate at each time, with equal ones in a row as one interval.

    :param met: the neighbours.
    :param share: rate of the job beside each, as a share of its rate if all others were gone.
    """
    order = np.lexsort((met.beside, share))
    job, beside, share = met.job[order], met.beside[order], share[order]
    second = np.int64(met.end.max(initial=0) + 1)
    begin, end = job * second + met.start[order], job * second + met.end[order]
    cuts = np.unique(np.concatenate((begin, end)))
    chosen = np.full(len(cuts), -1)
    spans = zip(np.searchsorted(cuts, begin).tolist(), np.searchsorted(cuts, end).tolist(), strict=True)
    for at, (low, high) in reversed(list(enumerate(spans))):
        chosen[low:high] = at  # the slowest comes last, and remains
    inside = np.flatnonzero(chosen >= 0)
    found = chosen[inside]
    changes = np.ones(len(found), bool)
    changes[1:] = (job[found[1:]] != job[found[:-1]]) | (beside[found[1:]] != beside[found[:-1]])
    first = np.flatnonzero(changes)
    last = np.append(first[1:], len(found))[: len(first)] - 1
    rows = found[first]
    start, until = cuts[inside[first]] % second, cuts[inside[last] + 1] % second
    return Intervals(job[rows], beside[rows], start.astype(float), until.astype(float), share[rows])
