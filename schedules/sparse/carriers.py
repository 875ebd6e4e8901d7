"""The choice of carriers: the ranks of a group that send to other groups, and receive from them, for all its ranks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..neighbourhood import Edges

__all__ = ["DIRECT", "Terms", "carriers", "landings", "opens"]

Integers = NDArray[np.int64]

DIRECT = -1  # stands for the carrier of an edge whose block goes from its source to its destination in one message


@dataclass(frozen=True)
class Terms:
    """The terms on which blocks are carried.

    :param limit: size in units above which a block goes directly, because copies would cost more than a start-up.
    :param start: units that take as long to send as a message takes to start, by which carriers are balanced.
    :param grain: least units of a message that is worth dividing among several carriers.
    :param fewest: least number of blocks between two groups that are worth carrying.
    """

    limit: int = 4096
    start: int = 2048
    grain: int = 16384
    fewest: int = 2


def carriers(out: Edges, group_of: Integers, members: Integers, terms: Terms, *, shares: bool) -> Integers:
    """The rank of a group that sends each outgoing block on to another group, or ``DIRECT``, shape (edges,).

    Blocks for one group are one bundle, or several if they have far more units than the other bundles of the group.
    Bundles are dealt to the ranks, the largest first, each to the rank with the least to send; two bundles for one
    group have two carriers.

    :param out: all edges out of the group's ranks.
    :param group_of: group of each rank of the communicator, shape (p,).
    :param members: ranks of the group, ascending.
    :param terms: terms on which blocks are carried.
    :param shares: whether all edges of a rank carry one block, of which a bundle then has one copy.
    Cost: a sort of the edges, and some microseconds per bundle.
    """
    chosen = np.full(len(out), DIRECT)
    there = group_of[out.destination]
    carried = (there != group_of[members[0]]) & (out.size > 0) & (out.size <= terms.limit)
    many = np.bincount(there[carried], minlength=int(group_of.max()) + 1)
    index = np.flatnonzero(carried)
    index = index[many[there[index]] >= terms.fewest]
    if not len(index):
        return chosen
    index = index[np.lexsort((out.number[index], out.source[index], there[index]))]
    weight = out.size[index].copy()
    new = opens(there[index], out.source[index])
    if shares:
        weight[~new] = 0
    bundle = _bundles(there[index], weight, new, len(members), terms)
    load = np.bincount(bundle, weights=weight).astype(np.int64)
    first = np.flatnonzero(np.diff(bundle, prepend=-1))
    dealt = _dealt(load + terms.start, there[index][first], len(members))
    chosen[index] = members[dealt][bundle]
    return chosen


def landings(into: Edges, carrier: Integers, members: Integers, terms: Terms, *, shares: bool) -> Integers:
    """The rank of a group that receives each bundle from another group, by incoming edge, shape (edges,).

    It is ``DIRECT`` for edges that are not carried.

    :param into: all edges into the group's ranks.
    :param carrier: rank of the other group that sends each block on, or ``DIRECT``, shape (edges,).
    :param members: ranks of the group, ascending.
    :param terms: terms on which blocks are carried.
    :param shares: whether all edges of a rank carry one block, of which a bundle then has one copy.
    """
    chosen = np.full(len(into), DIRECT)
    index = np.flatnonzero(carrier != DIRECT)
    if not len(index):
        return chosen
    index = index[np.lexsort((into.number[index], into.source[index], carrier[index]))]
    weight = into.size[index].copy()
    if shares:
        weight[~opens(carrier[index], into.source[index])] = 0
    which, bundle = np.unique(carrier[index], return_inverse=True)
    load = np.bincount(bundle, weights=weight, minlength=len(which)).astype(np.int64)
    chosen[index] = members[_dealt(load + terms.start, np.arange(len(which)), len(members))][bundle]
    return chosen


def opens(*columns: Integers) -> NDArray[np.bool_]:
    """True for each row that differs from the row before it in one of the columns."""
    new = np.ones(len(columns[0]), dtype=bool)
    new[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return new


def _bundles(there: Integers, weight: Integers, new: NDArray[np.bool_], members: int, terms: Terms) -> Integers:
    """The bundle of each block, numbered from 0, ascending; the blocks of one source for a group stay together.

    :param there: receiving group of each block, ascending, shape (blocks,).
    :param weight: units of each block, shape (blocks,).
    :param new: True for the first block of each source for each group, shape (blocks,).
    :param members: number of ranks of the sending group.
    :param terms: terms on which blocks are carried.
    """
    total = np.bincount(there, weights=weight)
    share = max(float(total.sum()) / members, float(terms.grain))
    parts = np.clip(np.ceil(total / share), 1, members).astype(np.int64)
    before = np.cumsum(weight) - weight
    run = np.cumsum(new) - 1
    begin = before[new][run] - before[np.searchsorted(there, there)]
    part = np.minimum(begin * parts[there] // np.maximum(total[there], 1), parts[there] - 1).astype(np.int64)
    bundle: Integers = np.cumsum(opens(there, part)) - 1
    return bundle


def _dealt(load: Integers, apart: Integers, members: int) -> Integers:
    """The index of the member that gets each bundle: the largest first, each to the member with the least so far.

    :param load: weight of each bundle, shape (bundles,).
    :param apart: label of each bundle, shape (bundles,); bundles with one label get different members.
    :param members: number of members, at least the number of bundles with any one label.
    """
    chosen, held = np.empty(len(load), dtype=np.int64), np.zeros(members)
    used: dict[int, list[int]] = {}
    for bundle in np.argsort(-load, kind="stable").tolist():
        taken = used.setdefault(int(apart[bundle]), [])
        free = held.copy()
        free[taken] = np.inf
        chosen[bundle] = member = int(free.argmin())
        taken.append(member)
        held[member] += load[bundle]
    return chosen
