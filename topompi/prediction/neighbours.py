"""Predicted seconds of neighbourhood collectives: one message per edge, or small blocks carried from group to group."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..schedules.sparse.carriers import Terms
from ..schedules.sparse.exchange import Stage
from .predictor import MESSAGE, Predictor

__all__ = ["GAIN", "Place", "Prices", "work_of"]

Integers = NDArray[np.int64]

SMALLEST, LARGEST = 64, 16384  # bytes; bounds of the limit of blocks that are carried
# Least predicted gain at which blocks are carried: below it simulations of recorded graphs find calls that are slower
# (docs/lab/neighbours.md).
GAIN = 1.3
SAME_HOST, SAME_GROUP, ELSEWHERE = range(3)


@dataclass(frozen=True)
class Prices:
    """The costs of messages that decide on a neighbourhood collective, told by rank 0 to all ranks.

    :param start: seconds for which a message keeps a processor busy.
    :param latency: seconds of a message inside a host, inside a leaf switch, and farther.
    :param byte: seconds per byte inside a host, inside a leaf switch, and farther.
    """

    start: float
    latency: tuple[float, ...]
    byte: tuple[float, ...]

    @classmethod
    def of(cls, predictor: Predictor) -> Prices:
        """The prices in a job, by the cost model of its network."""
        model = predictor.model
        most = max(1, int(predictor.network.hops.max(initial=0)))
        latency, byte = model.by_hops(most)
        start = float(latency[-1] if model.t_o is None else model.t_o)
        at = [0, 1, most]
        return cls(start + MESSAGE, tuple(latency[at].tolist()), tuple(byte[at].tolist()))

    def terms(self, place: Place) -> Terms:
        """The terms on which blocks are carried between groups: as long as copies cost less than a message's start."""
        copies = 2 * self.byte[SAME_HOST if place.inside_hosts else SAME_GROUP]
        limit = int(np.clip(self.start / copies, SMALLEST, LARGEST))
        start, grain = (max(1, round(one / self.byte[ELSEWHERE])) for one in (self.start, self.latency[ELSEWHERE]))
        return Terms(limit, start, grain)


@dataclass(frozen=True, eq=False)
class Place:
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

    def distance(self, rank: int, peers: Integers) -> Integers:
        """The distance of a rank to others: ``SAME_HOST``, ``SAME_GROUP`` or ``ELSEWHERE``, shape (peers,)."""
        near = np.where(self.group_of[peers] == self.group_of[rank], SAME_GROUP, ELSEWHERE)
        return np.where(self.host_of[peers] == self.host_of[rank], SAME_HOST, near)


def work_of(stage: Stage, rank: int, place: Place, prices: Prices) -> tuple[float, float]:
    """The seconds in which a rank starts the messages of a stage, and the seconds in which they travel.

    The ranks of a host share its link: all are assumed to send as much as this one.

    :param stage: the stage.
    :param rank: the rank.
    :param place: the groups and hosts of all ranks.
    :param prices: costs of messages.
    """
    share = np.array([1, *(2 * [int((place.host_of == place.host_of[rank]).sum())])])
    latency, byte = np.array(prices.latency), np.array(prices.byte) * share
    starts = prices.start * max(len(stage.sends), len(stage.receives))
    rest = 0.0
    for messages in (stage.sends, stage.receives):
        if len(messages):
            distance = place.distance(rank, messages[:, 0])
            travel = float((byte[distance] * messages[:, 3]).sum())
            rest = max(rest, float(latency[distance].max()) - prices.start + travel)
    return starts, max(rest, 0.0)
