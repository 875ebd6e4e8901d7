"""Broadcasts of MPI libraries: a scatter in rank order, then an allgather among all ranks including the root."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .. import trees
from ..exchanges import Cube, doubling, ring
from ..phases import Phases, sequence
from ..schedule import INPUT, OUTPUT, Schedule
from ..transfers import Rows, local_moves, transfers
from ..trees import rotation

__all__ = ["scatter_doubling", "scatter_ring"]

Integers = NDArray[np.int64]


def scatter_doubling(size: int, *, root: int = 0, blocks: int | None = None) -> Schedule:
    """A broadcast by a binomial scatter, then an allgather by recursive doubling.

    Thakur, Rabenseifner, Gropp 2005, section 4.4, as run by MPICH, and by Open MPI if p is a power of two: a rank also
    receives blocks that it forwarded in the scatter. If p is no power of two, the p - n ranks beyond the largest power
    of two, n, send their share to a neighbour and receive the whole message from it. Messages: p - 1 in the scatter,
    and p log2 p in the allgather.
    Bytes: each rank sends about twice the message. It is fast for medium messages.

    :param size: number of ranks, p.
    :param root: the root's rank; shares belong to ranks in cyclic order from the root on.
    :param blocks: number of blocks of the message, by default p.
    """
    order, cut = rotation(size, root), _cut(size, blocks)
    cube, buffer, place = Cube.over(order), np.full(size, OUTPUT), np.argsort(order)
    heads, surplus = place[cube.heads], place[cube.surplus]
    exchange = sequence(
        cube.inward(buffer, cut[surplus], np.diff(cut)[surplus]),
        doubling(cube.heads, np.append(cut[heads], cut[-1]), buffer),
        cube.outward(buffer, 0, int(cut[-1])),
    )
    return _bcast("scatter-doubling", order, cut, exchange)


def scatter_ring(size: int, *, root: int = 0, blocks: int | None = None) -> Schedule:
    """A broadcast by a binomial scatter, then an allgather on a ring.

    Thakur, Rabenseifner, Gropp 2005, section 4.4, as run by MPICH and Open MPI: in rank order, and each rank receives
    all shares except its own, including those that it forwarded in the scatter. Messages: p - 1 in the scatter, and p
    (p - 1) in the allgather. Bytes: each rank sends about twice the message. It is fast for long messages if ranks are
    placed along the network.

    :param size: number of ranks, p.
    :param root: the root's rank; shares belong to ranks in cyclic order from the root on.
    :param blocks: number of blocks of the message, by default p.
    """
    order, cut = rotation(size, root), _cut(size, blocks)
    exchange = sequence(ring(order, cut[:-1], np.diff(cut), np.full(size, OUTPUT)))
    return _bcast("scatter-ring", order, cut, exchange)


def _cut(size: int, blocks: int | None) -> Integers:
    """The first block of each share, and the end; shares are equal, but the last ones may be smaller or empty."""
    total = size if blocks is None else blocks
    if total < 1:
        raise ValueError(f"expecting at least one block, got {total}")
    return np.minimum(np.arange(size + 1) * -(-total // size), total)


def _bcast(algorithm: str, order: Integers, cut: Integers, exchange: Phases) -> Schedule:
    """A broadcast from the first rank of an order: the scatter, then an exchange among all outputs."""
    blocks = int(cut[-1])
    phases = sequence(_scatter(order, cut), exchange)
    return Schedule.from_phases("bcast", len(order), algorithm, phases, root=int(order[0]), blocks=blocks)


def _scatter(order: Integers, cut: Integers) -> Rows:
    """The rows that send each place of the order the shares of its sub-tree, which are a range; place 0 has all."""
    tree = trees.knomial(len(order))
    child = tree.others
    parent, first = tree.parent[child], cut[child]
    count = cut[child + tree.sizes[child]] - first
    source = np.where(parent == 0, INPUT, OUTPUT)
    rows = transfers(tree.down[child], order[parent], order[child], (source, first), (OUTPUT, first), count)
    return np.concatenate((local_moves(0, order[0], (INPUT, 0), (OUTPUT, 0), cut[-1]), rows))
