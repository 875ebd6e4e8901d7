"""The nested clusters of hosts among which a top-down mapping divides the ranks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..distances import TreeDistances
from ..machine import Machine

__all__ = ["cluster_levels", "tree_order"]

Integers = NDArray[np.int64]


def cluster_levels(machine: Machine) -> Integers:
    """The cluster of each host at each level, coarsest first, shape (levels, n).

    In a tree these are its own clusters. On other machines hosts are halved repeatedly: two hosts far apart are chosen,
    and each half has the hosts that are nearer to one of them, as in dual recursive bipartitioning (Pellegrini, Roman
    1996). Cost: O(n log n) distances.
    """
    if isinstance(machine.distances, TreeDistances):
        return machine.distances.clusters
    levels = [np.zeros(machine.num_hosts, dtype=np.int64)]
    while (np.bincount(levels[-1]) > 2).any():
        finer = np.empty_like(levels[-1])
        for cluster in range(int(levels[-1].max()) + 1):
            members = np.flatnonzero(levels[-1] == cluster)
            near, far = _halves(machine, members)
            finer[near], finer[far] = 2 * cluster, 2 * cluster + 1
        levels.append(np.unique(finer, return_inverse=True)[1])
    return np.array(levels[1:], dtype=np.int64).reshape(-1, machine.num_hosts)


def tree_order(machine: Machine) -> Integers:
    """The position of each host in an order in which the hosts of each cluster are adjacent."""
    keys = (np.arange(machine.num_hosts), *cluster_levels(machine)[::-1])
    return np.argsort(np.lexsort(keys), kind="stable")


def _halves(machine: Machine, members: Integers) -> tuple[Integers, Integers]:
    """Split hosts into two sets of equal size (the first has one more if the number is odd), each of near hosts."""
    one = members[np.argmax(machine.distance(members[0], members))]
    other = members[np.argmax(machine.distance(one, members))]
    order = np.argsort(machine.distance(one, members) - machine.distance(other, members), kind="stable")
    half = (len(members) + 1) // 2
    return members[order[:half]], members[order[half:]]
