"""The MPI calls that a program makes through topompi's communicators as its progress."""

from __future__ import annotations

from .counter import Counter

__all__ = ["CountedCalls"]


class CountedCalls(Counter):
    """The source of counted calls, which programs publish if ``TOPOMPI_SHUTTER`` is 1."""

    name, unit, kind = "calls", "collective calls", "calls"
    warning = "calls are steps of unequal work, and windows in which a job makes few calls say little"
