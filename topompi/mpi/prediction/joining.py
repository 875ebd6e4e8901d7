"""The terms on which edges of a topology share messages, if topompi may run its neighbourhood collectives."""

from __future__ import annotations

import numpy as np

from ...mapping.graph import CommunicationGraph
from ...mapping.joined import Joining
from ...topology import TopologyInterface
from ..execution.specs import NATIVE
from .neighbours import GroupPlace, Prices
from .predictor import Predictor

__all__ = ["joining_of"]


def joining_of(interface: TopologyInterface, word: str, graph: CommunicationGraph) -> Joining | None:
    """The terms on which edges share a message, None if the MPI library sends each edge by itself.

    Weights that are all equal say nothing of sizes: each edge then weighs as much as the start-up of a message.

    :param interface: the present placement of the ranks.
    :param word: the setting ``TOPOMPI_NEIGHBOURS``.
    :param graph: the edges with their weights, which stand for bytes.
    """
    predictor = Predictor(interface)
    if word == NATIVE or interface.num_hosts == interface.num_ranks or (not word and predictor.inapplicable):
        return None
    weights = np.unique(graph.volume[graph.volume > 0])
    if len(weights) == 1:
        return Joining(int(weights[0]), int(weights[0]))
    host = interface.rank_host.astype(np.int64)
    terms = Prices.of(predictor).terms(GroupPlace(host, host))
    return Joining(terms.start, terms.limit)
