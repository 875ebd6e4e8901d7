"""Jobs that share a network: the load that each brings, bounds on those it shares links with, simulation side by side.

``read_jobs`` reads jobs as users name them, recorded programs (``traces``) or ``kernels``; ``place`` chooses their
nodes. ``levels_of`` finds the levels of a fabric; ``characterise`` gives the usage of each level, and the job's class.
``sharing`` and ``rivals`` count the jobs that can share a job's links. ``replay`` simulates jobs alone and together.
``speed`` is a model of run times for whole logs, in which running jobs slow each other on shared links.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...inputs.extensions import when_used

if TYPE_CHECKING:
    from .characterisation import Character, LevelLoad, characterise
    from .classes import CLASSES, Thresholds
    from .errors import InterferenceError
    from .levels import Levels, levels_of
    from .placement import place
    from .specs import JobSpec, read_jobs
    from .speed import LinkSpeed

__all__ = [
    "CLASSES",
    "Character",
    "InterferenceError",
    "JobSpec",
    "LevelLoad",
    "Levels",
    "LinkSpeed",
    "Thresholds",
    "characterise",
    "levels_of",
    "place",
    "read_jobs",
]

# Imported at first use, because the help of commands needs none of it.
__getattr__ = when_used(
    __name__,
    {
        **dict.fromkeys(("Character", "LevelLoad", "characterise"), "characterisation"),
        **dict.fromkeys(("CLASSES", "Thresholds"), "classes"),
        "InterferenceError": "errors",
        **dict.fromkeys(("Levels", "levels_of"), "levels"),
        "place": "placement",
        **dict.fromkeys(("JobSpec", "read_jobs"), "specs"),
        "LinkSpeed": "speed",
    },
)


def __dir__() -> list[str]:
    """The public names, including those that are not imported yet."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
