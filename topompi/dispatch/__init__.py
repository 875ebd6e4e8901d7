"""From a call to what runs it: the table of calls, what is asked where it has no answer, and what it all did."""

from .calls import COMPILED

__all__ = ["COMPILED"]
