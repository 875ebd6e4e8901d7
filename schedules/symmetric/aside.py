"""An allreduce in which hosts with slow links stand aside: each sends its vector once and receives the result once."""

from __future__ import annotations

from collections.abc import Callable
from math import gcd

import numpy as np
from numpy.typing import NDArray

from ..butterfly import Butterfly, circulant
from ..exchanges import ring
from ..groups import grouped
from ..nested import Pipeline
from ..network import Network
from ..phases import Given, Grid, Phase, sequence
from ..schedule import INPUT, OUTPUT, REDUCE, Schedule
from ..slowhosts import standing_aside
from ..transfers import local_moves, transfers
from ..trees import depth_first, rank_clusters, ring_order

__all__ = ["allreduce_aside"]

Integers = NDArray[np.int64]

SEGMENTS = 8


def allreduce_aside(network: Network, *, within: str = "grouped", blocks: int | None = None) -> Schedule:
    """An allreduce of which hosts with slow links only send their vector and receive the result.

    The hosts of ``slowhosts.standing_aside`` stand aside. The other n ranks run a reduce-scatter and an allgather,
    segment by segment: while a segment is reduced, each rank that stands aside sends its part of every share to the
    share's owner, and while the segment is gathered, it receives every share from its owner. In the same steps the
    segment before is gathered. Thus a host at half rate takes no longer than the others, whereas it would take twice as
    long in an exchange of all hosts. That such a host need not slow down an allreduce was shown by Chen et al.
    (arXiv:2606.01680), with a pipeline of four stages; the exchanges and the stages here are others.

    Messages: those of the exchange for each segment, and two for each share and each rank that stands aside.
    Steps: s + 1 turns for s segments, each of n - 1 steps with the ring, of about log2 n with the others. Bytes: one
    vector out of and into each of the k ranks that stand aside; 2 (1 - 1/n) + k/n vectors out of and into the others.
    Time of a host's link: that of its bytes times 1 + 1/s. It requires a commutative operation.

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
    parts = _ring(network, ~slow) if within == "ring" else _butterfly(network, ~slow, _BUTTERFLIES[within])
    reducing, gathering, owners, weight = parts
    sending, receiving = _beside(np.flatnonzero(slow), owners, weight, uniform=reducing.uniform)
    length = segments * len(owners)
    phases = sequence(
        local_moves(0, np.arange(size), (INPUT, 0), (OUTPUT, 0), length),
        Pipeline.of(((reducing, sending), (gathering, receiving)), segments, len(owners)),
    )
    return Schedule.from_phases("allreduce", size, f"aside, {within}", phases, blocks=length)


def _ring(network: Network, takes_part: NDArray[np.bool_]) -> tuple[Grid, Grid, Integers, Integers]:
    """The phases of a ring over some ranks, the owner of each share of a segment, and the weight of each step."""
    order = ring_order(network)
    ranks = order[takes_part[order]]
    part = np.arange(len(ranks)), np.ones(len(ranks), dtype=np.int64), np.full(network.num_ranks, OUTPUT)
    weight = np.ones(max(len(ranks) - 1, 1), dtype=np.int64)
    return ring(ranks, *part, REDUCE), ring(ranks, *part), ranks, weight


def _circulant(clusters: Integers) -> Butterfly:
    return circulant(depth_first(clusters, clusters.shape[1]))


def _grouped(clusters: Integers) -> Butterfly:
    return grouped(clusters.shape[1], clusters)


_BUTTERFLIES: dict[str, Callable[[Integers], Butterfly]] = {"circulant": _circulant, "grouped": _grouped}


def _butterfly(
    network: Network, takes_part: NDArray[np.bool_], make: Callable[[Integers], Butterfly]
) -> tuple[Given, Given, Integers, Integers]:
    """The phases of a butterfly over some ranks, the owner of each share of a segment, and the weight of each step.

    :param network: the job's network.
    :param takes_part: whether each rank takes part, shape (p,).
    :param make: function that takes the clusters of n ranks at each level, shape (levels, n), and returns a butterfly.
    """
    ranks = np.flatnonzero(takes_part)
    made = make(rank_clusters(network)[:, ranks])
    step, source, destination, first, last = made.messages.T
    moved = np.stack((step, ranks[source], ranks[destination], first, last), axis=1)
    butterfly = Butterfly(ranks[made.layout], moved)
    bounds, buffer = np.arange(len(ranks) + 1), np.full(network.num_ranks, OUTPUT)
    bytes_ = np.bincount(step, last - first, minlength=1)
    weight = (bytes_ + bytes_[::-1]).astype(np.int64)
    return butterfly.reducing(bounds, buffer), butterfly.gathering(bounds, buffer), butterfly.layout, weight


def _beside(slow: Integers, owners: Integers, weight: Integers, *, uniform: bool) -> tuple[Phase, Phase]:
    """The phases in which the ranks that stand aside send their parts of a segment's shares, and receive the shares.

    Each step has as many of these messages as its part of the exchange's bytes, so that none takes longer than its
    step. An owner with such a message is late by the time of one share. So that few of the owners that wait for one
    another are late in turn, owners follow each other at the golden ratio of all, and ranks that stand aside begin at
    different ones.

    :param slow: ranks that stand aside, shape (k,).
    :param owners: owner of each share, in the order of the shares, shape (n,).
    :param weight: bytes that the exchange sends in each step, in any unit, shape (steps,).
    :param uniform: whether all steps of the exchange are alike.
    """
    count, until = len(owners), np.cumsum(weight)
    total = max(int(until[-1]), 1)
    when = np.minimum(np.searchsorted(2 * count * until, (2 * np.arange(count) + 1) * total), len(weight) - 1)
    jump = next(one for one in range(round(0.618 * count), 2 * count) if gcd(one, count) == 1)
    first = np.arange(len(slow))[:, None] * count // max(len(slow), 1)
    share, rank = (first + np.arange(count)) * jump % count, slow[:, None]
    place = OUTPUT, share
    sent = transfers(when, rank, owners[share], place, place, 1, REDUCE)
    received = transfers(when, owners[share], rank, place, place, 1)
    one, other = (Given(len(weight), uniform=uniform, table=table) for table in (sent, received))
    return one, other
