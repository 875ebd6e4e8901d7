"""An allreduce in which hosts with slow links stand aside: each sends its vector once and receives the result once."""

from __future__ import annotations

from math import gcd, sqrt

import numpy as np
from numpy.typing import NDArray

from ..butterfly import Butterfly
from ..joins import PIECES, in_few_steps
from ..nested import Pipeline
from ..network import Network
from ..phases import Given, sequence
from ..schedule import INPUT, OUTPUT, REDUCE, Schedule
from ..slowhosts import host_rates, standing_aside
from ..transfers import Rows, local_moves, transfers

__all__ = ["allreduce_aside", "parts_of"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

SEGMENTS = 8
START = 1.3e-6  # seconds by which the messages to and from an owner delay a host aside, found by simulated flows
MOST_SEGMENTS = 64
LEAST_BYTES = 4096  # of a share, because the start-ups of shorter ones cost more than segments gain
TOO_FEW = 12  # owners per rank aside, and as many more; each of fewer handles half of its share in each half of a turn
STAGES = 3  # turns that a segment takes


def allreduce_aside(network: Network, *, blocks: int | None = None) -> Schedule:
    """An allreduce of which hosts with slow links only send their vector and receive the result.

    The hosts of ``slowhosts.standing_aside`` stand aside. The other n ranks run a reduce-scatter and an allgather, by
    `schedules.joins.in_few_steps`, segment by segment: in turn t segment t is reduced, and segment t - 2 is gathered. A
    rank that stands aside sends its part of every share to the share's owner, until the segment is gathered; and once
    an owner has this part and the other ranks', it returns the share in the next step. Thus a host at half rate takes
    no longer than the others, whereas it would take twice as long in an exchange of all hosts. That such a host need
    not slow down an allreduce was shown by Chen et al. (arXiv:2606.01680), with a pipeline of four stages; the
    exchanges and the stages here are others.

    Messages: those of the exchange for each segment, and two for each share and each rank that stands aside; four if
    n < 12 (k + 1). Steps: s + 2 turns for s segments, each of about two to four steps. Bytes: one vector
    out of and into each of the k ranks that stand aside; 2 (1 - 1/n) + k/n vectors out of and into the others. Time of
    a slow host's link: that of its bytes times about 1 + 1/(2s). It requires a commutative operation.

    If no host is slow, none stands aside, and the vector is one segment.

    :param network: the job's network.
    :param blocks: number of segments, by default 8 if hosts stand aside.
    """
    size, slow = network.num_ranks, standing_aside(network)[network.rank_host]
    segments = blocks if blocks is not None else SEGMENTS if slow.any() else 1
    exchange = in_few_steps(network, np.flatnonzero(~slow))
    span = PIECES * len(exchange.layout)
    bounds, buffer = np.arange(span + 1), np.full(size, OUTPUT)
    stages = ((exchange.reducing(bounds, buffer),), (), (exchange.gathering(bounds, buffer),))
    beside = Given.of(_beside(np.flatnonzero(slow), exchange, segments))
    phases = sequence(
        local_moves(0, np.arange(size), (INPUT, 0), (OUTPUT, 0), segments * span),
        ((0, Pipeline.of(stages, segments, span)), (0, beside)),
    )
    return Schedule.from_phases("allreduce", size, "aside", phases, blocks=segments * span)


def parts_of(network: Network, nbytes: int) -> int:
    """The number of segments for which hosts that stand aside take the least time.

    With s segments the slowest host's link idles for about T / s of T seconds in all, and the start-ups of messages to
    and from n owners delay it n START seconds for each segment: s = sqrt(T / (n START)).

    :param network: the job's network.
    :param nbytes: bytes of the vector.
    """
    slow = standing_aside(network)
    if not slow.any():
        return 1
    owners = int((~slow[network.rank_host]).sum())
    seconds = nbytes / float(host_rates(network)[slow].min())
    wanted = round(sqrt(seconds / (START * owners)))
    return max(min(wanted, MOST_SEGMENTS, nbytes // (owners * LEAST_BYTES)), 1)


def _beside(slow: Integers, exchange: Butterfly, segments: int) -> Rows:
    """The messages of the ranks that stand aside.

    An owner with one of these messages is late by the time of its bytes. So that few of the owners that wait for one
    another are late in turn, owners follow each other at the golden ratio of all. The shares of few owners are longer
    and travel in two parts, first one of each. All ranks that stand aside send a part in the same step, because its
    owner returns the sum in the next one.

    :param slow: ranks that stand aside, shape (k,).
    :param exchange: the exchange of the other ranks.
    :param segments: number of segments.
    """
    owners = len(exchange.layout)
    parts = 2 if owners < TOO_FEW * (1 + len(slow)) else 1
    out, back = _times(exchange, segments, owners * parts)
    golden = next(one for one in range(round(0.618 * owners), 2 * owners) if gcd(one, owners) == 1)
    segment, turn = np.divmod(np.arange(segments * owners * parts), owners * parts)
    share, rank, count = turn * golden % owners, slow[:, None], PIECES // parts
    place = OUTPUT, PIECES * (segment * owners + share) + count * (turn // owners)
    sent = transfers(out, rank, exchange.layout[share], place, place, count, REDUCE)
    received = transfers(back, exchange.layout[share], rank, place, place, count)
    return np.concatenate((sent, received))


def _times(exchange: Butterfly, segments: int, messages: int) -> tuple[Integers, Integers]:
    """The steps in which a rank that stands aside sends its part of each share, and those in which it receives it.

    A step is as long as its part of the exchange's bytes. In this time a rank that stands aside sends and receives the
    same part of its vector. In the turn before the last one only a segment is gathered, but another one has to be sent:
    its steps take longer, as equally long as possible.

    :param exchange: the exchange of the other ranks.
    :param segments: number of segments.
    :param messages: number of messages of a segment out of a rank that stands aside.
    :returns: two arrays of shape (segments * messages,), in the order of the messages' turns.
    """
    steps = max(exchange.steps, 1)
    lasts = _lengths(exchange, segments)
    sent = np.minimum(np.cumsum(lasts), segments)
    received = np.zeros_like(sent)
    for step in range(steps, len(lasts) - 1):
        received[step] = min(received[step - 1] + lasts[step], sent[step - 1])
    received[-1] = segments
    # No more is sent than has been reduced. The middle of each message counts, because sums of lengths are rounded.
    middle = (np.arange(segments * messages) + 0.5) / messages
    return np.searchsorted(sent, middle), np.searchsorted(received, middle)


def _lengths(exchange: Butterfly, segments: int) -> Floats:
    """The length of each step, in turns in which a segment is sent, shape (steps,)."""
    step, _, _, first, last = exchange.messages.T
    pieces = np.bincount(step, last - first, minlength=1)
    part = pieces / (2 * max(pieces.sum(), 1))
    turns = np.zeros((segments + STAGES - 1, len(part)))
    turns[:segments] += part
    turns[STAGES - 1 :] += part[::-1]
    ahead = turns[segments]
    lacks = segments - turns[:segments].sum()
    low = np.sort(ahead)
    # The first levels of the k shortest steps that are not above the next step.
    levels = (lacks - np.append(np.cumsum(low[::-1])[::-1][1:], 0)) / np.arange(1, len(low) + 1)
    turns[segments] = np.maximum(ahead, levels[np.argmax(levels <= np.append(low[1:], np.inf))])
    lengths: Floats = turns.ravel()
    return lengths
