"""The error of profiles."""

from __future__ import annotations

from ..errors import TopompiError

__all__ = ["ProfileError"]


class ProfileError(TopompiError, ValueError):
    """A profile could not be recorded or read; the message names file and line."""
