"""Mappings of grids of ranks to tori: dimensions of the grid are cut and folded into those of the torus."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, permutations, product
from math import prod

import numpy as np
from numpy.typing import NDArray

from ..distances import TorusDistances
from ..evaluate import doubled_hop_bytes
from ..graph import CommunicationGraph
from ..machine import Machine
from ..mapping import Mapping, MappingError
from .grids import RankGrid

__all__ = ["folded"]

Integers = NDArray[np.int64]
Matrix = tuple[tuple[int, ...], ...]
MOST_MATRICES, MOST_FOLDS = 4096, 100  # most ways to divide the extents that are looked at, and most folds tried


def folded(graph: CommunicationGraph, machine: Machine, grid: RankGrid) -> Mapping:
    """Map a grid to a torus by folding: the least hop-bytes of up to 200 folds, those with the fewest cuts first.

    The extent of each dimension of the grid is a product of factors, one for each dimension of the torus, and the
    extents of the torus are products of the same factors. The digits of a rank's coordinate in this mixed radix,
    reflected so that neighbours differ in one digit by 1, are the digits of its host's coordinates. If hosts have
    several slots, these are one more dimension.

    :param graph: communication graph, with a rank per slot.
    :param machine: whole torus, with equally many slots on each host.
    :param grid: coordinates of each rank.
    :raises MappingError: if the machine is no such torus, or the extents have no common factors.
    """
    torus = machine.distances
    if (
        not isinstance(torus, TorusDistances)
        or graph.size != machine.num_slots
        or machine.num_hosts != prod(torus.dims)
    ):
        raise MappingError(f"folds: expecting a whole torus with {graph.size} slots, got another machine")
    if not machine.num_hosts or machine.slots.min() != machine.slots.max():
        raise MappingError("folds: expecting equally many slots on all hosts")
    host_at = np.argsort(np.ravel_multi_index(tuple(torus.coordinates.T), torus.dims), kind="stable")
    extents = (*torus.dims, int(machine.slots[0]))
    least, best = np.inf, None
    folds = islice(_folds(grid.extents, extents), MOST_FOLDS)
    for (ours, theirs), mirrored in product(folds, (False, True)):
        place = _places(grid, extents, ours, theirs, mirrored)
        host = host_at[np.ravel_multi_index(tuple(place[:, :-1].T), torus.dims)]
        found = Mapping.on_hosts(host, machine)
        cost = doubled_hop_bytes(found, graph, machine)
        if cost < least:
            least, best = cost, found
    if best is None:
        raise MappingError(f"folds: expecting a grid that folds into {extents}, got {grid.extents}")
    return best


Digits = list[list[tuple[int, int]]]  # of each dimension: the other side's dimension and the radix, largest digit first


def _folds(ours: tuple[int, ...], theirs: tuple[int, ...]) -> Iterator[tuple[Digits, Digits]]:
    """Yield the digits of each dimension of the grid and of the torus, for all their orders, with few digits first."""
    found = islice(_matrices(ours, theirs), MOST_MATRICES)
    for matrix in sorted(found, key=lambda one: sum(factor > 1 for row in one for factor in row)):
        rows = [[(j, factor) for j, factor in enumerate(row) if factor > 1] for row in matrix]
        columns = [[(i, row[j]) for i, row in enumerate(matrix) if row[j] > 1] for j in range(len(theirs))]
        for orders in product(*(list(permutations(side)) for side in (*rows, *columns))):
            digits = [list(order) for order in orders]
            yield digits[: len(ours)], digits[len(ours) :]


def _matrices(ours: tuple[int, ...], theirs: tuple[int, ...]) -> Iterator[Matrix]:
    """Yield all matrices of factors whose rows multiply to our extents, and columns to their extents."""
    if not ours:
        if all(extent == 1 for extent in theirs):
            yield ()
        return
    for row in _rows(ours[0], theirs):
        left = tuple(extent // factor for extent, factor in zip(theirs, row, strict=True))
        for rest in _matrices(ours[1:], left):
            yield (row, *rest)


def _rows(extent: int, theirs: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yield the tuples of factors of ``extent``, each a divisor of their extent in its dimension."""
    if not theirs:
        if extent == 1:
            yield ()
        return
    for factor in range(1, min(extent, theirs[0]) + 1):
        if extent % factor == 0 and theirs[0] % factor == 0:
            for rest in _rows(extent // factor, theirs[1:]):
                yield (factor, *rest)


def _places(grid: RankGrid, extents: tuple[int, ...], ours: Digits, theirs: Digits, mirrored: bool) -> Integers:
    """The coordinates of each rank in the torus, shape (ranks, dimensions).

    :param grid: coordinates of each rank.
    :param extents: extents of the torus.
    :param ours: digits of each dimension of the grid.
    :param theirs: digits of each dimension of the torus.
    :param mirrored: whether a digit is reflected where those before it in the torus are odd, so that two halves of a
        fold meet at its edge.
    """
    digit: dict[tuple[int, int], Integers] = {}
    for i, digits in enumerate(ours):
        left, width = grid.place[:, i], grid.extents[i]
        before = np.zeros_like(left)
        for j, radix in digits:
            width //= radix
            one, left = left // width, left % width
            digit[i, j] = np.where(before % 2, radix - 1 - one, one)
            before = before * radix + one
    place = np.zeros((len(grid.place), len(extents)), dtype=np.int64)
    for j, digits in enumerate(theirs):
        for i, radix in digits:
            turned = mirrored & (place[:, j] % 2 == 1)
            place[:, j] = place[:, j] * radix + np.where(turned, radix - 1 - digit[i, j], digit[i, j])
    return place
