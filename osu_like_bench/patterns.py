"""Test data for buffers: bytes that differ between ranks, between blocks, and between positions in a block."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["contribution", "contribution_sum", "pattern"]

# Factors of the ranks in a block's bytes. They are odd, so that ranks 0 to 255 give 256 different bytes, and unequal,
# so that the bytes from a source to a destination differ from those of the other direction.
SOURCE, DESTINATION = 167, 59
EXACT_FLOATS = 1 << 24  # greatest whole number up to which float32 is exact, so that sums are exact in any order


def _stream(items: int, salt: int) -> NDArray[np.uint32]:
    """Return a pseudo-random 32-bit number for each index from 0 on, by MurmurHash3's finaliser (A. Appleby, 2011).

    :param items: number of indices.
    :param salt: number that selects one of the sequences.
    """
    words = np.arange(items, dtype=np.uint32) * np.uint32(0x9E3779B1) + np.uint32(salt)
    words ^= words >> np.uint32(16)
    words *= np.uint32(0x85EBCA6B)
    words ^= words >> np.uint32(13)
    words *= np.uint32(0xC2B2AE35)
    words ^= words >> np.uint32(16)
    return words


def pattern(source: ArrayLike, destination: ArrayLike, items: int) -> NDArray[np.uint8]:
    """Return the bytes that each source sends to each destination.

    Two blocks of one sender, or of one receiver, differ at every position unless their ranks are equal modulo 256; if
    they are, blocks of more than a few bytes still differ somewhere. A block that is shifted by some bytes differs from
    itself.

    :param source: sending rank of each block, or one rank for all blocks.
    :param destination: receiving rank of each block, or one rank for all blocks.
    :param items: bytes per block.
    :returns: bytes, shape (blocks, items).
    """
    ranks = np.broadcast_arrays(np.atleast_1d(source), np.atleast_1d(destination))
    low = (ranks[0] * SOURCE + ranks[1] * DESTINATION).astype(np.uint8)
    high = ((ranks[0] >> 8) * 3 + (ranks[1] >> 8) * 5).astype(np.uint8)
    block: NDArray[np.uint8] = low[:, None] + _stream(items, 0).astype(np.uint8)
    if high.any():
        block += high[:, None] * _stream(items, 1).astype(np.uint8)
    return block


def contribution(rank: int, ranks: int, items: int) -> NDArray[np.float32]:
    """Return a rank's contribution to a reduction: positive whole numbers that differ between ranks at each position.

    :param rank: number of the rank.
    :param ranks: number of contributing ranks; above 4,096, numbers repeat, so that sums stay exact.
    :param items: floats per block.
    """
    modulus = np.uint32(min(4096, EXACT_FLOATS // ranks - 1))
    return (1 + (_stream(items, 2) % modulus + np.uint32(rank)) % modulus).astype(np.float32)


def contribution_sum(ranks: int, items: int) -> NDArray[np.float32]:
    """Return the exact sum of all contributions. Cost: ranks x items."""
    total = np.zeros(items, dtype=np.float32)
    for rank in range(ranks):
        total += contribution(rank, ranks, items)
    return total
