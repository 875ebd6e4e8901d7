"""The exceptions of simulated jobs; each has a builtin parent."""

from ..errors import TopompiError

__all__ = ["AllocationError", "JobsError", "WorkloadError"]


class JobsError(TopompiError, ValueError):
    """A simulation that was asked for something it cannot do."""


class WorkloadError(TopompiError, ValueError):
    """A workload that could not be read or made; the message names file, line and field."""


class AllocationError(TopompiError, ValueError):
    """A request to an allocator for nodes that the cluster does not have, or that are taken; or a faulty allocator."""
