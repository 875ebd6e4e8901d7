"""The messages of Bine's collectives as schedules, on a line of ranks or on a torus, and through several ports.

De Sensi and others 2025, arXiv:2508.17311. The schedules say who sends how much to whom, for costs; they do not name
the places of blocks and cannot run. Exchanges at Swing's distances are `schedules.swing.swings`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from topompi.schedules import Schedule
from topompi.schedules.butterfly import staged
from topompi.schedules.phases import sequence
from topompi.schedules.schedule import COPY, REDUCE
from topompi.schedules.swing import swings
from topompi.schedules.transfers import transfers

__all__ = ["bine", "through_ports"]

Integers = NDArray[np.int64]
Rows = NDArray[np.int64]


def _rows(step: int, source: Integers, destination: Integers, count: Integers | int, operation: int) -> Rows:
    return transfers(step, source, destination, (0, 0), (1, 0), count, operation)


def _tree(stages: Sequence[Integers]) -> list[tuple[Integers, Integers]]:
    """The parents and children of each stage of the tree from rank 0, farthest first."""
    holds = np.arange(stages[0].size) == 0
    edges = []
    for groups in reversed(stages):
        having = groups[:, holds[groups].any(axis=0)]
        first = holds[having].argmax(axis=0)
        parent = having[first, np.arange(having.shape[1])]
        others = having.T[parent[:, None] != having.T].reshape(len(parent), -1)
        edges.append((np.repeat(parent, others.shape[1]), others.ravel()))
        holds[having] = True
    return edges


def _sizes(edges: Sequence[tuple[Integers, Integers]], size: int) -> Integers:
    """The number of ranks in the sub-tree of each rank."""
    found = np.ones(size, dtype=np.int64)
    for parent, child in reversed(edges):
        np.add.at(found, parent, found[child])
    return found


def _down(edges: Sequence[tuple[Integers, Integers]], counts: Integers | None) -> Rows:
    """The rows from rank 0 along a tree; each child gets the blocks of its sub-tree, or one block."""
    parts = [
        _rows(step, parent, child, 1 if counts is None else counts[child], COPY)
        for step, (parent, child) in enumerate(edges)
    ]
    return np.concatenate(parts)


def _up(edges: Sequence[tuple[Integers, Integers]], counts: Integers | None) -> Rows:
    """The rows of `_down` backwards; whole vectors are combined."""
    found = _down(edges, counts)
    found[:, 0] = len(edges) - 1 - found[:, 0]
    found[:, [1, 2]] = found[:, [2, 1]]
    found[:, 8] = REDUCE if counts is None else COPY
    return found


def _exchange(stages: Sequence[Integers], count: int, operation: int) -> Rows:
    """The rows of an exchange in which all members of a stage's groups send each other a number of blocks."""
    parts = []
    for step, groups in enumerate(stages):
        for ahead in range(1, len(groups)):
            parts.append(_rows(step, groups.ravel(), np.roll(groups, -ahead, axis=0).ravel(), count, operation))
    return np.concatenate(parts)


def _parts(collective: str, form: str, grid: Integers) -> tuple[list[Rows], int]:
    """The rows of the phases of a collective, and the number of blocks of a message."""
    size, stages = grid.size, swings(grid)
    edges = _tree(stages)
    butterfly = staged(stages, size)
    bounds, buffer = np.arange(size + 1), np.zeros(size, dtype=np.int64)
    if collective == "allgather":
        return [butterfly.gathering(bounds, buffer).rows()], 1
    if collective == "reduce_scatter":
        return [butterfly.reducing(bounds, buffer).rows()], 1
    if collective == "alltoall":
        return [_exchange(stages, size // 2, COPY)], 1
    if collective == "allreduce":
        if form == "whole":
            return [_exchange(stages, 1, REDUCE)], 1
        return [butterfly.reducing(bounds, buffer).rows(), butterfly.gathering(bounds, buffer).rows()], size
    sizes = _sizes(edges, size)
    if collective in ("gather", "scatter"):
        return [_up(edges, sizes) if collective == "gather" else _down(edges, sizes)], 1
    if form == "whole":
        return [_down(edges, None) if collective == "bcast" else _up(edges, None)], 1
    if collective == "bcast":
        return [_down(edges, sizes), butterfly.gathering(bounds, buffer).rows()], size
    return [butterfly.reducing(bounds, buffer).rows(), _up(edges, sizes)], size


def bine(collective: str, grid: Integers, *, form: str = "parts", ports: int = 1) -> Schedule:
    """The messages of a collective of the Bine family with root 0.

    :param collective: bcast, reduce, gather, scatter, allgather, reduce_scatter, allreduce or alltoall.
    :param grid: rank at each place of the torus; of one dimension for a line.
    :param form: ``whole`` if whole vectors travel, ``parts`` if the vector is divided among the ranks.
    :param ports: number of equal parts of each block that run the collective at once, each along dimensions and
        directions of its own.
    :raises ValueError: if the collective has no form of this family.
    """
    tables = []
    for port in range(ports):
        phases, blocks = _parts(collective, form, through_ports(grid, port))
        tables.append(sequence(*phases))
    rows = [np.concatenate([_shifted(phase.rows(), start) for start, phase in made]) for made in tables]
    joined = np.concatenate(rows)
    root = 0 if collective in ("bcast", "reduce", "gather", "scatter") else None
    name = f"bine {form}, {ports} ports"
    return Schedule.from_phases(collective, grid.size, name, sequence(joined), root=root, blocks=blocks * ports)


def _shifted(rows: Rows, start: int) -> Rows:
    found = rows.copy()
    found[:, 0] += start
    return found


def through_ports(grid: Integers, port: int) -> Integers:
    """The grid as a port sees it: dimensions in a turned order, and every second round of ports in other directions.

    :param grid: rank at each place of the torus.
    :param port: number of the port.
    """
    turned = np.transpose(grid, np.roll(np.arange(grid.ndim), -(port % grid.ndim)))
    if (port // grid.ndim) % 2:
        for axis, length in enumerate(turned.shape):
            turned = np.take(turned, -np.arange(length) % length, axis=axis)
    return turned
