"""What a transfer between hosts occupies: its sender, its receiver, and the links between switches on its route."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..network import Network
from .edgecolouring import colour
from .leafroutes import between_switches

__all__ = ["coloured", "divided", "loads", "occupied"]

Integers = NDArray[np.int64]


def occupied(network: Network, source: Integers, destination: Integers) -> Integers:
    """Resources of each transfer, shape (transfers, resources), padded with -1.

    Resource h is host h's sending, n + h its receiving, 2 n + l link l, where it joins two switches.

    :param network: the job's network.
    :param source: sending host of each transfer, shape (transfers,); likewise ``destination``.
    """
    hosts = network.num_hosts
    links = between_switches(network.links[source, destination]).astype(np.int64)
    return np.column_stack((source, hosts + destination, np.where(links >= 0, links + 2 * hosts, -1)))


def loads(uses: Integers) -> Integers:
    """Transfers that use each resource, shape (resources,)."""
    return np.bincount(uses[uses >= 0])


def divided(uses: Integers, places: Integers) -> Integers:
    """Each resource divided into parts that take its transfers in turn; shape as ``uses``, numbered anew.

    :param places: into how many each resource is divided, shape (resources,) or longer.
    Cost: a sort of the uses.
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
    """Step of each transfer such that none of a step use a common resource, see ``edgecolouring.colour``.

    :param uses: resources of each transfer, shape (transfers, resources), padded with -1.
    :param order: in which the transfers are placed, shape (transfers,).
    :param steps: how many there are at first; no fewer than any resource has uses.
    :param seed: of the choices among equals.
    :param patience: as in ``edgecolouring.colour``.
    """
    listed = [tuple(one for one in of if one >= 0) for of in uses[order].tolist()]
    step = np.empty(len(uses), dtype=np.int64)
    step[order] = colour(listed, int(uses.max(initial=-1)) + 1, steps, seed=seed, patience=patience)
    return step
