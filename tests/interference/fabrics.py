"""Fabrics, graphs and placements for the tests of interference, drawn by Hypothesis."""

from __future__ import annotations

from math import prod

import numpy as np
from hypothesis import strategies as st

from topompi.mapping.graph import CommunicationGraph
from topompi.topology import Routes, load
from topompi.topology.synthetic.trees import fat_tree

LINK = 1.25e9  # bytes/s, the source's 10 Gbit/s


def tree(children, parents):
    """An XGFT of the source's links."""
    return fat_tree(children, parents, rate=LINK)


def routed(children, parents) -> Routes:
    """An XGFT with its routes."""
    lists = ",".join(map(str, children)), ",".join(map(str, parents))
    return load(f"XGFT({len(children)}; {lists[0]}; {lists[1]})").routes


@st.composite
def shapes(draw, most_hosts=64, least_height=1):
    """Children and parents of an XGFT whose hosts have one parent."""
    height = draw(st.integers(least_height, 3))
    children = [draw(st.integers(2, 4)) for _ in range(height)]
    while prod(children) > most_hosts:
        children[children.index(max(children))] -= 1
    return children, [1, *(draw(st.integers(1, 4)) for _ in range(height - 1))]


@st.composite
def jobs(draw, hosts, most=12):
    """A job's graph, and a host for each of its ranks."""
    ranks = draw(st.integers(1, min(hosts, most)))
    ends = st.integers(0, ranks - 1)
    rows = draw(st.lists(st.tuples(ends, ends, st.integers(0, 10**9)), max_size=40))
    columns = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    placed = draw(st.permutations(range(hosts)))[:ranks]
    return CommunicationGraph.from_arrays(ranks, *columns), np.array(placed)
