"""The value that every write of a schedule leaves in its place: an input block's, or the result of a reduction."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .history import History

__all__ = ["Reductions", "Values"]

Integers = NDArray[np.int64]
Indices = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Reductions:
    """The reductions of a schedule, sorted by step; all reductions into one place in one step count as one.

    A value is the number of a place of the input, or the number of inputs plus the number of a reduction.

    :param moves: moves that reduce, grouped by reduction, shape (terms,).
    :param terms: value that each of these moves brings, shape (terms,).
    :param begin: index of the first term of each reduction, shape (reductions,).
    :param start: value that each reduction finds at its place, shape (reductions,).
    :param step: step of each reduction, ascending, shape (reductions,).
    """

    moves: Indices
    terms: Integers
    begin: Indices
    start: Integers
    step: Integers

    def batches(self) -> list[tuple[slice, slice]]:
        """The reductions and the terms of each step that has reductions, as pairs of slices."""
        cut = np.flatnonzero(np.diff(self.step, prepend=-1))
        ends = [*cut.tolist(), len(self.step)]
        at = [*self.begin[cut].tolist(), len(self.terms)]
        return [(slice(*ends[i : i + 2]), slice(*at[i : i + 2])) for i in range(len(cut))]

    def operands(self, number: int) -> tuple[int, ...]:
        """The values that one reduction combines: first the value that it finds, then its terms."""
        return int(self.start[number]), *self.terms[self._terms_of(number)].tolist()

    def moves_of(self, number: int) -> Indices:
        """The moves whose values one reduction adds to the value that it finds, in the order of its terms."""
        return self.moves[self._terms_of(number)]

    def _terms_of(self, number: int) -> slice:
        last = number + 1 == len(self.begin)
        return slice(int(self.begin[number]), len(self.terms) if last else int(self.begin[number + 1]))


class Values:
    """The value that every write of a history leaves; a copy leaves the value that it read.

    :param history: moves and writes of the schedule.
    """

    def __init__(self, history: History) -> None:
        self._history = history
        self._made, self._number, self._by_step = self._groups()
        self.of_write = self._follow()

    def read_by(self, moves: Indices) -> Integers:
        """The value that each move reads."""
        return self._read[moves]

    @cached_property
    def _read(self) -> Integers:
        history = self._history
        read = history.read.copy()
        read[history.later_reads] = self.of_write[history.source_write]
        return read

    def _groups(self) -> tuple[Indices, Indices, Indices]:
        """The writes that reduce, the number of the reduction of each, and indices that sort these writes by number."""
        history = self._history
        made = np.flatnonzero(history.reducing[history.order])
        keys = history.keys[made]
        opens = np.ones(len(made), dtype=bool)
        opens[1:] = keys[1:] != keys[:-1]
        group = np.cumsum(opens) - 1
        step = keys % history.steps
        by_step = np.argsort(step[opens], kind="stable")
        number = np.empty_like(by_step)
        number[by_step] = np.arange(len(by_step))
        number = number[group]
        return made, number, np.argsort(number, kind="stable")

    def _follow(self) -> Integers:
        """Follow copies to their origins by pointer jumping: each round halves every remaining chain of copies."""
        history, inputs = self._history, self._history.places.num_inputs
        source = np.full(len(history.read), -1)
        source[history.later_reads] = history.source_write
        target = source[history.order]
        value = history.read[history.order]
        target[self._made] = -1
        value[self._made] = inputs + self._number
        left = np.flatnonzero(target >= 0)
        while len(left):
            ahead = target[left]
            value[left], target[left] = value[ahead], target[ahead]
            left = left[target[left] >= 0]
        return value

    def reductions(self) -> Reductions:
        """The reductions, in the order of their steps."""
        history, writes = self._history, self._made[self._by_step]
        number = self._number[self._by_step]
        begin = np.flatnonzero(np.diff(number, prepend=-1))
        moves = history.order[writes]
        # Writes of one key keep their order, so the write before a reduction's first write is of an earlier step.
        start = self.of_write[writes[begin] - 1]
        return Reductions(moves, self.read_by(moves), begin, start, history.keys[writes[begin]] % history.steps)
