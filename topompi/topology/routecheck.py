"""Check of routes for loops and dead ends between connected hosts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..errors import RouteError
from ..network import LOOPS
from .computed import ComputedLinks, compute_routes
from .discovery import Discovery, Report
from .fabric import Fabric
from .routes import Routes

__all__ = ["check_routes", "with_routes"]

MAX_EXAMPLES = 3
BoolArray = NDArray[np.bool_]


def with_routes(discovery: Discovery, report: Report) -> Discovery:
    """Check the routes of a discovery (a source that was read), after computing them if the source has none.

    :param discovery: the outcome of reading a source.
    :param report: receiver of progress and problems.
    :raises RouteError: (a partial report only records it) if a route loops or ends at a switch without a next-hop link.
    """
    if discovery.routes is None:
        report.step("routes")
        discovery = replace(discovery, routes=compute_routes(discovery.fabric))
    assert discovery.routes is not None  # for the type checker
    check_routes(discovery.routes, report)
    return discovery


def check_routes(routes: Routes, report: Report) -> None:
    """Report ordered pairs of hosts that lack a route although they are in the same connected component.

    A pair lacks a route if some adapter of the first host fails to reach some adapter of the second host, in the same
    component, by one of the alternative routes (LMC). Adapters on different rails need not be connected.

    :param routes: the routes to check.
    :param report: receiver of progress and the problem.
    :raises RouteError: (a partial report only records it) with the number of pairs without a route and up to three of
        them by name.
    Cost: one route followed per leaf switch, adapter and alternative route; none if the routes are computed and
    certainly reach all hosts.
    """
    if isinstance(routes.table, ComputedLinks) and routes.table.arrive_everywhere():
        return
    broken = _broken(routes, report)
    pairs = _count_pairs(routes.fabric, broken)
    if pairs:
        some = "ordered pair of hosts has" if pairs == 1 else "ordered pairs of hosts have"
        examples = "; ".join(_examples(routes, broken))
        report.problem(RouteError(f"{routes.engine}: {pairs:,} {some} no route: {examples}"))


def _broken(routes: Routes, report: Report) -> BoolArray:
    """Find the leaf switches and adapters of one component between which an alternative route (LMC) does not arrive.

    :param routes: the routes to check.
    :param report: receiver of progress.
    :returns: truth values of shape (switches, adapters).
    """
    fabric = routes.fabric
    adapters = np.flatnonzero(fabric.adapter_leaf >= 0).astype(np.int32)
    leaves = np.unique(fabric.adapter_leaf[adapters])
    component = fabric.switch_component
    connected = component[leaves][:, None] == component[fabric.adapter_leaf[adapters]]
    broken = np.zeros((fabric.num_switches, fabric.num_adapters), dtype=np.bool_)
    for path in range(routes.num_paths):
        report.step("checking routes", path, routes.num_paths)
        broken[np.ix_(leaves, adapters)] |= connected & (routes.tables.hops_from(leaves, adapters, path) < 0)
    return broken


def _count_pairs(fabric: Fabric, broken: BoolArray) -> int:
    """Number of ordered pairs of different hosts with a broken route.

    Hosts with the same set of leaf switches lack the same routes, so the work grows with leaves x hosts, not with pairs
    of hosts.
    """
    groups: dict[tuple[int, ...], int] = {}
    group_of = np.empty(fabric.num_hosts, dtype=np.int64)
    for host, adapters in enumerate(fabric.host_adapters):
        leaves = np.unique(fabric.adapter_leaf[adapters])
        group_of[host] = groups.setdefault(tuple(leaves[leaves >= 0].tolist()), len(groups))
    sizes = np.bincount(group_of, minlength=len(groups))
    pairs = 0
    for leaves_of_group, group in groups.items():
        lost = np.unique(fabric.adapter_host[broken[list(leaves_of_group)].any(axis=0)])
        pairs += int(sizes[group]) * len(lost) - int((group_of[lost] == group).sum())
    return pairs


def _examples(routes: Routes, broken: BoolArray) -> Iterator[str]:
    fabric = routes.fabric
    given = 0
    for leaf, adapter in np.argwhere(broken).tolist():
        on_leaf = fabric.adapter_host[fabric.adapter_leaf == leaf]
        others = on_leaf[on_leaf != fabric.adapter_host[adapter]]
        if given == MAX_EXAMPLES:
            return
        if len(others):
            given += 1
            source, target = fabric.hosts[others[0]], fabric.hosts[fabric.adapter_host[adapter]]
            yield f"{source} -> {target} {_end(routes, leaf, adapter)}"


def _end(routes: Routes, leaf: int, adapter: int) -> str:
    """Describe in words the end of the first route from a leaf to an adapter that fails: the switch where it stops.

    :param routes: the routes to follow.
    :param leaf: number of the leaf switch.
    :param adapter: number of the destination adapter.
    """
    start, target = np.array([leaf], dtype=np.int32), np.array([adapter], dtype=np.int32)
    for path in range(routes.num_paths):
        hops, _, last = routes.tables.walk(start, target, path)
        if hops[0] < 0:
            how = "loops at" if hops[0] == LOOPS else "dies at"
            return f"{how} switch {routes.fabric.describe_switch(int(last[0]))}"
    return "has a route"
