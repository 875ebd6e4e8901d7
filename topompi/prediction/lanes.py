"""What a collective in lanes costs, from what hosts run and what happens inside them, without the rows of all ranks."""

from __future__ import annotations

import numpy as np

from ..schedules.analysis.cost import cost
from ..schedules.analysis.model import Model
from ..schedules.lanes.carriers import Lanes
from ..schedules.lanes.stages import Across
from ..schedules.network import Network

__all__ = ["LaneCosts"]

STAGES = {"bcast": 1, "reduce": 1, "allreduce": 2}  # stages inside hosts in which all ranks work


class LaneCosts:
    """Costs on one network.

    All lanes of a host do the same at the same time: its link carries what one rank a host would send, while each rank
    starts only its own messages.

    :param network: the job's network.
    """

    def __init__(self, network: Network) -> None:
        self._network, self._hosts = network, Lanes(network).across
        self._most = int(np.bincount(network.rank_host).max())

    def seconds(
        self, collective: str, across: Across, model: Model, nbytes: int, root: int, blocks: int | None
    ) -> float:
        """Seconds of a call.

        :param collective: bcast, reduce or allreduce.
        :param across: what hosts run.
        :param model: of messages.
        :param nbytes: of the vector.
        :param root: of a rooted collective, else 0.
        :param blocks: as ``lanes_allreduce``.
        Cost: two evaluations of ``schedules.cost`` with one rank a host.
        """
        segments = 1 if across.pipeline or blocks is None else blocks
        host = int(self._network.rank_host[root])
        made = across.generate(self._hosts, host, blocks if across.pipeline else None)
        block = -(-nbytes // (segments * max(made.blocks, 1)))
        empty, full = (cost(made, self._hosts, model, size).seconds for size in (0, block))
        # Segments share the links; in time, each begins one start-up after its predecessor.
        between = segments * full - (segments - 1) * (empty - model.t_s[-1])
        parts = made.blocks if across.pipeline else segments
        inside = self._inside(model, nbytes / parts)
        return 2 * inside + max(between, parts * STAGES[collective] * inside)

    def _inside(self, model: Model, nbytes: float) -> float:
        """Seconds in which the ranks of a host gather, or add up, some bytes: one message for each other rank."""
        others = self._most - 1
        start = model.t_s[0] if model.t_o is None else min(model.t_o, model.t_s[0])
        return (model.t_s[0] + (others - 1) * start + nbytes * others / self._most * model.t_w[0]) if others else 0.0
