"""An allreduce in which hosts with slow links stand aside: each sends its vector once and receives the result once."""

from __future__ import annotations

from collections.abc import Callable
from math import gcd
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..butterfly import Butterfly, circulant
from ..exchanges import ring
from ..groups import grouped
from ..nested import Pipeline
from ..network import Network
from ..phases import Given, Grid, sequence
from ..schedule import INPUT, OUTPUT, REDUCE, Schedule
from ..slowhosts import standing_aside
from ..transfers import local_moves, transfers
from ..trees import depth_first, rank_clusters, ring_order

__all__ = ["allreduce_aside"]

Integers = NDArray[np.int64]

SEGMENTS = 8
# Messages that a rank aside sends per segment, about, if there are fewer other ranks: found by simulated flows.
BESIDE_RING, BESIDE_BUTTERFLY = 32, 20


def allreduce_aside(network: Network, *, within: str = "grouped", blocks: int | None = None) -> Schedule:
    """An allreduce of which hosts with slow links only send their vector and receive the result.

    The hosts of ``slowhosts.standing_aside`` stand aside. The other n ranks run a reduce-scatter and an allgather,
    segment by segment: while a segment is reduced, each rank that stands aside sends its part of every share to the
    share's owner, and while the segment is gathered, it receives every share from its owner. In the same steps the
    segment before is gathered. Thus a host at half rate takes no longer than the others, whereas it would take twice as
    long in an exchange of all hosts. That such a host need not slow down an allreduce was shown by Chen et al.
    (arXiv:2606.01680), with a pipeline of four stages; the exchanges and the stages here are others.

    Messages: those of the exchange for each segment, and two for each part of a share and each rank that stands aside;
    a share has several parts only among few ranks. Steps: s + 1 turns for s segments, each of n - 1 steps with the
    ring, of about log2 n with the others. Bytes: one vector out of and into each of the k ranks that stand aside;
    2 (1 - 1/n) + k/n vectors out of and into the others. Time of a host's link: that of its bytes times 1 + 1/s. It
    requires a commutative operation.

    If no host is slow, none stands aside, and the vector is one segment.

    :param network: the job's network.
    :param within: exchange of the ranks that do not stand aside: ``ring``, in the order of ``network.order``, or
        ``circulant`` or ``grouped``, see `schedules.butterfly.circulant` and `schedules.groups.grouped`.
    :param blocks: number of segments, by default 8 if hosts stand aside.
    :raises ValueError: if ``within`` is another word.
    """
    if within not in ("ring", *_BUTTERFLIES):
        raise ValueError(f"expecting within 'ring', 'circulant' or 'grouped', got {within!r}")
    size, slow = network.num_ranks, standing_aside(network)[network.rank_host]
    segments = blocks if blocks is not None else SEGMENTS if slow.any() else 1
    exchange = _ring(network, ~slow) if within == "ring" else _butterfly(network, ~slow, _BUTTERFLIES[within])
    sending, receiving = _beside(np.flatnonzero(slow), exchange)
    span = exchange.parts * len(exchange.owners)
    phases = sequence(
        local_moves(0, np.arange(size), (INPUT, 0), (OUTPUT, 0), segments * span),
        Pipeline.of(((exchange.reducing, sending), (exchange.gathering, receiving)), segments, span),
    )
    return Schedule.from_phases("allreduce", size, f"aside, {within}", phases, blocks=segments * span)


class _Exchange(NamedTuple):
    """The exchange of one segment among the ranks that do not stand aside.

    :ivar reducing: phase of the reduce-scatter.
    :ivar gathering: phase of the allgather.
    :ivar owners: owner of each share, in the order of the shares, shape (n,).
    :ivar weight: bytes that both phases send in each step, in any unit, shape (steps,).
    :ivar parts: number of blocks of a share.
    """

    reducing: Grid | Given
    gathering: Grid | Given
    owners: Integers
    weight: Integers
    parts: int


