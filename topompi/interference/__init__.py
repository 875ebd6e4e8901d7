"""Jobs that share a network: the load that each brings, bounds on those it shares links with, simulation side by side.

``levels_of`` finds the levels of a fabric, ``read_traffic`` a job's bytes, ``place`` its hosts; ``characterise`` gives
the usage of each level, and the job's class. ``sharing`` and ``rivals`` count the jobs that can share a job's links.
``xgft`` has closed forms for fat trees, and ``slots`` two jobs that share one link in lanes. ``traces`` reads recorded
programs, ``placement`` places jobs on nodes, ``replay`` simulates jobs alone and together. ``speed`` is a
model of run times for whole logs, in which running jobs slow each other on shared links.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..extensions import when_used

if TYPE_CHECKING:
    from .characterisation import Character, LevelLoad, characterise
    from .classes import CLASSES, Thresholds
    from .errors import InterferenceError
    from .levels import Levels, levels_of
    from .placements import place
    from .speed import LinkSpeed
    from .traffic import Traffic, read_traffic

__all__ = [
    "CLASSES",
    "Character",
    "InterferenceError",
    "LevelLoad",
    "Levels",
    "LinkSpeed",
    "Thresholds",
    "Traffic",
    "characterise",
    "levels_of",
    "place",
    "read_traffic",
]

# Imported at first use, because the help of commands needs none of it.
__getattr__ = when_used(
    __name__,
    {
        **dict.fromkeys(("Character", "LevelLoad", "characterise"), "characterisation"),
        **dict.fromkeys(("CLASSES", "Thresholds"), "classes"),
        "InterferenceError": "errors",
        **dict.fromkeys(("Levels", "levels_of"), "levels"),
        "place": "placements",
        "LinkSpeed": "speed",
        **dict.fromkeys(("Traffic", "read_traffic"), "traffic"),
    },
)


def __dir__() -> list[str]:
    """The public names, including those that are not imported yet."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
