"""Conversions of a fabric and a job into inputs of schedules, mapping, simulation and job scheduling, without MPI."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..inputs.extensions import when_used

if TYPE_CHECKING:
    from .allocation import Allocation, allocation_of, machine_on
    from .cluster import cluster_of, read_cluster
    from .machine import machine_of
    from .network import network_of
    from .scheduled import Made, calibrated, steps_of, summarise

__all__ = [
    "Allocation",
    "Made",
    "allocation_of",
    "calibrated",
    "cluster_of",
    "machine_of",
    "machine_on",
    "network_of",
    "read_cluster",
    "steps_of",
    "summarise",
]

# Imported at first use, because a job that runs schedules needs neither mappers nor clusters.
__getattr__ = when_used(
    __name__,
    {
        **dict.fromkeys(("Allocation", "allocation_of", "machine_on"), "allocation"),
        **dict.fromkeys(("cluster_of", "read_cluster"), "cluster"),
        "machine_of": "machine",
        "network_of": "network",
        **dict.fromkeys(("Made", "calibrated", "steps_of", "summarise"), "scheduled"),
    },
)


def __dir__() -> list[str]:
    """The public names, including those that are not imported yet."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
