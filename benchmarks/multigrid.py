"""The communication of an algebraic multigrid solver, from its set-up: the halo exchange of every level."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sparse
from numpy.typing import NDArray

from topompi.mapping.graph import CommunicationGraph

__all__ = ["multigrid"]

Integers = NDArray[np.int64]
Matrix = Any
RELAXATION = 0.6
COARSEST = 8
BYTES = 24  # a cycle exchanges three vectors of doubles per level


def multigrid(side: int, parts: int, *, pairings: int = 2, smoothings: int = 1) -> CommunicationGraph:
    """Run the set-up of smoothed aggregation (Vanek, Mandel, Brezina 1996) for a 27-point Laplacian on a cube.

    Each rank has a cube of rows. A coarse row belongs to the rank that has the first of its fine rows; the coarser the
    level, the more ranks are coupled.

    :param side: number of rows along each edge of the cube.
    :param parts: number of ranks along each edge of the cube.
    :param pairings: number of pairings of rows per level: an aggregate has about 2^pairings rows.
    :param smoothings: number of Jacobi steps on the interpolation; each widens the coarse stencil.
    """
    matrix, ranks = _laplacian(side), parts**3
    along = np.unravel_index(np.arange(side**3), (side,) * 3)
    owner = np.ravel_multi_index(tuple(at * parts // side for at in along), (parts,) * 3)
    pairs = [_halo(matrix, owner)]
    while matrix.shape[0] > COARSEST:
        group = _aggregates(matrix, pairings)
        smooth = _indicator(group)
        for _ in range(smoothings):
            smooth = smooth - RELAXATION * sparse.diags_array(1 / matrix.diagonal()) @ (matrix @ smooth)
        matrix = (smooth.T @ matrix @ smooth).tocsr()
        matrix.sort_indices()
        owner = owner[np.unique(group, return_index=True)[1]]
        pairs.append(_halo(matrix, owner))
    source, target = np.concatenate(pairs, axis=1)
    return CommunicationGraph.from_arrays(ranks, source, target, np.full(len(source), BYTES))


def _laplacian(side: int) -> Matrix:
    at = np.arange(side)
    line: Matrix = sparse.csr_array((np.abs(at[:, None] - at) <= 1).astype(np.float64))
    near = -sparse.kron(sparse.kron(line, line), line).tocsr()
    near.setdiag(0)
    near.setdiag(0.1 - np.asarray(near.sum(axis=1)).ravel())
    return near.tocsr()


def _halo(matrix: Matrix, owner: Integers) -> Integers:
    """Return sender and receiver of each value that a product with the matrix needs from another rank."""
    entries = matrix.tocoo()
    key = np.unique(owner[entries.row].astype(np.int64) * matrix.shape[0] + entries.col)
    receiver, sender = key // matrix.shape[0], owner[key % matrix.shape[0]]
    return np.stack([sender, receiver])[:, sender != receiver]


def _aggregates(matrix: Matrix, pairings: int) -> Integers:
    group, coarse = np.arange(matrix.shape[0]), matrix
    for _ in range(pairings):
        pair = _paired(coarse)
        group, sums = pair[group], _indicator(pair)
        coarse = (sums.T @ coarse @ sums).tocsr()
    return group


def _indicator(group: Integers) -> Matrix:
    return sparse.csr_array((np.ones(len(group)), (np.arange(len(group)), group)))


def _paired(matrix: Matrix) -> Integers:
    """Return the pair of each row: the row with the free neighbour that it depends on most, or the row alone."""
    pair, count = np.full(matrix.shape[0], -1, dtype=np.int64), 0
    for row in range(len(pair)):
        if pair[row] >= 0:
            continue
        here = slice(matrix.indptr[row], matrix.indptr[row + 1])
        near, value = matrix.indices[here], matrix.data[here]
        free = (pair[near] < 0) & (near != row) & (value < 0)
        pair[row] = count
        if free.any():
            pair[near[free][np.argmin(value[free])]] = count
        count += 1
    return pair
