"""Collectives over the leaders of a job's levels, by the MPI library's own collectives on sub-communicators."""

from __future__ import annotations

from collections.abc import Callable

from ..specs import CALLS
from . import rooted, symmetric
from .rooted import take_part as take_part_over_leaders

__all__ = ["LEADERS", "take_part_over_leaders"]

# Call -> what runs it, of the levels and the call's arguments: the function of the call's name, in lower case.
LEADERS: dict[str, Callable[..., None]] = {
    name: getattr(rooted if hasattr(rooted, name.lower()) else symmetric, name.lower())
    for name, spec in CALLS.items()
    if spec.leaders
}
