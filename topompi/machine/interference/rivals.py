"""The number of jobs that can share a job's links on true routes: a matching of the other hosts, found as a flow.

A rival has two hosts or more, which it shares with nobody, and a route between two of them that crosses one of the
job's links. The largest number of rivals is the size of a largest matching of the other hosts, two of which are joined
if a route between them crosses. The largest flow from hosts as senders to hosts as receivers, with capacity 1 at each,
is twice the size of the largest fractional matching, which is no smaller (L. Lovász and M. Plummer, Matching theory,
1986).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...network import Tables
from .levels import Levels

__all__ = ["crossings", "job_links", "rivals"]

Integers = NDArray[np.integer]


def job_links(tables: Tables, hosts: Integers, levels: Levels | None = None, level: int = 1) -> Integers:
    """The links that routes between a job's hosts cross and that no host is at an end of, ascending.

    :param tables: routes of the fabric.
    :param hosts: hosts of the job, shape (n,).
    :param levels: levels of the fabric; None for links of all levels.
    :param level: number of the level of the links.
    """
    own = np.unique(hosts)
    found = [np.empty(0, dtype=np.int32)]
    found += [np.unique(tables.paths(own[source], own[target])) for source, target in tables.part(own).every_pair()]
    links = np.unique(np.concatenate(found))
    first = tables.first_switch
    links = links[(links >= 0) & (tables.source[links] >= first) & (tables.target[links] >= first)]
    if levels is not None:
        links = links[(levels.leaves[level][links] >= 0) | (levels.enters[level][links] >= 0)]
    return np.asarray(links, dtype=np.int32)


def crossings(tables: Tables, hosts: Integers, links: Integers) -> NDArray[np.bool_]:
    """Whether the route from each host to each other one crosses one of some links, shape (n, n).

    :param tables: routes of the fabric.
    :param hosts: host numbers, shape (n,).
    :param links: link numbers, shape (m,).
    Cost: a route per pair.
    """
    wanted = np.zeros(tables.num_links + 1, dtype=bool)  # the padding -1 reads the last element
    wanted[links] = True
    rows: list[NDArray[np.bool_]] = [np.empty(0, dtype=bool)]
    for source, target in tables.part(hosts).every_pair():
        rows.append(np.asarray(wanted[tables.paths(hosts[source], hosts[target])].any(axis=1)))
    return np.concatenate(rows).reshape(len(hosts), len(hosts))


def rivals(tables: Tables, hosts: Integers, links: Integers | None = None) -> int:
    """An upper bound on the number of other jobs that can share links with a job at one time.

    The number itself is at least two thirds of it, and less only if routes cross around an odd circle of hosts.

    :param tables: routes of the fabric.
    :param hosts: hosts of the job, shape (n,).
    :param links: links of the job to count; by default all links between switches on its routes.
    Cost: a route per pair of other hosts, and a matching of them.
    """
    others = np.setdiff1d(np.arange(tables.num_hosts), hosts)
    counted = job_links(tables, hosts) if links is None else links
    crosses = crossings(tables, others, counted)
    return _matched(crosses | crosses.T) // 2


def _matched(crosses: NDArray[np.bool_]) -> int:
    """The largest flow from senders to receivers of capacity 1 each, along the pairs that cross."""
    from scipy.sparse import csr_array  # imported here, because the import would delay every command
    from scipy.sparse.csgraph import maximum_bipartite_matching

    if not crosses.any():
        return 0
    return int((maximum_bipartite_matching(csr_array(crosses), perm_type="column") >= 0).sum())
