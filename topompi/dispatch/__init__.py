"""From a call to what runs it: the table of calls, the choice for calls that it lacks, and the counters."""

from .calls import COMPILED

__all__ = ["COMPILED"]
