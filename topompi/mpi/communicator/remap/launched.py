"""The re-ordering of ``MPI.COMM_WORLD`` for a communication graph recorded in an earlier run."""

from __future__ import annotations

from sys import stderr
from typing import Any

from ....mapping.graph import CommunicationGraph
from ...execution.native import NativeIntracomm
from .methods import remap
from .order import communication_graph

__all__ = ["in_order_of"]


def in_order_of(world: Any, path: str) -> Any:
    """A communicator of the same processes, in an order that suits a file's communication graph; collective.

    If rank 0 cannot read the file, or the graph has another number of ranks, a warning is printed, and the given order
    stays. It stays because without a graph all pairs of ranks count as sending the same number of bytes (Subramoni
    2013, section 5), so that no order is better than another.

    :param world: the communicator of topompi over all processes of the job.
    :param path: path of the graph's file, in any format that ``topompi map`` reads; rank 0's path is used.

    Cost: a call of ``remap``, and one broadcast of a line.
    """
    plain, graph, problem = NativeIntracomm(world), None, None
    if plain.Get_rank() == 0:
        graph, problem = _read(path, plain.Get_size())
    problem = plain.bcast(problem)
    if problem is None:
        return remap(world, graph)
    if plain.Get_rank() == 0:
        print(f"topompi: {problem}; all pairs of ranks weigh the same: the given order stays", file=stderr, flush=True)
    return world


def _read(path: str, size: int) -> tuple[CommunicationGraph | None, str | None]:
    """The graph and None, or None and the reason why there is none."""
    try:
        return communication_graph(path, size), None
    except (ValueError, OSError) as error:
        return None, f"{error}"
