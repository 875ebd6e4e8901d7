"""The exceptions of the room; each has a builtin parent."""

from ..errors import TopompiError

__all__ = ["AllocationError", "JobsError", "WorkloadError"]


class JobsError(TopompiError, ValueError):
    """A simulation was asked for something it cannot do."""


class WorkloadError(TopompiError, ValueError):
    """A workload could not be read or made; the message names file, line and field."""


class AllocationError(TopompiError, ValueError):
    """An allocator was asked for nodes that the cluster does not have, or that are taken."""
