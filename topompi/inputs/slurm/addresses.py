"""The switches above a job's hosts, from the variable ``SLURM_TOPOLOGY_ADDR`` that Slurm gives every task."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from ...errors import SourceError
from ..hostlist import expand
from .environment import ADDRESS
from .switches import SwitchRow

__all__ = ["NAME", "switches_above"]

NAME = "SLURM_TOPOLOGY_ADDR of the job's hosts"


def switches_above(addresses: Mapping[str, tuple[str, str]]) -> list[SwitchRow]:
    """Return the switches that are named in the addresses of a job's hosts, with their hosts and child switches.

    :param addresses: (address, pattern) by host, for example ``("core.leaf1.n1", "switch.switch.node")``; the pattern
        gives the kind of each part, ``block`` is a kind of switch. A part may be a host list, ``core[1-2]``, if the
        switch below it has several parents.
    :raises SourceError: if an address does not fit its pattern, names no switch, or belongs to another host.
    """
    children: dict[str, dict[str, None]] = {}
    nodes: dict[str, dict[str, None]] = {}
    for host, (address, pattern) in addresses.items():
        levels = _switches(host, address, pattern)
        for above, below in itertools.pairwise(levels):
            for switch in above:
                children.setdefault(switch, {}).update(dict.fromkeys(below))
        if len(levels[-1]) != 1:
            raise SourceError(f"{ADDRESS} of {host}: expecting one switch above the node, got {address[:80]!r}")
        nodes.setdefault(levels[-1][0], {})[address.rpartition(".")[2]] = None
    return [
        SwitchRow(name, tuple(nodes.get(name, ())), tuple(children.get(name, ())), f"{ADDRESS}, switch {name}")
        for name in dict.fromkeys([*children, *nodes])
    ]


def _switches(host: str, address: str, pattern: str) -> list[list[str]]:
    """Return the names of the switches above a host, level by level from the top."""
    kinds, parts = pattern.split("."), address.split(".")
    if kinds[-1] != "node" or set(kinds[:-1]) - {"switch", "block"} or len(kinds) != len(parts):
        raise SourceError(f"{ADDRESS} of {host}: expecting an address as {pattern[:80]!r} says, got {address[:80]!r}")
    if parts[-1] != host.partition(".")[0]:  # launchers may pass their own host's variables to all ranks
        raise SourceError(f"{ADDRESS} of {host}: expecting an address that ends with its name, got {address[:80]!r}")
    if len(kinds) == 1:
        raise SourceError(f"{ADDRESS} of {host}: expecting a switch above the node, got {address[:80]!r}")
    return [expand(part) for part in parts[:-1]]
