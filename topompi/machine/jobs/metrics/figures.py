"""All figures of a simulation's outcome, by name."""

from __future__ import annotations

from dataclasses import asdict

from ..outcome import Outcome
from .packing import average_hops, fragmentation
from .sharing import sharing
from .summary import summarise

__all__ = ["figures"]


def figures(outcome: Outcome) -> dict[str, float]:
    """Return the fields of `Summary` and, if nodes are known, of `Sharing`, ``average_hops`` and ``fragmentation``."""
    found = asdict(summarise(outcome))
    if outcome.has_nodes:
        hops = average_hops(outcome)[outcome.ran]
        found |= {"average_hops": float(hops.mean()), "fragmentation": fragmentation(outcome)}
        found |= asdict(sharing(outcome))
    return found
