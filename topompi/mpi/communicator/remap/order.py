"""New ranks from the search for a better order of a job's ranks, its report, and a cache. It does not use MPI."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ....mapping.evaluate import OBJECTIVES, Evaluation
from ....mapping.graph import CommunicationGraph
from ....mapping.machine import Machine
from ....mapping.mapping import Mapping
from ....topology import TopologyInterface
from ....views.reordering import THRESHOLD, Aim, FoundOrder, RemapError, search

if TYPE_CHECKING:
    from ...execution.lru import LRU

__all__ = [
    "THRESHOLD",
    "Aim",
    "MappingReport",
    "RemapError",
    "Solution",
    "communication_graph",
    "held_or_solved",
    "solve",
]

GIVEN = "given order"
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class MappingReport:
    """The result of a search for a better order, the same on all ranks.

    :param reordered: True if the ranks have a new order; False if the given order stays.
    :param reason: the reason why the order is new or stays, in words.
    :param objective: the objective that the search minimised.
    :param algorithm: name of the algorithm that found the order.
    :param before: costs of the given order; None if nothing was evaluated. If the graph is that of a communicator's
        topology, weights of its edges stand for bytes.
    :param after: costs of the resulting order; None if nothing was evaluated.
    :param gain: fraction of the objective that the best order found saves, whether it was taken or not.
    :param moved: number of ranks that the new order gives to another process.
    :param virtual: True if the hosts are virtual (``TOPOMPI_HOSTS``).
    """

    reordered: bool
    reason: str
    objective: str = OBJECTIVES[0]
    algorithm: str = GIVEN
    before: Evaluation | None = None
    after: Evaluation | None = None
    gain: float = 0.0
    moved: int = 0
    virtual: bool = False

    def describe(self) -> str:
        """The report in one line."""
        parts = [f"{self.algorithm}: {self.reason}"]
        if self.before is not None and self.after is not None:
            parts += [
                f"hop-bytes {float(self.before.hop_bytes):,.10g} -> {float(self.after.hop_bytes):,.10g}",
                f"intra-host share {self.before.intra_share:.1%} -> {self.after.intra_share:.1%}",
                f"{self.moved} ranks moved",
            ]
        return "; ".join(parts) + (" (virtual placement)" if self.virtual else "")


@dataclass(frozen=True, eq=False)
class Solution:
    """The result of a search: an order of the ranks, and the report.

    :param new_rank: new rank of each old rank, shape (ranks,); None if all keep their ranks.
    :param report: the report of the search.
    """

    new_rank: Integers | None
    report: MappingReport


def communication_graph(given: Any, size: int) -> CommunicationGraph:
    """The communication graph that a user passed, in any of the forms that ``remap`` takes.

    :param given: a ``CommunicationGraph``, a networkx graph, a matrix of bytes (numpy or scipy.sparse; row sends to
        column), or the name of a file that ``mapping.readers`` can read.
    :param size: number of ranks that the graph must have.
    :raises RemapError: if the graph has another number of ranks, or is None.
    """
    if given is None:
        raise RemapError("expecting a communication graph on rank 0, got None")
    if isinstance(given, CommunicationGraph):
        graph = given
    elif isinstance(given, (str, os.PathLike)):
        from ....mapping import read_graph  # not at the top: imports all formats, which only rank 0 needs here

        graph = read_graph(given, size)
    elif hasattr(given, "number_of_nodes"):
        graph = CommunicationGraph.from_networkx(given)
    else:
        graph = CommunicationGraph.from_matrix(given)
    if graph.size != size:
        raise RemapError(f"expecting a communication graph of {size} ranks, got {graph.size}")
    return graph


def held_or_solved(held: LRU, graph: CommunicationGraph, interface: TopologyInterface, aim: Aim) -> Solution:
    """The cached solution for the same graph and aim; if there is none, the result of ``solve``, which is then cached.

    :param held: cache of solutions for the ranks of ``interface``.
    :param graph: communication graph of all ranks of ``interface``, or of the first ranks.
    :param interface: the present placement of the ranks.
    :param aim: the objective, and when the search stops.
    :raises ValueError: if the mapper refuses the graph.
    """
    key = aim, os.environ.get("TOPOMPI_MAP_QUALITY"), graph.digest
    found: Solution | None = held.get(key)
    if found is None:
        found = solve(graph, interface, aim)
        held.put(key, found)
    return found


def solve(graph: CommunicationGraph, interface: TopologyInterface, aim: Aim) -> Solution:
    """Search for a better order of the ranks; the given order stays if the best one saves less than the threshold.

    :param graph: communication graph of all ranks of ``interface``, or of the first ranks if the others send nothing.
    :param interface: the present placement of the ranks.
    :param aim: the objective, and when the search stops.
    :raises ValueError: if the mapper refuses the graph.

    Cost: a run of `topompi.views.reordering.search`.
    """
    found = search(graph, interface, aim)
    new_rank = _new_rank(found.best, found.machine, interface.rank_host) if found.taken else None
    report = MappingReport(
        found.taken,
        _reason(aim, found),
        aim.says,
        "best of the portfolio" if found.taken else GIVEN,
        found.before,
        found.after if found.taken else found.before,
        found.gain,
        0 if new_rank is None else int((new_rank != np.arange(len(new_rank))).sum()),
        interface.virtual,
    )
    return Solution(new_rank, report)


def _reason(aim: Aim, found: FoundOrder) -> str:
    if found.machine.num_hosts == 1:
        return "one host"
    if not found.before.doubled:
        return "nothing is sent between hosts"
    cut = f"; {found.cut}" if found.cut else ""
    if found.gain <= 0:
        return f"no better order found{cut}"
    verdict = "" if found.taken else f", below the threshold of {aim.threshold:.1%}"
    return f"predicted to save {found.gain:.1%} of {aim.says}{verdict}{cut}"


def _new_rank(found: Mapping, machine: Machine, rank_host: NDArray[np.integer]) -> Integers:
    """The new rank of each process, by its old rank, shape (ranks,).

    A process keeps its old rank if the new order puts that rank on the process's host. The other processes of a host
    take the host's other ranks in ascending order, so that neighbours inside a host stay neighbours as far as possible.
    Processes without a rank in the graph take the remaining ranks.
    """
    left = machine.slots - np.bincount(found.host_of_rank, minlength=machine.num_hosts)
    host = np.r_[found.host_of_rank, np.repeat(np.arange(machine.num_hosts), left)]
    moves = np.flatnonzero(host != rank_host)
    new_rank = np.arange(len(host))
    new_rank[moves[np.argsort(rank_host[moves], kind="stable")]] = moves[np.argsort(host[moves], kind="stable")]
    return new_rank