def _parts(ranks: int, messages: int) -> int:
    """The number of blocks of a share: the fewer ranks, the more, because long messages of a rank aside delay owners.

    With few ranks a share is a large part of a step, and with many the start-ups of more messages cost more than that.
    """
    return min(max(round(messages / ranks), 1), 4)


def _ring(network: Network, takes_part: NDArray[np.bool_]) -> _Exchange:
    """The exchange on a ring over some ranks."""
    order = ring_order(network)
    ranks = order[takes_part[order]]
    parts = _parts(len(ranks), BESIDE_RING)
    part = parts * np.arange(len(ranks)), np.full(len(ranks), parts), np.full(network.num_ranks, OUTPUT)
    weight = np.ones(max(len(ranks) - 1, 1), dtype=np.int64)
    return _Exchange(ring(ranks, *part, REDUCE), ring(ranks, *part), ranks, weight, parts)


def _circulant(clusters: Integers) -> Butterfly:
    return circulant(depth_first(clusters, clusters.shape[1]))


def _grouped(clusters: Integers) -> Butterfly:
    return grouped(clusters.shape[1], clusters)


_BUTTERFLIES: dict[str, Callable[[Integers], Butterfly]] = {"circulant": _circulant, "grouped": _grouped}


def _butterfly(network: Network, takes_part: NDArray[np.bool_], make: Callable[[Integers], Butterfly]) -> _Exchange:
    """The exchange by a butterfly over some ranks.

    :param network: the job's network.
    :param takes_part: whether each rank takes part, shape (p,).
    :param make: function that takes the clusters of n ranks at each level, shape (levels, n), and returns a butterfly.
    """
    ranks = np.flatnonzero(takes_part)
    made = make(rank_clusters(network)[:, ranks])
    step, source, destination, first, last = made.messages.T
    moved = np.stack((step, ranks[source], ranks[destination], first, last), axis=1)
    butterfly = Butterfly(ranks[made.layout], moved)
    parts = _parts(len(ranks), BESIDE_BUTTERFLY)
    bounds, buffer = parts * np.arange(len(ranks) + 1), np.full(network.num_ranks, OUTPUT)
    bytes_ = np.bincount(step, last - first, minlength=1)
    weight = (bytes_ + bytes_[::-1]).astype(np.int64)
    phases = butterfly.reducing(bounds, buffer), butterfly.gathering(bounds, buffer)
    return _Exchange(*phases, butterfly.layout, weight, parts)


def _beside(slow: Integers, exchange: _Exchange) -> tuple[Given, Given]:
    """The phases in which the ranks that stand aside send their parts of a segment's shares, and receive the shares.

    Each step has as many of these messages as its part of the exchange's bytes, so that none takes longer than its
    step. An owner with such a message is late by the time of its bytes. So that few of the owners that wait for one
    another are late in turn, owners follow each other at the golden ratio of all. Parts of shares of a ring come in the
    order of the shares, first one of each. Ranks that stand aside begin at different owners.

    :param slow: ranks that stand aside, shape (k,).
    :param exchange: the exchange of the other ranks.
    """
    owners, parts = exchange.owners, exchange.parts
    ranks, until = len(owners), np.cumsum(exchange.weight)
    count, total = ranks * parts, max(int(until[-1]), 1)
    when = np.minimum(np.searchsorted(2 * count * until, (2 * np.arange(count) + 1) * total), len(until) - 1)
    golden = next(one for one in range(round(0.618 * ranks), 2 * ranks) if gcd(one, ranks) == 1)
    jump = 1 if parts > 1 and exchange.reducing.uniform else golden
    first = np.arange(len(slow))[:, None] * ranks // max(len(slow), 1)
    share, rank = (first + np.arange(count)) * jump % ranks, slow[:, None]
    place = OUTPUT, share * parts + np.arange(count) // ranks
    sent = transfers(when, rank, owners[share], place, place, 1, REDUCE)
    received = transfers(when, owners[share], rank, place, place, 1)
    one, other = (Given(len(until), uniform=exchange.reducing.uniform, table=table) for table in (sent, received))
    return one, other
