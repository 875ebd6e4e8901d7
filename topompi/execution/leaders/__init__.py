"""Collectives over the leaders of a job's levels, by the MPI library's own collectives on sub-communicators."""

from __future__ import annotations

from collections.abc import Callable

from ..specs import CALLS
from . import rooted, symmetric

__all__ = ["LEADERS"]

# Call -> what runs it, of the groups and the call's arguments: the function of the call's name, in lower case.
LEADERS: dict[str, Callable[..., None]] = {
    name: getattr(rooted if hasattr(rooted, name.lower()) else symmetric, name.lower())
    for name, spec in CALLS.items()
    if spec.leaders
}
