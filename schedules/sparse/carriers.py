"""The choice of carriers: the ranks of a group that send to other groups, and receive from them, for all its ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..neighbourhood import Edges
from .rounds import most_rounds, route

__all__ = ["DIRECT", "CarryingTerms", "carriers", "landings", "opens"]

Integers = NDArray[np.int64]

DIRECT = -1  # stands for the carrier of an edge whose block goes from its source to its destination in one message


@dataclass(frozen=True)
class CarryingTerms:
    """The terms on which blocks are carried.

    :param limit: size in units above which a block goes directly, because copies would cost more than a start-up.
    :param start: units that take as long to send as a message takes to start, by which carriers are balanced.
    :param grain: least units of a message that is worth dividing among several carriers.
    :param fewest: least number of blocks of a bundle that is worth carrying.
    :param near: units that a rank receives from another of its group in the time in which a message inside the group
        starts.
    :param inside: time in which a message inside a group starts, as a fraction of that between groups.
    """

    limit: int = 4096
    start: int = 2048
    grain: int = 16384
    fewest: int = 2
    near: int = 8192
    inside: float = 0.7


def carriers(out: Edges, group_of: Integers, members: Integers, terms: CarryingTerms, *, shares: bool) -> Integers:
    """The rank of a group that sends each outgoing block on to another group, or ``DIRECT``, shape (edges,).

    Each rank hands its blocks for a group to a carrier in its part of the members: itself, in parts of one, or one of
    two, four and so on up to all members. The parts are chosen in which the busiest rank has the least to do: small
    parts save messages inside the group, large ones between groups. Blocks of a part for one group are one bundle, or
    several if they have far more units than the other bundles of the group. Bundles are dealt to the ranks of the part,
    the largest first, each to the rank with the least to send; two bundles for one group have two carriers.

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
    index = np.flatnonzero(carried)
    if not len(index):
        return chosen
    index = index[np.lexsort((out.number[index], out.source[index], there[index]))]
    new = opens(there[index], out.source[index])
    weight = out.size[index].copy()
    if shares:
        weight[~new] = 0
    lot = np.cumsum(new) - 1  # all blocks of a rank for a group
    lots = _Lots(
        np.searchsorted(members, out.source[index][new]),
        there[index][new],
        np.bincount(lot, weights=weight).astype(np.int64),
        np.bincount(lot),
        lot,
        out.destination[index],
    )
    tried = [_carried(lots, 1 << power, len(members), terms) for power in range(most_rounds(len(members)) + 1)]
    carrier = min(tried, key=lambda one: one[0])[1][lot]
    chosen[index] = np.where(carrier == DIRECT, DIRECT, members[carrier])
    return chosen


def landings(into: Edges, carrier: Integers, members: Integers, terms: CarryingTerms, *, shares: bool) -> Integers:
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
    owner = np.searchsorted(members, into.destination[index])
    dealt = _dealt(bundle, owner, weight, np.arange(len(which)), len(members), len(members), terms)
    chosen[index] = members[dealt][bundle]
    return chosen


class _Lots(NamedTuple):
    """The blocks of one rank for one group, as one row each, sorted by group and rank.

    :ivar owner: index of the rank among the members.
    :ivar there: the group.
    :ivar weight: units of the blocks.
    :ivar blocks: number of the blocks.
    :ivar lot: row of each block, shape (blocks,).
    :ivar destination: destination of each block, shape (blocks,).
    """

    owner: Integers
    there: Integers
    weight: Integers
    blocks: Integers
    lot: Integers
    destination: Integers


