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
    """The topology as a job sees it.

    :param routes: of the fabric.
    :param hosts: host numbers of the fabric, in the order in which they are filled.
    :param ranks: ranks of each host, or one number for all hosts.
    """
    names = [routes.fabric.hosts[host] for host in hosts]
    each = [ranks] * len(names) if isinstance(ranks, int) else ranks
    rank_hosts = [name for name, count in zip(names, each, strict=True) for _ in range(count)]
    return TopologyInterface.place(rank_hosts, routes)


def job(routes: Routes, hosts: Sequence[int], ranks: int | Sequence[int]) -> Network:
    """The network of a job.

    :param routes: of the fabric.
    :param hosts: host numbers of the fabric, in the order in which they are filled.
    :param ranks: ranks of each host, or one number for all hosts.
    """
    return network_of(view(routes, hosts, ranks))


def allocated(
    system: str, hosts: int, ranks: int, *, among: int, seed: int = SEED, shuffled: bool = False
) -> TopologyInterface:
    """A job on hosts drawn at random from the first ``among`` of a system, in ascending order, as schedulers give them.

    :param system: a topology source.
    :param hosts: how many.
    :param ranks: of each host.
    :param among: how many hosts a busy system has free; equal to ``hosts`` for a compact job.
    :param seed: of the draw.
    :param shuffled: whether they stand in random order instead.
    """
    chosen = np.random.default_rng(seed).choice(among, hosts, replace=False)
    return view(load_routes(system), (chosen if shuffled else np.sort(chosen)).tolist(), ranks)


def allocation(system: str, hosts: int, ranks: int, *, among: int, seed: int = SEED) -> Network:
    """The network of a job as ``allocated`` draws it.

    :param system: a topology source.
    :param hosts: how many.
    :param ranks: of each host.
    :param among: how many hosts to draw from.
    :param seed: of the draw.
    """
    return network_of(allocated(system, hosts, ranks, among=among, seed=seed))


def three_switches() -> Network:
    """The network of ``view_of_three_switches``."""
    return network_of(view_of_three_switches())


def view_of_three_switches() -> TopologyInterface:
    """Subramoni 2013, section 3: switch A with 4 hosts of 16 ranks, B with 29 of 8, each two DDR links to switch C.

    296 ranks. Only the links to C join A and B.
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
