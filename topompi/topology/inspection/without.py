"""A fabric in which switches or single cables are down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...errors import FabricError
from ..computed import ComputedLinks, compute_routes
from ..fabric import Fabric
from ..routes import Routes, subfabric

__all__ = ["without"]


def without(routes: Routes, down: Sequence[str]) -> Routes:
    """The routes that are left where switches or cables are down.

    Computed routes are computed again. Tables stay as they are until the subnet manager writes new ones, so that their
    entries for links that are gone lead nowhere.

    :param routes: over the whole fabric.
    :param down: ids or names of switches; or SWITCH:PORT for the cable at that port.
    :raises FabricError: for a switch, a name that one switch has, or a port with a cable, that there is not.
    Cost: a table of the fabric; see ``compute_routes`` where routes are computed.
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
    return _cut(routes, np.flatnonzero(~gone), np.flatnonzero(~lost))


def _find(fabric: Fabric, name: str) -> tuple[int, int | None]:
    """The switch that a word names, and the port behind its last colon where that is none of the switch's name."""
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


def _cut(routes: Routes, links: NDArray[np.intp], switches: NDArray[np.intp]) -> Routes:
    fabric = routes.fabric
    every = np.arange(fabric.num_hosts, dtype=np.int32)
    adapters = np.concatenate([np.empty(0, dtype=np.int32), *fabric.host_adapters])
    rest = replace(subfabric(fabric, every, adapters, links, switches), part_of=None)
    if isinstance(routes.table, ComputedLinks):
        return compute_routes(rest)
    number = np.full(fabric.num_links + 1, -1, dtype=np.int32)
    number[links] = np.arange(len(links))
    return Routes(rest, routes.engine, number[routes.next_link[:, switches][:, :, adapters]])
