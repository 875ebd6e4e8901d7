"""The contributions that every reduction has combined, as sums of random weights, or as ranges of ranks.

The sums tell different multisets of contributions apart, almost surely. The ranges serve operations that do not
commute.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .values import Reductions

__all__ = ["ranges_of", "sums_of"]

Integers = NDArray[np.int64]
_SEED = 3


def sums_of(reductions: Reductions, size: int, blocks: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """The sum of each value, shape (values, 3), and the sums of correct results, shape (p + 1, blocks, 3).

    Entry [r, b] of the latter is the sum of a result that combines block b of the first r ranks.

    Each place of the input has two random weights modulo 2^64 and a unit weight. A result with the right number of
    units but a wrong multiset of contributions has both right sums with a probability of at most (p / 2^64)^2, because
    its sums differ by a fixed combination of independent weights with factors below p.

    :param reductions: all reductions and their terms.
    :param size: number of ranks, p.
    :param blocks: number of blocks of the vector.
    """
    sums = np.ones((size * blocks + len(reductions.begin), 3), dtype=np.uint64)
    sums[: size * blocks, :2] = np.random.default_rng(_SEED).integers(2**64, size=(size * blocks, 2), dtype=np.uint64)
    wanted = np.zeros((size + 1, blocks, 3), dtype=np.uint64)
    np.cumsum(sums[: size * blocks].reshape(size, blocks, 3), axis=0, out=wanted[1:])
    results = sums[size * blocks :]
    units = results[:, 2]
    for group, terms in reductions.batches():
        at = reductions.begin[group] - terms.start
        results[group] = sums[reductions.start[group]] + np.add.reduceat(sums[reductions.terms[terms]], at)
        # The number of units is capped against overflow. A contribution too many still shows, because it never falls.
        np.minimum(units[group], size + 1, out=units[group])
    return sums, wanted


def ranges_of(reductions: Reductions, size: int, blocks: int) -> Integers:
    """The first rank, the last rank + 1 and the block of each value, shape (values, 3); all -1 if order is broken.

    Two ranges combine in order if they are adjacent and of one block, whichever of the two arrives; a broken range
    combines with none. Each reduction has one term, because the operation does not commute.

    :param reductions: all reductions and their terms.
    :param size: number of ranks, p.
    :param blocks: number of blocks of the vector.
    """
    held = np.full((size * blocks + len(reductions.begin), 3), -1)
    rank, block = np.divmod(np.arange(size * blocks), max(blocks, 1))
    held[: size * blocks] = np.stack([rank, rank + 1, block], axis=1)
    results = held[size * blocks :]
    for group, terms in reductions.batches():
        here, new = held[reductions.start[group]], held[reductions.terms[terms]]
        fits = ((here[:, 1] == new[:, 0]) | (here[:, 0] == new[:, 1])) & (here[:, 2] == new[:, 2])
        joined = np.stack([np.minimum(here[:, 0], new[:, 0]), np.maximum(here[:, 1], new[:, 1]), here[:, 2]], axis=1)
        results[group] = np.where(fits[:, None], joined, -1)
    return held
