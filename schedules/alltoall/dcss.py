"""Dynamic communication scheme selection: whether an alltoall is worth a schedule of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..analysis.bounds import min_steps
from ..network import Network
from .hostschedule import HostSchedule
from .leafroutes import between_switches
from .tacs import tacs1

__all__ = ["CROWDED", "DEFAULT", "SPARSITY", "Choice", "dcss", "hosts_sharing_links"]

DEFAULT = "default"
SPARSITY = 0.05
CROWDED = 1.5  # times the steps that hosts need, those of the busiest link: no order of transfers hides so much


@dataclass(frozen=True, eq=False)
class Choice:
    """What to run and why.

    :param algorithm: ``DEFAULT``, the usual choice by message size, or the name of the schedule's algorithm.
    :param reason: in words, with the numbers that decided.
    :param schedule: the schedule, None for the default.
    """

    algorithm: str
    reason: str
    schedule: HostSchedule | None = None


def dcss(
    network: Network,
    *,
    sparsity: float = SPARSITY,
    crowded: float = CROWDED,
    generate: Callable[[Network], HostSchedule] = tacs1,
) -> Choice:
    """Choose between the default alltoall and a schedule made for this network.

    Subramoni, "Topology-Aware MPI Communication and Scheduling for High Performance Computing Systems", 2013,
    chapter 6: a sparse allocation, or one whose hosts share no link, keeps the default. We depart from it where routes
    crowd one link: hosts spread over many leaf switches share it too, which neither of its two tests sees.

    :param network: the job's network.
    :param sparsity: largest part of the job's hosts on one leaf switch at which an allocation counts as sparse.
    :param crowded: least ratio of the steps that the busiest link needs to those that hosts need, one less than there
        are, from which a network counts as crowded.
    :param generate: makes the schedule.
    :raises ValueError: for a sparsity that is no part of 1, or a ratio below 1.
    Cost: O(n^2) for n hosts, and that of the schedule where one is made.
    """
    if not 0 <= sparsity <= 1:
        raise ValueError(f"expecting sparsity between 0 and 1, got {sparsity}")
    if not crowded >= 1:
        raise ValueError(f"expecting crowded of 1 or more, got {crowded}")
    hosts, most = network.num_hosts, int(np.unique(network.leaf, return_counts=True)[1].max(initial=0))
    sharing = len(hosts_sharing_links(network)) if most > sparsity * hosts else 0
    if sharing:
        why = f"{sharing} of {hosts} hosts share links above the leaf switches, up to {most} hosts on one"
    else:
        sparse = f"sparse: no leaf switch holds more than {most} of {hosts} hosts ({sparsity:.0%})"
        alone = f"none of the {hosts} hosts shares a link above the leaf switches"
        why = sparse if most <= sparsity * hosts else alone
        steps = min_steps(replace(network, rank_host=np.arange(hosts)))
        if steps < crowded * max(hosts - 1, 1):
            return Choice(DEFAULT, why)
        why = f"the busiest link needs {steps} steps where {hosts} hosts need {hosts - 1}; {why}"
    schedule = generate(network)
    return Choice(schedule.algorithm, why, schedule)


def hosts_sharing_links(network: Network) -> NDArray[np.intp]:
    """Hosts whose traffic enters their leaf switch over a link that other hosts' traffic enters by too, ascending.

    Cost: O(n^2 x longest route).
    """
    inner = between_switches(network.links)
    source, host = np.nonzero(network.hops > 1)
    inner = inner[source, host]
    length = (inner >= 0).sum(axis=1)
    entering = inner[np.arange(len(inner)), length - 1]
    link, host = np.unique(np.stack((entering, host)), axis=1)
    _, number, members = np.unique(link, return_inverse=True, return_counts=True)
    return np.unique(host[members[number] > 1])
