"""The hardware of a host (packages, NUMA nodes, caches, cores, adapters), and the parts that a process is bound to."""

from __future__ import annotations

from .binding import ProcessPlace, host_of, own_place
from .values import KINDS, Adapter, HostPart, Inside

__all__ = ["KINDS", "Adapter", "HostPart", "Inside", "ProcessPlace", "host_of", "own_place"]
