"""The exception of this package."""

from ...errors import TopompiError

__all__ = ["ShutterError"]


class ShutterError(TopompiError, ValueError):
    """An error: a job, source or log is malformed, belongs to another user, or the watchdog has ended."""
