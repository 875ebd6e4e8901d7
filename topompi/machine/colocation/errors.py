"""The exception of jobs that share nodes."""

from ...errors import TopompiError

__all__ = ["ColocationError"]


class ColocationError(TopompiError, ValueError):
    """An error: records, prices or accounts are invalid; the message names the file, line and field."""
