"""The hardware of a host (packages, NUMA nodes, caches, cores, adapters), and the parts that a process is bound to."""

from __future__ import annotations

from .binding import Place, host_of, own_place
from .values import KINDS, Adapter, Inside, Part

__all__ = ["KINDS", "Adapter", "Inside", "Part", "Place", "host_of", "own_place"]
