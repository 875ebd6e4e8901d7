"""Exact sums of 64-bit integers, without overflow or rounding."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["LARGEST", "exact_sums", "short_sums"]

HALF = 31
MASK = (1 << HALF) - 1
LARGEST = (1 << 63) - 1


def short_sums(group: NDArray[np.integer], values: NDArray[np.int64], groups: int) -> NDArray[np.int64] | None:
    """The sum of the values of each group, shape (groups,); None if the sum of all values may exceed 64 bits.

    :param group: group of each value, in range(groups), shape (m,).
    :param values: whole numbers from 0 to 2^63 - 1, shape (m,).
    :param groups: number of groups.
    """
    if int(values.max(initial=0)) * len(values) > LARGEST:
        return None
    sums = np.zeros(groups, dtype=np.int64)
    np.add.at(sums, group, values)
    return sums


def exact_sums(group: NDArray[np.integer], values: NDArray[np.int64], groups: int) -> list[int]:
    """The sum of the values of each group, as whole numbers of any size.

    Large values are split into halves below 2^32, whose sums fit into 64 bits for up to 2^31 values.

    :param group: group of each value, in range(groups), shape (m,).
    :param values: whole numbers from 0 to 2^63 - 1, shape (m,).
    :param groups: number of groups.
    """
    short = short_sums(group, values, groups)
    if short is not None:
        whole: list[int] = short.tolist()
        return whole
    low, high = np.zeros(groups, dtype=np.int64), np.zeros(groups, dtype=np.int64)
    np.add.at(low, group, values & MASK)
    np.add.at(high, group, values >> HALF)
    return [(above << HALF) + below for above, below in zip(high.tolist(), low.tolist(), strict=True)]
