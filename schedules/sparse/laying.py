"""Blocks side by side in scratch memory, and the messages and moves between them."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..neighbourhood import Edges
from ..schedule import SCRATCH
from .carriers import opens

__all__ = ["IN_INPUT", "NOTHING", "ExchangeStage", "Laid", "Scratch", "joined", "laid", "messages", "table"]

Integers = NDArray[np.int64]

IN_INPUT = -1  # stands for the place of a block that the rank has not copied from its input


class ExchangeStage(NamedTuple):
    """A rank's work in one stage of an exchange: first its moves, then its messages.

    :ivar moves: buffer and first unit that each move reads, buffer and first unit that it writes, and its length, shape
        (moves, 5).
    :ivar receives: peer, buffer, first unit and length of each message, shape (messages, 4).
    :ivar sends: peer, buffer, first unit and length of each message, shape (messages, 4).
    """

    moves: Integers
    receives: Integers
    sends: Integers


NOTHING = ExchangeStage(np.empty((0, 5), dtype=np.int64), *(np.empty((0, 4), dtype=np.int64),) * 2)  # no work


class Laid(NamedTuple):
    """Blocks side by side in scratch memory.

    :ivar edges: edges whose blocks these are, in their order; the first edge of several that share a copy.
    :ivar begin: first unit of each of these blocks.
    :ivar of_edge: first unit of each edge's block, shape (all edges,); -1 if it is not here.
    :ivar end: first unit after the blocks.
    """

    edges: NDArray[np.intp]
    begin: Integers
    of_edge: Integers
    end: int


class Scratch:
    """The scratch memory of one rank, laid out while its part of an exchange is made.

    Blocks that leave together lie side by side, and so do blocks that arrive together, in the order of their sources
    and numbers, which both ends of a message know.

    :param rank: the rank.
    :param shares: whether all edges of a rank carry one block, of which a message then has one copy.
    :ivar end: units of the memory so far.
    """

    def __init__(self, rank: int, shares: bool) -> None:
        self.rank, self._shares, self.end = rank, shares, 0
        self._packed: list[tuple[Integers, Integers]] = []

    def packing(self, number: Integers) -> tuple[Integers, Integers]:
        """The rank's own blocks that it copies to this memory, and the first unit of each there.

        :param number: number of each of the rank's outgoing edges, shape (edges,).
        :returns: indices of edges, and first units.
        """
        nothing = np.empty(0, dtype=np.int64)
        numbers, to = (np.concatenate([nothing, *column]) for column in zip(*self._packed, strict=True))
        order = np.argsort(number)
        return order[np.searchsorted(number, numbers, sorter=order)], to

    def rounds(self, edges: Edges, index: Integers, at: Integers, held: Integers) -> list[ExchangeStage]:
        """The stages in which blocks move between ranks of the group.

        :param edges: all edges that the group knows.
        :param index: edges whose blocks move.
        :param at: rank that holds each of these blocks before each round, and after the last, shape (rounds + 1,
            moving blocks).
        :param held: first unit of each edge's block if this rank holds it, shape (edges,); it is brought up to date.
        """
        stages, peer = [], np.full(len(edges), -1)
        for here, there in pairwise(at):
            leaves, comes = ((one == self.rank) & (here != there) for one in (here, there))
            peer[index[leaves]], peer[index[comes]] = there[leaves], here[comes]
            moves, sends = self.send(edges, index[leaves], peer, held)
            stages.append(ExchangeStage(moves, self.receive(edges, index[comes], peer, held), sends))
        return stages

    def send(self, edges: Edges, index: Integers, peer: Integers, held: Integers) -> tuple[Integers, Integers]:
        """The moves of blocks to the place from which they leave, and their messages.

        :param edges: all edges that the group knows.
        :param index: edges whose blocks leave.
        :param peer: rank to which each block goes, shape (edges,).
        :param held: first unit of each edge's block, ``IN_INPUT`` if it is still in the rank's input, shape (edges,).
        """
        blocks = self._lay(edges, index, peer)
        fresh = held[blocks.edges] == IN_INPUT
        self._packed.append((edges.number[blocks.edges[fresh]], blocks.begin[fresh]))
        others = blocks.edges[~fresh]
        moves = table(SCRATCH, held[others], SCRATCH, blocks.begin[~fresh], edges.size[others])
        return joined(moves), messages(peer[blocks.edges], blocks)

    def receive(self, edges: Edges, index: Integers, peer: Integers, held: Integers) -> Integers:
        """The messages of arriving blocks.

        :param edges: all edges that the group knows.
        :param index: edges whose blocks arrive.
        :param peer: rank from which each block comes, shape (edges,).
        :param held: first unit of each edge's block, shape (edges,); it is brought up to date.
        """
        blocks = self._lay(edges, index, peer)
        held[index] = blocks.of_edge[index]
        return messages(peer[blocks.edges], blocks)

    def _lay(self, edges: Edges, index: Integers, peer: Integers) -> Laid:
        found = laid(edges.size, index, (peer, edges.source, edges.number), self._shares, self.end)
        self.end = found.end
        return found


def laid(size: Integers, index: NDArray[np.intp], keys: tuple[Integers, ...], once: bool, start: int) -> Laid:
    """Give each edge's block a place in scratch memory: blocks stand side by side, sorted by keys.

    :param size: units of each edge's block, shape (edges,).
    :param index: edges whose blocks are laid.
    :param keys: keys of all edges, the first one counts most.
    :param once: whether edges that differ in nothing but the last key share one copy.
    :param start: unit at which the first block begins.
    """
    index = index[np.lexsort([key[index] for key in reversed(keys)])]
    new = opens(*(key[index] for key in (keys[:-1] if once else keys)))
    first = index[new]
    begin = start + np.cumsum(size[first]) - size[first]
    of_edge = np.full(len(size), -1)
    of_edge[index] = begin[np.cumsum(new) - 1]
    return Laid(first, begin, of_edge, start + int(size[first].sum()))


def table(*columns: Integers | int) -> Integers:
    """Rows of columns of equal length, of which at least one is an array; a number stands for a column of it."""
    length = next(len(column) for column in columns if isinstance(column, np.ndarray))
    rows = np.empty((length, len(columns)), dtype=np.int64)
    for at, column in enumerate(columns):
        rows[:, at] = column
    return rows


def messages(peer: Integers, blocks: Laid) -> Integers:
    """The messages of blocks that are laid by their peer, one per peer."""
    first = np.flatnonzero(opens(peer))
    begin = blocks.begin[first]
    return table(peer[first], SCRATCH, begin, np.diff(begin, append=blocks.end))


def joined(moves: Integers) -> Integers:
    """Moves in the order of what they read, those of adjacent units joined to one."""
    moves = moves[(moves[:, 4] > 0)]
    moves = moves[np.argsort(moves[:, 1], kind="stable")]
    same = (moves[1:, [0, 2]] == moves[:-1, [0, 2]]).all(axis=1)
    for column in (1, 3):
        same &= moves[1:, column] == moves[:-1, column] + moves[:-1, 4]
    first = np.flatnonzero(np.append(True, ~same)[: len(moves)])
    joined = moves[first]
    if len(first):
        joined[:, 4] = np.add.reduceat(moves[:, 4], first)
    return joined
