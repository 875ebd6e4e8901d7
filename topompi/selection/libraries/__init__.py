"""Models of the MPI libraries that people run: which algorithm each takes for which call."""

from __future__ import annotations

from .base import Decision, Library, Question

__all__ = ["KNOWN", "Decision", "Library", "Question"]

KNOWN: tuple[Library, ...] = ()  # one of each library
