"""Order in which a job takes half nodes, by the program on the other half."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .table import RateTable

__all__ = ["REFUSED", "THRESHOLD", "Preferences", "any_neighbour", "favoured"]

REFUSED = -1
THRESHOLD = 0.9  # least rate of each of two jobs that may share nodes
Integers = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Preferences:
    """The neighbours that the jobs of n programs prefer; rows and columns are numbers of programs plus 1.

    Row and column 0 are for jobs whose program is unknown or does not matter.

    :ivar numbers: number of each program by name.
    :ivar rank: place of each neighbour in the order of preference, shape (n + 1, n + 1); neighbours with equal places
        are taken in the order of their nodes; ``REFUSED`` if the two programs never share a node.
    :ivar spread: whether a job takes one half of each empty node, so that others can fill the other halves, shape
        (n + 1,); if false it takes whole empty nodes.
    :ivar last: least rank of the neighbours that are worse than an empty node, shape (n + 1,).
    """

    numbers: dict[str, int]
    rank: Integers
    spread: NDArray[np.bool_]
    last: Integers


def any_neighbour() -> Preferences:
    """Return preferences by which all neighbours are equal."""
    return Preferences({}, np.zeros((1, 1), np.int32), np.ones(1, bool), np.ones(1, np.int32))


def favoured(table: RateTable, threshold: float = THRESHOLD) -> Preferences:
    """Return preferences for the neighbour with which both jobs together get most done.

    The worth of a pair is the mean of its two rates. A job prefers neighbours in the order of this worth, if it is 1 or
    more; then empty nodes; then neighbours with which the two would get more done on whole nodes.

    :param table: rates of the programs.
    :param threshold: least rate of each of the two; a pair with a lower rate is refused.
    """
    n = len(table.programs)
    pairs = table.rates[:, :n]
    worth = (pairs + pairs.T) / 2
    allowed = np.minimum(pairs, pairs.T) >= threshold
    rank = np.full((n + 1, n + 1), REFUSED, np.int32)
    order = np.argsort(-worth, axis=1, kind="stable")
    places = np.argsort(order, axis=1, kind="stable")
    rank[1:, 1:] = np.where(allowed, places, REFUSED)
    good = allowed & (worth >= 1)
    spread = np.concatenate(([False], good.any(axis=1)))
    last = np.concatenate(([0], (worth >= 1).sum(axis=1))).astype(np.int32)
    return Preferences({name: at for at, name in enumerate(table.programs)}, rank, spread, last)
