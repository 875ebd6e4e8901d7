"""The least time in which every host sends data to every other one over any routes: distances, linear programs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize
from scipy.sparse import csr_array, eye_array, kron, vstack
from scipy.sparse.csgraph import shortest_path

from .cuts import Graph

__all__ = ["concurrent_flow", "distance_bound"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

linprog: Any = optimize.linprog  # its stubs know no sparse arrays
MOST_VARIABLES = 8000  # places with hosts, times links between vertices; more take more than a second


def _between(graph: Graph) -> tuple[Integers, Integers, Floats, Integers]:
    """The edges between switches (and hosts on several of them), merged: tail, head, rate, and each edge's number."""
    tail, head = graph.home[graph.tail], graph.home[graph.head]
    apart = np.flatnonzero(tail != head)
    keys, number = np.unique(tail[apart] * graph.vertices + head[apart], return_inverse=True)
    merged = np.full(len(tail), -1, dtype=np.int64)
    merged[apart] = number
    tails, heads = np.divmod(keys, graph.vertices)
    rate = np.bincount(number, graph.rate[apart], len(keys)).astype(np.float64)
    return tails, heads, rate, merged


def distance_bound(graph: Graph, weight: Floats) -> tuple[float, Floats]:
    """The bytes of all pairs times the links on their shortest paths between switches, over the rate of these links.

    :param graph: the graph.
    :param weight: ranks of each host, shape (hosts,); ranks send one byte to each other.
    :returns: the bound in seconds, and the price of each edge in seconds per byte, shape (edges,).
    """
    tail, head, rate, merged = _between(graph)
    if not len(rate):
        return 0.0, np.zeros(len(graph.rate))
    size = graph.vertices
    here = np.bincount(graph.home[: graph.hosts], weight, size)
    places = np.flatnonzero(here)
    # Integers of 32 bits, because not all versions of scipy find shortest paths with longer ones.
    ends = tail.astype(np.int32), head.astype(np.int32)
    matrix = csr_array((np.ones(len(tail)), ends), shape=(size, size))
    hops = shortest_path(matrix, unweighted=True, indices=places)[:, places]
    return float(here[places] @ hops @ here[places] / rate.sum()), (merged >= 0) / rate.sum()


def concurrent_flow(graph: Graph, weight: Floats) -> tuple[float, Floats] | None:
    """The least time between switches by a linear program, with prices that prove it; None if it is too large.

    The variables are the bytes from each place with hosts on each link, and the time (Shahrokhi and Matula 1990).

    :param graph: the graph.
    :param weight: ranks of each host, shape (hosts,); ranks send one byte to each other.
    :returns: the time in seconds, and the price of each edge in seconds per byte, shape (edges,).
    """
    tail, head, rate, merged = _between(graph)
    size, edges = graph.vertices, len(rate)
    here = np.bincount(graph.home[: graph.hosts], weight, size)
    places = np.flatnonzero(here)
    if not edges or len(places) * edges > MOST_VARIABLES:
        return None
    every, unit = np.arange(edges), rate.max()
    enters = csr_array((np.ones(edges), (head, every)), shape=(size, edges))
    leaves = csr_array((np.ones(edges), (tail, every)), shape=(size, edges))
    kept = kron(eye_array(len(places)), enters - leaves, format="csr")
    needed = np.outer(here[places], here)
    needed[np.arange(len(places)), places] -= needed.sum(axis=1)
    used = np.flatnonzero(np.tile(np.bincount(np.concatenate((tail, head)), minlength=size) > 0, len(places)))
    time = csr_array((len(used), 1))
    total = kron(np.ones((1, len(places))), eye_array(edges), format="csr")
    objective = np.zeros(kept.shape[1] + 1)
    objective[-1] = 1
    found = linprog(
        objective,
        A_ub=_beside(total, csr_array(-(rate / unit)[:, None])),
        b_ub=np.zeros(edges),
        A_eq=_beside(kept[used], time),
        b_eq=needed.ravel()[used],
        method="highs",
    )
    if found.status:
        return None
    prices = np.append(-found.ineqlin.marginals / unit, 0.0)[merged]
    return float(found.fun) / unit, prices


def _beside(left: csr_array, right: csr_array) -> csr_array:
    return csr_array(vstack([left.T, right.T]).T)
