"""The jobs of the reference's figures: fabric, hosts, and ranks on each host."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from topompi.schedules import Network
from topompi.topology import FabricBuilder, Routes, TopologyInterface, compute_routes, load_routes
from topompi.views.network import network_of

__all__ = ["SEED", "allocated", "allocation", "job", "three_switches", "view", "view_of_three_switches"]

SEED = 2013
DDR = 2.0e9  # bytes/s of 16 Gbit/s


def view(routes: Routes, hosts: Sequence[int], ranks: int | Sequence[int]) -> TopologyInterface:
    """Return the topology as a job sees it.

    :param routes: routes of the fabric.
    :param hosts: host numbers of the fabric, in the order in which they are filled.
    :param ranks: number of ranks of each host, or one number for all hosts.
    """
    names = [routes.fabric.hosts[host] for host in hosts]
    each = [ranks] * len(names) if isinstance(ranks, int) else ranks
    rank_hosts = [name for name, count in zip(names, each, strict=True) for _ in range(count)]
    return TopologyInterface.place(rank_hosts, routes)


def job(routes: Routes, hosts: Sequence[int], ranks: int | Sequence[int]) -> Network:
    """Return the network of a job.

    :param routes: routes of the fabric.
    :param hosts: host numbers of the fabric, in the order in which they are filled.
    :param ranks: number of ranks of each host, or one number for all hosts.
    """
    return network_of(view(routes, hosts, ranks))


def allocated(
    system: str, hosts: int, ranks: int, *, among: int, seed: int = SEED, shuffled: bool = False
) -> TopologyInterface:
    """Draw a job's hosts at random from the first ``among`` of a system; they are ascending, as schedulers list them.

    :param system: a topology source.
    :param hosts: number of hosts.
    :param ranks: number of ranks per host.
    :param among: number of hosts from which the job's are drawn; equal to ``hosts`` for a compact job.
    :param seed: seed of the draw.
    :param shuffled: whether the hosts are in random order instead.
    """
    chosen = np.random.default_rng(seed).choice(among, hosts, replace=False)
    return view(load_routes(system), (chosen if shuffled else np.sort(chosen)).tolist(), ranks)


def allocation(system: str, hosts: int, ranks: int, *, among: int, seed: int = SEED) -> Network:
    """Return the network of a job that ``allocated`` draws.

    :param system: a topology source.
    :param hosts: number of hosts.
    :param ranks: number of ranks per host.
    :param among: number of hosts from which the job's are drawn.
    :param seed: seed of the draw.
    """
    return network_of(allocated(system, hosts, ranks, among=among, seed=seed))


def three_switches() -> Network:
    """Return the network of ``view_of_three_switches``."""
    return network_of(view_of_three_switches())


def view_of_three_switches() -> TopologyInterface:
    """Make the job of Subramoni 2013, section 3: switches A and B, each with two DDR links to switch C.

    A has 4 hosts of 16 ranks, B has 29 hosts of 8 ranks, which are 296 ranks. Only the links to C connect A and B.
    """
    builder = FabricBuilder("three DDR switches")
    for switch in "ABC":
        builder.add_switch(switch)
    for switch, count in (("A", 4), ("B", 29)):
        for number in range(count):
            name = f"{switch.lower()}{number:02d}"
            builder.add_adapter(name, name)
            builder.add_cable(name, switch, rate=DDR)
        for _ in range(2):
            builder.add_cable(switch, "C", rate=DDR)
    routes = compute_routes(builder.build())
    return view(routes, range(33), [16] * 4 + [8] * 29)
