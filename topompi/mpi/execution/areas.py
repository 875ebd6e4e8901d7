"""Areas: the buffers of a plan (one rank's steps of a collective), divided into units that are sent or copied."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from mpi4py import MPI

from .buffers import Blocks, Bytes, Integers, Specification, address_of, message_at
from .plan import Moves

__all__ = ["TAG", "Area", "Areas", "Call", "Span"]

Call = tuple[Callable[..., Any], tuple[Any, ...]]

# One tag is enough for the messages of all blocking calls, because only topompi uses the communicator, and any two
# ranks post the messages between them in the same order.
TAG = 0
# Number of moves, and of units per move. More than 4 moves of on average at most 4 units are made by one indexed copy,
# because one call per move would take longer.
FEWEST_ROWS = 4


class Area(Protocol):
    """Memory divided into units, numbered from 0, which a plan's messages and moves refer to."""

    def message(self, begin: int, length: int) -> Specification | None:
        """The message of ``length`` units from unit ``begin`` on, in mpi4py's form; None if the units have no data."""

    def moves(self, other: Any, moves: Moves, alone: MPI.Intracomm) -> list[Call]:
        """The calls that copy units of this area to another area.

        :param other: the target area, of the same class.
        :param moves: the copies: for each, the first unit in this area, the first unit in ``other``, and their number.
        :param alone: a communicator of this rank only; a message on it copies data with gaps.
        """


@dataclass(frozen=True, slots=True)
class Span:
    """Units of equal extent, one after the other in memory, which messages and copies of a collective refer to.

    :param memory: the bytes of the units.
    :param extent: bytes from the begin of one unit to the begin of the next.
    :param datatype: datatype of the entries in the units.
    :param entries: number of entries of ``datatype`` in each unit.
    :param dense: True if every byte of the memory is data, without gaps.
    """

    memory: MPI.buffer
    extent: int
    datatype: MPI.Datatype
    entries: int
    dense: bool

    @classmethod
    def of_bytes(cls, memory: Bytes, extent: int) -> Span:
        """Units of ``extent`` plain bytes each."""
        return cls(MPI.buffer.frombuffer(memory), extent, MPI.BYTE, extent, True)

    def like(self, units: int) -> Span:
        """Allocate a span of ``units`` units with the same extent and datatype as this span's."""
        memory = MPI.buffer.frombuffer(np.empty(units * self.extent, dtype=np.uint8))
        return Span(memory, self.extent, self.datatype, self.entries, self.dense)

    def within(self, begin: int, units: int) -> Span:
        """The span of ``units`` units from unit ``begin`` on, in the same memory."""
        memory = self.memory[begin * self.extent : (begin + units) * self.extent]
        return Span(memory, self.extent, self.datatype, self.entries, self.dense)

    def message(self, begin: int, length: int) -> Specification | None:
        """The message of ``length`` units from unit ``begin`` on, in mpi4py's form."""
        extent = self.extent
        return self.memory[begin * extent : (begin + length) * extent], length * self.entries, self.datatype

    def moves(self, other: Span, moves: Moves, alone: MPI.Intracomm) -> list[Call]:
        """The calls that copy units of this span to another; a single indexed copy if the moves are many and short.

        :param other: the target span, of the same extent.
        :param moves: the copies: for each, the first unit in this span, the first unit in ``other``, and their number.
        :param alone: a communicator of this rank only; a message on it copies data with gaps.
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
        """The bytes of all units, as an array."""
        memory: Any = self.memory  # numpy's type hints do not count MPI.buffer as a buffer
        view: Bytes = np.frombuffer(memory, dtype=np.uint8)
        return view


@dataclass(frozen=True, slots=True)
class Areas:
    """Units of any size, each with its own datatype and address, as in ``Alltoallv`` and ``Alltoallw``.

    :param messages: message of each unit in mpi4py's form, with the unit's address; None if the unit has no data.
    :param dense: True if all datatypes are predefined.
    """

    messages: Sequence[Specification | None]
    dense: bool = False

    @classmethod
    def of(cls, blocks: Blocks) -> Areas:
        """The pieces for blocks of one common datatype."""
        kind = blocks.datatype
        addresses = address_of(blocks.buffer) + kind.extent * blocks.displs
        places = zip(blocks.counts.tolist(), addresses.tolist(), strict=True)
        messages = [message_at(address, count, kind) if count else None for count, address in places]
        return cls(messages, blocks.dense)

    def message(self, begin: int, length: int) -> Specification | None:
        """The message of unit ``begin``, in mpi4py's form; None if the unit has no data."""
        if length != 1:
            raise ValueError(f"expecting one unit a message, got {length}")
        return self.messages[begin]

    def moves(self, other: Areas, moves: Moves, alone: MPI.Intracomm) -> list[Call]:
        """The calls that copy units to other pieces, whose datatypes may differ.

        :param other: the target pieces.
        :param moves: the copies: for each, the unit in these pieces and the unit in ``other``; all lengths are 1.
        :param alone: a communicator of this rank only; a message on it copies data between datatypes.
        """
        pairs = [(self.message(*place), other.message(*to)) for place, to in _ends(moves)]
        return [(alone.Sendrecv, (here, 0, TAG, there, 0, TAG)) for here, there in pairs if here and there]


def _ends(moves: Moves) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    rows = zip(moves.begin.tolist(), moves.to.tolist(), moves.length.tolist(), strict=True)
    return [((begin, length), (to, length)) for begin, to, length in rows]


def _by_index(source: Span, target: Span, moves: Moves) -> Call:
    """One call that makes all copies at once: numpy copies units by their numbers, in machine words."""
    word = next(width for width in (8, 4, 2, 1) if source.extent % width == 0)
    shape, kind = (-1, source.extent // word), np.dtype(f"u{word}")
    here, there = source.view().view(kind).reshape(shape), target.view().view(kind).reshape(shape)
    inner = np.arange(moves.length.sum()) - np.repeat(np.cumsum(moves.length) - moves.length, moves.length)
    begin, to = (np.repeat(first, moves.length) + inner for first in (moves.begin, moves.to))
    return _copy_rows, (here, begin, there, to)


def _copy_rows(source: Bytes, begin: Integers, target: Bytes, to: Integers) -> None:
    target[to] = source[begin]
