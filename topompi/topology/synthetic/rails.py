"""Fabrics in several equal planes, with an adapter of each host in each plane."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..fabric import Fabric
from .blueprint import ADAPTER_GUID, SWITCH_GUID, check_at_least, check_size, guids

__all__ = ["with_rails"]


def with_rails(fabric: Fabric, rails: int) -> Fabric:
    """Repeat a fabric in several planes that no cable joins; adapter k of each host is in plane k.

    :param fabric: fabric whose hosts have one adapter each.
    :param rails: number of planes, at least 1. Switches of all but the first have ``plane1/``, ``plane2/``, ... before
        their names.
    :raises FabricError: if there is no plane, or the result is too large.
    """
    check_at_least(1, "rails", [rails])
    hosts, switches = fabric.num_adapters, fabric.num_switches
    check_size(rails * hosts, rails * switches, rails * fabric.num_links)
    plane = np.repeat(np.arange(rails, dtype=np.int32), fabric.num_links)

    def moved(vertices: np.ndarray) -> np.ndarray:
        every = np.tile(vertices, rails)
        return np.where(every < hosts, every + plane * hosts, every + plane * switches + (rails - 1) * hosts)

    source, port = moved(fabric.link_source), np.tile(fabric.link_source_port, rails)
    order = np.lexsort((port, source))
    return replace(
        fabric,
        adapter_ids=guids(ADAPTER_GUID, rails * hosts),
        adapter_host=np.tile(fabric.adapter_host, rails),
        switch_ids=guids(SWITCH_GUID, rails * switches),
        switch_names=tuple(
            f"plane{number}/{name}" if number else name for number in range(rails) for name in fabric.switch_names
        ),
        link_source=source[order],
        link_target=moved(fabric.link_target)[order],
        link_source_port=port[order],
        link_target_port=np.tile(fabric.link_target_port, rails)[order],
        link_rate=np.tile(fabric.link_rate, rails)[order],
        link_latency=np.tile(fabric.link_latency, rails)[order],
    )
