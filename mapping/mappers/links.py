"""Routes for machines of which only a tree of clusters is known: crossing a cluster's border counts as a link."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..distances import TreeDistances
from ..machine import Machine
from ..mapping import MappingError

__all__ = ["tree_routes"]

MOST_HOSTS = 4096


def tree_routes(machine: Machine) -> Machine:
    """Add routes to a machine: over one up-link and one down-link per host and per cluster, each of 1 byte/s.

    :raises MappingError: if the machine is no tree, or has more than 4,096 hosts.
    Cost: hosts x hosts x 2 (levels + 1) numbers.
    """
    if not isinstance(machine.distances, TreeDistances) or machine.num_hosts > MOST_HOSTS:
        raise MappingError(f"busiest link: expecting routes, or a tree of at most {MOST_HOSTS} hosts")
    hosts, used, next_link = machine.num_hosts, [], 0
    for cluster in (*machine.distances.clusters, np.arange(hosts)):
        number = np.unique(cluster, return_inverse=True)[1]
        crossing = number[:, None] != number[None, :]
        count = int(number.max(initial=-1)) + 1
        used.append(np.where(crossing, next_link + number[:, None], -1))
        used.append(np.where(crossing, next_link + count + number[None, :], -1))
        next_link += 2 * count
    links: NDArray[np.int64] = np.stack(used, axis=2)
    return machine.with_routes(links.astype(np.int32), np.ones(next_link))
