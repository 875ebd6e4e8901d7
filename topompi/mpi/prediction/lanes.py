"""The cost of collectives in lanes, computed from the stages between and inside hosts, not from all ranks' transfers.

A lane has the ranks with the same place on all hosts. Each lane carries one part of the vector between the hosts, so
that all ranks of a host send at the same time (`schedules.lanes`).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ...schedules.analysis.cost import cost
from ...schedules.analysis.model import Model
from ...schedules.lanes.carriers import LaneCarriers
from ...schedules.lanes.stages import AcrossHosts
from ...schedules.network import Network

__all__ = ["LaneCosts"]

# Number of stages in which the ranks of a host exchange their parts of the vector, on all hosts. A further stage, on
# the root's host alone, does not count.
STAGES = {"bcast": 1, "reduce": 1, "allreduce": 2}


class LaneCosts:
    """The costs of collectives in lanes (ranks with the same place on all hosts) on one network.

    All lanes run the same steps at the same time. The link of a host therefore carries as many bytes as if one rank per
    host sent the whole vector, but each rank starts only the messages of its own lane.

    :param network: the job's network.
    """

    def __init__(self, network: Network) -> None:
        self._network, self._hosts = network, LaneCarriers(network).across
        self._most = int(np.bincount(network.rank_host).max())
        # Cached, because vectors cut into segments of several sizes use the same schedule between hosts, and the same
        # time of its empty messages.
        self._made = lru_cache(maxsize=2)(lambda across, host, blocks: across.generate(self._hosts, host, blocks))
        self._empty = lru_cache(maxsize=2)(lambda made, model: cost(made, self._hosts, model, 0).seconds)

    def seconds(
        self, collective: str, across: AcrossHosts, model: Model, nbytes: int, root: int, blocks: int | None
    ) -> float:
        """Predict the seconds of a collective that runs in lanes.

        :param collective: name of the collective: bcast, reduce or allreduce.
        :param across: algorithm between the hosts, which each lane runs for its part of the vector.
        :param model: start-up and per-byte costs of messages.
        :param nbytes: bytes of the vector.
        :param root: the root of a rooted collective, else 0.
        :param blocks: segments of the vector, None for 1; if ``across`` is a pipeline, its number of blocks, None for
            the pipeline's own choice.

        Cost: one evaluation of ``schedules.analysis.cost`` with one rank per host, two if there are several segments.
        """
        segments = 1 if across.pipeline or blocks is None else blocks
        host = int(self._network.rank_host[root])
        made = self._made(across, host, blocks if across.pipeline else None)
        between = cost(made, self._hosts, model, -(-nbytes // (segments * max(made.blocks, 1)))).seconds
        if segments > 1:  # all use the same links; each segment begins one start-up after the previous one
            between = segments * between - (segments - 1) * (self._empty(made, model) - model.t_s[-1])
        parts = made.blocks if across.pipeline else segments
        inside = self._inside(model, nbytes / parts)
        return 2 * inside + max(between, parts * STAGES[collective] * inside)

    def _inside(self, model: Model, nbytes: float) -> float:
        """The seconds of one stage inside the host with the most ranks, in which each rank sends to every other rank.

        :param model: start-up and per-byte costs of messages.
        :param nbytes: bytes of the vector; a message has one of as many parts of it as the host has ranks.
        """
        others = self._most - 1
        start = model.t_s[0] if model.t_o is None else min(model.t_o, model.t_s[0])
        return (model.t_s[0] + (others - 1) * start + nbytes * others / self._most * model.t_w[0]) if others else 0.0
