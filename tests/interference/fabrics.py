"""Fabrics, graphs and placements for the tests of interference, drawn by Hypothesis."""

import json
from math import prod
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

from topompi.machine.interference.placement import place
from topompi.machine.jobs import Cluster
from topompi.mapping.graph import CommunicationGraph
from topompi.topology import Routes, load
from topompi.topology.computed import compute_routes
from topompi.topology.sources import fabricjson
from topompi.topology.synthetic.trees import fat_tree
from topompi.views.cluster import cluster_of, node_hosts

LINK = 1.25e9  # bytes/s, the source's 10 Gbit/s


def tree(children, parents):
    """An XGFT of the source's links."""
    return fat_tree(children, parents, rate=LINK)


def machine(children, parents) -> Cluster:
    """The cluster of an XGFT's hosts."""
    return cluster_of(routed(children, parents))


def hosts_of(placement, fabric, size):
    """The hosts of a job alone on a fabric."""
    routes = compute_routes(fabric)
    cluster = cluster_of(routes)
    return node_hosts(cluster, fabric)[place(cluster, {"job": size}, placement)["job"]]


def shuffled(spec, seed, folder) -> Path:
    """The file of a synthetic fabric whose hosts are at random leaf switches."""
    document = json.loads(fabricjson.write(load(spec).fabric))
    places = np.random.default_rng(seed).permutation(len(document["hosts"])).tolist()
    links = document["links"]
    for end in ("source", "target"):
        links[end] = [places[one] if one < len(places) else one for one in links[end]]
    path = folder / "fabric.json"
    path.write_text(json.dumps(document))
    return path


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
