"""Butterflies in few steps, in which many groups of ranks are joined at once, and the choice by loads of links."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise, product
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from .butterfly import Butterfly, cuts_between, in_steps
from .network import Network
from .trees import depth_first

__all__ = ["PIECES", "in_few_steps", "joined"]

Integers = NDArray[np.int64]

PIECES = 4  # pieces of a share: groups of unlike size divide what they hold between pieces, for nearly equal loads
MOST_JOINED = (4, 8, 16)  # most groups that are joined at once, in the butterflies that are compared
START = 1 / 200  # price of a rank's message, as a part of the time in which the rank sends all of its bytes
LAG = 1 / 10  # price of the time by which a pipeline is one step behind, because of about ten segments
MISSING = 1e6  # price of a missing route

_chosen: WeakKeyDictionary[Network, dict[bytes, Butterfly]] = WeakKeyDictionary()


def in_few_steps(network: Network, ranks: Integers) -> Butterfly:
    """The fastest butterfly by `joined` over some ranks, for messages long enough that start-ups cost little.

    The groups that are compared are the network's clusters of up to two levels, or, on a torus, lines, planes and
    blocks of hosts. The price of a step is the time of its busiest link, because the messages of a step are under way
    together. A step of the reduce-scatter counts together with the step of the allgather that is as far from the end:
    in a pipeline of segments they run at the same time, and long messages of one go along with short ones of the other.

    Loads are integers, so that all ranks choose the same butterfly.

    :param network: the job's network.
    :param ranks: the n ranks that take part, ascending, shape (n,).
    :returns: a butterfly over these ranks, with places in pieces as in `joined`.
    Cost: up to 30 butterflies of 64 ranks, about 3 ms each; the choice is kept per network.
    """
    found = _chosen.setdefault(network, {})
    key = ranks.tobytes()
    if key not in found:
        if network.grid is not None:
            ranks = ranks[np.lexsort(network.grid[network.rank_host[ranks]].T[::-1])]
        tried = product(_nestings(network, ranks), MOST_JOINED)
        every = (_over(ranks, joined(len(ranks), groups, most)) for groups, most in tried)
        found[key] = min(every, key=lambda one: _price(network, one))
    return found[key]


def joined(size: int, nesting: Sequence[Integers], most: int) -> Butterfly:
    """The butterfly that joins the ranks of each innermost group at once, then these groups, and so on.

    When g groups are joined, a rank sends to the ranks of the other groups what they are to hold of its part: g - 1
    messages in one step, if the groups have the same size, or some more. Recursive multiplying (Ruefenacht, Bull and
    Booth 2017), as a reduce-scatter, and for groups of any sizes. The ranks of a group divide the vector between pieces
    of shares, as evenly as possible if each keeps its own share.

    :param size: number of ranks, p.
    :param nesting: group of each rank at each level, coarsest first, nested, each of shape (p,), any numbers.
    :param most: largest number of groups that are joined at once; more are joined in several levels.
    :returns: a butterfly whose messages count places in pieces, ``PIECES`` of a share. Steps: about the sum of
        log(groups) / log(most) over the levels, each rounded up.
    """
    top = _built(depth_first(nesting, size), list(nesting), most)
    return Butterfly(top.ranks, in_steps(_messages(top)))


class _Node(NamedTuple):
    """Ranks that are joined by the joins of their children, then by one of all children.

    :ivar ranks: ranks in the order of their shares, shape (n,).
    :ivar height: number of steps until all are joined.
    :ivar children: the groups that are joined; none for a single rank.
    :ivar child: number of the group of each rank, shape (n,).
    """

    ranks: Integers
    height: int
    children: list[_Node]
    child: Integers


def _built(ranks: Integers, nesting: list[Integers], most: int) -> _Node:
    """The tree of joins over some ranks in depth-first order, whose groups at the remaining levels are given."""
    if nesting:
        ends = np.flatnonzero(np.diff(nesting[0][ranks])) + 1
        parts = [_built(some, nesting[1:], most) for some in np.split(ranks, ends)]
    else:
        parts = [_Node(ranks[[place]], 0, [], ranks[:0]) for place in range(len(ranks))]
    while len(parts) > 1:
        levels = next(one for one in range(1, len(parts)) if most**one >= len(parts))
        width = next(one for one in range(2, len(parts) + 1) if one**levels >= len(parts))
        cuts = np.arange(-(-len(parts) // width) + 1) * len(parts) // -(-len(parts) // width)
        parts = [_join(parts[begin:end]) for begin, end in pairwise(cuts)]
    return parts[0]


def _join(parts: list[_Node]) -> _Node:
    """Join groups of any sizes: the ranks of each are spread evenly over the order."""
    if len(parts) == 1:
        return parts[0]
    sizes = np.array([len(part.ranks) for part in parts])
    # The i-th of n ranks stands at (i + 1/2) / n. Fractions are compared as integers, alike on all machines.
    place = np.concatenate([(2 * np.arange(size) + 1) * (int(np.lcm.reduce(sizes)) // size) for size in sizes])
    order = np.argsort(place, kind="stable")
    ranks, child = np.concatenate([part.ranks for part in parts]), np.repeat(np.arange(len(parts)), sizes)
    return _Node(ranks[order], max(part.height for part in parts) + 1, parts, child[order])


def _messages(top: _Node) -> Iterator[Integers]:
    """Yield the messages of each join, with places in pieces.

    When the ranks of a node are joined, each holds what lies between two neighbouring cuts. At the top these enclose
    its own share; before that a rank held more.
    """
    waiting = [(top, PIECES * np.arange(len(top.ranks) + 1))]
    while waiting:
        node, cuts = waiting.pop()
        if not node.children:
            continue
        held = [cuts_between(cuts, node.child == number) for number in range(len(node.children))]
        yield _handed(node, cuts, held)
        waiting += zip(node.children, held, strict=True)


def _handed(node: _Node, cuts: Integers, held: list[Integers]) -> Integers:
    """The messages by which the ranks of each group send to those of the others what these are to hold.

    A rank first sends to the next group, then to the one behind it, and so on, so that receivers differ.

    :param node: the join.
    :param cuts: cuts between what its ranks are to hold, shape (ranks + 1,).
    :param held: cuts between what the ranks of each group hold before, each of shape (ranks of the group + 1,).
    """
    number, total = len(held), int(cuts[-1])
    # What all groups hold lies side by side, group by group.
    starts = np.concatenate([one[:-1] + total * group for group, one in enumerate(held)])
    ends = np.concatenate([one[1:] + total * group for group, one in enumerate(held)])
    givers = np.concatenate([child.ranks for child in node.children])
    begin, end = (total * np.arange(number)[:, None] + one for one in (cuts[:-1], cuts[1:]))
    first = np.searchsorted(starts, begin, side="right") - 1
    many = np.where(node.child == np.arange(number)[:, None], 0, np.searchsorted(starts, end, side="left") - first)
    group, taker = (np.repeat(one, many.ravel()) for one in np.indices(many.shape).reshape(2, -1))
    by = np.arange(len(taker)) + np.repeat(first.ravel() - np.cumsum(many) + many.ravel(), many.ravel())
    low = np.maximum(starts[by], begin[group, taker]) - total * group
    high = np.minimum(ends[by], end[group, taker]) - total * group
    step = np.full(len(taker), node.height - 1)
    rows = np.stack((step, givers[by], node.ranks[taker], low, high), axis=1)
    return rows[np.argsort((node.child[taker] - group) % number, kind="stable")]


def _over(ranks: Integers, butterfly: Butterfly) -> Butterfly:
    """The same butterfly over other ranks."""
    messages = butterfly.messages.copy()
    messages[:, 1:3] = ranks[messages[:, 1:3]]
    return Butterfly(ranks[butterfly.layout], messages)


def _nestings(network: Network, ranks: Integers) -> Iterator[list[Integers]]:
    """Yield the nestings of groups that are compared, each a list of arrays of shape (n,), coarsest first."""
    host = network.rank_host[ranks]
    inside = [host] if len(np.unique(host)) < len(host) else []
    if network.grid is None:
        known = [row[host] for row in network.clusters if len(np.unique(row[host])) > 1]
        every = [some for number in range(3) for some in combinations(known, number)]
    else:
        every = [(), *((one[host],) for one in _on_grid(network.grid))]
    yield from ([*some, *inside] for some in every)


def _on_grid(grid: Integers) -> Iterator[Integers]:
    """Yield a number for the line, plane, ... or block of each host of a torus, shape (hosts,).

    :param grid: coordinates of each host's switch, shape (hosts, dimensions).
    """
    lengths = grid.max(axis=0, initial=0) + 1
    for number in range(1, grid.shape[1]):
        yield np.unique(grid[:, :number], axis=0, return_inverse=True)[1].ravel()
    side = 2
    while side < lengths.max(initial=1):
        for ahead in (0, 1):  # where the blocks are cut, because the hosts that stand aside leave gaps
            yield np.unique((grid + ahead) % lengths // side, axis=0, return_inverse=True)[1].ravel()
        side *= 2


def _price(network: Network, butterfly: Butterfly) -> float:
    """The time of a segment, over that in which a rank on the fastest link sends all of its bytes.

    It is the time of all steps, of a part of the longest one, and of the start-ups.
    """
    step, source, destination, first, last = butterfly.messages.T
    last_step, times = butterfly.steps - 1, list[float]()
    from_host, to_host = network.rank_host[source], network.rank_host[destination]
    if (network.hops[from_host, to_host] < 0).any() or (network.hops[to_host, from_host] < 0).any():
        return MISSING
    for number in range(butterfly.steps):
        reduced, gathered = step == number, step == last_step - number
        sends = np.concatenate((from_host[reduced], to_host[gathered]))
        receives = np.concatenate((to_host[reduced], from_host[gathered]))
        pieces = (last - first)[np.concatenate((np.flatnonzero(reduced), np.flatnonzero(gathered)))]
        times.append(float((network.loads_of(sends, receives, pieces) / network.capacity).max(initial=0.0)))
    ranks = len(butterfly.layout)
    whole = 2 * PIECES * ranks / float(network.capacity.max(initial=1.0))
    return (sum(times) + LAG * max(times, default=0.0)) / whole + START * len(step) / ranks
