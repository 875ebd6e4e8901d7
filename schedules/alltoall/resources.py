"""The resources that a transfer between hosts occupies: its sender, its receiver, and links between switches."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..network import Network
from .edgecolouring import colour
from .leafroutes import between_switches

__all__ = ["coloured", "divided", "loads", "occupied"]

Integers = NDArray[np.int64]


def occupied(network: Network, source: Integers, destination: Integers) -> Integers:
    """The resources of each transfer, shape (transfers, resources), padded with -1.

    With n hosts, resource h is the sending side of host h, n + h its receiving side, and 2 n + l is link l, which joins
    two switches.

    :param network: the job's network.
    :param source: sending host of each transfer, shape (transfers,).
    :param destination: receiving host of each transfer, shape (transfers,).
    """
    hosts = network.num_hosts
    links = between_switches(network.links[source, destination]).astype(np.int64)
    return np.column_stack((source, hosts + destination, np.where(links >= 0, links + 2 * hosts, -1)))


def loads(uses: Integers) -> Integers:
    """The number of transfers that use each resource, shape (resources,)."""
    return np.bincount(uses[uses >= 0])


def divided(uses: Integers, places: Integers) -> Integers:
    """Split each resource into parts, and deal its transfers to the parts in turn.

    Return the part of each resource that each transfer uses, numbered over all resources, in the shape of ``uses``.

    :param uses: resources of each transfer, shape (transfers, resources), padded with -1.
    :param places: number of parts of each resource, shape (resources,) or longer.
    Cost: one sort of the uses.
    """
    at = np.nonzero(uses >= 0)
    resource = uses[at]
    first, used = np.cumsum(places) - places, np.bincount(resource)
    order = np.argsort(resource, kind="stable")
    turn = np.empty(len(resource), dtype=np.int64)
    turn[order] = np.arange(len(resource)) - np.repeat(np.cumsum(used) - used, used)
    parts = uses.copy()
    parts[at] = first[resource] + turn % places[resource]
    return parts


def coloured(
    uses: Integers, order: NDArray[np.intp], steps: int, *, seed: int, patience: int | None = None
) -> Integers:
    """Assign steps to transfers so that transfers of one step share no resource, see ``edgecolouring.colour``.

    :param uses: resources of each transfer, shape (transfers, resources), padded with -1.
    :param order: indices of the transfers in the order in which they are placed, shape (transfers,).
    :param steps: number of steps at the start, at least the largest number of transfers of one resource.
    :param seed: seed of the random choices among equals.
    :param patience: number of displacements without progress before a step is added, see ``edgecolouring.colour``.
    """
    listed = [tuple(one for one in of if one >= 0) for of in uses[order].tolist()]
    step = np.empty(len(uses), dtype=np.int64)
    step[order] = colour(listed, int(uses.max(initial=-1)) + 1, steps, seed=seed, patience=patience)
    return step
