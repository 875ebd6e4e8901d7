"""What generators share: rows of a schedule from arrays, and the shares of the ranks."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .schedule import COPY

__all__ = ["local_moves", "shares", "transfers"]

Rows = NDArray[np.int64]


def transfers(
    step: ArrayLike,
    source: ArrayLike,
    destination: ArrayLike,
    source_place: tuple[ArrayLike, ArrayLike],
    destination_place: tuple[ArrayLike, ArrayLike],
    count: ArrayLike,
    operation: ArrayLike = COPY,
) -> Rows:
    """Rows as ``Schedule.from_rows`` takes them, shape (rows, 9).

    :param step: of each transfer; all parameters are scalars or of one shape.
    :param source: sending rank; likewise ``destination``.
    :param source_place: buffer and first block; likewise ``destination_place``.
    :param count: blocks; transfers of none are left out.
    :param operation: ``COPY`` or ``REDUCE``.
    """
    columns = (step, source, destination, *source_place, *destination_place, count, operation)
    rows = np.stack(np.broadcast_arrays(*columns), axis=-1).reshape(-1, len(columns)).astype(np.int64)
    return rows[rows[:, 7] > 0]


def local_moves(
    step: ArrayLike,
    rank: ArrayLike,
    source_place: tuple[ArrayLike, ArrayLike],
    destination_place: tuple[ArrayLike, ArrayLike],
    count: ArrayLike,
) -> Rows:
    """Rows that move blocks between the buffers of a rank.

    :param step: of each move; all parameters are scalars or of one shape.
    :param rank: that moves.
    :param source_place: buffer and block; likewise ``destination_place``.
    :param count: blocks.
    """
    return transfers(step, rank, rank, source_place, destination_place, count)


def shares(size: int, blocks: int, counts: ArrayLike | None) -> Rows:
    """Blocks of each rank's share, shape (p,).

    :param size: number of ranks, p.
    :param blocks: blocks of each rank where there are no counts.
    :param counts: blocks of each rank, shape (p,), or None.
    :raises ValueError: for counts of another shape or below 0.
    """
    share = np.full(size, blocks) if counts is None else np.asarray(counts, dtype=np.int64)
    if share.shape != (size,) or (share < 0).any():
        raise ValueError(f"expecting {size} counts of blocks, none negative, got shape {share.shape}")
    return share
