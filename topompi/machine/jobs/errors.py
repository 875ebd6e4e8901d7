"""The exceptions of simulated jobs; each has a builtin parent."""

from ...errors import TopompiError

__all__ = ["AllocationError", "JobsError", "WorkloadError"]


class JobsError(TopompiError, ValueError):
    """An error: the arguments of a simulation are invalid, or it cannot do what they ask."""


class WorkloadError(TopompiError, ValueError):
    """An error: a workload could not be read or made; the message names file, line and field."""


class AllocationError(TopompiError, ValueError):
    """An error: the nodes asked for are not in the cluster or are taken, or an allocator is faulty."""
