"""The alltoalls of a pencil FFT: who exchanges with whom, all rows of the process grid at once, then all columns."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from ..network import Network
from ..schedule import Schedule
from .joint import all_joint

__all__ = ["Pencils", "grid_groups", "pencil_grid", "pencils", "squarest"]

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Pencils:
    """Schedules of a process grid whose rank r * columns + c stands at (r, c).

    :param rows: alltoall of each row of ranks; within row r the rank at (r, c) is rank c.
    :param columns: alltoall of each column of ranks; within column c the rank at (r, c) is rank r.
    """

    rows: tuple[Schedule, ...]
    columns: tuple[Schedule, ...]


def grid_groups(rows: int, columns: int) -> tuple[tuple[Integers, ...], tuple[Integers, ...]]:
    """The ranks of each row and of each column of a process grid whose rank r * columns + c stands at (r, c).

    P3DFFT transposes within rows from X to Y pencils and within columns from Y to Z pencils, and back: four alltoalls
    for a forward and a backward transform (D. Pekurovsky, P3DFFT: a framework for parallel computations of Fourier
    transforms in three dimensions, 2012).
    """
    grid = np.arange(rows * columns).reshape(rows, columns)
    return tuple(grid), tuple(np.ascontiguousarray(grid.T))


def squarest(size: int) -> int:
    """Rows of the process grid of so many ranks that is most nearly square, no more than columns."""
    return max(rows for rows in range(1, isqrt(size) + 1) if size % rows == 0)


def pencil_grid(network: Network, rows: int | None = None) -> tuple[int, Integers]:
    """Rows of the process grid whose transposes take the links the least time, and the rank at each place.

    Ranks are taken along the tree of switches, so that those of a row are near: inside a host, else on a leaf switch.
    Among the grids with two rows and two columns or more it takes the one whose transposes in rows and in columns
    together take the busiest link the least time, where a rank exchanges all it has in each; among equals the squarest.

    :param rows: number of rows, where it is given.
    :returns: rows, and the ranks in the order of their places, rows first, shape (p,).
    Cost: O(divisors of p x pairs of hosts).
    """
    size = network.num_ranks
    host = network.rank_host
    order = np.lexsort((np.arange(size), host, *network.clusters[::-1, host]))
    divisors = [rows] if rows is not None else [one for one in range(2, size) if not size % one and size // one > 1]
    if not divisors:
        return squarest(size), order
    seconds = {one: _busiest(network, order.reshape(one, -1)) for one in divisors}
    return min(divisors, key=lambda one: (round(seconds[one], 15), one + size // one)), order


def _busiest(network: Network, grid: Integers) -> float:
    """Seconds that the busiest links need for a byte of each rank, exchanged in its row and then in its column."""
    total = 0.0
    for groups in (grid, grid.T):
        there = np.zeros((len(groups), network.num_hosts))
        np.add.at(there, (np.arange(len(groups))[:, None], network.rank_host[groups]), 1)
        messages = there.T @ there
        np.fill_diagonal(messages, 0)
        load = network.loads(messages / groups.shape[1])
        total += float((load / network.capacity).max(initial=0.0))
    return total


def pencils(network: Network, rows: int, columns: int, *, window: int = 16, blocks: int = 1, seed: int = 1) -> Pencils:
    """Alltoalls within rows and within columns of a process grid, each set made for running at the same time.

    See ``joint``: a step of all rows together loads every link in proportion; likewise the columns.

    :param network: the job's network.
    :param rows: of the process grid; ``rows * columns`` ranks in all.
    :param columns: of the process grid.
    :param window: steps that a rank has in flight at most, 0 for no bound.
    :param blocks: blocks of one message.
    :param seed: of the choices among equals.
    :raises ValueError: if the grid has not as many places as there are ranks, or two hosts have no route.
    Cost: each rank sends columns - 1 messages in rows, rows - 1 in columns.
    """
    if rows < 1 or columns < 1 or rows * columns != network.num_ranks:
        raise ValueError(f"expecting a grid of {network.num_ranks} ranks, got {rows} x {columns}")
    made = [
        all_joint(network, groups, window=window, blocks=blocks, seed=seed) for groups in grid_groups(rows, columns)
    ]
    return Pencils(*made)
