"""Matchings of a pool of jobs into pairs: in the given order, greedy, and optimal."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..errors import ColocationError

__all__ = ["MATCHERS", "MOST", "greedy", "optimal", "sequential", "total"]

Reals = NDArray[np.float64]
Pairs = list[tuple[int, int]]
MOST = 2000  # jobs for the optimal matching, whose time grows with the cube: 6 s for 300 jobs


def sequential(value: Reals) -> Pairs:
    """Pair jobs in their order: the first with the second, the third with the fourth, and so on.

    :param value: value of each pair, shape (n, n); NaN if the pair is not allowed.
    """
    return [(at, at + 1) for at in range(0, len(value) - 1, 2) if np.isfinite(value[at, at + 1])]


def greedy(value: Reals) -> Pairs:
    """Give each job in turn the partner with the highest value among those that are left; the lowest index on a tie.

    :param value: value of each pair, shape (n, n), symmetric; NaN if the pair is not allowed.
    """
    left = np.isfinite(value) & ~np.eye(len(value), dtype=bool)
    pairs: Pairs = []
    for one in range(len(value)):
        if left[one].any():
            other = int(np.argmax(np.where(left[one], value[one], -np.inf)))
            pairs.append((one, other))
            for taken in (one, other):
                left[taken] = left[:, taken] = False
    return pairs


def optimal(value: Reals, *, all_paired: bool = True) -> Pairs:
    """Return the matching with the largest sum of values.

    Cost: proportional to the cube of the number of jobs.

    :param value: value of each pair, shape (n, n), symmetric; NaN if the pair is not allowed.
    :param all_paired: whether as many jobs as possible are paired; if not, a pair of negative value is not made.
    :raises ColocationError: if there are more than ``MOST`` jobs.
    """
    if len(value) > MOST:
        raise ColocationError(f"expecting at most {MOST:,} jobs for an optimal matching, got {len(value):,}")
    import networkx  # imported here, because it takes longer than a greedy matching

    graph = networkx.Graph()
    rows, columns = np.nonzero(np.triu(np.isfinite(value), 1))
    graph.add_weighted_edges_from(zip(rows.tolist(), columns.tolist(), value[rows, columns].tolist(), strict=True))
    found = networkx.max_weight_matching(graph, maxcardinality=all_paired)
    return sorted((min(pair), max(pair)) for pair in found)


def total(value: Reals, pairs: Pairs) -> float:
    """Return the sum of the values of some pairs.

    :param value: value of each pair, shape (n, n).
    :param pairs: the pairs.
    """
    return float(sum(value[pair] for pair in pairs))


MATCHERS: dict[str, Callable[[Reals], Pairs]] = {"optimal": optimal, "greedy": greedy, "sequential": sequential}
