"""Dynamic communication scheme selection (DCSS): the test whether an alltoall should run a schedule for the network."""

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

__all__ = ["CROWDED", "DEFAULT", "SPARSITY", "DcssChoice", "dcss", "hosts_sharing_links"]

DEFAULT = "default"
SPARSITY = 0.05
# Least ratio of the steps that the busiest link needs to the n - 1 steps that n hosts need, from which on a schedule is
# made: the link then determines the time, and the order of transfers decides whether it is always busy.
CROWDED = 1.5


@dataclass(frozen=True, eq=False)
class DcssChoice:
    """The algorithm to run, and the reason.

    :param algorithm: name of the schedule's algorithm, or ``DEFAULT`` for an algorithm chosen by message size alone.
    :param reason: explanation in words, with the numbers that decided.
    :param schedule: the schedule to run, None for the default.
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
) -> DcssChoice:
    """Choose between the default alltoall and a schedule made for this network.

    In Subramoni, "Topology-Aware MPI Communication and Scheduling for High Performance Computing Systems", 2013,
    chapter 6, the default is kept if the allocation is sparse, or if its hosts share no link. Neither test notices that
    hosts spread over many leaf switches can share a link, too. Therefore a schedule is also chosen here if the routes
    crowd one link.

    :param network: the job's network.
    :param sparsity: largest fraction of the job's hosts on one leaf switch for which an allocation counts as sparse.
    :param crowded: least ratio, from 1, of the steps that the busiest link needs to the n - 1 steps that n hosts need,
        for which a network counts as crowded.
    :param generate: function that makes the schedule.
    :raises ValueError: if ``sparsity`` is not between 0 and 1, or ``crowded`` is below 1.
    Cost: O(n^2) for n hosts, plus the generation of a schedule if one is chosen.
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
            return DcssChoice(DEFAULT, why)
        why = f"the busiest link needs {steps} steps where {hosts} hosts need {hosts - 1}; {why}"
    schedule = generate(network)
    return DcssChoice(schedule.algorithm, why, schedule)


def hosts_sharing_links(network: Network) -> NDArray[np.intp]:
    """The hosts, ascending, whose traffic enters their leaf switch over a link that traffic to other hosts uses, too.

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
