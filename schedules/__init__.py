"""What is sent, by whom and in which step, for each collective: pure data over arrays, without MPI."""

from .hierarchy import Hierarchy, RootedPlan, Stage
from .network import Network
from .schedule import Schedule

__all__ = ["Hierarchy", "Network", "RootedPlan", "Schedule", "Stage"]
