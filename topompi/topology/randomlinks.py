"""Static random routes: next-hop links of shortest paths, drawn for each pair of hosts."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from .computed import ComputedLinks, Integers
from .fabric import Fabric, IntArray

__all__ = ["RandomLinks"]

STEP = np.uint64(0x9E3779B97F4A7C15)  # of the generator SplitMix64 (G. Steele, D. Lea and C. Flood, 2014)


@dataclass(frozen=True, eq=False)
class RandomLinks(ComputedLinks):
    """Next-hop links that each pair of adapters draws among the links of its shortest paths, by a seed.

    Each switch on the way draws one of its candidate links with equal probability, by a hash of the seed, the switch
    and the two adapters. So every path of a fat tree has the same probability. In other fabrics a path through switches
    with few candidate links has a higher one. All packets of a pair take one route, and the way back is drawn by
    itself. The further parameters are those of ``ComputedLinks``.

    :param seed: seed of the draws, from 0.
    """

    per_pair: ClassVar[bool] = True

    seed: int = 0

    @classmethod
    def of(cls, fabric: Fabric, seed: int = 0) -> RandomLinks:
        """Compute the distances and candidate links of a fabric.

        :param fabric: the fabric.
        :param seed: seed of the draws, from 0.
        :raises RouteError: if the fabric exceeds the limit ``routes``; see ``ComputedLinks.of``.
        """
        found = ComputedLinks.of(fabric)
        return cls(**{one.name: getattr(found, one.name) for one in fields(found)}, seed=seed)

    def _turns(self, path: int | IntArray, switches: NDArray[np.integer], adapters: IntArray) -> Integers:
        """A random number for each switch and pair of adapters; ``path`` is the sending adapter."""
        mixed = np.full(len(switches), self.seed, dtype=np.uint64)
        with np.errstate(over="ignore"):
            for word in (np.broadcast_to(path, len(switches)), adapters, switches):
                mixed = _mixed(mixed + STEP * (word.astype(np.uint64) + np.uint64(1)))
        return (mixed >> np.uint64(1)).astype(np.int64)

    def _chosen(self, links: IntArray, first: Integers, count: Integers, turn: Integers) -> IntArray:
        chosen: IntArray = links[first + turn % count]
        return chosen


def _mixed(word: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The output function of SplitMix64."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))
