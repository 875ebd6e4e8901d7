"""Rows of a schedule from arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .schedule import COPY

__all__ = ["local_moves", "transfers"]

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
    """Rows as ``Schedule.from_rows`` takes them, shape (rows, 9); a place is a buffer and a block. Rows that carry
    nothing are left out."""
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
    """Rows that move blocks between the buffers of a rank."""
    return transfers(step, rank, rank, source_place, destination_place, count)
