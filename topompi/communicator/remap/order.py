"""The search for a better order of a job's ranks: aim, result and report. It does not use MPI."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...errors import TopompiError
from ...inputs.settings import map_quality
from ...mapping.evaluate import OBJECTIVES, Evaluation, evaluate
from ...mapping.graph import CommunicationGraph
from ...mapping.joined import Joining, best_joined, joined_cost
from ...mapping.machine import Machine
from ...mapping.mapping import Mapping
from ...topology import TopologyInterface
from ...views.machine import machine_of

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

THRESHOLD = 0.03  # least fraction of the objective that a new order must save, by default
GIVEN, JOINED = "given order", "joined hop-bytes"
Integers = NDArray[np.int64]


class RemapError(TopompiError, ValueError):
    """Ranks cannot be re-ordered as asked, because the graph has another size or an argument is out of range."""


@dataclass(frozen=True)
class Aim:
    """The aim of a search for an order of ranks: the objective that it minimises, and when it stops.

    :param objective: ``hop-bytes``, each message's bytes times its hops, summed; or ``busiest link``, bytes over
        capacity on the link where this is greatest.
    :param threshold: least fraction of the objective that a new order must save to be taken.
    :param quality: fraction of the given order's objective at which the search stops; if it is None,
        ``TOPOMPI_MAP_QUALITY``, or 0 if that is not set.
    :param seed: seed of the search.
    :param seconds: time limit of the search in seconds, with which one seed may give several orders; None if it has no
        limit.
    :param joining: the terms on which edges from host to host share a message, if the edges are those of neighbourhood
        collectives that topompi would run; the objective is then ``joined hop-bytes``: each message's bytes, and a
        start-up, times its hops. None if each edge is a message of its own.
    :raises RemapError: if the objective is unknown, or threshold or quality is not from 0 to 1.
    """

    objective: str = OBJECTIVES[0]
    threshold: float = THRESHOLD
    quality: float | None = None
    seed: int = 0
    seconds: float | None = None
    joining: Joining | None = None

    def __post_init__(self) -> None:
        if self.objective not in OBJECTIVES:
            raise RemapError(f"expecting objective {' or '.join(OBJECTIVES)}, got {self.objective!r}")
        for name, part in (("threshold", self.threshold), ("quality", self.quality or 0.0)):
            if not 0 <= part <= 1:
                raise RemapError(f"expecting {name} from 0 to 1, got {part}")

    @property
    def says(self) -> str:
        """The objective in words."""
        return self.objective if self.joining is None else JOINED

    def cost(self, found: Mapping, evaluated: Evaluation, graph: CommunicationGraph, machine: Machine) -> float:
        """The value of the objective for an order.

        It is twice the (joined) hop-bytes, so that it is an integer, or the seconds for which the busiest link is busy.

        :param found: the order.
        :param evaluated: its evaluation.
        :param graph: communication graph of the ranks.
        :param machine: hosts and distances.
        """
        if self.joining is not None:
            return joined_cost(found, graph, machine, self.joining)
        return evaluated.doubled if self.objective == OBJECTIVES[0] else evaluated.link_seconds or 0.0

    def search(self, graph: CommunicationGraph, machine: Machine, given: Mapping) -> Mapping:
        """The best order found, never worse than the given one.

        :param graph: communication graph of the ranks.
        :param machine: hosts and distances.
        :param given: the given order.
        """
        from ...mapping import best  # not at the top: imports all mappers and METIS, for rank 0 only

        quality, limit = self.good_enough(), self.seconds
        if self.joining is not None:
            return best_joined(graph, machine, self.joining, self.seed, given=given, quality=quality, seconds=limit)
        return best(graph, machine, self.seed, objective=self.objective, given=given, quality=quality, seconds=limit)

    def good_enough(self) -> float:
        """The quality at which the search stops: ``quality`` if it is given, else ``TOPOMPI_MAP_QUALITY``, else 0.

        :raises RemapError: if ``TOPOMPI_MAP_QUALITY`` is not a number from 0 to 1.
        """
        if self.quality is not None:
            return self.quality
        return map_quality(os.environ, RemapError)


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
    :param seconds: duration of the search in seconds, on the rank that searched; 0 for a cached order.
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
    seconds: float = 0.0
    virtual: bool = False

    def describe(self) -> str:
        """The report in one line."""
        parts = [f"{self.algorithm}: {self.reason}"]
        if self.before is not None and self.after is not None:
            parts += [
                f"hop-bytes {float(self.before.hop_bytes):,.10g} -> {float(self.after.hop_bytes):,.10g}",
                f"intra-host share {self.before.intra_share:.1%} -> {self.after.intra_share:.1%}",
                f"{self.moved} ranks moved",
                f"{self.seconds:.3g} s",
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
        from ...mapping import read_graph  # not at the top: imports all formats, which only rank 0 needs here

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

    Solutions with a time limit are not cached, because a repeated search may find another one.

    :param held: cache of solutions for the ranks of ``interface``.
    :param graph: communication graph of all ranks of ``interface``, or of the first ranks.
    :param interface: the present placement of the ranks.
    :param aim: the objective, and when the search stops.
    :raises ValueError: if the mapper refuses the graph.
    """
    if aim.seconds is not None:
        return solve(graph, interface, aim)
    key = aim, os.environ.get("TOPOMPI_MAP_QUALITY"), graph.digest
    found: Solution | None = held.get(key)
    if found is not None:
        return replace(found, report=replace(found.report, seconds=0.0))
    found = solve(graph, interface, aim)
    held.put(key, found)
    return found


