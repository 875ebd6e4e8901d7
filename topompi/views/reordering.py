"""The search for a better order of a job's ranks, the same for profiles, for ``remap`` and for MPI's topologies."""

from __future__ import annotations

import os
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from ..errors import TopompiError
from ..inputs.settings import map_quality
from ..mapping.evaluate import OBJECTIVES, Evaluation, evaluate
from ..mapping.graph import CommunicationGraph
from ..mapping.joined import Joining, joined_cost
from ..mapping.machine import Machine
from ..mapping.mapping import Mapping
from ..mapping.work import Work
from ..topology import TopologyInterface
from .machine import machine_of

__all__ = ["FIGURES", "THRESHOLD", "Aim", "FoundOrder", "RemapError", "search"]

THRESHOLD = 0.03  # least fraction of the objective that a new order must save to be taken or recommended
# Work after which the search begins no further step if its result is only a figure of a summary. Orders of 10,000 ranks
# in a sparse graph, and of 1,000 ranks that all send to all, are searched for to the end.
FIGURES = 2e7
JOINED = "joined hop-bytes"
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
    :param work: limit of the search in units of `mapping.work.Work`.
    :param joining: the terms on which edges from host to host share a message, if the edges are those of neighbourhood
        collectives that topompi would run; the objective is then ``joined hop-bytes``: each message's bytes, and a
        start-up, times its hops. None if each edge is a message of its own.
    :raises RemapError: if the objective is unknown, or threshold or quality is not from 0 to 1.
    """

    objective: str = OBJECTIVES[0]
    threshold: float = THRESHOLD
    quality: float | None = None
    seed: int = 0
    work: float = inf
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

    def best(self, graph: CommunicationGraph, machine: Machine, given: Mapping, work: Work) -> Mapping:
        """The best order found, never worse than the given one.

        :param graph: communication graph of the ranks.
        :param machine: hosts and distances.
        :param given: the given order.
        :param work: counter of the work.
        """
        # Not at the top: imports all mappers and METIS, which most ranks of a job do without.
        from ..mapping.joined import best_joined
        from ..mapping.mappers.portfolio import best

        quality = self.good_enough()
        if self.joining is not None:
            return best_joined(graph, machine, self.joining, self.seed, given=given, quality=quality, work=work)
        return best(graph, machine, self.seed, objective=self.objective, given=given, quality=quality, work=work)

    def good_enough(self) -> float:
        """The quality at which the search stops: ``quality`` if it is given, else ``TOPOMPI_MAP_QUALITY``, else 0.

        :raises RemapError: if ``TOPOMPI_MAP_QUALITY`` is not a number from 0 to 1.
        """
        if self.quality is not None:
            return self.quality
        return map_quality(os.environ, RemapError)


@dataclass(frozen=True, eq=False)
class FoundOrder:
    """The result of a search, whether its order is worth to be taken or not.

    :param machine: hosts and distances.
    :param given: the given order.
    :param best: the best order found, which may be the given one.
    :param before: costs of the given order.
    :param after: costs of the best order found.
    :param gain: fraction of the objective that the best order found saves.
    :param taken: True if this is at least the threshold.
    :param cut: the reason why the search ended early, in words; empty if it did not.
    """

    machine: Machine
    given: Mapping
    best: Mapping
    before: Evaluation
    after: Evaluation
    gain: float
    taken: bool
    cut: str


def search(graph: CommunicationGraph, interface: TopologyInterface, aim: Aim) -> FoundOrder:
    """Search for a better order of the ranks. The result depends on the arguments and TOPOMPI_MAP_QUALITY alone.

    :param graph: communication graph of all ranks of ``interface``, or of the first ranks if the others send nothing.
    :param interface: the present placement of the ranks.
    :param aim: the objective, and when the search stops.
    :raises ValueError: if the mapper refuses the graph.

    Cost: a run of ``mapping.mappers.portfolio.best``, about a second for 2,000 ranks on several hosts.
    """
    machine = machine_of(interface, routes=aim.objective != OBJECTIVES[0])
    given = Mapping.on_hosts(interface.rank_host[: graph.size], machine)
    before = evaluate(given, graph, machine)
    best, after, gain, work = given, before, 0.0, Work(aim.work)
    least = aim.cost(given, before, graph, machine)
    if least > 0 and machine.num_hosts > 1:
        best = aim.best(graph, machine, given, work)
        after = evaluate(best, graph, machine)
        gain = 1 - aim.cost(best, after, graph, machine) / least
    return FoundOrder(machine, given, best, before, after, gain, gain > 0 and gain >= aim.threshold, work.cut)
