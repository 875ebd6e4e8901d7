"""A fabric after the failure of switches or single cables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...errors import FabricError
from ..computed import ComputedLinks, compute_routes
from ..fabric import Fabric, IntArray
from ..routes import Routes, subfabric

__all__ = ["cut", "without"]


def without(routes: Routes, down: Sequence[str]) -> Routes:
    """Find the routes that remain after the failure of switches or cables.

    Computed routes are computed again. Forwarding tables keep their other entries, because they change only when the
    subnet manager writes new ones; entries for failed links become -1, no link.

    :param routes: the routes over the whole fabric.
    :param down: ids or names of failed switches; SWITCH:PORT for the failed cable at that port.
    :raises FabricError: if a name matches no switch or several switches, or the port has no cable.
    Cost: a copy of the forwarding tables; for computed routes see ``compute_routes``.
    """
    if not down:
        return routes
    fabric = routes.fabric
    gone = np.zeros(fabric.num_links, dtype=bool)
    lost = np.zeros(fabric.num_switches, dtype=bool)
    for name in down:
        switch, port = _find(fabric, name)
        ends = switch + fabric.num_adapters
        if port is None:
            lost[switch] = True
            gone |= (fabric.link_source == ends) | (fabric.link_target == ends)
        else:
            cable = ((fabric.link_source == ends) & (fabric.link_source_port == port)) | (
                (fabric.link_target == ends) & (fabric.link_target_port == port)
            )
            if not cable.any():
                raise FabricError(
                    f"{fabric.name}: expecting a port of {fabric.describe_switch(switch)} with a cable, got {port}"
                )
            gone |= cable
    return cut(routes, np.flatnonzero(~gone), np.flatnonzero(~lost))


def _find(fabric: Fabric, name: str) -> tuple[int, int | None]:
    """Find the switch that a user's ``SWITCH`` or ``SWITCH:PORT`` names, and the port, None if the text has none.

    The longest match wins, because the name of a switch may contain colons.
    """
    switches = [number for number, one in enumerate(fabric.switch_names) if one == name]
    if name in fabric.switch_index:
        switches = [fabric.switch_index[name]]
    if len(switches) == 1:
        return switches[0], None
    rest, colon, port = name.rpartition(":")
    if not switches and colon and port.isdecimal() and len(port) < 6:
        return _find(fabric, rest)[0], int(port)
    examples = ", ".join(fabric.describe_switch(switch) for switch in range(min(3, fabric.num_switches)))
    got = f"{len(switches)} of that name" if switches else "none"
    raise FabricError(f"{fabric.name}: expecting one switch {name!r} (such as {examples}), got {got}")


def cut(
    routes: Routes,
    links: NDArray[np.intp],
    switches: NDArray[np.intp],
    adapters: IntArray | None = None,
    hosts: IntArray | None = None,
) -> Routes:
    """Restrict routes to a part of the fabric: recompute computed routes, or remove a table's entries for other links.

    :param routes: the routes over the whole fabric.
    :param links: numbers of the links to keep, whose ends are kept.
    :param switches: numbers of the switches to keep.
    :param adapters: numbers of the adapters to keep, host by host; None for all.
    :param hosts: numbers of the hosts of these adapters, ascending; None for all.
    """
    fabric = routes.fabric
    hosts = np.arange(fabric.num_hosts, dtype=np.int32) if hosts is None else hosts
    if adapters is None:
        adapters = np.concatenate([np.empty(0, dtype=np.int32), *fabric.host_adapters])
    rest = replace(subfabric(fabric, hosts, adapters, links, switches), part_of=None)
    if isinstance(routes.table, ComputedLinks):
        return compute_routes(rest)
    number = np.full(fabric.num_links + 1, -1, dtype=np.int32)
    number[links] = np.arange(len(links))
    return Routes(rest, routes.engine, number[routes.next_link[:, switches][:, :, adapters]])
