"""The moves of single blocks in a schedule, and their writes sorted by place and step."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..schedule import REDUCE, Schedule
from .error import ScheduleError, Violation
from .places import BUFFERS, BlockPlaces, ranges

__all__ = ["History"]

Integers = NDArray[np.int64]
Indices = NDArray[np.intp]
_MOST_KEYS = 2**62


class History:
    """The moves of single blocks that the first ``rows`` rows make, and their writes sorted by (place, step).

    :param schedule: the schedule.
    :param places: numbering of all blocks.
    :param rows: number of rows to expand, from the first.
    :ivar row: row of each move, shape (moves,).
    :ivar read: place that each move reads, shape (moves,).
    :ivar write: place that each move writes, shape (moves,).
    :ivar order: moves sorted by (place written, step), shape (moves,); a write is an index into this array.
    :ivar keys: place * number of steps + step of each write, ascending, shape (moves,).
    """

    def __init__(self, schedule: Schedule, places: BlockPlaces, rows: int) -> None:
        self.schedule, self.places = schedule, places
        self.steps = max(schedule.num_steps, 1)
        self._refuse_overflow()
        count = schedule.count[:rows]
        every = np.arange(rows, dtype=np.int32)
        self.row = every if (count == 1).all() else np.repeat(every, count)
        self.read, self.write = (self._expand(side, rows) for side in ("source", "destination"))
        keys = self.write * self.steps + self.step
        self.order = np.argsort(keys, kind="stable")
        self.keys = keys[self.order]

    def _refuse_overflow(self) -> None:
        if len(self.places) * self.steps >= _MOST_KEYS:
            blocks = self.places.blocks
            buffer, rank = np.unravel_index(int(blocks.argmax()), blocks.shape)
            name = f"{BUFFERS[int(buffer)]} of rank {rank}"
            raise ScheduleError(f"the {name} reaches block {blocks.max()}: too far to check", None, (int(rank),))

    def _expand(self, side: str, rows: int) -> Integers:
        rank, buffer, block = (getattr(self.schedule, side + part)[:rows] for part in ("", "_buffer", "_block"))
        start = self.places.first[buffer, rank] + block
        return ranges(start, self.schedule.count[:rows].astype(np.int64))

    @property
    def step(self) -> NDArray[np.int32]:
        """The step of each move, shape (moves,)."""
        return self.schedule.step[self.row]

    @cached_property
    def reducing(self) -> NDArray[np.bool_]:
        """Whether each move reduces, shape (moves,)."""
        return np.asarray(self.schedule.operation[self.row] == REDUCE)

    @cached_property
    def later_reads(self) -> Indices:
        """The moves that read the output or the scratch buffer, not the input, ascending."""
        return np.flatnonzero(self.read >= self.places.num_inputs)

    def read_keys(self, moves: Indices) -> Integers:
        """For each move, the key in ``keys`` that a write to the place which it reads has if it is in the same step."""
        return self.read[moves] * self.steps + self.schedule.step[self.row[moves]]

    @cached_property
    def source_write(self) -> Indices:
        """The write whose value each of ``later_reads`` reads; -1 if nothing was written before."""
        if not len(self.keys):
            return np.full(len(self.later_reads), -1)
        write = np.searchsorted(self.keys, self.read_keys(self.later_reads)) - 1
        write[self.keys[write] < self.read[self.later_reads] * self.steps] = -1
        return write

    def last_write(self, places: Integers) -> Indices:
        """The last write to each place; -1 if there is none."""
        write = np.searchsorted(self.keys, (places + 1) * self.steps) - 1
        found = (write >= 0) & (self.keys[write] >= places * self.steps) if len(self.keys) else write >= 0
        return np.where(found, write, -1)

    def at(self, move: np.intp, text: str) -> Violation:
        """The violation of a rule by the row to which a move belongs; ``text`` describes it."""
        return Violation(int(self.row[move]), text)

    def name(self, place: np.int64) -> str:
        """The name of a place in error messages."""
        return self.places.name(int(place))

    def who(self, move: np.intp) -> str:
        """The name, in error messages, of the transfer to which a move belongs."""
        row = self.row[move]
        source, destination = self.schedule.source[row], self.schedule.destination[row]
        return f"rank {source}'s own move" if source == destination else f"the transfer from rank {source}"
