"""The memory of a plan's buffers, and messages and copies of parts of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from mpi4py import MPI

from .buffers import Blocks, Bytes, address_of, message_at
from .plan import Moves

__all__ = ["TAG", "Area", "Call", "Pieces", "Span", "Specification"]

Call = tuple[Callable[..., Any], tuple[Any, ...]]
Specification = list[Any]

TAG = 0  # of messages of calls that block: the communicator is ours alone, and both ends of a pair post in one order
FEWEST_ROWS = 4  # moves of less than so many blocks are slices, not indices


class Area(Protocol):
    """Memory divided into units, which the messages and moves of a plan number from 0."""

    def message(self, begin: int, length: int) -> Specification | None:
        """The message of ``length`` units from ``begin`` on, as mpi4py takes it; None for units without data."""

    def moves(self, other: Any, moves: Moves, alone: MPI.Intracomm) -> list[Call]:
        """The calls that copy units of this area to another.

        :param other: the area to copy to, of the same class.
        :param moves: first unit here, first unit there and number of units of each copy.
        :param alone: a communicator of this rank only, which copies data that have gaps.
        """


@dataclass(frozen=True, slots=True)
class Span:
    """Units of one extent in bytes, one after the other in memory.

    :param memory: their bytes.
    :param extent: bytes from one unit to the next.
    :param datatype: of what they hold, ``entries`` in each unit.
    :param dense: whether the data are all bytes of the memory.
    """

    memory: MPI.buffer
    extent: int
    datatype: MPI.Datatype
    entries: int
    dense: bool

    @classmethod
    def of_bytes(cls, memory: Any, extent: int) -> Span:
        """Units of ``extent`` plain bytes each."""
        return cls(MPI.buffer.frombuffer(memory), extent, MPI.BYTE, extent, True)

    def like(self, units: int) -> Span:
        """New memory for a number of units of the same extent and datatype."""
        memory = MPI.buffer.frombuffer(np.empty(units * self.extent, dtype=np.uint8))
        return Span(memory, self.extent, self.datatype, self.entries, self.dense)

    def within(self, begin: int, units: int) -> Span:
        """The span of some of these units, in the same memory."""
        memory = self.memory[begin * self.extent : (begin + units) * self.extent]
        return Span(memory, self.extent, self.datatype, self.entries, self.dense)

    def message(self, begin: int, length: int) -> Specification | None:
        """The message of ``length`` units from ``begin`` on, as mpi4py takes it."""
        extent = self.extent
        return [self.memory[begin * extent : (begin + length) * extent], length * self.entries, self.datatype]

    def moves(self, other: Span, moves: Moves, alone: MPI.Intracomm) -> list[Call]:
        """The calls that copy units of this span to another: one by index if the copies are many and short.

        :param other: the span to copy to, of the same extent.
        :param moves: first unit here, first unit there and number of units of each copy.
        :param alone: a communicator of this rank only, which copies data that have gaps.
        """
        if not self.dense:
            pairs = zip(moves.begin.tolist(), moves.to.tolist(), moves.length.tolist(), strict=True)
            return [
                (alone.Sendrecv, (self.message(begin, length), 0, TAG, other.message(to, length), 0, TAG))
                for begin, to, length in pairs
            ]
        if len(moves.length) > FEWEST_ROWS and moves.length.sum() <= FEWEST_ROWS * len(moves.length):
            return [_by_index(self, other, moves)]
        source, target, extent = self.view(), other.view(), self.extent
        return [
            (np.copyto, (target[to : to + length], source[begin : begin + length]))
            for begin, to, length in (extent * np.stack((moves.begin, moves.to, moves.length), axis=1)).tolist()
        ]

    def view(self) -> Bytes:
        """The bytes of all units."""
        memory: Any = self.memory  # numpy's types do not know that it is a buffer
        view: Bytes = np.frombuffer(memory, dtype=np.uint8)
        return view


@dataclass(frozen=True, slots=True)
class Pieces:
    """Units of any size, each with its own datatype and address, as the v- and w-forms have them.

    :param messages: of each unit the message as mpi4py takes it, by address; None for a unit without data.
    :param dense: whether their datatypes are predefined.
    """

    messages: Sequence[Specification | None]
    dense: bool = False

    @classmethod
    def of(cls, blocks: Blocks) -> Pieces:
        """The pieces of blocks that have one datatype."""
        kind = blocks.datatype
        addresses = address_of(blocks.buffer) + kind.extent * blocks.displs
        places = zip(blocks.counts.tolist(), addresses.tolist(), strict=True)
        messages = [message_at(address, count, kind) if count else None for count, address in places]
        return cls(messages, blocks.dense)

    def message(self, begin: int, length: int) -> Specification | None:
        """The message of unit ``begin``, as mpi4py takes it; None for a unit without data."""
        if length != 1:
            raise ValueError(f"expecting one unit a message, got {length}")
        return self.messages[begin]

    def moves(self, other: Pieces, moves: Moves, alone: MPI.Intracomm) -> list[Call]:
        """The calls that copy units to other pieces, whose datatypes may differ from these.

        :param other: the pieces to copy to.
        :param moves: the unit here and the unit there of each copy; all of length 1.
        :param alone: a communicator of this rank only, which copies between datatypes.
        """
        pairs = [(self.message(*place), other.message(*to)) for place, to in _ends(moves)]
        return [(alone.Sendrecv, (here, 0, TAG, there, 0, TAG)) for here, there in pairs if here and there]


def _ends(moves: Moves) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    rows = zip(moves.begin.tolist(), moves.to.tolist(), moves.length.tolist(), strict=True)
    return [((begin, length), (to, length)) for begin, to, length in rows]


def _by_index(source: Span, target: Span, moves: Moves) -> Call:
    """All moves as one copy of rows of machine words."""
    word = next(width for width in (8, 4, 2, 1) if source.extent % width == 0)
    shape, kind = (-1, source.extent // word), np.dtype(f"u{word}")
    here, there = source.view().view(kind).reshape(shape), target.view().view(kind).reshape(shape)
    inner = np.arange(moves.length.sum()) - np.repeat(np.cumsum(moves.length) - moves.length, moves.length)
    begin, to = (np.repeat(first, moves.length) + inner for first in (moves.begin, moves.to))
    return _copy_rows, (here, begin, there, to)


def _copy_rows(source: Bytes, begin: Any, target: Bytes, to: Any) -> None:
    target[to] = source[begin]
