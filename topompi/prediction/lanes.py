"""The cost of collectives in lanes, computed from the stages between and inside hosts, not from all ranks' transfers.

In lanes each rank of a host exchanges one part of the data with other hosts (`schedules.lanes`).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ..schedules.analysis.cost import cost
from ..schedules.analysis.model import Model
from ..schedules.lanes.carriers import Lanes
from ..schedules.lanes.stages import Across
from ..schedules.network import Network

__all__ = ["LaneCosts"]

# Number of stages inside hosts that take place on all hosts; a further stage may take place on the root's host only.
STAGES = {"bcast": 1, "reduce": 1, "allreduce": 2}


class LaneCosts:
    """The costs of collectives in lanes on one network.

    All lanes of a host do the same at the same time: its link carries the bytes that one rank per host would send,
    while each rank starts only its own messages.

    :param network: the job's network.
    """

    def __init__(self, network: Network) -> None:
        self._network, self._hosts = network, Lanes(network).across
        self._most = int(np.bincount(network.rank_host).max())
        # Messages cut to several sizes have one schedule across hosts, and one time without bytes.
        self._made = lru_cache(maxsize=2)(lambda across, host, blocks: across.generate(self._hosts, host, blocks))
        self._empty = lru_cache(maxsize=2)(lambda made, model: cost(made, self._hosts, model, 0).seconds)

    def seconds(
        self, collective: str, across: Across, model: Model, nbytes: int, root: int, blocks: int | None
    ) -> float:
        """The predicted seconds of a call.

        :param collective: name of the collective: bcast, reduce or allreduce.
        :param across: algorithm that the hosts run in each lane.
        :param model: start-up and per-byte costs of messages.
        :param nbytes: bytes of the vector.
        :param root: the root of a rooted collective, else 0.
        :param blocks: number of segments into which the vector is divided, by default 1; if ``across`` is a pipeline,
            the number of its blocks, by default its own.

        Cost: two evaluations of ``schedules.analysis.cost`` with one rank per host; one for a single segment.
        """
        segments = 1 if across.pipeline or blocks is None else blocks
        host = int(self._network.rank_host[root])
        made = self._made(across, host, blocks if across.pipeline else None)
        between = cost(made, self._hosts, model, -(-nbytes // (segments * max(made.blocks, 1)))).seconds
        if segments > 1:  # they share the links; each one begins one start-up after the segment before it
            between = segments * between - (segments - 1) * (self._empty(made, model) - model.t_s[-1])
        parts = made.blocks if across.pipeline else segments
        inside = self._inside(model, nbytes / parts)
        return 2 * inside + max(between, parts * STAGES[collective] * inside)

    def _inside(self, model: Model, nbytes: float) -> float:
        """The seconds of one stage inside the fullest host, in which each rank sends a message to every other rank.

        :param model: start-up and per-byte costs of messages.
        :param nbytes: bytes of all ranks' parts together.
        """
        others = self._most - 1
        start = model.t_s[0] if model.t_o is None else min(model.t_o, model.t_s[0])
        return (model.t_s[0] + (others - 1) * start + nbytes * others / self._most * model.t_w[0]) if others else 0.0
