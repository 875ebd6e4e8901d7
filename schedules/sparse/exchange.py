"""One rank's part of a neighbourhood collective whose small blocks are carried from group to group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..neighbourhood import Edges
from ..schedule import INPUT, OUTPUT, SCRATCH
from .carriers import DIRECT, opens

__all__ = ["Blocks", "Exchange", "Known", "Stage", "edge_by_edge", "exchange_of"]

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
    """

    group_of: Integers
    out: Edges
    carrier: Integers
    into: Edges
    arriving: Integers
    landing: Integers
    shares: bool = False


class Blocks(NamedTuple):
    """The blocks of a rank's input or output: first unit and number of units of each, by the number of its edge."""

    begin: Integers
    size: Integers


class Stage(NamedTuple):
    """A rank's work in one stage of an exchange: first its moves, then its messages.

    :ivar moves: buffer and first unit that each move reads, buffer and first unit that it writes, and its length, shape
        (moves, 5).
    :ivar receives: peer, buffer, first unit and length of each message, shape (messages, 4).
    :ivar sends: peer, buffer, first unit and length of each message, shape (messages, 4).
    """

    moves: Integers
    receives: Integers
    sends: Integers


class _Laid(NamedTuple):
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


@dataclass(frozen=True, eq=False)
class Exchange:
    """One rank's part of a neighbourhood collective, apart from the memory of its input and output.

    Blocks that are carried go from their source to a carrier of its group, from there to the landing rank of the
    destination's group, and from there to the destination. All others go directly. A block's size may differ from call
    to call: one that fits into the ``capacity`` of its edge is carried, and one that does not goes directly. Source and
    destination know the size, so that no other rank has to.

    :param rank: the rank.
    :param out: the rank's outgoing edges.
    :param out_capacity: units that each can carry; 0 for edges that are always direct, shape (outgoing edges,).
    :param into: the rank's incoming edges.
    :param in_capacity: units that each can carry, shape (incoming edges,).
    :param packing: outgoing edges (indices) whose blocks the rank copies to scratch memory, and first unit there.
    :param unpacking: incoming edges (indices) whose blocks it copies from scratch memory, and first unit there.
    :param middle: the three stages of carried blocks without the copies from input and to output.
    :param scratch: units of scratch memory.
    """

    rank: int
    out: Edges
    out_capacity: Integers
    into: Edges
    in_capacity: Integers
    packing: tuple[Integers, Integers]
    unpacking: tuple[Integers, Integers]
    middle: tuple[Stage, Stage, Stage]
    scratch: int

    def stages(self, sent: Blocks, received: Blocks) -> list[Stage]:
        """The stages for given memory: the direct messages, three stages of carried blocks, and the last copies.

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
        first = Stage(
            _table(INPUT, sent.begin[into.number[own]], OUTPUT, received.begin[into.place[own]], arriving[own]),
            _table(into.source[awaited], OUTPUT, received.begin[into.place[awaited]], arriving[awaited]),
            _table(out.destination[direct], INPUT, sent.begin[out.number[direct]], leaving[direct]),
        )
        index, to = self.packing
        pack = _table(INPUT, sent.begin[out.number[index]], SCRATCH, to, leaving[index])
        pack = pack[leaving[index] <= self.out_capacity[index]]
        index, begin = self.unpacking
        unpack = _table(SCRATCH, begin, OUTPUT, received.begin[into.place[index]], arriving[index])
        unpack = unpack[arriving[index] <= self.in_capacity[index]]
        collect, forward, deliver = self.middle
        last = Stage(_joined(unpack), *(np.empty((0, 4), dtype=np.int64),) * 2)
        return [first, collect._replace(moves=_joined(pack)), forward, deliver, last]

    @property
    def direct(self) -> Stage:
        """The messages of blocks that are never carried, if blocks have the sizes of the plan."""
        return _along(self, self.out_capacity == 0, self.in_capacity == 0)


def edge_by_edge(exchange: Exchange) -> Stage:
    """The messages of an exchange if no block were carried, and blocks have the sizes of its plan."""
    return _along(exchange, np.ones(len(exchange.out), dtype=bool), np.ones(len(exchange.into), dtype=bool))


def _along(exchange: Exchange, leaves: NDArray[np.bool_], comes: NDArray[np.bool_]) -> Stage:
    out = exchange.out.chosen(leaves & (exchange.out.destination != exchange.rank) & (exchange.out.size > 0))
    into = exchange.into.chosen(comes & (exchange.into.source != exchange.rank) & (exchange.into.size > 0))
    return Stage(
        np.empty((0, 5), dtype=np.int64),
        _table(into.source, OUTPUT, 0, into.size),
        _table(out.destination, INPUT, 0, out.size),
    )


def exchange_of(rank: int, known: Known, partner: Mapping[int, int]) -> Exchange:
    """One rank's part of a neighbourhood collective.

    :param rank: the rank.
    :param known: the edges of the rank's group.
    :param partner: for each group for which the rank is carrier, the landing rank there.
    Cost: sorts of the group's edges.
    """
    out, into, shares = known.out, known.into, known.shares
    mine, to_me = out.source == rank, into.destination == rank
    goes, comes = known.carrier != DIRECT, known.arriving != DIRECT
    carries, lands = known.carrier == rank, known.landing == rank
    there = known.group_of[out.destination]
    end = 0

    def lay(edges: Edges, which: NDArray[np.bool_], *keys: Integers, once: bool = shares) -> _Laid:
        nonlocal end
        laid = _laid(edges.size, np.flatnonzero(which), (*keys, edges.number), once, end)
        end = laid.end
        return laid

    handed = lay(out, mine & goes & ~carries, known.carrier, there)
    collected = lay(out, carries & ~mine, out.source, there)
    bundles = lay(out, carries, there, out.source)
    arrived = lay(into, lands, known.arriving, into.source)
    sorted_ = lay(into, lands & ~to_me, into.destination, known.arriving, into.source, once=False)
    fetched = lay(into, to_me & comes & ~lands, known.landing, known.arriving, into.source, once=False)

    own = bundles.edges[out.source[bundles.edges] == rank]
    others = bundles.edges[out.source[bundles.edges] != rank]
    kept = np.flatnonzero(lands & to_me)
    landing_rank = np.array([partner[group] for group in there[bundles.edges].tolist()], dtype=np.int64)
    moved = _table(SCRATCH, collected.of_edge[others], SCRATCH, bundles.of_edge[others], out.size[others])
    turned = _table(SCRATCH, arrived.of_edge[sorted_.edges], SCRATCH, sorted_.begin, into.size[sorted_.edges])
    nothing = np.empty((0, 5), dtype=np.int64)
    collect = Stage(
        nothing,
        _messages(out.source[collected.edges], collected),
        _messages(known.carrier[handed.edges], handed),
    )
    forward = Stage(
        _joined(moved),
        _messages(known.arriving[arrived.edges], arrived),
        _messages(landing_rank, bundles),
    )
    deliver = Stage(
        _joined(turned),
        _messages(known.landing[fetched.edges], fetched),
        _messages(into.destination[sorted_.edges], sorted_),
    )
    outgoing, incoming = np.flatnonzero(mine), np.flatnonzero(to_me)
    place_out, place_in = _places(mine), _places(to_me)
    return Exchange(
        rank,
        out.chosen(outgoing),
        np.where(goes, out.size, 0)[outgoing],
        into.chosen(incoming),
        np.where(comes, into.size, 0)[incoming],
        (
            place_out[np.concatenate((handed.edges, own))],
            np.concatenate((handed.begin, bundles.of_edge[own])),
        ),
        (
            place_in[np.concatenate((fetched.edges, kept))],
            np.concatenate((fetched.begin, arrived.of_edge[kept])),
        ),
        (collect, forward, deliver),
        end,
    )


def _laid(size: Integers, index: NDArray[np.intp], keys: tuple[Integers, ...], once: bool, start: int) -> _Laid:
    """Lay blocks side by side in the order of some keys.

    :param size: units of each edge, shape (edges,).
    :param index: edges whose blocks are laid.
    :param keys: keys of all edges, the first one counts most.
    :param once: whether edges that differ in the last key only share one copy.
    :param start: first unit.
    """
    index = index[np.lexsort([key[index] for key in reversed(keys)])]
    new = opens(*(key[index] for key in (keys[:-1] if once else keys)))
    first = index[new]
    begin = start + np.cumsum(size[first]) - size[first]
    of_edge = np.full(len(size), -1)
    of_edge[index] = begin[np.cumsum(new) - 1]
    return _Laid(first, begin, of_edge, start + int(size[first].sum()))


def _places(mask: NDArray[np.bool_]) -> Integers:
    """The index of each chosen edge among the chosen ones, shape (edges,)."""
    return np.cumsum(mask) - 1


def _table(*columns: Integers | int) -> Integers:
    """Rows of some columns, of which at least one is an array."""
    length = next(len(column) for column in columns if isinstance(column, np.ndarray))
    rows = np.empty((length, len(columns)), dtype=np.int64)
    for at, column in enumerate(columns):
        rows[:, at] = column
    return rows


def _messages(peer: Integers, laid: _Laid) -> Integers:
    """The messages of blocks that are laid by their peer, one per peer."""
    first = np.flatnonzero(opens(peer))
    begin = laid.begin[first]
    return _table(peer[first], SCRATCH, begin, np.diff(begin, append=laid.end))


def _joined(moves: Integers) -> Integers:
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
