"""Contents of buffers that tell every rank, block and position from its neighbours."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["contribution", "contribution_sum", "pattern"]

# Odd, so that ranks 0..255 give 256 different bytes; unlike, so that (source, destination) is not symmetric.
SOURCE, DESTINATION = 167, 59
EXACT_FLOATS = 1 << 24  # whole numbers up to here are exact in float32, so sums are too, in any order


def _stream(items: int, salt: int) -> NDArray[np.uint32]:
    """Well mixed words, one an index: the finaliser of MurmurHash3 (A. Appleby, 2011)."""
    words = np.arange(items, dtype=np.uint32) * np.uint32(0x9E3779B1) + np.uint32(salt)
    words ^= words >> np.uint32(16)
    words *= np.uint32(0x85EBCA6B)
    words ^= words >> np.uint32(13)
    words *= np.uint32(0xC2B2AE35)
    words ^= words >> np.uint32(16)
    return words


def pattern(source: ArrayLike, destination: ArrayLike, items: int) -> NDArray[np.uint8]:
    """The bytes that each source sends to each destination.

    Two blocks of one sender or of one receiver differ at every position unless their ranks are equal modulo
    256, and then they differ somewhere in blocks of a few bytes; a block moved by some bytes differs from
    itself.

    :param source: ranks, broadcast against ``destination``, giving n blocks.
    :param destination: ranks.
    :param items: bytes a block.
    :returns: shape (n, items).
    """
    ranks = np.broadcast_arrays(np.atleast_1d(source), np.atleast_1d(destination))
    low = (ranks[0] * SOURCE + ranks[1] * DESTINATION).astype(np.uint8)
    high = ((ranks[0] >> 8) * 3 + (ranks[1] >> 8) * 5).astype(np.uint8)
    block: NDArray[np.uint8] = low[:, None] + _stream(items, 0).astype(np.uint8)
    if high.any():
        block += high[:, None] * _stream(items, 1).astype(np.uint8)
    return block


def contribution(rank: int, ranks: int, items: int) -> NDArray[np.float32]:
    """A rank's contribution to a reduction: positive whole numbers, which differ between ranks at each position.

    :param rank: which.
    :param ranks: how many contribute; above 4,096 numbers repeat, so that sums stay exact.
    :param items: floats a block.
    """
    modulus = np.uint32(min(4096, EXACT_FLOATS // ranks - 1))
    return (1 + (_stream(items, 2) % modulus + np.uint32(rank)) % modulus).astype(np.float32)


def contribution_sum(ranks: int, items: int) -> NDArray[np.float32]:
    """The sum of all contributions, exact. Cost: ranks x items."""
    total = np.zeros(items, dtype=np.float32)
    for rank in range(ranks):
        total += contribution(rank, ranks, items)
    return total
