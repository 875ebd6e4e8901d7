"""The routes of blocks inside a group, in rounds in which each rank sends few messages."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["BlockRounds", "most_rounds", "route"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

RADICES = (4, 2)


class BlockRounds(NamedTuple):
    """The members of a group that hold each block, round by round.

    :ivar at: index of the member that holds each block before each round and after the last, shape (rounds + 1,
        blocks).
    :ivar load: work of each member in starts of messages, shape (members,): those that it sends or receives, and
        the units that it receives.
    """

    at: Integers
    load: Floats

    @property
    def cost(self) -> float:
        """The work of the busiest member, and a start for the wait in each round."""
        return float(self.load.max(initial=0.0)) + len(self.at) - 1


def route(begin: Integers, end: Integers, weight: Integers, members: int, near: float) -> BlockRounds:
    """The cheapest routes of blocks inside a group, either direct or by the digits of their distance in a radix.

    In round w of radix r, a block moves on by the digit of r^w in its distance around the ring of members (Bruck et al.
    1997, Efficient algorithms for all-to-all communications in multiport message-passing systems), so that a member
    sends at most r - 1 messages a round. If no block leaves its aligned part of 2^k members, each part is a ring of its
    own. All radices tried have at most ``most_rounds`` rounds.

    :param begin: index of the member that has each block, shape (blocks,).
    :param end: index of the member that each block goes to, shape (blocks,).
    :param weight: units of each block, shape (blocks,).
    :param members: number of members.
    :param near: units that a member receives from another in the time of a start.
    Cost: a pass over the blocks per radix and round.
    """
    part = 1
    while (begin // part != end // part).any():
        part *= 2
    ring = np.minimum(part, members - begin // part * part)
    first, found = begin // part * part, []
    for radix in (part, *(radix for radix in RADICES if radix < part)):
        at, width = [begin], 1
        while width < part:
            moved = (end - begin) % ring // width % radix * width
            at.append(first + (at[-1] - first + moved) % ring)
            width *= radix
        found.append(BlockRounds(np.array(at), _load(at, weight, members, near)))
    return min(found, key=lambda routes: routes.cost)


def most_rounds(members: int) -> int:
    """The largest number of rounds of `route`."""
    return (members - 1).bit_length()


def _load(at: list[Integers], weight: Integers, members: int, near: float) -> Floats:
    """The starts of messages and units received of each member, in starts, shape (members,)."""
    load = np.zeros(members)
    for here, there in pairwise(at):
        moves = here != there
        pairs = np.bincount(here[moves] * members + there[moves], minlength=members**2).reshape(members, members) > 0
        load += pairs.sum(axis=0) + pairs.sum(axis=1)
        load += np.bincount(there[moves], weights=weight[moves], minlength=members) / near
    return load
