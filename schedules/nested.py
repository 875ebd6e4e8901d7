"""Schedules of groups of ranks as parts of one schedule: leaders, hosts, and segments that follow one another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .phases import Phases, sequence
from .schedule import SCRATCH, Schedule
from .transfers import Rows

__all__ = ["Place", "inside", "pipelined", "room"]

Place = tuple[ArrayLike, ArrayLike]  # buffer and first block, one for all ranks or one for each


def inside(schedule: Schedule, ranks: ArrayLike, places: Mapping[int, Place], unit: int = 1) -> Rows:
    """The rows of a group's schedule in the schedule of all ranks; moves from a place to itself are left out.

    :param schedule: of the group, or of each of several groups.
    :param ranks: of its members, shape (members,); of several groups (groups, members).
    :param places: where each of its buffers lies.
    :param unit: blocks there for each of its own.
    """
    groups = np.atleast_2d(ranks)
    rows = np.tile(schedule.rows(), (len(groups), 1))
    group = np.repeat(np.arange(len(groups)), len(rows) // len(groups))
    rows[:, 7] *= unit
    for end in (1, 2):
        buffer = rows[:, 1 + 2 * end].copy()
        rows[:, end] = groups[group, rows[:, end]]
        rows[:, 2 + 2 * end] *= unit
        for one, (other, begin) in places.items():
            here = buffer == one
            rows[here, 1 + 2 * end] = _at(other, rows[here, end])
            rows[here, 2 + 2 * end] += _at(begin, rows[here, end])
    same = (rows[:, [1, 3, 4]] == rows[:, [2, 5, 6]]).all(axis=1)
    kept: Rows = rows[~same]
    return kept


def _at(value: ArrayLike, ranks: NDArray[np.int64]) -> NDArray[np.int64]:
    """What is one for all ranks or one for each, of these."""
    known = np.asarray(value, dtype=np.int64)
    return known[ranks] if known.ndim else np.full(len(ranks), known)


def room(schedule: Schedule) -> int:
    """How many blocks of the scratch a schedule uses."""
    rows = schedule.rows()
    ends = [rows[rows[:, at] == SCRATCH][:, [at + 1, 7]].sum(axis=1).max(initial=0) for at in (3, 5)]
    return int(max(ends))


def pipelined(segments: Sequence[Sequence[NDArray[np.int64]]]) -> Phases:
    """Segments that go through the same stages, each one stage behind the one before it.

    :param segments: the rows of each stage of each segment.
    """
    stages = max(map(len, segments), default=0)
    turns = []
    for turn in range(len(segments) + stages - 1):
        now = [one[turn - number] for number, one in enumerate(segments) if 0 <= turn - number < len(one)]
        turns.append(np.concatenate(now))
    return sequence(*(turn for turn in turns if len(turn)))
