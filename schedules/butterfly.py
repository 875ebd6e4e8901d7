"""Butterflies: reduce-scatters in which ranks divide what they hold; backwards they are allgathers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .phases import Given
from .schedule import COPY, REDUCE
from .transfers import transfers

__all__ = ["Butterfly", "along_ring", "cuts_between", "halved", "in_steps", "staged"]

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Butterfly:
    """The messages of a reduce-scatter in which each rank hands on parts of what it holds, until it has its own share.

    The shares of all ranks lie in the order of a layout, which is the same on all ranks, and a message carries shares
    that lie side by side. A rank that holds a share sends it once, unless it is its own. Each share thus climbs a tree
    of all ranks to its owner. The same messages backwards, each a copy, are an allgather.

    :param layout: ranks in the order in which their shares lie, shape (p,).
    :param messages: step, source, destination, place of the first share in the layout, and place behind the last share
        of each message, sorted by step, shape (messages, 5).
    """

    layout: Integers
    messages: Integers

    @property
    def steps(self) -> int:
        """Number of steps."""
        return int(self.messages[:, 0].max(initial=-1)) + 1

    def reducing(self, bounds: Integers, buffer: Integers) -> Given:
        """The phase of the reduce-scatter: each rank ends with the sum of all ranks' data in its own share.

        :param bounds: first block of each share, and the end, in the order of the layout, shape (p + 1,).
        :param buffer: working buffer of each rank, shape (p,).
        """
        step, source, destination, first, last = self.messages.T
        begin = bounds[first]
        places = (buffer[source], begin), (buffer[destination], begin)
        return Given.of(transfers(step, source, destination, *places, bounds[last] - begin, REDUCE))

    def gathering(self, bounds: Integers, buffer: Integers) -> Given:
        """The phase of the allgather: each rank begins with its own share and ends with all shares.

        :param bounds: first block of each share, and the end, in the order of the layout, shape (p + 1,).
        :param buffer: working buffer of each rank, shape (p,).
        """
        step, destination, source, first, last = self.messages[::-1].T
        begin = bounds[first]
        places = (buffer[source], begin), (buffer[destination], begin)
        step = self.steps - 1 - step
        return Given.of(transfers(step, source, destination, *places, bounds[last] - begin, COPY))


def staged(stages: Sequence[Integers], size: int, *, in_rings: bool = False) -> Butterfly:
    """The butterfly of exchanges in groups of equal size, stage by stage.

    In each stage the ranks of a group, which all hold the same shares, divide these among them by `halved`.

    :param stages: groups of each stage, each of shape (members, groups), which contain each rank once.
    :param size: number of ranks, p.
    :param in_rings: whether the members of a group are a ring, and divide the shares by `along_ring` instead.
    :raises ValueError: if the members of some group would not hold the same shares.
    """
    layout = np.zeros(1, dtype=np.int64)
    for groups in stages:
        where = np.empty(size, dtype=np.int64)
        where[groups] = np.arange(groups.shape[1])
        layout = groups[:, where[layout]].T.ravel()
    begin, width, tables, step = np.empty(size, dtype=np.int64), 1, list[Integers](), 0
    begin[layout] = np.arange(len(layout))
    for groups in reversed(stages):
        ranks = np.take_along_axis(groups, np.argsort(begin[groups], axis=0), axis=0)
        cuts = (begin[ranks[0]] + width * np.arange(len(ranks) + 1)[:, None]).T
        if (begin[ranks] != cuts[:, :-1].T).any():
            raise ValueError("expecting stages whose groups divide the same shares, got others")
        # The members' parts lie in the order of the layout; along a ring they are handed on in the order of the group.
        tables.append(along_ring(groups, begin[groups], width) if in_rings else halved(ranks, cuts))
        begin[ranks], width = begin[ranks[0]], width * len(ranks)
    for table in reversed(tables):
        table[:, 0] += step
        step = int(table[:, 0].max(initial=step - 1)) + 1
    return Butterfly(layout, in_steps(reversed(tables)))


def halved(ranks: Integers, cuts: Integers) -> Integers:
    """The messages of circulant exchanges (Träff, arXiv:2410.14234) in several groups of k ranks at once.

    :param ranks: ranks of the groups, one group per column, shape (k, groups).
    :param cuts: cuts between the shares that the ranks of each group hold at the end, shape (groups, k + 1).
    :returns: rows as in `Butterfly.messages`, with steps from 0.
    """
    size, groups = ranks.shape
    member, group = np.arange(size)[:, None], np.arange(groups)
    rows, step, have = list[Integers](), 0, size
    while have > 1:
        keep = -(-have // 2)
        # Shares are counted from the rank's own, cyclically; those beyond the last one are the first ones again.
        for turn, bound in ((0, np.minimum), (size, np.maximum)):
            low, high = (bound(member + many, size) - turn for many in (keep, have))
            begin, end = cuts[group, low], cuts[group, high]
            columns = (step, ranks, ranks[(member + keep) % size, group], begin, end)
            found = np.stack(np.broadcast_arrays(*columns), axis=-1).reshape(-1, 5)
            rows.append(found[found[:, 4] > found[:, 3]])
        step, have = step + 1, keep
    return in_steps(rows)


def along_ring(ranks: Integers, begin: Integers, width: int) -> Integers:
    """The messages by which several rings of k ranks each divide shares: in each of k - 1 steps a rank hands on a part.

    A part begins at the rank behind its owner, and is handed on until it reaches the owner.

    :param ranks: ranks of the rings, one ring per column, shape (k, rings).
    :param begin: place of the first share of each rank's part, shape (k, rings).
    :param width: number of shares of a part.
    :returns: rows as in `Butterfly.messages`, with steps from 0.
    """
    size, rings = ranks.shape
    step, member, ring = (axis.ravel() for axis in np.indices((size - 1, size, rings)))
    first = begin[(member - step - 1) % size, ring]
    columns = (step, ranks[member, ring], ranks[(member + 1) % size, ring], first, first + width)
    return np.stack(columns, axis=-1)


def in_steps(tables: Iterable[Integers]) -> Integers:
    """Join tables of messages, sorted by step."""
    rows = np.concatenate([np.empty((0, 5), dtype=np.int64), *tables])
    ordered: Integers = rows[np.argsort(rows[:, 0], kind="stable")]
    return ordered


def cuts_between(cuts: Integers, own: NDArray[np.bool_]) -> Integers:
    """The cuts between what some of the ranks hold, nearest to equal parts, if the others are left out.

    :param cuts: cuts between all ranks, shape (ranks + 1,).
    :param own: whether each rank stays, shape (ranks,).
    """
    number, total = int(own.sum()), int(cuts[-1])
    even = (total * np.arange(1, number) + number // 2) // number
    inner = np.clip(even, cuts[1:][own][:-1], cuts[:-1][own][1:])
    return np.concatenate(([0], inner, [total]))
