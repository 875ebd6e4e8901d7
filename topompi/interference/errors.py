"""The exception of studies of jobs that share a network."""

from ..errors import TopompiError

__all__ = ["InterferenceError"]


class InterferenceError(TopompiError, ValueError):
    """An error: a trace is malformed, a placement does not fit the cluster, or a job cannot be simulated."""
