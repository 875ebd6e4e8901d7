"""Construction of fabrics of hosts, leaf switches and groups, from sources that list no ports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import combinations

from ..builder import FabricBuilder
from ..fabric import Fabric

__all__ = ["MAX_JOINED", "add_cables", "grouped_fabric"]

MAX_JOINED = 256  # groups; one switch joins more groups, because the cables between pairs grow with the square


def add_cables(builder: FabricBuilder, ends: Iterable[tuple[str, str]]) -> None:
    """Add cables with ports numbered from 1 at each end, in the given order.

    :param builder: builder of the fabric.
    :param ends: ids at both ends of each cable.
    """
    used: Counter[str] = Counter()
    for source, target in ends:
        used[source] += 1
        used[target] += 1
        builder.add_cable(source, target, used[source], used[target])


def grouped_fabric(name: str, leaf_of: Mapping[str, str], group_of: Mapping[str, str]) -> Fabric:
    """Make a fabric of hosts below leaf switches, leaf switches below group switches, and groups joined pairwise.

    A minimal path crosses 1 switch within a leaf, 3 within a group, 4 between groups. If there are more than
    ``MAX_JOINED`` groups, one switch, ``groups``, joins them instead, and a path between groups crosses 5.

    :param name: name of the fabric.
    :param leaf_of: host -> leaf switch.
    :param group_of: leaf switch -> group switch, empty if it has none.
    :raises FabricError: if a host has the name of a switch.
    Cost: linear in hosts and leaf switches, plus at most ``MAX_JOINED`` squared / 2 cables.
    """
    groups = list(dict.fromkeys(group for group in group_of.values() if group))
    top = [] if len(groups) <= MAX_JOINED else ["groups"]
    builder = FabricBuilder(name, cabled=False)
    for switch in [*group_of, *groups, *top]:
        builder.add_switch(switch, where=name)
    for host in leaf_of:
        builder.add_adapter(host, host, where=name)
    between = ((group, top[0]) for group in groups) if top else combinations(groups, 2)
    add_cables(builder, [*leaf_of.items(), *((leaf, group) for leaf, group in group_of.items() if group), *between])
    return builder.build()
