"""Explanations of words that printed names of MPI libraries' algorithms begin with."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["footnotes"]

_MODULES = {"han": "Open MPI's hierarchical module, which runs a collective inside each host and between hosts"}


def footnotes(texts: Iterable[str]) -> list[str]:
    """A line for each module of a library that the texts name, as in ``han: inside hosts and between them``.

    :param texts: printed reasons, or names of algorithms.
    """
    everything = "\n".join(texts)
    return [f"{module}: {words}" for module, words in _MODULES.items() if f"{module}: " in everything]
