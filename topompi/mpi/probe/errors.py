"""The error of probes."""

from __future__ import annotations

from ...errors import TopompiError

__all__ = ["ProbeError"]


class ProbeError(TopompiError, ValueError):
    """A job cannot be probed, or the time for it was too short."""
