"""The machine on which mappers place ranks, made from a job's topology."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..mapping.distances import Distances, DistanceTable, Torus, Tree
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
    """The machine of a job: its hosts with their slots, how far apart they are, and the routes between them.

    The distance is the switches crossed, 0 within a host: as the levels of the cluster tree where these say exactly
    that, as they do for fat trees, else as a table. On a fabric that is cabled as a torus or a mesh, with one
    host a switch, it is the links between two switches, as tori are counted.

    :param interface: the job's hosts and the ranks on them.
    :param slots: of each host, or one number for all; by default the ranks that the interface has on it.
    :param hosts: the order in which slots are numbered; by default the interface's.
    :param routes: whether to keep the routes, for the load of links.
    :raises MachineError: for hosts that are not the interface's, or another number of slots than of hosts.
    Cost: a distance for each pair of hosts; the links of their routes when they are asked for.
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
    """Where each of these hosts stands in the interface."""
    number = {host: at for at, host in enumerate(interface.hosts)}
    if set(names) != set(number) or len(names) != len(number):
        strange = next((name for name in names if name not in number), f"{len(names)} names")
        raise MachineError(f"machine: expecting the {len(number)} hosts of the job in some order, got {strange}")
    return np.array([number[name] for name in names], dtype=np.int64)


def _hops(interface: TopologyInterface) -> NDArray[np.int16]:
    """Switches crossed between two hosts, the larger number of the two directions; without a route as in the tree."""
    hops = np.where(interface.hop_matrix < 0, np.int16(UNREACHABLE), interface.hop_matrix)
    return np.maximum(hops, hops.T)


def _tree(interface: TopologyInterface, order: NDArray[np.int64]) -> Distances | None:
    """The levels of the cluster tree, None where two hosts are nearer than their cluster is wide."""
    tree = interface.tree
    inwards = [*tree.cuts.tolist(), 0] if tree.depth else [0, 0]
    found = Tree(tree.clusters[1 : max(tree.depth, 1)][:, order].astype(np.int64), np.array(inwards, dtype=np.int64))
    return found if _says(found, _hops(interface), order) else None


def _says(distances: Distances, hops: NDArray[np.int16], order: NDArray[np.int64]) -> bool:
    """Whether these distances are those of a table whose hosts stand in another order; a row at a time."""
    every = np.arange(len(order))
    return all(
        (distances.between(np.asarray(row), every) == hops[order[row], order]).all() for row in range(len(order))
    )


def _torus(interface: TopologyInterface, order: NDArray[np.int64]) -> Distances | None:
    """Places on the torus or mesh that the switches are cabled as; None for others, and for several hosts a switch.

    Also None where the routes are not its shortest ways.
    """
    if interface.routes is None or interface.host_routes is None:
        return None
    torus, leaf = interface.routes.fabric.torus, interface.host_routes.leaf[order]
    if torus is None or len(np.unique(leaf)) < len(order) or (leaf < 0).any():
        return None
    found = Torus(torus.dims, torus.wrap, torus.coordinates[leaf])
    links = _hops(interface) - 1  # one switch more is crossed than links between switches
    np.fill_diagonal(links, 0)
    return found if _says(found, links, order) else None