def solve(graph: CommunicationGraph, interface: TopologyInterface, aim: Aim) -> Solution:
    """Search for a better order of the ranks; the given order stays if the best one saves less than the threshold.

    :param graph: communication graph of all ranks of ``interface``, or of the first ranks if the others send nothing.
    :param interface: the present placement of the ranks.
    :param aim: the objective, and when the search stops.
    :raises ValueError: if the mapper refuses the graph.

    Cost: a run of ``mapping.mappers.portfolio.best``, about a second for 2,000 ranks on several hosts.
    """
    began = perf_counter()
    machine = machine_of(interface, routes=aim.objective != OBJECTIVES[0])
    given = Mapping.on_hosts(interface.rank_host[: graph.size], machine)
    before = evaluate(given, graph, machine)
    found, after, saved = given, before, 0.0
    least = aim.cost(given, before, graph, machine)
    if least > 0 and machine.num_hosts > 1:
        found = aim.search(graph, machine, given)
        after = evaluate(found, graph, machine)
        saved = 1 - aim.cost(found, after, graph, machine) / least
    taken = saved > 0 and saved >= aim.threshold
    new_rank = _new_rank(found, machine, interface.rank_host) if taken else None
    report = MappingReport(
        taken,
        _reason(aim, machine, before, saved),
        aim.says,
        "best of the portfolio" if taken else GIVEN,
        before,
        after if taken else before,
        saved,
        0 if new_rank is None else int((new_rank != np.arange(len(new_rank))).sum()),
        perf_counter() - began,
        interface.virtual,
    )
    return Solution(new_rank, report)


def _reason(aim: Aim, machine: Machine, before: Evaluation, saved: float) -> str:
    if machine.num_hosts == 1:
        return "one host"
    if not before.doubled:
        return "nothing is sent between hosts"
    if saved <= 0:
        return "no better order found"
    verdict = "" if saved >= aim.threshold else f", below the threshold of {aim.threshold:.1%}"
    return f"predicted to save {saved:.1%} of {aim.says}{verdict}"


def _new_rank(found: Mapping, machine: Machine, rank_host: NDArray[np.integer[Any]]) -> Integers:
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
