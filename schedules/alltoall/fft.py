"""The alltoalls of a pencil FFT: all rows of a process grid exchange at once, then all columns."""

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
    """The alltoalls of a process grid, in which rank r * columns + c is at row r and column c.

    :param rows: alltoall of each row of ranks; in a row's schedule the rank of column c is rank c.
    :param columns: alltoall of each column of ranks; in a column's schedule the rank of row r is rank r.
    """

    rows: tuple[Schedule, ...]
    columns: tuple[Schedule, ...]


def grid_groups(rows: int, columns: int) -> tuple[tuple[Integers, ...], tuple[Integers, ...]]:
    """The ranks of each row and of each column of a process grid; rank r * columns + c is at row r and column c.

    P3DFFT transposes within rows from X to Y pencils and within columns from Y to Z pencils, and back: four alltoalls
    for a forward and a backward transform (D. Pekurovsky, P3DFFT: a framework for parallel computations of Fourier
    transforms in three dimensions, 2012).
    """
    grid = np.arange(rows * columns).reshape(rows, columns)
    return tuple(grid), tuple(np.ascontiguousarray(grid.T))


def squarest(size: int) -> int:
    """The number of rows, at most that of columns, of the process grid of ``size`` ranks that is most nearly square."""
    return max(rows for rows in range(1, isqrt(size) + 1) if size % rows == 0)


def pencil_grid(network: Network, rows: int | None = None) -> tuple[int, Integers]:
    """Choose the process grid whose transposes load the links least: its number of rows, and the rank at each place.

    Ranks are sorted along the tree of switches, so that the ranks of a row are near: in a host, or else on a leaf
    switch. For each grid with at least two rows and two columns, the times of the busiest link in the transpose within
    rows and in the transpose within columns are added, if each rank sends all its data in each. The grid with the least
    sum is chosen, and among equals the squarest.

    :param network: network of the p ranks.
    :param rows: number of rows, if it is fixed; only the places are then computed.
    :returns: the number of rows, and the rank at each place, row by row, shape (p,).
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
    """The sum of the busiest link's seconds in an exchange within rows and in an exchange within columns.

    In each of the two exchanges every rank sends one byte in all.

    :param network: network of the p ranks.
    :param grid: rank at each place of the process grid, shape (rows, columns).
    """
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
    """Alltoalls within all rows and within all columns of a process grid; each set is made to run at the same time.

    The alltoalls of all rows are made together, so that their common steps load every link in proportion to the link's
    total load; and so are those of all columns (see `joint.joint`).

    :param network: the job's network.
    :param rows: number of rows of the process grid.
    :param columns: number of columns of the process grid; ``rows * columns`` is the number of ranks.
    :param window: largest number of steps that a rank has in flight; 0 for no limit.
    :param blocks: number of blocks that each rank sends to each rank of its row or column.
    :param seed: seed of the random choices among equals.
    :raises ValueError: if the grid's size is not the number of ranks, or if two hosts have no route.
    Cost: each rank sends columns - 1 messages in rows and rows - 1 messages in columns.
    """
    if rows < 1 or columns < 1 or rows * columns != network.num_ranks:
        raise ValueError(f"expecting a grid of {network.num_ranks} ranks, got {rows} x {columns}")
    made = [
        all_joint(network, groups, window=window, blocks=blocks, seed=seed) for groups in grid_groups(rows, columns)
    ]
    return Pencils(*made)
