"""The exception that the recording and reading of profiles raise."""

from __future__ import annotations

from ...errors import TopompiError

__all__ = ["ProfileError"]


class ProfileError(TopompiError, ValueError):
    """A profile could not be recorded or read; the message names file and line."""
