"""``topompi topology inside``: the packages, NUMA nodes, caches, cores and adapters of a host."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.tree import Tree

from ...topology import Fabric
from ...topology.inside import Adapter, HostPart, Inside, host_of
from ...topology.inside.cpus import write_cpu_list
from ...topology.inside.finding import find_inside
from ...topology.inside.hwlocxml import read_file
from ..inputs import AsJson, TopologyOptions, list_findings, reading, topology
from ..terminal import Limit, console

__all__ = ["inside"]

_FABRIC = "A topology source: says which of its hosts this is, by the GUIDs of the adapters."


def inside(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="XML of hwloc (lstopo FILE.xml); else this host is looked at."),
    ] = None,
    fabric: Annotated[str | None, topology(_FABRIC)] = None,
    as_json: AsJson = False,
    limit: Limit = None,
) -> None:
    """Show the packages, NUMA nodes, shared caches, cores and adapters of a host.

    In a job whose ranks are bound to CPUs, these parts form the levels below the host.
    """
    found = find_inside() if file is None else read_file(file)
    joined = None
    if fabric is not None:
        with reading(fabric, None, TopologyOptions(partial=True)) as (discovery, report):
            joined = _place_in(discovery.fabric, found)
        list_findings(report)
    if as_json:
        print(json.dumps(_as_json(found, joined)))
    else:
        _draw(found, joined)


def _place_in(fabric: Fabric, found: Inside) -> dict[str, object]:
    """Return, ready for JSON, the name of a host in a fabric, and the switch at each of its adapters, by GUID.

    :param fabric: the fabric.
    :param found: the inside of the host, whose adapters are looked up in the fabric.
    """
    ports = {}
    for guid in found.guids():
        adapter = fabric.adapter_index.get(guid)
        if adapter is not None and fabric.adapter_leaf[adapter] >= 0:
            ports[guid] = fabric.switch_names[fabric.adapter_leaf[adapter]]
    return {"fabric": fabric.name, "host": host_of(fabric, found.guids()), "switches": ports}


def _as_json(found: Inside, joined: dict[str, object] | None) -> dict[str, object]:
    def listed(parts: tuple[HostPart, ...]) -> list[dict[str, object]]:
        return [{"kind": one.kind, "number": one.number, "cpus": write_cpu_list(one.cpus)} for one in parts]

    adapters = [
        {"name": one.name, "guid": one.guid, "ports": list(one.ports), "cpus": write_cpu_list(one.cpus)}
        for one in found.adapters
    ]
    facts: dict[str, object] = {"source": found.source, "host": found.host, "cpus": write_cpu_list(found.cpus)}
    for name in ("packages", "numa_nodes", "caches", "cores"):
        facts[name] = listed(getattr(found, name))
    return {**facts, "adapters": adapters, **({} if joined is None else {"joined": joined})}


def _draw(found: Inside, joined: dict[str, Any] | None) -> None:
    screen = console()
    counts = [
        _count(len(found.packages), "package"),
        _count(len(found.numa_nodes), "NUMA node"),
        *(_count(sum(one.kind == kind for one in found.caches), f"shared {kind}") for kind in _cache_kinds(found)),
        _count(len(found.cores), "core"),
        _count(found.cpus.bit_count(), "CPU"),
    ]
    root = Tree(f"{found.host or 'a host without a name'}: {', '.join(counts)}")
    _add(root, found, list(found.parts()), found.adapters)
    screen.print(root)
    screen.print(f"from {found.source}")
    if joined is not None:
        words = "none of these adapters" if joined["host"] is None else f"this is {joined['host']}"
        screen.print(f"in {joined['fabric']}: {words}")
        for guid, switch in joined["switches"].items():
            screen.print(f"  {guid} at {switch}")


def _add(above: Tree, found: Inside, parts: list[HostPart], adapters: tuple[Adapter, ...]) -> None:
    """Add parts of a host to a tree, in which each node has a set of CPUs and below it the parts within this set.

    Parts with the same CPUs, for example a package and its NUMA node, are one node of the tree.

    :param above: the printed tree, or a node of it, to which nodes are added.
    :param found: the inside of the host.
    :param parts: the parts to add.
    :param adapters: the adapters to add, each below the innermost node with all of its CPUs.
    """
    while parts:
        most = max(parts, key=lambda part: part.cpus.bit_count()).cpus
        same = [part for part in parts if part.cpus == most]
        within = [part for part in parts if part.cpus != most and not part.cpus & ~most and part.cpus]
        parts = [part for part in parts if part not in same and part not in within]
        names = ", ".join(part.kind if part.kind[0] == "L" else f"{part.kind} {part.number}" for part in same)
        if not most:
            above.add(f"{names}: no CPUs")
            continue
        cores = _count(sum(not core.cpus & ~most for core in found.cores), "core")
        here = above.add(f"{names}: {cores}, CPUs {write_cpu_list(most)}")
        near = tuple(one for one in adapters if one.cpus and not one.cpus & ~most)
        adapters = tuple(one for one in adapters if one not in near)
        _add(here, found, within, near)
    for one in adapters:
        above.add(f"adapter {one.name}: {one.guid}, ports {', '.join(one.ports) or 'unknown'}")


def _cache_kinds(found: Inside) -> list[str]:
    return list(dict.fromkeys(one.kind for one in found.caches))


def _count(number: int, name: str) -> str:
    return f"{number:,} {name}{'s' * (number != 1)}"
