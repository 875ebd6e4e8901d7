"""Bytes, steps and simulated times of allreduces on the allocations of Leonardo's jobs, one rank per node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from studies.leonardo.machine import cluster_from, job_nodes
from topompi.inputs.figures import size_name
from topompi.machine.interference.network import shared_network
from topompi.machine.jobs import Cluster
from topompi.netsim import Tables
from topompi.schedules import Network, Schedule, make
from topompi.schedules.symmetric.allreduce import allreduce_halving
from topompi.views.program import wiring_of

from .fabrics import program_of_call, simulated

__all__ = ["LEAST", "bytes_of", "head_of_times", "times_of"]

LEAST = 64  # nodes of a job
LATENCY = 0.1e-6  # seconds of each link
BYTES = (
    "algorithm",
    "saved: mean",
    "least",
    "10 %",
    "median",
    "90 %",
    "steps over 2 ceil(log2 p)",
    "messages of a rank in a step",
)
FAMILIES = ("ring", "halving", "swing", "grouped")

Nodes = NDArray[np.int64]


def allocations(nodemap: str | Path, lists: str | Path) -> tuple[Cluster, list[Nodes]]:
    """The cluster, and the nodes of each job of `LEAST` nodes and more."""
    cluster = cluster_from(nodemap)
    return cluster, [nodes for nodes in job_nodes(lists, cluster).values() if len(nodes) >= LEAST]


def network_on(cluster: Cluster, nodes: Nodes) -> Network:
    """The network of a job, ranks in the order of its nodes; a path inside a cell crosses up to three switches."""
    leaf = np.searchsorted(cluster.leaf_start, nodes, side="right")
    cell = np.searchsorted(cluster.pod_start, leaf - 1, side="right")
    shared = (cell[:, None] == cell).astype(np.int16) + (leaf[:, None] == leaf)
    hops = np.where(np.eye(len(nodes), dtype=bool), 0, np.array([4, 3, 1])[shared]).astype(np.int16)
    tables = shared_network(cluster, latency=LATENCY).part(nodes)
    return Network(
        np.arange(len(nodes)), hops, tables, tables.rate, np.stack((cell, leaf)).astype(np.int64), tables.latency
    )


def between(schedule: Schedule, cell: Nodes) -> float:
    """The vectors that a schedule sends between cells."""
    rows = schedule.messages
    across = rows[cell[schedule.source[rows]] != cell[schedule.destination[rows]]]
    return float(schedule.count[across].sum() / schedule.blocks)


def bytes_of(nodemap: str, lists: str) -> Iterator[list[str]]:
    """Yield the share of bytes between cells that each family saves of halving's in rank order, and its steps."""
    cluster, jobs = allocations(nodemap, lists)
    saved: dict[str, list[float]] = {name: [] for name in (*FAMILIES, "least possible")}
    steps: dict[str, list[int]] = {name: [] for name in FAMILIES}
    most: dict[str, list[int]] = {name: [] for name in FAMILIES}
    for nodes in jobs:
        network = network_on(cluster, nodes)
        size, cell = network.num_ranks, network.clusters[0]
        plain = between(allreduce_halving(size), cell)
        saved["least possible"].append(1 - 2 * (len(np.unique(cell)) - 1) / plain)
        for name in FAMILIES:
            schedule = make("allreduce", name, network)
            rows = schedule.messages
            saved[name].append(1 - between(schedule, cell) / plain)
            steps[name].append(len(np.unique(schedule.step[rows])) - 2 * (size - 1).bit_length())
            most[name].append(int(np.bincount(schedule.step[rows] * size + schedule.source[rows]).max()))
    for name, shares in saved.items():
        cells = (np.mean(shares), min(shares), *np.quantile(shares, (0.1, 0.5, 0.9)))
        counts = [_spread(steps[name]), _spread(most[name])] if name in steps else ["", ""]
        yield [f"`{name}`" if name in steps else name, *(f"{one:.1%}" for one in cells), *counts]


def _spread(numbers: Sequence[int]) -> str:
    return f"{min(numbers)}, {np.median(numbers):.0f}, {max(numbers)}"


def times_of(nodemap: str, lists: str, sizes: Sequence[int], every: int) -> Iterator[list[str]]:
    """Yield how many times as fast as the faster of ring and halving each family is, by flows.

    :param nodemap: file of the node map.
    :param lists: archive of the lists of nodes.
    :param sizes: sizes of the vector in bytes.
    :param every: distance of the simulated jobs in the list; 9 simulates every ninth job.
    """
    cluster, jobs = allocations(nodemap, lists)
    networks = [network_on(cluster, nodes) for nodes in jobs[::every]]
    times = {name: np.array([[_seconds(name, one, size) for size in sizes] for one in networks]) for name in FAMILIES}
    former = np.minimum(times["ring"], times["halving"])
    for name in FAMILIES:
        ratios = former / times[name]
        means = np.exp(np.log(ratios).mean(axis=0))
        yield [f"`{name}`", *map(_range, means, ratios.min(axis=0), ratios.max(axis=0))]


def _range(mean: float, least: float, most: float) -> str:
    return f"{mean:.2f} ({least:.2f} .. {most:.2f})"


def _seconds(name: str, network: Network, nbytes: int) -> float:
    tables = wiring_of(network)
    assert isinstance(tables, Tables)
    return simulated(program_of_call(name, network, nbytes), tables, "flows")


def head_of_times(sizes: Sequence[int]) -> list[str]:
    """The head of the table of times."""
    return ["algorithm", *map(size_name, sizes)]
