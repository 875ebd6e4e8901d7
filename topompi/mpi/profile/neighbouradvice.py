"""Predicted gains of neighbourhood calls in a recorded program: by carriers, and by another order of the ranks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...mapping.graph import CommunicationGraph
from ...schedules.neighbourhood import Neighbourhood
from ...schedules.sparse.schedules import exchanges
from ...topology import TopologyInterface
from ...views.reordering import FIGURES, Aim, search
from ..execution.specs import NEIGHBOUR_CALLS
from ..prediction.joining import joining_of
from ..prediction.neighbours import GAIN, GroupPlace, Prices, of_all
from ..prediction.predictor import Predictor
from .recording import Exchanged, Profile

__all__ = ["exchange_advice"]

MOST = 4  # maximum number of communicators and methods, those with most bytes, because each needs a search


def exchange_advice(profile: Profile, interface: TopologyInterface) -> list[dict[str, object]]:
    """Rows for JSON with predicted seconds of neighbourhood calls: a message per edge, carried, and in another order.

    Edges have their mean bytes. ``seconds`` are those of the algorithm that topompi runs: carriers only if they are
    clearly faster, and only for calls that it does not leave to the MPI library. ``reordered_seconds`` are the same in
    the order that ``reorder=True`` makes. The list is empty if nothing can be predicted.

    :param profile: a profile by process.
    :param interface: the placement of the ranks, real or assumed.
    Cost: plans of all ranks for two orders, and the search for an order.
    """
    predictor = Predictor(replace(interface, virtual=False))
    if predictor.inapplicable:
        return []
    prices = Prices.of(predictor)
    return [_row(one, interface, prices) for one in profile.exchanged[:MOST] if one.times]


def _row(one: Exchanged, interface: TopologyInterface, prices: Prices) -> dict[str, object]:
    ranks, host = interface.num_ranks, interface.rank_host.astype(np.int64)
    size = -(-one.volume // one.times)
    shares = "allgather" in one.name
    if shares:
        largest = np.zeros(ranks, dtype=np.int64)
        np.maximum.at(largest, one.source, size)
        size = largest[one.source]
    graph = Neighbourhood.from_edges(ranks, one.source, one.destination, size, shares=shares)
    library, carried = _seconds(graph, host, prices)
    sent = CommunicationGraph.from_arrays(ranks, one.source, one.destination, size)
    joining = joining_of(replace(interface, virtual=False), "", sent)
    found = search(sent, interface, Aim(joining=joining, work=FIGURES))
    other = _seconds(graph, found.best.host_of_rank, prices) if found.taken else (library, carried)
    ours = one.name in NEIGHBOUR_CALLS
    return {
        "call": one.name,
        "calls": one.times,
        "carried": one.carried,
        "edges": len(one.source),
        "bytes": int(one.volume.sum()) // one.times,
        "edge_seconds": library,
        "carried_seconds": carried,
        "algorithm": "hosts" if ours and _pays(library, carried) else "native",
        "seconds": carried if ours and _pays(library, carried) else library,
        "reordered_seconds": other[ours and _pays(*other)],
        "cut": found.cut,
    }


def _pays(library: float, carried: float) -> bool:
    return library >= GAIN * carried


def _seconds(graph: Neighbourhood, host: NDArray[np.int64], prices: Prices) -> tuple[float, float]:
    place = GroupPlace(host, host)
    return of_all(exchanges(graph, host, prices.terms(place)), place, prices)
