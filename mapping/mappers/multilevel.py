"""Mappers that partition: single step, top down (scheme 1) and hosts first (scheme 2) of Subramoni 2013, section 5."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..distances import TreeDistances
from ..graph import CommunicationGraph, Undirected
from ..machine import Machine
from ..mapping import Mapping, MappingError
from ..partition import Metis, Partitioner, partition, repair, subgraph
from .levels import cluster_levels

__all__ = ["contract", "fill", "hosts_first", "scheme1", "scheme2", "single_step", "top_down", "with_empty"]

Integers = NDArray[np.int64]
MANY_RANKS = 2500


def single_step(
    graph: CommunicationGraph,
    machine: Machine,
    seed: int = 0,
    *,
    partitioner: Partitioner | None = None,
    tries: int = 1,
    weight: str = "volume",
) -> Mapping:
    """Partition the ranks into one part per host; host i gets the partitioner's part i.

    :param graph: communication graph, with a vertex per rank.
    :param machine: hosts with their slots and distances.
    :param seed: seed of the random numbers; equal seeds give equal mappings.
    :param partitioner: partitioner; by default METIS.
    :param tries: number of partitions tried, of which the one with the least cut counts.
    :param weight: weight of the edges, see `CommunicationGraph.undirected`.
    """
    full = with_empty(graph, machine, weight)
    return fill(
        partition(full, machine.slots, seed, partitioner or Metis(cuts=1), tries),
        graph,
        machine,
    )


def scheme1(
    graph: CommunicationGraph,
    machine: Machine,
    seed: int = 0,
    *,
    partitioner: Partitioner | None = None,
    tries: int | None = None,
    weight: str = "volume",
) -> Mapping:
    """Partition the ranks top down: among the clusters of the coarsest level, then within each, down to hosts.

    :param graph: communication graph, with a vertex per rank.
    :param machine: hosts with their slots and distances.
    :param seed: seed of the random numbers; equal seeds give equal mappings.
    :param partitioner: partitioner; by default METIS.
    :param tries: number of partitions tried for each cluster, of which the one with the least cut counts; by default 8,
        or 1 for more than 2,500 ranks or if the machine is no tree.
    :param weight: weight of the edges, see `CommunicationGraph.undirected`.
    """
    full = with_empty(graph, machine, weight)
    return fill(
        top_down(
            full, machine.slots, cluster_levels(machine), seed, partitioner or Metis(), _tries(graph, machine, tries)
        ),
        graph,
        machine,
    )


def scheme2(
    graph: CommunicationGraph,
    machine: Machine,
    seed: int = 0,
    *,
    partitioner: Partitioner | None = None,
    tries: int = 1,
    weight: str = "volume",
) -> Mapping:
    """Partition the ranks into groups as large as hosts, then map each group as a whole top down.

    :param graph: communication graph, with a vertex per rank.
    :param machine: hosts with their slots and distances.
    :param seed: seed of the random numbers; equal seeds give equal mappings.
    :param partitioner: partitioner; by default METIS.
    :param tries: number of partitions tried, of which the one with the least cut counts.
    :param weight: weight of the edges, see `CommunicationGraph.undirected`.
    """
    full = with_empty(graph, machine, weight)
    return fill(hosts_first(full, machine, seed, partitioner or Metis(), tries), graph, machine)


def _tries(graph: CommunicationGraph, machine: Machine, asked: int | None) -> int:
    """The number of tries: the requested one, else 8, but 1 with many ranks or if the machine is no tree.

    One try is enough there, because partitions of many ranks take long, and on machines other than trees the result is
    only the start of a further search.
    """
    if asked is not None:
        return asked
    return 8 if graph.size <= MANY_RANKS and isinstance(machine.distances, TreeDistances) else 1


def with_empty(graph: CommunicationGraph, machine: Machine, weight: str = "volume") -> Undirected:
    """The symmetric graph, with a further rank without edges for each empty slot.

    :param graph: communication graph, with a vertex per rank.
    :param machine: hosts with their slots, at least one per rank.
    :param weight: weight of the edges, see `CommunicationGraph.undirected`.
    :raises MappingError: if there are fewer slots than ranks.
    """
    if graph.size > machine.num_slots:
        raise MappingError(f"mapping: expecting slots for {graph.size} ranks, got {machine.num_slots}")
    plain = graph.undirected(weight)
    empty = np.full(machine.num_slots - graph.size, plain.offsets[-1])
    return Undirected(np.r_[plain.offsets, empty], plain.targets, plain.weight)


def fill(host: Integers, graph: CommunicationGraph, machine: Machine) -> Mapping:
    """Make the mapping that puts each rank on its host.

    :param host: host of each rank, then of each empty slot, shape (slots,).
    :param graph: communication graph, of which only the number of ranks is used.
    :param machine: hosts with their slots.
    """
    return Mapping.on_hosts(host[: graph.size], machine)


def top_down(graph: Undirected, slots: Integers, levels: Integers, seed: int, by: Partitioner, tries: int) -> Integers:
    """Partition vertices among the clusters of each level in turn, down to hosts; return the host of each, shape (n,).

    :param graph: symmetric graph with a vertex per slot.
    :param slots: number of slots of each host, shape (hosts,); their sum is the number of vertices.
    :param levels: cluster of each host at each level, coarsest first, shape (levels, hosts).
    :param seed: seed of the partitioner's random numbers.
    :param by: partitioner.
    :param tries: number of partitions tried for each cluster, of which the one with the least cut counts.
    """
    host = np.zeros(len(graph.offsets) - 1, dtype=np.int64)
    order = np.vstack([levels, np.arange(len(slots))])
    _descend(graph, np.arange(len(host)), np.flatnonzero(slots), (slots, order, seed, by, tries), 0, host)
    return host


def _descend(
    graph: Undirected,
    vertices: Integers,
    hosts: Integers,
    task: tuple[Integers, Integers, int, Partitioner, int],
    level: int,
    host: Integers,
) -> None:
    """Map the vertices of a graph to some hosts, and write each vertex's host into ``host``.

    :param graph: symmetric graph of these vertices.
    :param vertices: number of each of these vertices in ``host``.
    :param hosts: hosts that they may take.
    :param task: slots of each host, clusters of each host at each level, seed, partitioner and number of tries.
    :param level: level of clusters among which the vertices are divided next.
    :param host: host of each vertex of the whole graph; only the entries of ``vertices`` are written.
    """
    slots, order, seed, by, tries = task
    while level < len(order) and len(hosts) and (order[level][hosts] == order[level][hosts[0]]).all():
        level += 1
    if level == len(order):
        host[vertices] = hosts[0] if len(hosts) else 0
        return
    _, cluster = np.unique(order[level][hosts], return_inverse=True)
    sizes = np.bincount(cluster, slots[hosts]).astype(np.int64)
    part = partition(graph, sizes, seed, by, tries)
    for number in range(len(sizes)):
        inside = np.flatnonzero(part == number)
        _descend(subgraph(graph, inside), vertices[inside], hosts[cluster == number], task, level + 1, host)


def hosts_first(graph: Undirected, machine: Machine, seed: int, by: Partitioner, tries: int) -> Integers:
    """Partition the vertices into groups as large as hosts, and map each group as one vertex by ``top_down``.

    If hosts differ in size, single vertices then move until each host has as many as it has slots. Return the host of
    each vertex, shape (n,).

    :param graph: symmetric graph with a vertex per slot.
    :param machine: hosts with their slots and distances.
    :param seed: seed of the partitioner's random numbers.
    :param by: partitioner.
    :param tries: number of partitions tried, of which the one with the least cut counts.
    """
    group = partition(graph, machine.slots, seed, by, tries)
    used = np.flatnonzero(machine.slots)
    number = np.cumsum(machine.slots > 0) - 1
    contracted = contract(graph, number[group], len(used))
    levels = cluster_levels(machine)[:, used]
    place: Integers = used[top_down(contracted, np.ones(len(used), dtype=np.int64), levels, seed, by, tries)]
    host: Integers = place[number[group]]
    if (np.bincount(host, minlength=machine.num_hosts) == machine.slots).all():
        return host
    distance = machine.distance(used[:, None], used[None, :]).astype(np.float64)
    mended: Integers = used[repair(graph, number[host], machine.slots[used], distance)]
    return mended


def contract(graph: Undirected, group: Integers, groups: int) -> Undirected:
    """Contract each group of vertices to one vertex; the weights of the edges between two groups are summed.

    :param graph: symmetric graph of n vertices.
    :param group: group of each vertex, shape (n,).
    :param groups: number of groups; some may be empty.
    """
    source, target = np.repeat(group, np.diff(graph.offsets)), group[graph.targets]
    key, inverse = np.unique((source * groups + target)[source != target], return_inverse=True)
    weight = np.bincount(inverse, graph.weight[source != target], len(key)).astype(np.float64)
    offsets = np.searchsorted(key, np.arange(groups + 1) * groups).astype(np.int64)
    return Undirected(offsets, key % groups, weight)
