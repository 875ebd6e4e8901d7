"""Schedules of collectives: arrays that list which rank sends which blocks to which rank in which step, without MPI.

The packages ``rooted``, ``symmetric`` and ``alltoall`` hold the generators. ``registry`` lists each as an ``algorithm``
with its properties, and ``given`` loads algorithms that a user supplies. ``proof`` proves a schedule correct,
``analysis`` computes its cost on a network, ``exports`` writes it for other programs and ``drawing`` draws it.
``hierarchy`` has the leaders of each level of the job's hierarchy (host, leaf switch, ...).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..inputs.extensions import when_used

if TYPE_CHECKING:
    from .algorithm import Algorithm
    from .analysis.bounds import lower_bound
    from .analysis.cost import Cost, cost
    from .analysis.loads import Analysis, analyse
    from .analysis.model import Model, Rendezvous
    from .analysis.optimum import Certificate, Optimum, optimum
    from .exports.jsonio import from_json, to_json
    from .hierarchy import Hierarchy
    from .network import Network, SiblingGroups
    from .proof import Proof, ScheduleError, check
    from .registry import ALGORITHMS, RankSchedule, find_algorithm, make, register, rows_of
    from .schedule import Schedule

__all__ = [
    "ALGORITHMS",
    "Algorithm",
    "Analysis",
    "Certificate",
    "Cost",
    "Hierarchy",
    "Model",
    "Network",
    "Optimum",
    "Proof",
    "RankSchedule",
    "Rendezvous",
    "Schedule",
    "ScheduleError",
    "SiblingGroups",
    "analyse",
    "check",
    "cost",
    "find_algorithm",
    "from_json",
    "lower_bound",
    "make",
    "optimum",
    "register",
    "rows_of",
    "to_json",
]

# Late imports, because every rank of a job waits for the imports of an MPI program, and most need few of these names.
__getattr__ = when_used(
    __name__,
    {
        "Algorithm": "algorithm",
        "lower_bound": "analysis.bounds",
        **dict.fromkeys(("Analysis", "analyse"), "analysis.loads"),
        **dict.fromkeys(("Cost", "cost"), "analysis.cost"),
        **dict.fromkeys(("Model", "Rendezvous"), "analysis.model"),
        **dict.fromkeys(("Certificate", "Optimum", "optimum"), "analysis.optimum"),
        **dict.fromkeys(("Proof", "ScheduleError", "check"), "proof"),
        **dict.fromkeys(("from_json", "to_json"), "exports.jsonio"),
        "Hierarchy": "hierarchy",
        **dict.fromkeys(("Network", "SiblingGroups"), "network"),
        **dict.fromkeys(("ALGORITHMS", "RankSchedule", "find_algorithm", "make", "register", "rows_of"), "registry"),
        "Schedule": "schedule",
    },
)


def __dir__() -> list[str]:
    """List the public names, whether imported already or not."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
