"""From the routes of a fabric, or of a job's part of it, to the tables that simulated packets take."""

from __future__ import annotations

import numpy as np

from ..errors import FabricError
from ..netsim.packets import Tables
from ..topology import Routes

__all__ = ["tables_of"]


def tables_of(routes: Routes, *, rate: float | None = None, latency: float | None = None) -> Tables:
    """Links and next-hop tables, with the fabric's own numbers of links and hosts; a host has its first adapter.

    :param routes: of a fabric, or of a job (``TopologyInterface.routes``).
    :param rate: bytes/s of links of unknown rate.
    :param latency: seconds of links of unknown latency.
    :raises FabricError: for links of unknown rate or latency, where none is given.
    """
    fabric = routes.fabric
    hosts, adapters = fabric.num_hosts, fabric.num_adapters
    first = np.array([of_host[0] for of_host in fabric.host_adapters], dtype=np.int64)
    # Hosts, switches, and adapters that are not used: these stand as switches to which no route leads.
    vertex = np.arange(adapters + fabric.num_switches)
    vertex[adapters:] += hosts - adapters
    others = np.setdiff1d(np.arange(adapters), first)
    vertex[first] = np.arange(hosts)
    vertex[others] = hosts + fabric.num_switches + np.arange(len(others))
    table = routes.next_link[0][:, first]
    names = (*fabric.hosts, *fabric.switch_names, *(fabric.adapter_ids[other] for other in others))
    values = {}
    for name, column, default in (("rate", fabric.link_rate, rate), ("latency", fabric.link_latency, latency)):
        unknown = np.isnan(column)
        if unknown.any() and default is None:
            raise FabricError(f"{fabric.name}: expecting the {name} of all links, got {unknown.sum()} unknown")
        values[name] = np.where(unknown, np.nan if default is None else default, column)
    return Tables(
        source=vertex[fabric.link_source].astype(np.int32),
        target=vertex[fabric.link_target].astype(np.int32),
        next_link=np.concatenate((table, np.full((len(others), hosts), -1, dtype=np.int32))),
        names=names,
        **values,
    )
