"""Generators of dragonfly and Dragonfly+ networks."""

from __future__ import annotations

import re

import numpy as np

from ...errors import FabricError
from ..fabric import Fabric
from .blueprint import DEFAULT_RATE, Blueprint, Cables, Integers, cables, check_at_least, check_size

__all__ = ["dragonfly", "dragonfly_plus", "group_of_switches"]


def dragonfly(
    routers: int,
    hosts: int,
    links: int,
    groups: int | None = None,
    rate: float = DEFAULT_RATE,
    name: str | None = None,
) -> Fabric:
    """Make a dragonfly: groups of fully connected routers, in which every two groups are joined by cables.

    The source is Kim, Dally, Scott and Abts, "Technology-driven, highly-scalable dragonfly topology", 2008, with its
    letters a, p, h, g. With fewer than a h + 1 groups, every two groups have the same number of cables; ports that are
    left over give some of them one more, and a port without a partner stays free. Routers are named
    ``group<n>/<router>``. Ports: hosts first, then the group's other routers in order, then the global cables.

    :param routers: a, number of routers per group.
    :param hosts: p, number of hosts per router.
    :param links: h, number of global ports per router.
    :param groups: g, number of groups from 1 to a h + 1 (the default).
    :param rate: bandwidth of every link in bytes/s.
    :param name: name of the fabric; by default ``dragonfly(a=.., p=.., h=.., g=..)``.
    :raises FabricError: if a number is out of its range.
    """
    check_at_least(1, "routers and hosts", [routers, hosts])
    check_at_least(0, "global links", [links])
    most = routers * links + 1
    groups = most if groups is None else groups
    if not 1 <= groups <= most:
        raise FabricError(f"expecting groups between 1 and {most} (a h + 1), got {groups}")
    total = groups * routers
    check_size(total * hosts, total * (routers + links))
    host = np.arange(total * hosts)
    first = len(host)  # the first router's vertex
    parts = [
        cables(host, first + host // hosts, 1, 1 + host % hosts, rate),
        _local_cables(first + np.arange(groups) * routers, routers, hosts, rate),
        _global_cables(first + np.arange(groups) * routers, routers, links, hosts + routers, rate),
    ]
    names = tuple(f"group{group}/{router}" for group in range(groups) for router in range(routers))
    drawn = Blueprint(len(host), names, Cables.join(parts))
    return drawn.build(name or f"dragonfly(a={routers}, p={hosts}, h={links}, g={groups})")


def dragonfly_plus(
    leaves: int,
    spines: int,
    hosts: int,
    links: int,
    groups: int | None = None,
    rate: float = DEFAULT_RATE,
    name: str | None = None,
) -> Fabric:
    """Make a Dragonfly+: groups of leaf and spine switches, in which the spines of every two groups are joined.

    The source is Shpiner et al., "Dragonfly+: Low Cost Topology for Scaling Datacenters", 2017. Each leaf switch of a
    group has a cable to each of its spines. Global cables join spines, and are divided among pairs of groups as in
    ``dragonfly``. A shortest path between groups crosses a leaf switch and a spine of each. Switches are named
    ``group<n>/leaf<i>`` and ``group<n>/spine<i>``. Ports of a leaf switch: hosts, then spines; of a spine: leaf
    switches, then the global cables.

    :param leaves: number of leaf switches per group.
    :param spines: number of spines per group.
    :param hosts: number of hosts per leaf switch.
    :param links: number of global ports per spine.
    :param groups: number of groups from 1 to spines x links + 1 (the default).
    :param rate: bandwidth of every link in bytes/s.
    :param name: name of the fabric; by default ``dragonfly+(leaves=.., spines=.., hosts=.., links=..; groups=..)``.
    :raises FabricError: if a number is out of its range.
    """
    check_at_least(1, "leaf switches, spines and hosts", [leaves, spines, hosts])
    check_at_least(0, "global links", [links])
    most = spines * links + 1
    groups = most if groups is None else groups
    if not 1 <= groups <= most:
        raise FabricError(f"expecting groups between 1 and {most} (spines x links + 1), got {groups}")
    check_size(groups * leaves * hosts, groups * (leaves * spines + spines * links), groups * (leaves + spines))
    host = np.arange(groups * leaves * hosts)
    group_start = len(host) + np.arange(groups) * (leaves + spines)
    leaf, spine = np.arange(leaves)[:, None], np.arange(spines)
    start = group_start[:, None, None]
    parts = [
        cables(host, group_start[host // (leaves * hosts)] + host // hosts % leaves, 1, 1 + host % hosts, rate),
        cables(start + leaf, start + leaves + spine, hosts + 1 + spine, 1 + leaf, rate),
        _global_cables(group_start + leaves, spines, links, leaves + 1, rate),
    ]
    inside = [f"leaf{number}" for number in range(leaves)] + [f"spine{number}" for number in range(spines)]
    names = tuple(f"group{group}/{switch}" for group in range(groups) for switch in inside)
    about = f"dragonfly+(leaves={leaves}, spines={spines}, hosts={hosts}, links={links}; groups={groups})"
    return Blueprint(len(host), names, Cables.join(parts)).build(name or about)


def group_of_switches(fabric: Fabric) -> Integers:
    """The group of each switch of a generated dragonfly, read from its name ``group<n>/...``, shape (switches,).

    :param fabric: the fabric, or a part of one.
    :raises FabricError: if a switch's name is not ``group<n>/...``.
    """
    found = [re.match(r"group([0-9]+)/", name) for name in fabric.switch_names]
    if None in found:
        raise FabricError(
            f"{fabric.name}: expecting switches group<n>/..., got {fabric.switch_names[found.index(None)]}"
        )
    return np.array([int(one[1]) for one in found if one], dtype=np.int64)


def _local_cables(group_start: Integers, routers: int, hosts: int, rate: float) -> Cables:
    """Make one cable between any two routers of each group; a router's ports are in the order of the other routers.

    :param group_start: vertex of each group's first router, shape (groups,).
    :param routers: number of routers per group.
    :param hosts: number of hosts per router.
    :param rate: bandwidth in bytes/s.
    """
    lower, upper = np.triu_indices(routers, 1)
    start = group_start[:, None]
    return cables(start + lower, start + upper, hosts + upper, hosts + 1 + lower, rate)


def _global_cables(group_start: Integers, routers: int, links: int, port: int, rate: float) -> Cables:
    """Make the cables between groups.

    A group's global ports are numbered router by router, ``links`` per router. Port q of group g leads to group (g +
    ``offset[q]``) modulo the number of groups; its other end is port ``back[q]`` of that group, which has the opposite
    offset.

    :param group_start: vertex of each group's first router with global ports, shape (groups,).
    :param routers: number of routers with global ports per group.
    :param links: number of global ports per router.
    :param port: number of a router's first global port.
    :param rate: bandwidth in bytes/s.
    """
    groups = len(group_start)
    offset, back = _offsets(groups, routers * links)
    group, slot = np.ogrid[:groups, : len(offset)]
    # Each cable is found from both of its ends. Only one is kept: that with the smaller offset, else that of the lower
    # group.
    keep = (2 * offset < groups) | ((2 * offset == groups) & (2 * group < groups))
    group, slot = np.nonzero(keep)
    far_group, far_slot = (group + offset[slot]) % groups, back[slot]
    links = max(links, 1)
    near = group_start[group] + slot // links
    far = group_start[far_group] + far_slot // links
    return cables(near, far, port + slot % links, port + far_slot % links, rate)


def _offsets(groups: int, ports: int) -> tuple[Integers, Integers]:
    """Compute for each global port of a group the offset of the group that it leads to, and the port at its other end.

    The ports are divided into runs that contain each offset together with its opposite, sorted, so that the other end
    of a run's k-th port is the k-th port from its end. Every full run contains all offsets. The last run has one offset
    per remaining port: 1 and -1, 2 and -2, ..., and ``groups`` / 2 if their number is odd and ``groups`` is even.
    """
    others = groups - 1
    if not others:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    full, left = divmod(ports, others)
    near = np.arange(1, left // 2 + 1)
    half = [groups // 2] if left % 2 and groups % 2 == 0 else []
    runs = [np.arange(1, groups)] * full + [np.concatenate((near, half, groups - near[::-1])).astype(np.int64)]
    starts = np.cumsum([0] + [len(run) for run in runs])
    back = [start + np.arange(len(run))[::-1] for start, run in zip(starts, runs, strict=False)]
    return np.concatenate(runs), np.concatenate(back)
