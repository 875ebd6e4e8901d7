"""Virtual lanes for jobs that share links: which job gets which lane, the lanes' weights, and files for OpenSM.

``Lanes`` is one choice. ``by_rules`` and ``by_classes`` make it from the jobs' loads (``choice``), ``search`` looks for
the one with the least delay of all jobs, as ``Trials`` simulates it with packets. ``opensm`` and ``membership`` write
it for OpenSM and read it back.
"""

from .choice import Lanes, by_classes, by_rules
from .search import FoundLanes, assignments, search, weightings
from .trials import SharedTimes, Trials

__all__ = [
    "FoundLanes",
    "Lanes",
    "SharedTimes",
    "Trials",
    "assignments",
    "by_classes",
    "by_rules",
    "search",
    "weightings",
]
