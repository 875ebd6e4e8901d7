"""The way of a call to the function that runs it: table of calls, choice of an algorithm, and counters."""

from .calls import COMPILED

__all__ = ["COMPILED"]
