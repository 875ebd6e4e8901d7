"""Predicted gains of neighbourhood calls in a recorded program: by carriers, and by another order of the ranks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..mapping.graph import CommunicationGraph
from ..mapping.joined import Joining, best_joined
from ..mapping.mapping import Mapping
from ..prediction.neighbours import GAIN, Place, Prices, of_all
from ..prediction.predictor import Predictor
from ..schedules.neighbourhood import Neighbourhood
from ..schedules.sparse.schedules import exchanges
from ..topology import TopologyInterface
from ..views.machine import machine_of
from .recording import Exchanged, Profile

__all__ = ["exchange_advice"]

MOST = 4  # maximum number of communicators and methods, those with most bytes, because each needs a search
SEARCH = 5.0  # maximum seconds of the search for a better order of the ranks, for each of them


def exchange_advice(profile: Profile, interface: TopologyInterface) -> list[dict[str, Any]]:
    """Rows for JSON with predicted seconds of neighbourhood calls: a message per edge, carried, and in another order.

    Edges have their mean bytes. Seconds in the other order are those of the faster algorithm; the order stays if it is
    not predicted to be faster. The list is empty if nothing can be predicted.

    :param profile: a profile by process.
    :param interface: the placement of the ranks, real or assumed.
    Cost: plans of all ranks for two orders, and the search for an order.
    """
    predictor = Predictor(replace(interface, virtual=False))
    if predictor.inapplicable:
        return []
    prices = Prices.of(predictor)
    return [_row(one, interface, prices) for one in profile.exchanged[:MOST] if one.times]


def _row(one: Exchanged, interface: TopologyInterface, prices: Prices) -> dict[str, Any]:
    ranks, host = interface.num_ranks, interface.rank_host.astype(np.int64)
    size = -(-one.volume // one.times)
    shares = "allgather" in one.name
    if shares:
        largest = np.zeros(ranks, dtype=np.int64)
        np.maximum.at(largest, one.source, size)
        size = largest[one.source]
    graph = Neighbourhood.from_edges(ranks, one.source, one.destination, size, shares=shares)
    library, carried = _seconds(graph, host, prices)
    terms, machine = prices.terms(Place(host, host)), machine_of(interface, routes=False)
    given = Mapping.on_hosts(host, machine)
    sent = CommunicationGraph.from_arrays(ranks, one.source, one.destination, size)
    found = best_joined(sent, machine, Joining(terms.start, terms.limit), given=given, seconds=SEARCH)
    other = library, carried
    if (found.host_of_rank != host).any():
        other = _seconds(graph, found.host_of_rank, prices)
    return {
        "call": one.name,
        "calls": one.times,
        "carried": one.carried,
        "edges": len(one.source),
        "bytes": int(one.volume.sum()) // one.times,
        "edge_seconds": library,
        "carried_seconds": carried,
        "algorithm": "hosts" if library >= GAIN * carried else "native",
        "reordered_seconds": min(library, carried, *other),
    }


def _seconds(graph: Neighbourhood, host: Any, prices: Prices) -> tuple[float, float]:
    place = Place(host, host)
    return of_all(exchanges(graph, host, prices.terms(place)), place, prices)
