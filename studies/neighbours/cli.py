"""Neighbourhood collectives on simulated networks: ``python -m studies neighbours [--quick] [-o docs/lab]``.

Hosts of 16 ranks, in the order of ranks, on a tree of leaf switches of 16 hosts with half as many links upwards; 4xFDR
InfiniBand with the settings of the preset ``fdr``. A message per edge is what MPI libraries send.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from studies.families.fabrics import FDR, simulated
from studies.tables import Table, show_many
from topompi.mapping import CommunicationGraph
from topompi.mapping.joined import Joining
from topompi.mpi.communicator.remap.order import Aim, solve
from topompi.mpi.prediction.neighbours import GAIN, GroupPlace, Prices, of_all
from topompi.mpi.prediction.predictor import Predictor
from topompi.netsim import RECEIVE, SEND, Program
from topompi.schedules import Network
from topompi.schedules.neighbourhood import Neighbourhood
from topompi.schedules.sparse.exchange import Exchange, ExchangeStage, edge_by_edge
from topompi.schedules.sparse.schedules import exchanges
from topompi.topology import TopologyInterface, load_routes
from topompi.views.network import network_of
from topompi.views.tables import tables_of

from .bounds import bound_of
from .graphs import HALOS, QUICK, RECORDED

__all__ = ["HEAD", "main", "row_of"]

Integers = NDArray[np.int64]

RANKS = 16  # a host
FABRIC = "XGFT(2; 16,5; 1,8)@rate=4xFDR"
HEAD = (
    "graph",
    "messages between hosts",
    "carried",
    "most of a rank",
    "carried",
    "flows: per edge, us",
    "at most",
    "carried",
    "packets: per edge, us",
    "carried",
    "predicted",
    "chosen",
    "re-ordered: per edge",
    "chosen",
)
SUMMED = (6, 7, 9, 12, 13)  # columns of which the table has geometric means; in 7 and 9, of what is chosen


@dataclass(frozen=True, eq=False)
class Job:
    """A neighbourhood alltoall on a placement of its ranks, and its carried form.

    :param graph: the edges with their bytes.
    :param hosts: name of the host of each rank.
    """

    graph: Neighbourhood
    hosts: Sequence[str]

    @cached_property
    def interface(self) -> TopologyInterface:
        """The placement of the ranks."""
        return TopologyInterface.place(list(self.hosts), load_routes(FABRIC))

    @cached_property
    def network(self) -> Network:
        """The network of the ranks."""
        return network_of(self.interface)

    @cached_property
    def place(self) -> GroupPlace:
        """The hosts of the ranks, as groups."""
        return GroupPlace(self.network.rank_host, self.network.rank_host)

    @cached_property
    def prices(self) -> Prices:
        """The costs of messages by the cost model."""
        return Prices.of(Predictor(self.interface))

    @cached_property
    def parts(self) -> list[Exchange]:
        """The part of each rank if blocks are carried."""
        return exchanges(self.graph, self.network.rank_host, self.prices.terms(self.place))

    @cached_property
    def predicted(self) -> float:
        """The predicted time of a message per edge over that of carried blocks."""
        library, ours = of_all(self.parts, self.place, self.prices)
        return library / ours

    def seconds(self, model: str, *, carried: bool) -> float:
        """The simulated seconds.

        :param model: ``flows`` or ``packets``.
        :param carried: True for carried blocks, False for a message per edge.
        """
        assert self.interface.routes is not None
        tables = tables_of(self.interface.routes, latency=FDR.latency)
        stages = [[part.direct, *part.middle] if carried else [edge_by_edge(part)] for part in self.parts]
        return simulated(program_of(stages, self.network.rank_host), tables, model)

    def chosen(self, model: str) -> float:
        """The simulated seconds of what topompi runs by default.

        :param model: ``flows`` or ``packets``.
        """
        return self.seconds(model, carried=self.predicted >= GAIN)

    def reordered(self) -> Job:
        """The same alltoall with the ranks in the order that ``reorder=True`` finds."""
        edges, terms = self.graph.edges, self.prices.terms(self.place)
        graph = CommunicationGraph.from_arrays(self.graph.ranks, edges.source, edges.destination, edges.size)
        solution = solve(graph, self.interface, Aim(joining=Joining(terms.start, terms.limit)))
        if solution.new_rank is None:
            return self
        return Job(self.graph, [self.hosts[process] for process in np.argsort(solution.new_rank).tolist()])


def program_of(stages: Sequence[Sequence[ExchangeStage]], host: Integers) -> Program:
    """The program of all ranks, whose direct messages last as long as the other stages take together.

    :param stages: the stages of each rank, of which the first has the direct messages.
    :param host: host of each rank, shape (ranks,).
    """
    rows = []
    for rank, mine in enumerate(stages):
        before = -1
        for number, stage in enumerate(mine):
            for kind, messages in ((SEND, stage.sends), (RECEIVE, stage.receives)):
                peer, _, _, length = messages.T
                rows.append(np.stack(np.broadcast_arrays(rank, number, kind, peer, length, before), axis=1))
            if number and len(stage.sends) + len(stage.receives):
                before = number
    rank_, step, kind_, peer, amount, after = np.concatenate(rows).T
    return Program(host, rank_, step, kind_, peer, amount.astype(np.float64), after=after, window=0)


def row_of(name: str, graph: Neighbourhood) -> tuple[list[str], list[float]]:
    """The row of a graph, and the numbers of its columns ``SUMMED``."""
    hosts = load_routes(FABRIC).fabric.hosts
    job = Job(graph, [hosts[rank // RANKS] for rank in range(graph.ranks)])
    sent = [[[edge_by_edge(part)], [part.direct, *part.middle]] for part in job.parts]
    cells, gains = [name, *_counts(sent, job.network.rank_host)], {}
    for model, at in (("flows", 7), ("packets", 9)):
        per_edge, carried = (job.seconds(model, carried=one) for one in (False, True))
        cells.append(f"{1e6 * per_edge:,.1f}")
        if model == "flows":
            first, gains[6] = per_edge, per_edge / bound_of(graph, job.interface, FDR.hosts)
            cells.append(f"{gains[6]:.2f}x")
        cells.append(f"{per_edge / carried:.2f}x")
        gains[at] = per_edge / carried if job.predicted >= GAIN else 1.0
    other = job.reordered()
    gains[12], gains[13] = first / other.seconds("flows", carried=False), first / other.chosen("flows")
    cells += [f"{job.predicted:.2f}x", "hosts" if job.predicted >= GAIN else "native"]
    cells += [f"{gains[at]:.2f}x" if other is not job else "-" for at in (12, 13)]
    return cells, [gains[at] for at in SUMMED]


def _counts(sent: Sequence[Sequence[Sequence[ExchangeStage]]], host: Integers) -> Iterator[str]:
    """Messages between hosts, and the most that one rank sends, of a message per edge and if blocks are carried.

    :param sent: the stages of each rank in both forms.
    :param host: host of each rank, shape (ranks,).
    """
    between, most = [0, 0], [0, 0]
    for rank, forms in enumerate(sent):
        for form, stages in enumerate(forms):
            peers = np.concatenate([stage.sends[:, 0] for stage in stages])
            between[form] += int((host[peers] != host[rank]).sum())
            most[form] = max(most[form], len(peers))
    yield from (f"{one:,}" for one in (*between, *most))


def _tables(quick: bool) -> Iterator[Table]:
    if quick:
        yield "neighbours halos", HEAD, _rows(QUICK)
        return
    yield "neighbours halos", HEAD, _rows(HALOS)
    yield "neighbours recorded", HEAD, _rows(RECORDED)


def _rows(graphs: Mapping[str, Callable[[], Neighbourhood | None]]) -> Iterator[list[str]]:
    gains = []
    for name, make in graphs.items():
        graph = make()
        if graph is None:
            yield [name, "its data are not here", *["-"] * (len(HEAD) - 2)]
            continue
        row, gain = row_of(name, graph)
        gains.append(gain)
        yield row
    if gains:
        means = dict(zip(SUMMED, np.exp(np.log(gains).mean(axis=0)).tolist(), strict=True))
        rest = (f"{means[column]:.2f}x" if column in means else "-" for column in range(1, len(HEAD)))
        yield ["geometric mean of what is chosen", *rest]


def main(arguments: Sequence[str]) -> int:
    """Print the tables, and put them into docs/lab/neighbours.md.

    :param arguments: arguments after the source's name: ``-o DIR``, ``--quick`` and ``--only TABLE``.
    """
    return show_many("neighbours", "neighbours.md", _tables, arguments)
