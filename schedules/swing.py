"""Swing: exchanges between ranks of a ring or torus at distances 1, 1, 3, 5, 11, ..., in turning directions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, zip_longest

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .network import Network
from .trees import depth_first, rank_clusters

__all__ = ["checked_grid", "other_ways", "ranks_on_grid", "ring_stages", "swings"]

Integers = NDArray[np.int64]


def swings(grid: Integers) -> list[Integers]:
    """The groups of ranks that exchange in each stage, for `butterfly.staged`, nearest first.

    De Sensi and others, Swing, NSDI 2024. On a ring of a power of two ranks, the even ones exchange in stage s with the
    rank (1 - (-2)^(s + 1)) / 3 places ahead. In a torus the dimensions take turns. Distances are a third shorter than
    those of halving, 1, 2, 4, ..., and a link is crossed by fewer messages. Where the length of a dimension is no power
    of two, its odd factor is a last stage of circulant exchanges, and halving takes the place of swing before it.

    :param grid: rank at each place of the torus.
    """
    axes = [[np.moveaxis(grid, axis, 0)[pairs] for pairs in ring_stages(size)] for axis, size in enumerate(grid.shape)]
    turns = chain.from_iterable(zip_longest(*axes))
    return [groups.reshape(len(groups), -1) for groups in turns if groups is not None]


def ring_stages(size: int) -> Iterator[Integers]:
    """Yield the places of a ring that exchange in each stage, as in `swings`, each of shape (members, groups)."""
    place, stages = np.arange(size), (size & -size).bit_length() - 1
    odd = size >> stages
    for stage in range(stages):
        ahead = (1 - (-2) ** (stage + 1)) // 3
        partner = (place + np.where(place % 2, -ahead, ahead)) % size if odd == 1 else place ^ (1 << stage)
        first = place[place < partner]
        yield np.stack((first, partner[first]))
    if odd > 1:
        yield place.reshape(odd, -1)


def checked_grid(grid: ArrayLike) -> Integers:
    """The grid as an array.

    :raises ValueError: if it does not hold each rank once.
    """
    ranks = np.asarray(grid, dtype=np.int64)
    if (np.sort(ranks, axis=None) != np.arange(ranks.size)).any():
        raise ValueError(f"expecting a grid that holds each rank of range({ranks.size}) once")
    return ranks


def other_ways(grid: Integers, *, backwards: bool = False) -> list[Integers]:
    """The grid with each of its dimensions first, so that exchanges use other links: as it is, and in another way.

    :param grid: rank at each place of the torus, the ranks of one place along the first of several dimensions.
    :param backwards: whether the other way is backwards, as rings need it, or shifted by one place, as `swings` needs.
    :returns: two grids for each dimension of the torus.
    """
    every = tuple(range(1, grid.ndim)) or (0,)
    turned = [np.moveaxis(grid, every[:first], every[len(every) - first :]) for first in range(len(every))]
    return [*turned, *(np.flip(one, every) if backwards else np.roll(one, 1, every) for one in turned)]


def ranks_on_grid(network: Network) -> Integers:
    """The rank at each place of the torus that a job fills; the ranks of one place lie along the first dimension.

    If the network is no torus, or the job's ranks do not fill a block of it evenly, the result has one dimension: the
    ranks in depth-first order of the clusters.

    :param network: the job's network.
    """
    size = network.num_ranks
    if network.grid is not None:
        place, number = np.unique(network.grid[network.rank_host], axis=0, return_inverse=True)
        number = number.ravel()
        lengths = [len(np.unique(column)) for column in place.T]
        if int(np.prod(lengths)) == len(place) and (np.bincount(number) == size // len(place)).all():
            # Places are sorted by coordinates, and so are the ranks of one place by number.
            return np.moveaxis(np.argsort(number, kind="stable").reshape(*lengths, -1), -1, 0)
    return depth_first(rank_clusters(network), size)
