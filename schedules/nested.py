"""Schedules of groups of ranks as parts of one schedule: leaders, hosts, lanes, and segments in a pipeline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .phases import Phase, Phases, sequence
from .schedule import SCRATCH, Schedule
from .transfers import Rows

__all__ = ["Place", "Placed", "inside", "pipelined", "room"]

Integers = NDArray[np.int64]
Place = tuple[ArrayLike, ArrayLike]  # buffer and first block: one for all, or arrays that broadcast to the groups


@dataclass(frozen=True, eq=False)
class Placed(Phase):
    """A schedule that several groups of ranks run at once, as a part of a larger one.

    Moves from a place to itself are left out.

    :param inner: the schedule.
    :param groups: ranks of each group in the larger schedule, shape (groups, inner.size).
    :param places: where the larger schedule has each buffer of the inner one; buffers and blocks are scalars, or of a
        shape that broadcasts to that of ``groups``.
    :param unit: blocks of the larger schedule for each of the inner one.
    :param vectors: blocks of the vector that the inner schedule divides, and of the larger one's: the second vector in
        the inner scratch lies in the second one of the larger. None where the inner schedule divides no vector.
    """

    inner: Schedule = field(kw_only=True)
    groups: Integers = field(kw_only=True)
    places: Mapping[int, Place] = field(kw_only=True)
    unit: int = field(default=1, kw_only=True)
    vectors: tuple[int, int] | None = field(default=None, kw_only=True)

    @classmethod
    def of(
        cls,
        inner: Schedule,
        groups: ArrayLike,
        places: Mapping[int, Place],
        unit: int = 1,
        vectors: tuple[int, int] | None = None,
    ) -> Placed:
        """The part that has all steps of a schedule.

        :param inner: the schedule of a group.
        :param groups: ranks of each group, shape (groups, inner.size), or (inner.size,) for one group.
        :param places: where the larger schedule has each buffer.
        :param unit: blocks of the larger schedule for each of the inner one.
        :param vectors: blocks of the inner vector and of the larger one; None if no vector is divided.
        """
        members = np.atleast_2d(np.asarray(groups, dtype=np.int64))
        return cls(inner.num_steps, inner=inner, groups=members, places=places, unit=unit, vectors=vectors)

    def rows(self) -> Rows:
        """The rows of all groups."""
        rows, number = self.inner.rows(), len(self.groups)
        return self._moved(np.tile(rows, (number, 1)), np.repeat(np.arange(number), len(rows)))

    def of_rank(self, rank: int) -> Rows:
        """As ``rows``; cost: that of the rank's rows in the groups of which it is a member."""
        found = np.argwhere(self.groups == rank)
        tables = [self.inner.rows_of(member) for member in found[:, 1].tolist()]
        group = np.repeat(found[:, 0], [len(table) for table in tables])
        return self._moved(np.concatenate([np.empty((0, 9), dtype=np.int64), *tables]), group)

    def _moved(self, rows: Rows, group: Integers) -> Rows:
        moved: Rows = rows.copy()
        moved[:, 7] *= self.unit
        for rank, buffer, block in ((1, 3, 4), (2, 5, 6)):
            moved[:, rank] = self.groups[group, rows[:, rank]]
            moved[:, block] *= self.unit
            if self.vectors is not None:
                vector, place = np.divmod(moved[:, block], self.vectors[0])
                moved[:, block] = vector * self.vectors[1] + place
            for one, (other, begin) in self.places.items():
                here = np.flatnonzero(rows[:, buffer] == one)
                at = group[here], rows[here, rank]
                moved[here, buffer] = np.broadcast_to(np.asarray(other), self.groups.shape)[at]
                moved[here, block] += np.broadcast_to(np.asarray(begin), self.groups.shape)[at]
        kept: Rows = moved[(moved[:, [1, 3, 4]] != moved[:, [2, 5, 6]]).any(axis=1)]
        return kept


def inside(schedule: Schedule, ranks: ArrayLike, places: Mapping[int, Place], unit: int = 1) -> Rows:
    """The rows of a schedule that groups of ranks run, in the schedule of all ranks; see ``Placed``.

    :param schedule: of the group, or of each of several groups.
    :param ranks: of its members, shape (members,); of several groups (groups, members).
    :param places: where each of its buffers lies: buffer and first block, each one for all ranks or one for each.
    :param unit: blocks there for each of its own.
    """
    groups = np.atleast_2d(np.asarray(ranks, dtype=np.int64))
    found = {
        buffer: (_by_member(other, groups), _by_member(begin, groups)) for buffer, (other, begin) in places.items()
    }
    return Placed.of(schedule, groups, found, unit).rows()


def _by_member(value: ArrayLike, groups: Integers) -> Integers:
    """A scalar, or the values of the groups' members from an array with one value per rank."""
    known = np.asarray(value, dtype=np.int64)
    return known[groups] if known.ndim else known


def room(schedule: Schedule) -> int:
    """How many blocks of the scratch a schedule uses."""
    rows = schedule.rows()
    ends = [rows[rows[:, at] == SCRATCH][:, [at + 1, 7]].sum(axis=1).max(initial=0) for at in (3, 5)]
    return int(max(ends))


def pipelined(segments: Sequence[Sequence[Rows | Phase | Phases]]) -> Phases:
    """Segments that go through the same stages, each one stage behind the one before it.

    All stages take as many turns as the longest one.

    :param segments: what each stage of each segment does.
    """
    stages = max(map(len, segments), default=0)
    turns: list[Phases] = []
    for turn in range(len(segments) + stages - 1):
        now = [sequence(one[turn - number]) for number, one in enumerate(segments) if 0 <= turn - number < len(one)]
        turns.append(tuple(placed for phases in now for placed in phases))
    return sequence(*turns)
