"""Parts of a larger schedule in which groups of ranks (leaders, hosts, lanes) run a schedule; pipelines of segments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .phases import Phase, Phases, sequence
from .schedule import SCRATCH, Schedule
from .transfers import Rows

__all__ = ["NestedPhase", "Pipeline", "Place", "inside", "pipelined", "room"]

Integers = NDArray[np.int64]
Place = tuple[ArrayLike, ArrayLike]  # buffer and first block, scalars or arrays that broadcast to the groups' shape


@dataclass(frozen=True, eq=False)
class NestedPhase(Phase):
    """A phase in which several groups of ranks run the same schedule at once, as part of a larger schedule.

    Moves from a place to itself are left out.

    :param inner: schedule that each group runs.
    :param groups: rank of each member in the larger schedule, shape (groups, inner.size).
    :param places: buffer and first block in the larger schedule for each buffer of the inner one; scalars, or arrays
        that broadcast to the shape of ``groups``.
    :param unit: number of blocks of the larger schedule per block of the inner one.
    :param vectors: number of blocks of a whole vector in the inner schedule, and in the larger one, from which follows
        where a second vector in the inner scratch buffer is placed. None if the inner schedule divides no vector.
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
    ) -> NestedPhase:
        """A phase that has all steps of a schedule.

        :param inner: schedule that each group runs.
        :param groups: rank of each member, shape (groups, inner.size), or (inner.size,) for one group.
        :param places: buffer and first block in the larger schedule for each buffer of the inner one.
        :param unit: number of blocks of the larger schedule per block of the inner one.
        :param vectors: number of blocks of the inner vector and of the larger one; None if the schedule divides no
            vector.
        """
        members = np.atleast_2d(np.asarray(groups, dtype=np.int64))
        return cls(inner.num_steps, inner=inner, groups=members, places=places, unit=unit, vectors=vectors)

    def rows(self) -> Rows:
        """The rows of all groups, shape (rows, 9)."""
        rows, number = self.inner.rows(), len(self.groups)
        return self._moved(np.tile(rows, (number, 1)), np.repeat(np.arange(number), len(rows)))

    def of_rank(self, rank: int) -> Rows:
        """The rows that a rank takes part in, shape (rows, 9). Cost: only its own rows in its groups are made."""
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


@dataclass(frozen=True, eq=False)
class Pipeline(Phase):
    """A phase in which equal segments of a vector pass through the same stages: in turn t, segment i is in stage t - i.

    Unlike ``pipelined`` it has the rows of one segment only, and makes those of the others when they are asked for.

    :param stages: phases of each stage, with the blocks of the first segment; all phases of a stage begin together.
    :param segments: number of segments.
    :param blocks: number of blocks of a segment.
    :param turn: number of steps of a turn, at least those of the longest phase.
    """

    stages: tuple[tuple[Phase, ...], ...] = field(kw_only=True)
    segments: int = field(kw_only=True)
    blocks: int = field(kw_only=True)
    turn: int = field(kw_only=True)

    @classmethod
    def of(cls, stages: tuple[tuple[Phase, ...], ...], segments: int, blocks: int) -> Pipeline:
        """A phase with turns of as many steps as the longest phase; it is uniform if all phases are.

        :param stages: phases of each stage, with the blocks of the first segment.
        :param segments: number of segments.
        :param blocks: number of blocks of a segment.
        """
        every = [phase for stage in stages for phase in stage]
        turn = max((phase.steps for phase in every), default=0)
        steps, uniform = turn * (segments + len(stages) - 1), all(phase.uniform for phase in every)
        return cls(steps, uniform=uniform, stages=stages, segments=segments, blocks=blocks, turn=turn)

    def rows(self) -> Rows:
        """The rows of all segments and ranks, shape (rows, 9)."""
        return self._made(lambda phase, turn: phase.rows())

    def of_rank(self, rank: int) -> Rows:
        """The rows that a rank takes part in, shape (rows, 9). Cost: its rows of one segment are made for each."""
        return self._made(lambda phase, turn: phase.of_rank(rank))

    def at(self, steps: Integers) -> Rows:
        """The rows of all ranks in the given steps, shape (rows, 9). Cost: only the rows of these steps are made."""
        turns, place = np.divmod(steps, max(self.turn, 1))
        # A phase may have fewer steps than a turn.
        return self._made(lambda phase, turn: phase.at(place[(turns == turn) & (place < phase.steps)]))

    def _made(self, rows: Callable[[Phase, int], Rows]) -> Rows:
        """The rows of all segments, from a function of a phase and a turn that makes those of the first segment."""
        tables = [np.empty((0, 9), dtype=np.int64)]
        for number, stage in enumerate(self.stages):
            for phase in stage:
                for segment in range(self.segments):
                    begin = segment * self.blocks
                    shift = [(segment + number) * self.turn, 0, 0, 0, begin, 0, begin, 0, 0]
                    tables.append(rows(phase, segment + number) + np.array(shift))
        return np.concatenate(tables)


def inside(schedule: Schedule, ranks: ArrayLike, places: Mapping[int, Place], unit: int = 1) -> Rows:
    """The rows of one or several groups' schedule, with the numbers of ranks and blocks of the larger schedule.

    :param schedule: schedule of one group.
    :param ranks: ranks of the members, shape (members,), or (groups, members) for several groups.
    :param places: for each buffer of the group's schedule, the buffer of the larger schedule that takes its place, and
        the first block there; numbers, or arrays with a value per rank of the larger schedule.
    :param unit: number of blocks of the larger schedule per block of the group's.
    """
    groups = np.atleast_2d(np.asarray(ranks, dtype=np.int64))
    found = {
        buffer: (_by_member(other, groups), _by_member(begin, groups)) for buffer, (other, begin) in places.items()
    }
    return NestedPhase.of(schedule, groups, found, unit).rows()


def _by_member(value: ArrayLike, groups: Integers) -> Integers:
    """The value of each group's members: a scalar as it is, or entries of an array with one value per rank."""
    known = np.asarray(value, dtype=np.int64)
    return known[groups] if known.ndim else known


def room(schedule: Schedule) -> int:
    """The number of scratch blocks that a schedule uses."""
    rows = schedule.rows()
    ends = [rows[rows[:, at] == SCRATCH][:, [at + 1, 7]].sum(axis=1).max(initial=0) for at in (3, 5)]
    return int(max(ends))


def pipelined(segments: Sequence[Sequence[Rows | Phase | Phases]]) -> Phases:
    """Pipeline segments through the same stages: in turn t, segment i is in stage t - i.

    A turn takes as many steps as the longest stage of a segment in it.

    :param segments: rows or phases of each stage, for each segment.
    """
    stages = max(map(len, segments), default=0)
    turns: list[Phases] = []
    for turn in range(len(segments) + stages - 1):
        now = [sequence(one[turn - number]) for number, one in enumerate(segments) if 0 <= turn - number < len(one)]
        turns.append(tuple(placed for phases in now for placed in phases))
    return sequence(*turns)
