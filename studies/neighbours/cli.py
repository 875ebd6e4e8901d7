"""Neighbourhood collectives on simulated networks: ``python -m studies neighbours [--quick] [-o docs/lab]``.

Hosts of 16 ranks, in the order of ranks, on a tree of leaf switches of 16 hosts with half as many links upwards; 4xFDR
InfiniBand with the settings of the preset ``fdr``. A message per edge is what MPI libraries send.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import exp, log

import numpy as np

from studies.families.fabrics import FDR, simulated
from studies.tables import Table, show_many
from topompi.netsim import Tables
from topompi.prediction.neighbours import GAIN, Place, Prices, on_host, seconds_of, works_of
from topompi.prediction.predictor import Predictor
from topompi.schedules import Network, Schedule
from topompi.schedules.neighbourhood import Neighbourhood
from topompi.schedules.sparse.exchange import Exchange
from topompi.schedules.sparse.schedules import exchanges, neighbours_direct, schedule_of
from topompi.topology import TopologyInterface, load_routes
from topompi.views.network import network_of
from topompi.views.program import program_of
from topompi.views.tables import tables_of

from .graphs import HALOS, QUICK, RECORDED

__all__ = ["HEAD", "main", "row_of"]

RANKS = 16  # a host
FABRIC = "XGFT(2; 16,5; 1,8)@rate=4xFDR"
HEAD = (
    "graph",
    "messages between hosts",
    "carried",
    "most of a host",
    "carried",
    "flows: per edge, us",
    "carried",
    "packets: per edge, us",
    "carried",
    "predicted",
    "chosen",
)


def job(ranks: int) -> tuple[TopologyInterface, Network, Tables]:
    """A job of 16 ranks a host on the first hosts of the fabric."""
    routes = load_routes(FABRIC)
    hosts = [routes.fabric.hosts[rank // RANKS] for rank in range(ranks)]
    interface = TopologyInterface.place(hosts, routes)
    assert interface.routes is not None
    return interface, network_of(interface), tables_of(interface.routes, latency=FDR.latency)


def row_of(name: str, graph: Neighbourhood) -> tuple[list[str], dict[str, float]]:
    """The row of a graph, and by model how many times as fast the chosen algorithm is as a message per edge."""
    interface, network, tables = job(graph.ranks)
    place = Place(network.rank_host, network.rank_host)
    prices = Prices.of(Predictor(interface))
    parts = exchanges(graph, network.rank_host, prices.terms(place))
    schedules = {"direct": neighbours_direct(graph), "carried": schedule_of(graph, parts, "hosts")}
    predicted = _predicted(parts, place, prices)
    chosen = "hosts" if predicted >= GAIN else "native"
    cells = [name, *_counts(list(schedules.values()), network.rank_host)]
    gains = {}
    for model in ("flows", "packets"):
        direct, carried = (simulated(program_of(one, network), tables, model) for one in schedules.values())
        cells += [f"{1e6 * direct:,.1f}", f"{direct / carried:.2f}x"]
        gains[model] = direct / carried if chosen == "hosts" else 1.0
    return [*cells, f"{predicted:.2f}x", chosen], gains


def _predicted(parts: Sequence[Exchange], place: Place, prices: Prices) -> float:
    """The predicted time of a message per edge over that of carried blocks."""
    works = np.array([works_of(part, place, prices) for part in parts])
    largest = np.max([on_host(works, place.host_of, rank) for rank in range(len(parts))], axis=0)
    library, ours = seconds_of(largest)
    return library / ours


def _counts(schedules: Sequence[Schedule], host: np.typing.NDArray[np.int64]) -> Iterator[str]:
    """Messages between hosts, and the most that one host sends, without and with carriers."""
    sent = []
    for schedule in schedules:
        ends = np.stack((host[schedule.source], host[schedule.destination]))
        sent.append(np.bincount(ends[0, ends[0] != ends[1]]))
    yield from (f"{count.sum():,}" for count in sent)
    yield from (f"{count.max():,}" for count in sent)


def _tables(quick: bool) -> Iterator[Table]:
    if quick:
        yield "neighbours halos", HEAD, _rows(QUICK)
        return
    yield "neighbours halos", HEAD, _rows(HALOS)
    yield "neighbours recorded", HEAD, _rows(RECORDED)


def _rows(graphs: Mapping[str, Callable[[], Neighbourhood | None]]) -> Iterator[list[str]]:
    gains: list[dict[str, float]] = []
    for name, make in graphs.items():
        graph = make()
        if graph is None:
            yield [name, "its data are not here", *["-"] * (len(HEAD) - 2)]
            continue
        row, gain = row_of(name, graph)
        gains.append(gain)
        yield row
    if gains:
        means = {model: exp(sum(log(one[model]) for one in gains) / len(gains)) for model in gains[0]}
        yield [
            "geometric mean of what is chosen",
            *["-"] * 5,
            f"{means['flows']:.2f}x",
            "-",
            f"{means['packets']:.2f}x",
            "-",
            "-",
        ]


def main(arguments: Sequence[str]) -> int:
    """Print the tables, and put them into docs/lab/neighbours.md.

    :param arguments: arguments after the source's name: ``-o DIR``, ``--quick`` and ``--only TABLE``.
    """
    return show_many("neighbours", "neighbours.md", _tables, arguments)