def _carried(lots: _Lots, part: int, members: int, terms: CarryingTerms) -> tuple[float, Integers]:
    """The work of the busiest member in starts, and the index of each lot's carrier, if carriers are in its part.

    :param lots: what is carried.
    :param part: members of a part; the last part may have fewer.
    :param members: number of members.
    :param terms: terms on which blocks are carried.
    """
    label = np.unique(lots.there * -(-members // part) + lots.owner // part, return_inverse=True)[1]
    order = np.argsort(label, kind="stable")
    label, owner, weight = (column[order] for column in (label, lots.owner, lots.weight))
    if part == 1:
        sorted_bundle, dealt = label, owner
    else:
        sorted_bundle = _bundles(label, weight, np.minimum(part, members - owner // part * part), members, terms)
        apart = label[opens(sorted_bundle)]
        dealt = _dealt(sorted_bundle, owner, weight, apart, part, members, terms)[sorted_bundle]
    alone = np.bincount(sorted_bundle, weights=lots.blocks[order])[sorted_bundle] < terms.fewest
    carrier, bundle = np.empty_like(owner), np.empty_like(owner)
    carrier[order], bundle[order] = np.where(alone, owner, dealt), sorted_bundle
    work = _busiest(lots, carrier, bundle, members, terms)
    carrier[order[alone]] = DIRECT
    return work, carrier


def _busiest(lots: _Lots, carrier: Integers, bundle: Integers, members: int, terms: CarryingTerms) -> float:
    """The work of the busiest member in starts.

    What a member receives from other groups and hands out there is assumed to be what it sends and what is handed out
    for it, as in symmetric graphs.

    :param lots: what is carried.
    :param carrier: index of the carrier of each lot, shape (lots,).
    :param bundle: bundle of each lot, shape (lots,).
    :param members: number of members.
    :param terms: terms on which blocks are carried.
    """
    routes = route(lots.owner, carrier, lots.weight, members, terms.near)
    groups, ranks = int(lots.there.max()) + 1, int(lots.destination.max()) + 1
    messages = np.bincount(np.unique(carrier * groups + lots.there) // groups, minlength=members)
    units = np.bincount(carrier, weights=lots.weight, minlength=members)
    destinations = np.bincount(np.unique(bundle[lots.lot] * ranks + lots.destination) // ranks)
    first = np.unique(bundle, return_index=True)[1]
    handed_out = np.bincount(carrier[first], weights=destinations - 1, minlength=members)
    near = routes.load + 2 * np.minimum(handed_out, most_rounds(members))
    work = terms.inside * near + 2 * messages + units / terms.start
    return float(work.max()) + terms.inside * (len(routes.at) - 1)


def opens(*columns: Integers) -> NDArray[np.bool_]:
    """True for each row that differs from the row before it in one of the columns."""
    new = np.ones(len(columns[0]), dtype=bool)
    new[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return new


def _bundles(label: Integers, weight: Integers, most: Integers, members: int, terms: CarryingTerms) -> Integers:
    """The bundle of each lot, numbered from 0, ascending.

    :param label: number of the lot's part of the members and group, ascending from 0, shape (lots,).
    :param weight: units of each lot, shape (lots,).
    :param most: members of the lot's part, shape (lots,).
    :param members: number of ranks of the sending group.
    :param terms: terms on which blocks are carried.
    """
    total = np.bincount(label, weights=weight)
    share = max(float(total.sum()) / members, float(terms.grain))
    first = opens(label)
    parts = np.clip(np.ceil(total / share), 1, most[first]).astype(np.int64)
    before = np.cumsum(weight) - weight
    begin = before - before[first][label]
    part = np.minimum(begin * parts[label] // np.maximum(total[label], 1), parts[label] - 1).astype(np.int64)
    bundle: Integers = np.cumsum(opens(label, part)) - 1
    return bundle


def _dealt(
    bundle: Integers, owner: Integers, weight: Integers, apart: Integers, part: int, members: int, terms: CarryingTerms
) -> Integers:
    """The index of the member that gets each bundle: the largest first, each to the member with the least so far.

    What a member has of its own in a bundle, or gets from it, counts in its favour.

    :param bundle: number of the bundle of each row, shape (rows,).
    :param owner: index of the member that each row belongs to, shape (rows,); a bundle stays in its owners' part.
    :param weight: units of each row, shape (rows,).
    :param apart: label of each bundle, shape (bundles,); bundles with one label get different members.
    :param part: members of a part.
    :param members: number of members; a part has at least as many as there are bundles with any one label.
    :param terms: terms on which blocks are carried.
    """
    load = np.bincount(bundle, weights=weight) + terms.start
    own = np.zeros((len(load), members))
    np.add.at(own, (bundle, owner), weight)
    own[bundle, owner] += terms.start
    first = np.zeros(len(load), dtype=np.int64)
    first[bundle] = owner // part * part
    chosen, held = np.empty(len(load), dtype=np.int64), np.zeros(members)
    used: dict[int, list[int]] = {}
    for one in np.argsort(-load, kind="stable").tolist():
        low = int(first[one])
        taken = used.setdefault(int(apart[one]), [])
        free = held - own[one]
        free[taken] = np.inf
        chosen[one] = member = low + int(free[low : low + part].argmin())
        taken.append(member)
        held[member] += load[one]
    return chosen
