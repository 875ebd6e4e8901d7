"""The exception of this package."""

from ...errors import TopompiError

__all__ = ["InterferenceError"]


class InterferenceError(TopompiError, ValueError):
    """An error: a job, trace, placement or threshold is malformed or does not fit, or a job cannot be simulated."""
