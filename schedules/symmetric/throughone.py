"""Collectives that run through rank 0: a rooted collective to it, then one from it.

MPI libraries run them as a fallback.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..exchanges import starts
from ..phases import Phases, sequence
from ..ranktrees import shaped
from ..rooted.reduction import climb
from ..schedule import INPUT, OUTPUT, SCRATCH, Schedule
from ..transfers import Rows, local_moves, shares, transfers
from ..trees import Integers

__all__ = ["allgather_through_one", "allreduce_through_one", "reduce_scatter_through_one"]


def allreduce_through_one(size: int, *, up: str = "binomial", down: str = "linear", blocks: int = 1) -> Schedule:
    """An allreduce by a reduction to rank 0 and a broadcast from it.

    Messages: 2 (p - 1) of the whole vector, and one more with ``up="in_order"``, which keeps rank order.

    :param size: number of ranks, p.
    :param up: shape of the reduction's tree, a key of ``ranktrees.SHAPES``.
    :param down: shape of the broadcast's tree, a key of ``ranktrees.SHAPES``.
    :param blocks: number of blocks of the vector.
    """
    phases = sequence(_to_first(size, up, OUTPUT, blocks), _from_first(size, down, blocks))
    return Schedule.from_phases("allreduce", size, f"{up} tree up, {down} down", phases, blocks=blocks)


def allgather_through_one(
    size: int, *, down: str = "linear", blocks: int = 1, counts: ArrayLike | None = None
) -> Schedule:
    """An allgather in which all ranks send their blocks to rank 0, which broadcasts them all.

    Messages: p - 1 with the blocks of one rank, and p - 1 with all blocks.

    :param size: number of ranks, p.
    :param down: shape of the broadcast's tree, a key of ``ranktrees.SHAPES``.
    :param blocks: number of blocks of each rank, used if ``counts`` is None.
    :param counts: blocks of each rank, shape (p,), for allgatherv.
    """
    share = shares(size, blocks, counts)
    ranks = np.arange(size)
    gather = transfers(0, ranks, 0, (INPUT, 0), (OUTPUT, starts(share)[:-1]), share)
    phases = sequence(gather, _from_first(size, down, int(share.sum())))
    given = None if counts is None else np.asarray(counts, dtype=np.int64)
    return Schedule.from_phases("allgather", size, f"linear up, {down} down", phases, blocks=blocks, counts=given)


def reduce_scatter_through_one(
    size: int, *, up: str = "binomial", down: str = "linear", blocks: int = 1, counts: ArrayLike | None = None
) -> Schedule:
    """A reduce-scatter by a reduction to rank 0 and a scatter from it.

    Messages: p - 1 of the whole vector, one more with ``up="in_order"``, which keeps rank order, and p - 1 of parts.

    :param size: number of ranks, p.
    :param up: shape of the reduction's tree, a key of ``ranktrees.SHAPES``.
    :param down: shape of the scatter's tree, ``linear`` or ``binomial``.
    :param blocks: number of blocks of each rank's part, used if ``counts`` is None.
    :param counts: blocks of each rank's part, shape (p,).
    """
    if down not in ("linear", "binomial"):
        raise ValueError(f"expecting down 'linear' or 'binomial', got {down!r}")
    share = shares(size, blocks, counts)
    begin = starts(share)
    tree = shaped(down, size)
    child, above = tree.others, tree.parent[tree.others]
    # Received parts lie in the scratch at their place in the whole vector.
    count = begin[child + tree.sizes[child]] - begin[child]
    scatter = transfers(tree.down[child], above, child, (SCRATCH, begin[child]), (SCRATCH, begin[child]), count)
    ranks = np.arange(size)
    phases = sequence(
        _to_first(size, up, SCRATCH, int(begin[-1])),
        scatter,
        local_moves(0, ranks, (SCRATCH, begin[:-1]), (OUTPUT, 0), share),
    )
    given = None if counts is None else np.asarray(counts, dtype=np.int64)
    name = f"{up} tree up, {down} down"
    return Schedule.from_phases("reduce_scatter", size, name, phases, blocks=blocks, counts=given)


def _to_first(size: int, shape: str, buffer: int, blocks: int) -> Phases:
    """The phases of a reduction to rank 0, with the result in the given buffer."""
    tree = shaped(shape, size)
    held: Integers = np.full(size, buffer)
    handed = (
        transfers(0, tree.root, 0, (buffer, 0), (buffer, 0), blocks) if tree.root else np.empty((0, 9), dtype=np.int64)
    )
    return sequence(climb(tree, tree.others, held, blocks), handed)


def _from_first(size: int, shape: str, blocks: int) -> Rows:
    """The rows of a broadcast between outputs, in which a rank sends to all its children at once."""
    tree = shaped(shape, size)
    child = tree.others
    return transfers(tree.depth[child] - 1, tree.parent[child], child, (OUTPUT, 0), (OUTPUT, 0), blocks)
