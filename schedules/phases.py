"""What schedules are made of: consecutive steps whose rows can be made for one rank, for some steps, or for all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

__all__ = ["Given", "Grid", "Phase", "Phases", "sequence"]

Integers = NDArray[np.int64]
Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Phase:
    """Consecutive steps of a schedule. Rows are those of ``Schedule.from_rows``, their steps counted from the phase's.

    :param steps: number of steps.
    :param local: whether all rows are local moves.
    :param uniform: whether a few of the steps show what all of them cost, see ``schedules.cost``.
    """

    steps: int
    local: bool = field(default=False, kw_only=True)
    uniform: bool = field(default=False, kw_only=True)

    def rows(self) -> Rows:
        """The rows of all ranks, shape (rows, 9)."""
        raise NotImplementedError

    def of_rank(self, rank: int) -> Rows:
        """The rows that a rank takes part in, in the order in which ``rows`` has them."""
        return taken(self.rows(), rank)

    def at(self, steps: Integers) -> Rows:
        """The rows of all ranks in some of the steps."""
        rows = self.rows()
        return rows[np.isin(rows[:, 0], steps)]


Phases = tuple[tuple[int, Phase], ...]  # phases and the step of the schedule in which each of them begins


@dataclass(frozen=True, eq=False)
class Given(Phase):
    """Rows that are few enough to be made for all ranks.

    :param table: the rows, shape (rows, 9).
    """

    table: Rows = field(kw_only=True)

    @classmethod
    def of(cls, table: Rows) -> Given:
        """A phase of these rows that has as many steps as they need."""
        return cls(int(table[:, 0].max(initial=-1)) + 1, table=table)

    def rows(self) -> Rows:
        """The table."""
        return self.table


@dataclass(frozen=True, eq=False)
class Grid(Phase):
    """The same rows for each step and each of some members, who are ranks or their places in an order.

    :param members: number of members.
    :param make: the rows of the cells with these steps and members, two arrays of shape (cells,).
    :param near: the members, ascending, without whose cells no row has this rank; others may be among them.
    """

    members: int = field(kw_only=True)
    make: Callable[[Integers, Integers], Rows] = field(kw_only=True)
    near: Callable[[int], Integers] = field(kw_only=True)

    def rows(self) -> Rows:
        """The rows of all cells, step by step."""
        return self.at(np.arange(self.steps))

    def of_rank(self, rank: int) -> Rows:
        """As ``rows``; cost: that of the steps of the near members."""
        return taken(self._made(np.arange(self.steps), self.near(rank)), rank)

    def at(self, steps: Integers) -> Rows:
        """As ``rows``; cost: that of these steps."""
        return self._made(steps, np.arange(self.members))

    def _made(self, steps: Integers, members: Integers) -> Rows:
        return self.make(np.repeat(steps, len(members)), np.tile(members, len(steps)))


def sequence(*parts: Rows | Phase | Phases) -> Phases:
    """Parts one after the other: the steps of each begin behind those of the part before."""
    placed: list[tuple[int, Phase]] = []
    start = 0
    for part in parts:
        phases = part if isinstance(part, tuple) else ((0, part if isinstance(part, Phase) else _from_first(part)),)
        placed.extend((start + at, phase) for at, phase in phases if phase.steps)
        start += max((at + phase.steps for at, phase in phases), default=0)
    return tuple(placed)


def _from_first(rows: Rows) -> Given:
    """Rows whose first step counts as 0."""
    moved = rows.copy()
    if len(rows):
        moved[:, 0] -= rows[:, 0].min()
    return Given.of(moved)


def taken(rows: Rows, rank: int) -> Rows:
    """Those of some rows that a rank takes part in."""
    mine: Rows = rows[(rows[:, 1] == rank) | (rows[:, 2] == rank)]
    return mine
