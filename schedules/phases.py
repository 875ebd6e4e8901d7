"""Phases: consecutive steps of a schedule whose rows can be made for one rank, for some steps, or for all ranks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

__all__ = ["Given", "GridPhase", "Phase", "Phases", "sequence"]

Integers = NDArray[np.int64]
Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Phase:
    """Consecutive steps of a schedule, with the rows (one per transfer) of these steps.

    Rows have the form of ``Schedule.from_rows``, with steps counted from the first of the phase.

    :param steps: number of steps.
    :param local: whether all rows are local moves.
    :param uniform: whether all steps load the network so alike that the cost model (`schedules.analysis.cost`) may
        evaluate only a few and let these stand for the others.
    """

    steps: int
    local: bool = field(default=False, kw_only=True)
    uniform: bool = field(default=False, kw_only=True)

    def rows(self) -> Rows:
        """Make the rows of all ranks, shape (rows, 9)."""
        raise NotImplementedError

    def of_rank(self, rank: int) -> Rows:
        """The rows that a rank takes part in, in the order of ``rows``, shape (rows, 9)."""
        return taken(self.rows(), rank)

    def at(self, steps: Integers) -> Rows:
        """The rows of all ranks in the given steps, shape (rows, 9)."""
        rows = self.rows()
        return rows[np.isin(rows[:, 0], steps)]


Phases = tuple[tuple[int, Phase], ...]  # the step of the schedule in which each phase begins, and the phase


@dataclass(frozen=True, eq=False)
class Given(Phase):
    """A phase that stores the rows of all ranks, because they are few.

    :param table: the rows, shape (rows, 9).
    """

    table: Rows = field(kw_only=True)

    @classmethod
    def of(cls, table: Rows) -> Given:
        """Make a phase of the given rows; its number of steps is the highest step of the rows plus 1."""
        return cls(int(table[:, 0].max(initial=-1)) + 1, table=table)

    def rows(self) -> Rows:
        """The stored rows."""
        return self.table


@dataclass(frozen=True, eq=False)
class GridPhase(Phase):
    """A phase with rows of the same form for every step and every member.

    A member is a rank, or another thing that has rows in every step, such as a place in an order. A cell is one step of
    one member.

    :param members: number of members.
    :param make: function that takes a step and a member for each cell, two arrays of shape (cells,), and returns the
        rows of these cells.
    :param near: function that takes a rank and returns, ascending, all members whose cells may have rows with this
        rank.
    """

    members: int = field(kw_only=True)
    make: Callable[[Integers, Integers], Rows] = field(kw_only=True)
    near: Callable[[int], Integers] = field(kw_only=True)

    def rows(self) -> Rows:
        """The rows of all cells, sorted by step."""
        return self.at(np.arange(self.steps))

    def of_rank(self, rank: int) -> Rows:
        """The rows that a rank takes part in, shape (rows, 9). Cost: all rows of the members that ``near`` returns."""
        return taken(self._made(np.arange(self.steps), self.near(rank)), rank)

    def at(self, steps: Integers) -> Rows:
        """The rows of all ranks in the given steps, shape (rows, 9). Cost: only the rows of these steps are made."""
        return self._made(steps, np.arange(self.members))

    def _made(self, steps: Integers, members: Integers) -> Rows:
        return self.make(np.repeat(steps, len(members)), np.tile(members, len(steps)))


def sequence(*parts: Rows | Phase | Phases) -> Phases:
    """Join parts one after the other: the steps of each part begin after the last step of the part before."""
    placed: list[tuple[int, Phase]] = []
    start = 0
    for part in parts:
        phases = part if isinstance(part, tuple) else ((0, part if isinstance(part, Phase) else _from_first(part)),)
        placed.extend((start + at, phase) for at, phase in phases if phase.steps)
        start += max((at + phase.steps for at, phase in phases), default=0)
    return tuple(placed)


def _from_first(rows: Rows) -> Given:
    """A phase of the given rows, whose steps are shifted so that the first step is 0."""
    moved = rows.copy()
    if len(rows):
        moved[:, 0] -= rows[:, 0].min()
    return Given.of(moved)


def taken(rows: Rows, rank: int) -> Rows:
    """Select the rows that a rank takes part in."""
    mine: Rows = rows[(rows[:, 1] == rank) | (rows[:, 2] == rank)]
    return mine
