"""Generator of torus networks, including rings."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from ..fabric import Fabric
from .blueprint import DEFAULT_RATE, Blueprint, Cables, Integers, cables, check_at_least, check_size

__all__ = ["torus"]


def torus(
    dims: Sequence[int],
    hosts_per_switch: int = 1,
    rate: float = DEFAULT_RATE,
    name: str | None = None,
    *,
    ports: int = 1,
) -> Fabric:
    """Make a torus of switches, of any number of dimensions, with the same number of hosts on each switch.

    A dimension of size 2 has one cable between its two switches, not two; a dimension of size 1 has none. Switches and
    hosts are numbered with the last dimension fastest; switch ``torus/1.0.3`` is at coordinates (1, 0, 3). Ports: hosts
    first, then for each dimension the port towards the higher coordinate and the port towards the lower one.

    :param dims: number of switches along each dimension.
    :param hosts_per_switch: number of hosts per switch, at least 1.
    :param rate: bandwidth of every link between switches in bytes/s.
    :param name: name of the fabric; by default ``torus 4x4x4``.
    :param ports: number of links between switches that a host can fill at the same time: its link is as many times as
        fast as one of them. Machines whose hosts contain the switch have up to two for each dimension.
    :raises FabricError: if a size, or the number of ports, is below 1.
    """
    check_at_least(1, "sizes", dims)
    check_at_least(1, "hosts per switch", [hosts_per_switch])
    check_at_least(1, "ports", [ports])
    switches = prod(dims)
    check_size(switches * hosts_per_switch, switches * len(dims))
    host = np.arange(switches * hosts_per_switch)
    first_switch = len(host)
    parts = [cables(host, first_switch + host // hosts_per_switch, 1, 1 + host % hosts_per_switch, ports * rate)]
    grid = np.arange(first_switch, first_switch + switches).reshape(dims)
    for axis in range(len(dims)):
        parts.append(_rings(grid, axis, hosts_per_switch + 1 + 2 * axis, rate))
    names = tuple("torus/" + ".".join(map(str, place)) for place in np.ndindex(*dims))
    drawn = Blueprint(len(host), names, Cables.join(parts))
    return drawn.build(name or f"torus {'x'.join(map(str, dims))}")


def _rings(grid: Integers, axis: int, port: int, rate: float) -> Cables:
    """Make the cables along one dimension, from ``port`` of each switch to ``port + 1`` of the next higher switch.

    :param grid: vertex of each switch, shape ``dims``.
    :param axis: number of the dimension.
    :param port: port number towards the higher coordinate.
    :param rate: bandwidth in bytes/s.
    """
    size = grid.shape[axis]
    # With two switches, the cables up and down are the same; with one switch there is none.
    begins = size if size > 2 else size - 1
    lower = np.take(grid, np.arange(begins), axis=axis)
    upper = np.take(grid, (np.arange(begins) + 1) % size, axis=axis)
    return cables(lower, upper, port, port + 1, rate)
