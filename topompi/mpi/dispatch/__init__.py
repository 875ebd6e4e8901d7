"""The dispatch of a collective call to the function that runs it: table of calls, choice of algorithm, counters."""

from .calls import COMPILED

__all__ = ["COMPILED"]
