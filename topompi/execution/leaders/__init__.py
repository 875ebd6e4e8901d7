"""Collectives that run in stages without a plan: over leaders, or by carriers.

A leader is the one rank per host, leaf switch and so on that speaks for it. Carriers are ranks that send between hosts
for the other ranks of their host.
"""

from __future__ import annotations

from collections.abc import Callable

from ..specs import CALLS
from . import rooted, symmetric
from .carriers import alltoallv, take_part_by_carriers
from .rooted import take_part as take_part_over_leaders

__all__ = ["LEADERS", "alltoallv", "take_part_by_carriers", "take_part_over_leaders"]

# By name of the call, the function that runs it, given the levels and the call's arguments.
LEADERS: dict[str, Callable[..., None]] = {
    name: getattr(rooted if hasattr(rooted, name.lower()) else symmetric, name.lower())
    for name, spec in CALLS.items()
    if spec.leaders
}
