"""Mappings of graphs that are trees: subtrees stay together, because ranks are placed in depth-first order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..graph import CommunicationGraph
from ..machine import Machine
from ..mapping import Mapping, MappingError
from .grids import heavy_parts
from .levels import tree_order

__all__ = ["branches"]

Integers = NDArray[np.int64]


def branches(graph: CommunicationGraph, machine: Machine) -> Mapping:
    """Place the ranks of a tree depth first on the hosts of one cluster after another, small subtrees first.

    Edges are those of the graph, or its heavy ones alone if these form a tree.

    :param graph: communication graph, with a vertex per rank.
    :param machine: hosts with their slots and distances.
    :raises MappingError: if the graph is no tree, or there are too few slots.
    """
    if graph.size > machine.num_slots:
        raise MappingError(f"branches: expecting slots for {graph.size} ranks, got {machine.num_slots}")
    for part in heavy_parts(graph.undirected()):
        if len(part.targets) == 2 * (graph.size - 1) > 0:
            order = _depth_first(part.offsets, part.targets)
            if order is not None:
                slot = np.empty(graph.size, dtype=np.int64)
                slot[order] = np.argsort(tree_order(machine)[machine.slot_host], kind="stable")[: graph.size]
                return Mapping.of(slot, machine.hosts, machine.slots)
    raise MappingError("branches: expecting a graph that is a tree, got another one")


def _depth_first(offsets: Integers, targets: Integers) -> Integers | None:
    """The ranks depth first from an end of a longest path, small subtrees first; None if not all are reached.

    :param offsets: index of each rank's first neighbour, and the end, shape (n + 1,).
    :param targets: neighbours, shape (2 n - 2,).
    """
    near = [part.tolist() for part in np.split(targets, offsets[1:-1])]
    reached, _ = _breadth_first(near, 0)
    reached, parent = _breadth_first(near, reached[-1])
    if len(reached) < len(near):
        return None
    below = [1] * len(near)
    for rank in reached[:0:-1]:
        below[parent[rank]] += below[rank]
    order, stack = [], [reached[0]]
    while stack:
        order.append(stack.pop())
        children = [rank for rank in near[order[-1]] if rank != parent[order[-1]]]
        stack += sorted(children, key=lambda rank: below[rank], reverse=True)
    return np.array(order, dtype=np.int64)


def _breadth_first(near: list[list[int]], start: int) -> tuple[list[int], list[int]]:
    """The ranks in the order in which they are reached, and the rank from which each is reached, -1 for the first."""
    parent, reached = [-1] * len(near), [start]
    seen = {start}
    for rank in reached:
        for other in near[rank]:
            if other not in seen:
                seen.add(other)
                parent[other] = rank
                reached.append(other)
    return reached, parent
