"""The traffic that jobs of a workload send, as streams: drawn by seed or given by columns, on the nodes of a job."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..jobs import Cluster, Workload
from ..jobs.isolation import TableRoutes
from .errors import InterferenceError

__all__ = [
    "PATTERNS",
    "STATES",
    "Demands",
    "Stream",
    "StreamLinks",
    "demands_of",
    "network_of",
    "steps_of",
    "stream_of",
]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

PATTERNS = ("alltoall", "ring", "stencil", "random")
LEAST, MOST = 0.1, 0.5  # drawn shares of time in communication
STATES = 8  # more of them change speeds on random mixes by less than the model errs
INJECTIONS = (0.25, 0.5, 1.0)  # drawn rates, as parts of a node's link
_MIX = np.uint64(0x9E3779B97F4A7C15)  # splitmix64: G. Steele et al., OOPSLA 2014


@dataclass(frozen=True, eq=False)
class Demands:
    """The traffic of n jobs, as columns of shape (n,).

    :param pattern: index in ``PATTERNS`` of each job's pattern.
    :param communication: share of its time that each job communicates when it runs alone, from 0 to 1.
    :param injection: bytes/s that each node of a job sends while it communicates, on a network without contention.
    :param seed: seed of each job's own draws, for the pattern ``random``.
    """

    pattern: Integers
    communication: Floats
    injection: Floats
    seed: Integers


@dataclass(frozen=True, eq=False)
class StreamLinks:
    """The links of a cluster, as streams need them.

    :param routes: routes between the cluster's leaves and nodes.
    :param capacity: rate of each link in bytes/s, shape (links,).
    :param up: the link on which each node sends, shape (nodes,).
    :param down: the link on which each node receives, shape (nodes,).
    :param shares_nodes: whether several jobs may use a node's own links.
    """

    routes: TableRoutes
    capacity: Floats
    up: NDArray[np.int32]
    down: NDArray[np.int64]
    shares_nodes: bool


@dataclass(frozen=True, eq=False)
class Stream:
    """The traffic of a job on its nodes.

    :param links: links that other jobs may use, too, ascending.
    :param weight: number of the job's nodes that send over each of these links at a time, in the mean.
    :param peak: whole bytes/s over each of these links while the job communicates without contention, rounded down.
    :param demand: bytes/s that each node sends if no link of others limits it.
    :param communication: share of its time that the job communicates when it runs alone.
    :param ranks: permutation of the states of the network, shape (``STATES``,): the job communicates in as many of them
        as are its share of the time, in this order.
    """

    links: Integers
    weight: Floats
    peak: Integers
    demand: float
    communication: float
    ranks: Integers


def network_of(cluster: Cluster) -> StreamLinks:
    """Return the links of a cluster.

    :param cluster: cluster of a topology source.
    :raises InterferenceError: if the cluster has no routes, or the rate of a link is unknown.
    """
    if not isinstance(cluster.routes, TableRoutes):
        raise InterferenceError(f"{cluster.name}: expecting a topology source with routes, got leaves and pods")
    tables = cluster.routes.network
    if unknown := int(np.isnan(tables.rate).sum()):
        raise InterferenceError(f"{cluster.name}: expecting the rates of all links, got {unknown} unknown")
    adapters = tables.adapters[0]
    down = np.full(tables.first_switch, -1, dtype=np.int64)
    into = np.flatnonzero(tables.target < tables.first_switch)[::-1]
    down[tables.target[into]] = into
    return StreamLinks(
        cluster.routes, tables.rate, tables.uplink[adapters], down[adapters], cluster.node_slots is not None
    )


def demands_of(workload: Workload, rate: float, seed: int = 0) -> Demands:
    """Return the traffic of all jobs: that of the workload's columns, and draws for jobs and columns without a value.

    The columns are ``pattern`` (one of ``PATTERNS``), ``communication`` and ``injection``. Patterns and injections are
    drawn with equal chances, shares of communication uniformly. A job's draws depend on the seed and its number alone,
    so that they are the same under every policy, and for every part of a log.

    :param workload: the jobs.
    :param rate: bytes/s of a node's own link.
    :param seed: seed of the draws.
    :raises InterferenceError: if a column has a value of another kind.
    """
    draws = [_uniform(workload.number, seed, which) for which in range(3)]
    pattern = (draws[0] * len(PATTERNS)).astype(np.int64)
    share = LEAST + (MOST - LEAST) * draws[1]
    injection = rate * np.array(INJECTIONS)[(draws[2] * len(INJECTIONS)).astype(np.int64)]
    if "pattern" in workload.columns:
        pattern = _patterns(workload, pattern)
    share = _numbers(workload, "communication", share, 1.0)
    injection = _numbers(workload, "injection", injection, np.inf)
    return Demands(pattern, share, injection, workload.number + np.int64(seed) * 1_000_003)


def steps_of(pattern: int, size: int, seed: int) -> list[tuple[Integers, Integers]]:
    """Return the senders and receivers of each step of a pattern; a node sends one message in a step, or none.

    ``alltoall`` has the steps of a cyclic shift, ``ring`` sends to the next node, ``stencil`` to the neighbours on a
    nearly square open grid, ``random`` to the next node of a random ring.

    :param pattern: index in ``PATTERNS``.
    :param size: number of nodes, 2 or more.
    :param seed: seed of the random ring.
    """
    every, name = np.arange(size), PATTERNS[pattern]
    if name == "alltoall":
        return [(every, (every + by) % size) for by in range(1, size)]
    if name == "ring":
        return [(every, (every + 1) % size)]
    if name == "random":
        ring = np.random.default_rng(abs(seed)).permutation(size)
        return [(ring, np.roll(ring, -1))]
    width = int(np.ceil(np.sqrt(size)))
    column = every % width
    sides = ((1, (column < width - 1) & (every + 1 < size)), (-1, column > 0), (width, every + width < size))
    inside = [(by, every[there]) for by, there in (*sides, (-width, every >= width))]
    return [(nodes, nodes + by) for by, nodes in inside if len(nodes)]


def stream_of(network: StreamLinks, nodes: NDArray[np.integer], demands: Demands, job: int) -> Stream | None:
    """Return the stream of a job, or None if the job uses no link that others may use, too.

    Each of a node's messages takes an equal part of the time, and alternative routes (LMC) carry equal parts.

    :param network: the links.
    :param nodes: different nodes of the job, in the order in which the pattern numbers them, shape (n,).
    :param demands: traffic of all jobs.
    :param job: position of the job in these.
    Cost: for each pair of nodes that exchange messages; for ``alltoall`` all pairs.
    """
    size, routes = len(nodes), network.routes
    leaves, leaf = np.unique(routes.leaf[nodes], return_inverse=True)
    if size < 2 or not demands.communication[job] or (len(leaves) == 1 and not network.shares_nodes):
        return None
    steps = steps_of(int(demands.pattern[job]), size, int(demands.seed[job]))
    source, target = (np.concatenate(ends) for ends in zip(*steps, strict=True))
    pairs = np.bincount(leaf[source] * size + target, minlength=len(leaves) * size) / len(steps)
    between = routes.steps[leaves[:, None], nodes[None, :]].reshape(len(pairs), -1)
    each = np.repeat(pairs / routes.network.num_paths, between.shape[1])
    sends, receives = (np.bincount(ends, minlength=size) / len(steps) for ends in (source, target))
    link = np.concatenate((between.reshape(-1), network.up[nodes], network.down[nodes])) + 1
    loads = np.bincount(link, np.concatenate((each, sends, receives)), len(network.capacity) + 1)[1:]
    used: Integers = np.flatnonzero(loads)
    demand = min(float(demands.injection[job]), float((network.capacity[used] / loads[used]).min()))
    if not network.shares_nodes:
        used = np.setdiff1d(used, np.concatenate((network.up[nodes], network.down[nodes])), assume_unique=True)
    if not len(used):
        return None
    ranks = np.random.default_rng(abs(int(demands.seed[job])) + 1).permutation(STATES)
    weight = loads[used].astype(np.float64)
    peak = (weight * demand).astype(np.int64)
    return Stream(used, weight, peak, demand, float(demands.communication[job]), ranks)


def _uniform(number: Integers, seed: int, which: int) -> Floats:
    """Return a random number from 0 to below 1 for each job, by splitmix64 of its number, the seed and a counter."""
    with np.errstate(over="ignore"):
        mixed = number.astype(np.uint64) * np.uint64(3) + np.uint64(which)
        mixed = (mixed + np.uint64(seed) * np.uint64(0xD1B54A32D192ED03) + np.uint64(1)) * _MIX
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
        mixed ^= mixed >> np.uint64(31)
    drawn: Floats = (mixed >> np.uint64(11)) / 2.0**53
    return drawn


def _patterns(workload: Workload, drawn: Integers) -> Integers:
    """Return the patterns of the workload's column; drawn ones where it is empty."""
    column, known = workload["pattern"], {name: index for index, name in enumerate(PATTERNS)}
    given = [str(one) for one in column.tolist()]
    if wrong := next((one for one in given if one and one not in known), None):
        raise InterferenceError(f"{workload.name}: pattern: expecting one of {', '.join(PATTERNS)}, got {wrong!r}")
    return np.array([known.get(one, int(other)) for one, other in zip(given, drawn, strict=True)], dtype=np.int64)


def _numbers(workload: Workload, name: str, drawn: Floats, most: float) -> Floats:
    """Return the numbers of a column, of 0 to ``most``; drawn ones where it has none (NaN, or -1 in whole numbers)."""
    if name not in workload.columns:
        return drawn
    column = workload[name]
    if column.dtype.kind not in "if":
        raise InterferenceError(f"{workload.name}: {name}: expecting numbers, got {column.dtype}")
    given = column.astype(np.float64)
    given[given == -1] = np.nan
    wrong = np.flatnonzero((given < 0) | (given > most) | ((given == 0) & (most == np.inf)))
    if len(wrong):
        wanted = f"0 to {most:g}" if np.isfinite(most) else "more than 0 bytes/s"
        raise InterferenceError(f"{workload.name}: {name}: expecting {wanted}, got {given[wrong[0]]:g}")
    return np.where(np.isnan(given), drawn, given)
