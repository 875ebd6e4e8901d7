"""Upper bounds on the number of jobs with which a job can share links of a level, from numbers of nodes alone.

Equations (4.1) to (4.4) of Jokanovic, Resource management techniques aware of interference among high-performance
computing applications, UPC 2014. Every node in the job's groups that is not the job's may belong to another job, which
sends through the same links. The bounds ignore the size of the system, and that a job that uses links of the level
needs a second node elsewhere; ``rivals`` counts it.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import prod

import numpy as np
from numpy.typing import NDArray

from .errors import InterferenceError
from .levels import Levels

__all__ = ["per_link", "sharing_jobs", "sharing_jobs_on"]


def sharing_jobs(nodes: int, children: Sequence[int], level: int, each: int) -> Fraction:
    """The bound (4.1) of a job with the same number of nodes in each sub-tree that it occupies.

    (4.3) and (4.4) are its values for equal radices, level 2 and 1 node per leaf switch, and level 3 and 1 node per
    sub-tree of level 2.

    :param nodes: N, number of nodes of the job.
    :param children: m1..mh of the XGFT.
    :param level: k, level of the switches through which jobs share links, counted as the source does: 2 above the leaf
        switches.
    :param each: n, number of nodes of the job in each sub-tree of level k - 1 that it occupies.
    :raises InterferenceError: if the sub-tree does not exist, or has fewer nodes.
    """
    return Fraction(nodes, each) * per_link(children, level, each)


def per_link(children: Sequence[int], level: int, each: int) -> int:
    """The bound on the number of jobs that share one link of a job: the other nodes of a sub-tree of level k - 1.

    :param children: m1..mh of the XGFT.
    :param level: k, as in `sharing_jobs`.
    :param each: n, as in `sharing_jobs`.
    """
    if not 2 <= level <= len(children):
        raise InterferenceError(f"sharing: expecting a level from 2 to {len(children)}, got {level}")
    below = prod(children[: level - 1])
    if not 1 <= each <= below:
        raise InterferenceError(f"sharing: expecting 1 to {below} nodes of the job per sub-tree, got {each}")
    return below - each


def sharing_jobs_on(levels: Levels, hosts: NDArray[np.integer], level: int) -> int:
    """The bound on any fabric and for any placement: the hosts of others in the groups that a job occupies.

    It is 0 if the job is in one group, because it then sends nothing through links of the level. In an XGFT, and with
    an equal number of nodes in each group, it is (4.1) for k = ``level`` + 1.

    :param levels: levels of the fabric.
    :param hosts: hosts of the job, shape (n,).
    :param level: number of the level, from 1.
    """
    own = np.unique(hosts)
    groups = levels.used(own, level)
    return int(np.isin(levels.group[level], groups).sum()) - len(own) if len(groups) > 1 else 0
