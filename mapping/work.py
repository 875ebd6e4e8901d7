"""The work of a search, counted and not timed, so that the result does not depend on the computer's speed and load."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from .graph import CommunicationGraph

__all__ = ["Work"]

A_RANK = 100  # edges; the mappers take about as long for one rank


@dataclass
class Work:
    """The work of a search so far, in edges of all compared mappings; a rank counts as 100 edges.

    :param limit: amount of work after which the search begins no further step.
    :ivar done: amount of work so far.
    :ivar steps: number of steps so far.
    :ivar cut: the reason why the search ended early, in words; empty if it did not.
    """

    limit: float = inf
    done: int = 0
    steps: int = 0
    cut: str = ""

    def compared(self, graph: CommunicationGraph) -> None:
        """Count one mapping of a graph."""
        self.done += A_RANK * graph.size + graph.num_edges

    def goes_on(self, *, good_enough: bool) -> bool:
        """Whether a further step begins.

        :param good_enough: whether the best mapping so far has the quality at which the search stops.
        """
        reached = self.done > self.limit
        if good_enough or reached:
            why = "the order is good enough" if good_enough else "its work is limited, unlike that of topompi map"
            self.cut = f"the search was cut after {self.steps} steps, because {why}"
            return False
        self.steps += 1
        return True
