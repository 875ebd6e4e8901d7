"""The networks of the four machines around the hosts of a job, from rows of allocations.

Links that are not published are parameters. A machine's parallel links are one link with the sum of their rates, as if
routing were adaptive and ideal.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from math import prod

import numpy as np

from topompi.errors import BenchmarkError
from topompi.schedules import Network
from topompi.schedules.analysis.loads import MOST_HOSTS
from topompi.topology import Fabric, FabricBuilder, TopologyInterface
from topompi.topology.computed import compute_routes
from topompi.topology.synthetic import torus
from topompi.views.network import network_of

from .data import read_table
from .torus import torus_network

__all__ = ["MACHINES", "Allocation", "Machine", "allocations", "network_on"]


@dataclass(frozen=True)
class Machine:
    """The rates of a machine's links in bytes/s, and what is assumed about its switches.

    :param adapter: rate of a host's adapters together.
    :param leaf: rate between a leaf switch and the rest of its group.
    :param between: rate between two groups, or between a group and the core of a fat tree.
    :param core: whether a core switch joins the groups, as in a fat tree; else every two groups are joined.
    :param near: the hosts that are assumed to share a leaf switch: ``switch`` as recorded, ``rack``, ``chassis``, or
        ``group``, or ``host`` if each has its own.
    """

    adapter: float
    leaf: float = 0.0
    between: float = 0.0
    core: bool = False
    near: str = "switch"


# Rates of adapters are published, except for Fugaku's and MareNostrum's (see docs/lab/pico.md). The others are assumed.
MACHINES: Mapping[str, Machine] = {
    "leonardo": Machine(adapter=50e9, leaf=18 * 25e9, between=18 * 25e9),
    "lumi": Machine(adapter=100e9, leaf=16 * 100e9, between=64 * 100e9, near="chassis"),
    "mare_nostrum": Machine(adapter=50e9, leaf=400e9, between=1600e9, core=True, near="rack"),
    "fugaku": Machine(adapter=6 * 6.8e9, between=6.8e9),
}


@dataclass(frozen=True)
class Allocation:
    """The hosts of a job.

    :param system: the machine.
    :param hosts: host of each rank.
    :param group: group of each host, by name: a cell, a cabinet or an island; empty on Fugaku.
    :param places: recorded switch, rack or position of each host, by its kind and name.
    :param grid: lengths of the torus that the job asked for; empty elsewhere.
    """

    system: str
    hosts: tuple[str, ...]
    group: Mapping[str, str]
    places: Mapping[str, Mapping[str, str]]
    grid: tuple[int, ...] = ()


def allocations(path: str) -> dict[tuple[str, int], Allocation]:
    """The allocation of each run and number of ranks, from a file of allocations.

    :raises BenchmarkError: if a row is wrong.
    """
    found = {}
    for line, row in enumerate(read_table(path), 2):
        try:
            found[row["run_id"], int(row["ranks"])] = _allocation(row)
        except (KeyError, ValueError, AttributeError) as error:
            raise BenchmarkError(f"{path}: line {line}: expecting an allocation, got {error!r}") from error
    return found


def _allocation(row: Mapping[str, str]) -> Allocation:
    if row["grid"]:
        grid = tuple(int(length) for length in row["grid"].split("x"))
        if prod(grid) != int(row["ranks"]):
            raise ValueError(f"expecting a torus of {row['ranks']} hosts, got {row['grid']}")
        return Allocation(row["system"], tuple(map(str, range(prod(grid)))), {}, {}, grid)
    names, ranks = [], []
    for token in row["hosts"].split():
        name, _, times = token.partition("*")
        names.append(name)
        ranks += [name] * int(times or 1)
    columns = {kind: row[kind].split() for kind in ("group", "switch", "rack", "position")}
    if len(ranks) != int(row["ranks"]) or len(columns["group"]) != len(names):
        raise ValueError(f"expecting {row['ranks']} ranks, each with a group, got {len(ranks)}")
    places = {kind: dict(zip(names, column, strict=True)) for kind, column in columns.items() if column}
    return Allocation(row["system"], tuple(ranks), places.pop("group"), places)


def _leaf(allocation: Allocation, near: str) -> dict[str, str]:
    """The leaf switch of each host, by name."""
    group, places = allocation.group, allocation.places
    if near == "switch":
        return dict(places["switch"])
    if near == "rack":
        return {host: f"{of}/{places['rack'][host]}" for host, of in group.items()}
    if near == "chassis":
        return {host: f"{of}/{re.split(r'[/s]', places['position'][host])[0]}" for host, of in group.items()}
    if near == "group":
        return {host: f"{of}/all" for host, of in group.items()}
    return {host: f"{of}/{host}" for host, of in group.items()}


def _fabric(allocation: Allocation, machine: Machine) -> Fabric:
    """The leaf switches and groups of a job's hosts; a group has one switch above its leaf switches."""
    leaf_of = _leaf(allocation, machine.near)
    group_of = {leaf: f"group {allocation.group[host]}" for host, leaf in leaf_of.items()}
    groups = list(dict.fromkeys(group_of.values()))
    builder = FabricBuilder(allocation.system, cabled=False)
    for switch in (*group_of, *groups, *(["core"] if machine.core else [])):
        builder.add_switch(switch)
    for host, leaf in leaf_of.items():
        builder.add_adapter(host, host)
        builder.add_cable(host, leaf, rate=machine.adapter)
    for leaf, group in group_of.items():
        builder.add_cable(leaf, group, rate=machine.leaf)
    for one, other in ((group, "core") for group in groups) if machine.core else combinations(groups, 2):
        builder.add_cable(one, other, rate=machine.between)
    return builder.build()


def network_on(allocation: Allocation, machine: Machine | None = None) -> Network:
    """The network of a job.

    :param allocation: the job's hosts.
    :param machine: rates and assumptions; by default those of `MACHINES`.
    """
    machine = machine or MACHINES[allocation.system]
    if allocation.grid:
        return _on_torus(allocation.grid, machine)
    return network_of(TopologyInterface.place(allocation.hosts, compute_routes(_fabric(allocation, machine))))


@cache
def _on_torus(grid: Sequence[int], machine: Machine) -> Network:
    if prod(grid) > MOST_HOSTS:
        return torus_network(tuple(grid), machine.between, machine.adapter)
    fabric = torus(grid, rate=machine.between)
    routes = compute_routes(fabric)
    network = network_of(TopologyInterface.place(fabric.hosts, routes))
    rate = np.full_like(network.capacity, machine.adapter)
    rate[fabric.switch_links] = machine.between
    return replace(network, capacity=rate)
