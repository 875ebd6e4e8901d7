"""Conversion of a job's topology into the machine on which mappers place ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..mapping.distances import Distances, DistanceTable, TorusDistances, TreeDistances
from ..mapping.machine import Machine, MachineError
from ..topology import TopologyInterface
from ..topology.tree import UNREACHABLE
from .network import network_of

__all__ = ["machine_of"]


def machine_of(
    interface: TopologyInterface,
    slots: ArrayLike | None = None,
    hosts: Sequence[str] | None = None,
    *,
    routes: bool = True,
) -> Machine:
    """Make the mappers' machine of a job: its hosts with slots, their distances, and the routes between them.

    The distance of two hosts is the number of switches crossed, 0 within a host. It is stored as levels of the cluster
    tree if these give the exact distances, as in fat trees, else as a table. But in a torus or mesh with one host per
    switch, the distance is the number of links between the two switches.

    :param interface: the job's hosts and the ranks on them.
    :param slots: number of slots (places for ranks) of each host, shape (hosts,), or one number for all hosts; by
        default the number of ranks on each host.
    :param hosts: names of the hosts, in the order in which slots are numbered; by default the interface's order.
    :param routes: whether the machine contains the routes, from which the loads of links are computed.
    :raises MachineError: if ``hosts`` are not the interface's hosts, or ``slots`` has another length.
    Cost: a distance for each pair of hosts; the links of their routes are computed when they are first used.
    """
    names = interface.hosts if hosts is None else tuple(hosts)
    order = _order(interface, names)
    ranks = np.bincount(interface.rank_host, minlength=interface.num_hosts)[order]
    count = ranks if slots is None else np.asarray(slots, dtype=np.int64)
    if count.ndim == 0:
        count = np.full(len(names), int(count))
    distances = _torus(interface, order) or _tree(interface, order)
    if distances is None:
        distances = DistanceTable(_hops(interface)[np.ix_(order, order)].astype(np.int64))
    machine = Machine(names, count.astype(np.int64), distances)
    if not routes:
        return machine
    network = network_of(interface)
    paths = network.paths
    placed = paths[np.ix_(order, order)] if isinstance(paths, np.ndarray) else paths.part(order)
    return replace(machine, routes=placed, capacity=network.capacity)


def _order(interface: TopologyInterface, names: Sequence[str]) -> NDArray[np.int64]:
    """Find the position in the interface of each named host, shape (n,)."""
    number = {host: at for at, host in enumerate(interface.hosts)}
    if set(names) != set(number) or len(names) != len(number):
        strange = next((name for name in names if name not in number), f"{len(names)} names")
        raise MachineError(f"machine: expecting the {len(number)} hosts of the job in some order, got {strange}")
    return np.array([number[name] for name in names], dtype=np.int64)


def _hops(interface: TopologyInterface) -> NDArray[np.int16]:
    """Number of switches crossed between each two hosts, in the direction with more, shape (n, n).

    The number is UNREACHABLE if two hosts have no route, as in the cluster tree.
    """
    hops = np.where(interface.hop_matrix < 0, np.int16(UNREACHABLE), interface.hop_matrix)
    return np.maximum(hops, hops.T)


def _tree(interface: TopologyInterface, order: NDArray[np.int64]) -> Distances | None:
    """Compute the distances as levels of the cluster tree; None if the levels do not give them exactly.

    :param interface: the job's topology.
    :param order: positions of the hosts in the interface, in the order of the result, shape (n,).
    """
    tree = interface.tree
    inwards = [*tree.cuts.tolist(), 0] if tree.depth else [0, 0]
    found = TreeDistances(
        tree.clusters[1 : max(tree.depth, 1)][:, order].astype(np.int64), np.array(inwards, dtype=np.int64)
    )
    return found if _says(found, _hops(interface), order) else None


def _says(distances: Distances, hops: NDArray[np.int16], order: NDArray[np.int64]) -> bool:
    """Whether distances, stored as a tree or a torus, equal a table of distances, compared row by row to save memory.

    :param distances: distances between the hosts, which are in the order that ``order`` gives.
    :param hops: table of distances, with the hosts in the interface's order, shape (n, n).
    :param order: position in the table of each host of ``distances``, shape (n,).
    """
    every = np.arange(len(order))
    return all(
        (distances.between(np.asarray(row), every) == hops[order[row], order]).all() for row in range(len(order))
    )


def _torus(interface: TopologyInterface, order: NDArray[np.int64]) -> Distances | None:
    """Compute the distances as coordinates on the torus or mesh of the switches; None for other networks.

    The result is None also if a switch has several hosts, or the routes are not shortest paths of the torus.

    :param interface: the job's topology.
    :param order: positions of the hosts in the interface, in the order of the result, shape (n,).
    """
    if interface.routes is None or interface.host_routes is None:
        return None
    torus, leaf = interface.routes.fabric.torus, interface.host_routes.leaf[order]
    if torus is None or len(np.unique(leaf)) < len(order) or (leaf < 0).any():
        return None
    found = TorusDistances(torus.dims, torus.wrap, torus.coordinates[leaf])
    links = _hops(interface) - 1  # a route crosses one switch more than links between switches
    np.fill_diagonal(links, 0)
    return found if _says(found, links, order) else None
