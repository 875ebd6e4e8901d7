"""Which rank goes where: pure data in, pure data out, no MPI.

Where things are: ``graph`` who sends how much to whom, ``machine`` hosts, slots and ``distances`` between them,
``mapping`` a rank's slot and a slot's rank, ``evaluate`` what a mapping costs, ``comparison`` two of them; ``search``
finds one as ``topompi map`` does, by ``mappers`` with ``partition`` beneath; ``readers`` reads communication graphs,
``rankfiles`` writes and reads what launchers take; ``placement`` has the launchers' own plain placements.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

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

# What finds mappings and reads graphs is imported when it is asked for: most programs that hold a mapping do neither.
_LATER = {
    "MAPPERS": ".mappers",
    "Search": ".search",
    "best": ".mappers.portfolio",
    "compare": ".comparison",
    "read_graph": ".readers",
    "solve": ".search",
}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(_LATER[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names, imported or not."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
