"""One rank's part of a neighbourhood collective whose small blocks are carried from group to group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..neighbourhood import Edges
from ..schedule import INPUT, OUTPUT, SCRATCH
from .carriers import DIRECT, CarryingTerms
from .laying import IN_INPUT, NOTHING, ExchangeStage, Scratch, joined, table
from .rounds import most_rounds, route

__all__ = ["EdgeBlocks", "Exchange", "ExchangeStage", "Known", "edge_by_edge", "exchange_of"]

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Known:
    """All that the ranks of a group know of a neighbourhood collective: the edges of the group's ranks.

    :param group_of: group of each rank of the communicator, shape (p,).
    :param out: edges out of the group's ranks; their places are unknown.
    :param carrier: carrier of each of these edges, shape (edges,).
    :param into: edges into the group's ranks.
    :param arriving: carrier of each of these edges, a rank of the source's group, shape (edges,).
    :param landing: rank of the group that receives the edge's block from the carrier, shape (edges,).
    :param shares: whether all edges of a rank carry one block.
    :param terms: terms on which blocks are carried.
    """

    group_of: Integers
    out: Edges
    carrier: Integers
    into: Edges
    arriving: Integers
    landing: Integers
    shares: bool = False
    terms: CarryingTerms = field(default_factory=CarryingTerms)

    @cached_property
    def members(self) -> Integers:
        """The ranks of the group, ascending; none if they have no edges."""
        some = np.concatenate((self.out.source, self.into.destination))[:1]
        return np.flatnonzero(np.isin(self.group_of, self.group_of[some]))

    @cached_property
    def rides(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """The edges inside the group whose blocks go with those from other groups, as masks of ``out`` and ``into``.

        All small blocks do if the routes inside the group have several rounds, else those for which there is a message
        anyway.
        """
        out, into, group_of = self.out, self.into, self.group_of
        small = (into.size > 0) & (into.size <= self.terms.limit)
        near = small & (into.source != into.destination) & (group_of[into.source] == group_of[into.destination])
        landed = self.landing != DIRECT
        start, moving = np.where(near, into.source, self.landing), np.flatnonzero(near | landed)
        if len(self.routes(start[moving], into.destination[moving], into.size[moving])) < 3:
            ranks = len(group_of)
            near &= np.isin(start * ranks + into.destination, (start * ranks + into.destination)[landed])
        key = max(int(edges.number.max(initial=0)) for edges in (out, into)) + 1
        chosen = (into.source * key + into.number)[near]
        return np.isin(out.source * key + out.number, chosen), near

    def routes(self, begin: Integers, end: Integers, size: Integers) -> Integers:
        """The rank that has each block before each round inside the group, and at the end, shape (rounds + 1, blocks).

        :param begin: rank that has each block, shape (blocks,).
        :param end: rank that gets it, shape (blocks,).
        :param size: units of each block, shape (blocks,).
        """
        members = self.members
        here, there = np.searchsorted(members, begin), np.searchsorted(members, end)
        return members[route(here, there, size, len(members), self.terms.near).at]


class EdgeBlocks(NamedTuple):
    """The blocks of a rank's input or output: first unit and number of units of each, by the number of its edge."""

    begin: Integers
    size: Integers


@dataclass(frozen=True, eq=False)
class Exchange:
    """One rank's part of a neighbourhood collective, apart from the memory of its input and output.

    Blocks that are carried go from their source to a carrier of its group, from there to the landing rank of the
    destination's group, and from there to the destination. Inside both groups they go in the rounds of `route`, and so
    do small blocks for ranks of the same group. All others go directly. A block's size may differ from call
    to call: one that fits into the ``capacity`` of its edge is carried, and one that does not goes directly. Source and
    destination know the size, so that no other rank has to.

    :param rank: the rank.
    :param out: the rank's outgoing edges.
    :param out_capacity: units that each can carry; 0 for edges that are always direct, shape (outgoing edges,).
    :param into: the rank's incoming edges.
    :param in_capacity: units that each can carry, shape (incoming edges,).
    :param packing: outgoing edges (indices) whose blocks the rank copies to scratch memory, and first unit there.
    :param unpacking: incoming edges (indices) whose blocks it copies from scratch memory, and first unit there.
    :param middle: the stages of carried blocks without the copies from input and to output: rounds to carriers, the
        messages between groups, and rounds to destinations, on all ranks equally many.
    :param scratch: units of scratch memory.
    """

    rank: int
    out: Edges
    out_capacity: Integers
    into: Edges
    in_capacity: Integers
    packing: tuple[Integers, Integers]
    unpacking: tuple[Integers, Integers]
    middle: tuple[ExchangeStage, ...]
    scratch: int

    def stages(self, sent: EdgeBlocks, received: EdgeBlocks) -> list[ExchangeStage]:
        """The stages for given memory: the direct messages, the stages of carried blocks, and the last copies.

        The direct messages may last as long as the other stages take together.

        :param sent: the blocks of the input, by number of the outgoing edge.
        :param received: the blocks of the output, by place of the incoming edge.
        """
        out, into = self.out, self.into
        leaving, arriving = sent.size[out.number], received.size[into.place]
        direct = np.flatnonzero((leaving > self.out_capacity) & (out.destination != self.rank))
        direct = direct[np.lexsort((out.number[direct], out.destination[direct]))]
        awaited = np.flatnonzero((arriving > self.in_capacity) & (into.source != self.rank))
        awaited = awaited[np.lexsort((into.number[awaited], into.source[awaited]))]
        own = np.flatnonzero((into.source == self.rank) & (arriving > 0))
        first = ExchangeStage(
            table(INPUT, sent.begin[into.number[own]], OUTPUT, received.begin[into.place[own]], arriving[own]),
            table(into.source[awaited], OUTPUT, received.begin[into.place[awaited]], arriving[awaited]),
            table(out.destination[direct], INPUT, sent.begin[out.number[direct]], leaving[direct]),
        )
        index, to = self.packing
        pack = table(INPUT, sent.begin[out.number[index]], SCRATCH, to, leaving[index])
        pack = pack[leaving[index] <= self.out_capacity[index]]
        index, begin = self.unpacking
        unpack = table(SCRATCH, begin, OUTPUT, received.begin[into.place[index]], arriving[index])
        unpack = unpack[arriving[index] <= self.in_capacity[index]]
        collect, *rest = self.middle
        return [first, collect._replace(moves=joined(pack)), *rest, NOTHING._replace(moves=joined(unpack))]

    @property
    def direct(self) -> ExchangeStage:
        """The messages of blocks that are never carried, if blocks have the sizes of the plan."""
        return _along(self, self.out_capacity == 0, self.in_capacity == 0)


