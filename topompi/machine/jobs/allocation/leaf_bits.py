"""Sets of nodes as bits of machine words, leaf by leaf, on which numpy tests all nodes of a leaf at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["LeafBits", "LeafWords", "Words", "bit_count", "unpack"]

Indices = NDArray[np.integer]
Mask = NDArray[np.bool_]
Words = NDArray[np.unsignedinteger]
_ONES = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(axis=1, dtype=np.uint8)


class LeafWords:
    """The words of some leaves. Each leaf begins a new word, and has several words if it has more than 64 nodes.

    ``of_leaf`` contains the numbers of each leaf's words, shape (leaves, most words of a leaf); a leaf with fewer words
    repeats its last one. ``mask`` has the same shape, with the bits of the leaf's nodes, and no bits for a repetition.

    :param count: number of words of each leaf, shape (leaves,).
    :param mask: the bits in ``mask``.
    """

    def __init__(self, count: Indices, mask: Words) -> None:
        self.count, self.mask = count, mask
        self.first = np.cumsum(count) - count
        self.of_leaf = self.first[:, None] + np.minimum(np.arange(mask.shape[1]), count[:, None] - 1)

    def part(self, leaves: Indices) -> LeafWords:
        """Return the words of some leaves only, numbered anew."""
        return LeafWords(self.count[leaves], self.mask[leaves])

    def by_leaf(self, words: Words) -> Indices:
        """Return the number of bits of each leaf, shape (..., leaves).

        :param words: words of sets, shape (..., words).
        """
        ones = bit_count(words)
        return ones if self.mask.shape[1] == 1 else np.add.reduceat(ones, self.first, axis=-1, dtype=np.int64)

    def by_word(self, of_leaf: Mask) -> Mask:
        """Return the truth value of each word's leaf, shape (..., words).

        :param of_leaf: truth value of each leaf, shape (..., leaves).
        """
        return of_leaf if self.mask.shape[1] == 1 else np.repeat(of_leaf, self.count, axis=-1)


class LeafBits:
    """The place of each node's bit in the words of all leaves of a cluster.

    ``place`` is the number of each node's bit, shape (nodes,), and ``size`` the number of bits of all words.

    :param leaf_start: first node of each leaf and, last, the number of nodes, shape (leaves + 1,).
    """

    def __init__(self, leaf_start: Indices) -> None:
        nodes = np.diff(leaf_start)
        width = next((bits for bits in (8, 16, 32) if bits >= nodes.max()), 64)
        self._dtype = np.dtype(f"<u{width // 8}")
        count = -(-nodes // width)
        self.size = width * int(count.sum())
        self.place = np.arange(leaf_start[-1]) + np.repeat(width * (np.cumsum(count) - count) - leaf_start[:-1], nodes)
        inside = np.arange(count.max())
        mask = self.words(np.ones(len(self.place), dtype=bool))
        words = LeafWords(count, np.zeros((len(nodes), len(inside)), dtype=self._dtype))
        self.leaves = LeafWords(count, np.where(inside < count[:, None], mask[words.of_leaf], words.mask))

    def words(self, chosen: Mask) -> Words:
        """Return the set of the nodes for which ``chosen`` is true, as words, shape (words,).

        :param chosen: truth value of each node, shape (nodes,).
        """
        flags = np.zeros(self.size, dtype=bool)
        flags[self.place] = chosen
        return self.pack(flags)

    def nodes(self, words: Words) -> Indices:
        """Return the nodes in a set, ascending.

        :param words: all words of the set, shape (words,).
        """
        return np.flatnonzero(unpack(words)[self.place])

    def pack(self, flags: Mask) -> Words:
        """Return truth values of bits, shape (..., size), as words, shape (..., words)."""
        packed: Words = np.packbits(flags, axis=-1, bitorder="little").view(self._dtype)
        return packed


def unpack(words: Words) -> NDArray[np.uint8]:
    """Return the bits of words, shape (..., words), as zeros and ones, shape (..., bits)."""
    return np.unpackbits(np.ascontiguousarray(words).view(np.uint8), axis=-1, bitorder="little")


def bit_count(words: Words) -> NDArray[np.uint8]:
    """Return the number of bits of each word."""
    if hasattr(np, "bitwise_count"):
        return np.bitwise_count(words)
    ones = _ONES[np.ascontiguousarray(words).view(np.uint8)]  # numpy before 2.0
    counted: NDArray[np.uint8] = ones.reshape(*words.shape, -1).sum(axis=-1, dtype=np.uint8)
    return counted
