"""What is sent, by whom and in which step, for each collective: pure data over arrays, without MPI."""

from .hierarchy import Hierarchy, RootedPlan, Stage

__all__ = ["Hierarchy", "RootedPlan", "Stage"]
