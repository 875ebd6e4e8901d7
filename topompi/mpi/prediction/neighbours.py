"""Predicted seconds of neighbourhood collectives: one message per edge, or small blocks carried from group to group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...schedules.sparse.carriers import CarryingTerms
from ...schedules.sparse.exchange import Exchange, edge_by_edge
from .predictor import CALL, MESSAGE, Predictor

__all__ = ["GAIN", "GroupPlace", "Prices", "of_all", "on_host", "seconds_of", "works_of"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

SMALLEST, LARGEST = 64, 16384  # bytes; bounds of the limit of blocks that are carried
# Least predicted gain at which blocks are carried. No call measured or simulated so far, with a greater prediction, is
# slower than a message per edge (docs/lab/neighbours.md).
GAIN = 1.1
SAME_HOST, SAME_GROUP, ELSEWHERE = range(3)


@dataclass(frozen=True)
class Prices:
    """The costs of messages that decide on a neighbourhood collective, told by rank 0 to all ranks.

    :param start: seconds for which a message keeps a processor busy: inside a host, inside a leaf switch, and farther.
    :param latency: seconds of a message at these distances.
    :param byte: seconds per byte at these distances.
    """

    start: tuple[float, ...]
    latency: tuple[float, ...]
    byte: tuple[float, ...]

    @classmethod
    def of(cls, predictor: Predictor) -> Prices:
        """The prices in a job, by the cost model of its network."""
        model = predictor.model
        most = max(1, int(predictor.network.hops.max(initial=0)))
        latency, byte = model.by_hops(most)
        at = [0, 1, most]
        busy = latency[most] if model.t_o is None else model.t_o
        start = np.minimum(busy, latency[at])  # a message keeps no processor busy for longer than it travels
        return cls(*(tuple(map(float, some)) for some in (start, latency[at], byte[at])))

    def terms(self, place: GroupPlace) -> CarryingTerms:
        """The terms on which blocks are carried between groups: as long as copies cost less than a message's start."""
        within = SAME_HOST if place.inside_hosts else SAME_GROUP
        near, far = (self.start[one] + MESSAGE for one in (within, ELSEWHERE))
        limit = int(np.clip(far / self.byte[within] / 2, SMALLEST, LARGEST))
        start, grain = (max(1, round(one / self.byte[ELSEWHERE])) for one in (far, self.latency[ELSEWHERE]))
        return CarryingTerms(limit, start, grain, near=max(1, round(near / self.byte[within])), inside=near / far)


@dataclass(frozen=True, eq=False)
class GroupPlace:
    """The groups of a job, and the hosts of its ranks.

    :param group_of: group of each rank, shape (p,).
    :param host_of: host of each rank, shape (p,).
    """

    group_of: Integers
    host_of: Integers

    @property
    def inside_hosts(self) -> bool:
        """Whether no group has ranks of several hosts."""
        hosts = np.unique(np.stack((self.group_of, self.host_of)), axis=1)[0]
        return len(np.unique(hosts)) == len(hosts)

    def mates(self, rank: int) -> Integers:
        """The hosts of all ranks of a rank's group, shape (members,)."""
        hosts: Integers = self.host_of[self.group_of == self.group_of[rank]]
        return hosts

    def distance(self, rank: int, peers: Integers) -> Integers:
        """The distance of a rank to others: ``SAME_HOST``, ``SAME_GROUP`` or ``ELSEWHERE``, shape (peers,)."""
        near = np.where(self.group_of[peers] == self.group_of[rank], SAME_GROUP, ELSEWHERE)
        return np.where(self.host_of[peers] == self.host_of[rank], SAME_HOST, near)


def works_of(exchange: Exchange, place: GroupPlace, prices: Prices) -> Floats:
    """A rank's work if each edge is a message, and in each stage if blocks are carried, shape (2 + stages, 6).

    The first row is that of a message per edge, the second that of the direct messages. Columns: number of messages
    sent; seconds in which the processor starts them; seconds in which a message travels; seconds of all bytes inside
    the host; and of those to, and from, other hosts.

    :param exchange: the rank's part.
    :param place: the groups and hosts of all ranks.
    :param prices: costs of messages.
    """
    rows: list[tuple[float, ...]] = []
    latency, byte = np.array(prices.latency), np.array(prices.byte)
    for stage in (edge_by_edge(exchange), exchange.direct, *exchange.middle):
        start = np.array(prices.start) + MESSAGE * bool(rows)
        busy, wait, inside, outside = [], 0.0, [], []
        for messages in (stage.sends, stage.receives):
            distance = place.distance(exchange.rank, messages[:, 0])
            seconds = byte[distance] * messages[:, 3]
            busy.append(start[distance].sum())
            wait = max(wait, float((latency - start)[distance].max(initial=0.0)))
            inside.append(seconds[distance == SAME_HOST].sum())
            outside.append(seconds[distance != SAME_HOST].sum())
        rows.append((len(stage.sends), max(busy), wait, max(inside), *outside))
    return np.array(rows)


def on_host(works: Floats, host: Integers, mine: int) -> Floats:
    """The numbers of one rank of which `seconds_of` takes the largest over all ranks.

    The ranks of a host share its link, and their bytes add up.

    :param works: works of some ranks, all ranks of the rank's host among them, shape (some ranks, 2 + stages, 6).
    :param host: the host of each of these ranks, shape (some ranks,).
    :param mine: index of the rank among them.
    :returns: messages, and seconds of starts, of a message per edge and of carried blocks; then of each row the seconds
        of travel and of bytes.
    """
    count, busy, wait, inside, *_ = works[mine].T
    moving = inside + works[host == host[mine], :, 4:].sum(axis=0).max(axis=1)
    return np.concatenate((count[:1], [count[1:].sum()], busy[:1], [busy[1:].sum()], wait, moving))


def seconds_of(largest: Floats) -> tuple[float, float]:
    """Predicted seconds of a message per edge, and of carried blocks.

    The stages of carried blocks follow each other, and the direct messages last as long as they do.

    :param largest: the largest over all ranks of each number of `on_host`.
    """
    library, carried = largest[2:4]
    rest = largest[4:].reshape(2, -1).sum(axis=0)
    return float(library + rest[0]), float(carried + max(rest[1], rest[2:].sum()) + CALL)


def of_all(parts: Sequence[Exchange], place: GroupPlace, prices: Prices) -> tuple[float, float]:
    """Predicted seconds of a message per edge, and of carried blocks, if the parts of all ranks are known.

    :param parts: the part of each rank.
    :param place: the groups and hosts of all ranks.
    :param prices: costs of messages.
    """
    works = np.array([works_of(part, place, prices) for part in parts])
    return seconds_of(np.max([on_host(works, place.host_of, rank) for rank in range(len(works))], axis=0))