def edge_by_edge(exchange: Exchange) -> ExchangeStage:
    """The messages of an exchange if no block were carried, and blocks have the sizes of its plan."""
    return _along(exchange, np.ones(len(exchange.out), dtype=bool), np.ones(len(exchange.into), dtype=bool))


def _along(exchange: Exchange, leaves: NDArray[np.bool_], comes: NDArray[np.bool_]) -> ExchangeStage:
    out = exchange.out.chosen(leaves & (exchange.out.destination != exchange.rank) & (exchange.out.size > 0))
    into = exchange.into.chosen(comes & (exchange.into.source != exchange.rank) & (exchange.into.size > 0))
    return ExchangeStage(
        np.empty((0, 5), dtype=np.int64),
        table(into.source, OUTPUT, 0, into.size),
        table(out.destination, INPUT, 0, out.size),
    )


def exchange_of(rank: int, known: Known, partner: Mapping[int, int]) -> Exchange:
    """One rank's part of a neighbourhood collective.

    :param rank: the rank.
    :param known: the edges of the rank's group.
    :param partner: for each group for which the rank is carrier, the landing rank there.
    Cost: sorts of the group's edges.
    """
    out, into = known.out, known.into
    memory = Scratch(rank, known.shares)
    near_out, near_in = known.rides
    goes, comes = known.carrier != DIRECT, (known.arriving != DIRECT) | near_in

    held = np.full(len(out), IN_INPUT)
    collect = _rounds(memory, known, out, np.flatnonzero(goes), (out.source, known.carrier), held)
    carries, lands = (np.flatnonzero(which == rank) for which in (known.carrier, known.landing))
    peer = np.full(len(out), DIRECT)
    peer[carries] = [partner[group] for group in known.group_of[out.destination[carries]].tolist()]
    moves, sends = memory.send(out, carries, peer, held)
    held = np.full(len(into), IN_INPUT)
    forward = ExchangeStage(moves, memory.receive(into, lands, known.arriving, held), sends)
    start = np.where(near_in, into.source, known.landing)
    deliver = _rounds(memory, known, into, np.flatnonzero(comes), (start, into.destination), held)

    mine, to_me = np.flatnonzero(out.source == rank), np.flatnonzero(into.destination == rank)
    carried = np.flatnonzero(comes[to_me])
    return Exchange(
        rank,
        out.chosen(mine),
        np.where(goes | near_out, out.size, 0)[mine],
        into.chosen(to_me),
        np.where(comes, into.size, 0)[to_me],
        memory.packing(out.number[mine]),
        (carried, held[to_me[carried]]),
        (*collect, forward, *deliver),
        memory.end,
    )


def _rounds(
    memory: Scratch, known: Known, edges: Edges, index: Integers, ends: tuple[Integers, Integers], held: Integers
) -> list[ExchangeStage]:
    """The stages in which blocks move inside the group, on all ranks of all groups equally many.

    :param memory: scratch memory of the rank.
    :param known: the edges of the rank's group.
    :param edges: its edges out of the group's ranks, or into them.
    :param index: edges whose blocks move.
    :param ends: rank that has each edge's block, and rank that gets it, shape (edges,) each.
    :param held: first unit of each edge's block if the rank holds it, shape (edges,); it is brought up to date.
    """
    at = known.routes(ends[0][index], ends[1][index], edges.size[index])
    stages = memory.rounds(edges, index, at, held)
    return stages + [NOTHING] * (most_rounds(int(np.bincount(known.group_of).max())) - len(stages))
