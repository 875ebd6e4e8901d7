"""The butterfly over clusters of any sizes, in which data cross the borders of clusters as seldom as possible."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .butterfly import Butterfly, cuts_between, in_steps, staged
from .swing import ring_stages
from .trees import depth_first

__all__ = ["grouped"]

Integers = NDArray[np.int64]


def grouped(size: int, clusters: Sequence[ArrayLike] | Integers = ()) -> Butterfly:
    """The butterfly that joins the ranks of each outermost cluster, then the clusters: data seldom cross their borders.

    Ranks and clusters of equal size are joined at once, by exchanges along a ring of one rank of each, nearest first
    (see `swing.swings`); ranks stand in depth-first order. Else two clusters at a time are joined, those of the fewest
    steps first (Golumbic 1976), the smallest first among these: each rank keeps its part of what it held alone, and
    sends the other cluster's part to the ranks there that are to hold it. Any two clusters of a and b ranks can be
    joined. A rank of the larger one sends one or two messages in this step, one of the smaller one about a / b.

    Each join of two parts sends the bytes of one vector across the border between them, half of them each way if both
    have the same size. Thus (g - 1) vectors cross the borders of g clusters, the least possible, and a rank sends p - 1
    shares. Steps: at most ceil(log2 p) + 1. Inner levels are not joined one by one, because more joins of unlike parts
    would put unlike loads on ranks.

    :param size: number of ranks, p.
    :param clusters: cluster of each rank at each level, coarsest first, nested, each of shape (p,), any numbers; levels
        with a single cluster are ignored.
    """
    dividing = [label for label in map(np.asarray, clusters) if (label != label[0]).any()]
    order = depth_first(dividing, size)
    outer = dividing[0][order] if dividing else order * 0
    ends = np.flatnonzero(np.diff(outer)) + 1
    parts = [_equals([_Node(rank, 0) for rank in np.split(ranks, len(ranks))]) for ranks in np.split(order, ends)]
    top = _joined(parts)
    return Butterfly(top.ranks, in_steps(_messages(top, size)))


@dataclass(frozen=True, eq=False)
class _Node:
    """Ranks that are joined by the joins of their children, then by one of all children.

    :param ranks: ranks in the order of their shares in the layout.
    :param height: number of steps until all are joined.
    :param children: parts that are joined: any number of equal size, or two; none for a single rank.
    :param exchange: butterfly over the children, if they have equal sizes.
    :param of_first: whether each rank belongs to the first of two children of unequal size.
    """

    ranks: Integers
    height: int
    children: tuple[_Node, ...] = ()
    exchange: Butterfly | None = None
    of_first: NDArray[np.bool_] | None = None


def _joined(parts: list[_Node]) -> _Node:
    """Join parts of any sizes."""
    if len({len(part.ranks) for part in parts}) == 1:
        return _equals(parts)
    waiting = [(part.height, len(part.ranks), number, part) for number, part in enumerate(parts)]
    heapq.heapify(waiting)
    for number in range(len(parts), 2 * len(parts) - 1):
        pair = [heapq.heappop(waiting)[-1] for _ in range(2)]
        made = _equals(pair) if len(pair[0].ranks) == len(pair[1].ranks) else _unequals(*pair)
        heapq.heappush(waiting, (made.height, len(made.ranks), number, made))
    return waiting[0][-1]


def _equals(parts: list[_Node]) -> _Node:
    """Join parts of equal size: the i-th ranks of all parts have shares side by side."""
    if len(parts) == 1:
        return parts[0]
    exchange = staged(list(ring_stages(len(parts))), len(parts))
    ranks = np.stack([parts[place].ranks for place in exchange.layout], axis=1).ravel()
    return _Node(ranks, max(part.height for part in parts) + exchange.steps, tuple(parts), exchange)


def _unequals(one: _Node, other: _Node) -> _Node:
    """Join two parts of unequal size: the ranks of each are spread evenly over the layout."""
    ranks = np.concatenate((one.ranks, other.ranks))
    place = np.concatenate([(np.arange(size) + 0.5) / size for size in (len(one.ranks), len(other.ranks))])
    order = np.argsort(place, kind="stable")
    return _Node(ranks[order], max(one.height, other.height) + 1, (one, other), of_first=order < len(one.ranks))


def _messages(top: _Node, size: int) -> Iterator[Integers]:
    """Yield the messages of each join.

    When a node's ranks are joined, each holds the shares between two neighbouring cuts of the layout. At the top these
    are its own. Before that a rank held more: its part of what it has sent to others.
    """
    waiting = [(top, np.arange(size + 1))]
    while waiting:
        node, cuts = waiting.pop()
        start = max((child.height for child in node.children), default=0)
        if node.of_first is not None:
            parts = zip(node.children, (node.of_first, ~node.of_first), strict=True)
            sides = [(child, own, cuts_between(cuts, own)) for child, own in parts]
            for (child, _, held), (taking, own, _) in (sides, sides[::-1]):
                yield _handed(start, child.ranks, held, taking.ranks, cuts[:-1][own], cuts[1:][own])
            waiting += [(child, held) for child, _, held in sides]
        elif node.exchange is not None:
            number, ranks = len(node.children), np.stack([child.ranks for child in node.children])
            step, source, destination, first, last = node.exchange.messages.T[:, :, None]
            column = number * np.arange(ranks.shape[1])
            columns = (
                step + start,
                ranks[source[:, 0]],
                ranks[destination[:, 0]],
                cuts[first + column],
                cuts[last + column],
            )
            yield np.stack(np.broadcast_arrays(*columns), axis=-1).reshape(-1, 5)
            waiting += [(child, cuts[::number]) for child in node.children]


def _handed(step: int, givers: Integers, held: Integers, takers: Integers, begin: Integers, end: Integers) -> Integers:
    """The messages by which ranks of one part send those of another part what these are to hold.

    :param step: the step.
    :param givers: ranks of the part that sends, in the order of the layout.
    :param held: cuts between what they hold, shape (givers + 1,).
    :param takers: ranks of the other part.
    :param begin: first share that each of these is to hold.
    :param end: place behind the last one.
    """
    first = np.searchsorted(held, begin, side="right") - 1
    number = np.searchsorted(held, end, side="left") - first
    to = np.repeat(np.arange(len(takers)), number)
    by = np.arange(len(to)) + np.repeat(first - np.cumsum(number) + number, number)
    columns = (givers[by], takers[to], np.maximum(held[by], begin[to]), np.minimum(held[by + 1], end[to]))
    return np.stack((np.full(len(to), step), *columns), axis=1)
