"""Mappings of ranks to slots of hosts, as pure functions of data, without MPI.

``graph`` is the communication graph, ``machine`` the hosts with their slots and ``distances``, ``mapping`` the slot of
each rank. ``evaluate`` computes the cost of a mapping and ``comparison`` compares two. ``search`` finds a mapping as
``topompi map`` does, with ``mappers``, which use ``partition``. ``readers`` reads communication graphs, ``rankfiles``
writes and reads the files of launchers, and ``placement`` has the launchers' plain placements.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from .evaluate import Evaluation, evaluate
from .graph import CommunicationGraph
from .machine import Machine
from .mapping import Mapping
from .placement import place

if TYPE_CHECKING:
    from .comparison import compare
    from .mappers import MAPPERS
    from .mappers.portfolio import best
    from .readers import read_graph
    from .search import Search, solve

__all__ = [
    "MAPPERS",
    "CommunicationGraph",
    "Evaluation",
    "Machine",
    "Mapping",
    "Search",
    "best",
    "compare",
    "evaluate",
    "place",
    "read_graph",
    "solve",
]

# Late imports, because most programs that use a mapping neither search for one nor read a graph.
_LATER = {
    "MAPPERS": ".mappers",
    "Search": ".search",
    "best": ".mappers.portfolio",
    "compare": ".comparison",
    "read_graph": ".readers",
    "solve": ".search",
}


def __getattr__(name: str) -> object:
    if name in _LATER:
        return getattr(import_module(_LATER[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names, whether imported already or not."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
