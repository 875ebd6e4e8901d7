"""What is sent, by whom and in which step, for each collective: pure data over arrays, without MPI.

Where things are: ``rooted``, ``symmetric`` and ``alltoall`` hold the generators, ``registry`` all of them by name;
``check`` proves a schedule, ``analysis`` weighs it on a network, ``exports`` and ``drawing`` show it to other programs
and to people. ``hierarchy`` holds the plans that ``topompi.Intracomm`` runs.
"""

from .analysis.bounds import lower_bound
from .analysis.loads import Analysis, analyse
from .analysis.model import Cost, Model, cost
from .check import Proof, ScheduleError, check
from .exports.jsonio import from_json, to_json
from .hierarchy import Hierarchy, RootedPlan, Stage
from .network import Beside, Network
from .registry import ALGORITHMS, make
from .schedule import Schedule

__all__ = [
    "ALGORITHMS",
    "Analysis",
    "Beside",
    "Cost",
    "Hierarchy",
    "Model",
    "Network",
    "Proof",
    "RootedPlan",
    "Schedule",
    "ScheduleError",
    "Stage",
    "analyse",
    "check",
    "cost",
    "from_json",
    "lower_bound",
    "make",
    "to_json",
]
