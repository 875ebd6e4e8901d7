"""A part of a fabric: some of its hosts, switches and links, renumbered."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .fabric import Fabric, IntArray

__all__ = ["subfabric"]


def subfabric(
    fabric: Fabric, hosts: IntArray, adapters: IntArray, links: NDArray[np.intp], switches: NDArray[np.intp]
) -> Fabric:
    """The fabric of these hosts, adapters, links and switches, in this order.

    :param fabric: the whole.
    :param hosts: host numbers, shape (n,).
    :param adapters: theirs, host by host; none of other hosts.
    :param links: numbers of links between these adapters and switches.
    :param switches: numbers of switches.
    """
    vertex = np.full(fabric.num_adapters + fabric.num_switches, -1, dtype=np.int32)
    vertex[adapters] = np.arange(len(adapters))
    vertex[fabric.num_adapters + switches] = len(adapters) + np.arange(len(switches))
    rails = [len(fabric.host_adapters[host]) for host in hosts]
    return Fabric(
        name=fabric.name,
        hosts=tuple(fabric.hosts[host] for host in hosts),
        adapter_ids=tuple(fabric.adapter_ids[adapter] for adapter in adapters),
        adapter_host=np.repeat(np.arange(len(hosts), dtype=np.int32), rails),
        switch_ids=tuple(fabric.switch_ids[switch] for switch in switches),
        switch_names=tuple(fabric.switch_names[switch] for switch in switches),
        link_source=vertex[fabric.link_source[links]],
        link_target=vertex[fabric.link_target[links]],
        link_source_port=fabric.link_source_port[links],
        link_target_port=fabric.link_target_port[links],
        link_rate=fabric.link_rate[links],
        link_latency=fabric.link_latency[links],
        cabled=fabric.cabled,
        part_of=None if fabric.torus is None else fabric.torus.of(switches),
    )
