"""The order of ``MPI.COMM_WORLD`` that a communication graph from an earlier run asks for."""

from __future__ import annotations

from sys import stderr
from typing import Any

from ...execution.native import NativeIntracomm
from ...mapping.graph import CommunicationGraph
from .order import communication_graph

__all__ = ["in_order_of"]


def in_order_of(world: Any, path: str) -> Any:
    """A communicator of the same processes in the order that a graph's file asks for; collective.

    Where rank 0 cannot read the file, or the graph has another number of ranks, all pairs weigh the same, as in
    Subramoni 2013, section 5: then no order is better than the given one, which stays, with a warning.

    :param world: one of ours, of all processes of the job, one on each slot.
    :param path: of the graph, in any format that ``topompi map`` reads; rank 0's counts.
    Cost: that of ``remap``, and one broadcast of a line.
    """
    plain, graph, problem = NativeIntracomm(world), None, None
    if plain.Get_rank() == 0:
        graph, problem = _read(path, plain.Get_size())
    problem = plain.bcast(problem)
    if problem is None:
        return world.remap(graph)
    if plain.Get_rank() == 0:
        print(f"topompi: {problem}; all pairs of ranks weigh the same: the given order stays", file=stderr, flush=True)
    return world


def _read(path: str, size: int) -> tuple[CommunicationGraph | None, str | None]:
    """The graph, or what is wrong with it."""
    try:
        return communication_graph(path, size), None
    except (ValueError, OSError) as error:
        return None, f"{error}"
