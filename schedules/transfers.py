"""Functions that all generators share: rows of a schedule from arrays, and the blocks of each rank."""

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
    """The rows of transfers, as ``Schedule.from_rows`` takes them, shape (rows, 9).

    All parameters are scalars or arrays that broadcast to one shape.

    :param step: step of each transfer.
    :param source: sending rank.
    :param destination: receiving rank.
    :param source_place: buffer of the sender, and the first block there.
    :param destination_place: buffer of the receiver, and the first block there.
    :param count: number of blocks; a transfer of 0 blocks is left out.
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
    """The rows that move blocks between buffers of the same rank, shape (rows, 9).

    All parameters are scalars or arrays that broadcast to one shape.

    :param step: step of each move.
    :param rank: rank that makes the move.
    :param source_place: buffer that the blocks leave, and the first block there.
    :param destination_place: buffer that the blocks enter, and the first block there.
    :param count: number of blocks.
    """
    return transfers(step, rank, rank, source_place, destination_place, count)


def shares(size: int, blocks: int, counts: ArrayLike | None) -> Rows:
    """The number of blocks of each rank's share, shape (p,).

    :param size: number of ranks, p.
    :param blocks: number of blocks of every rank, used if ``counts`` is None.
    :param counts: number of blocks of each rank, shape (p,), or None if all are equal.
    :raises ValueError: if ``counts`` has another shape or a negative number.
    """
    share = np.full(size, blocks) if counts is None else np.asarray(counts, dtype=np.int64)
    if share.shape != (size,) or (share < 0).any():
        raise ValueError(f"expecting {size} counts of blocks, none negative, got shape {share.shape}")
    return share
