"""What a probe raises."""

from __future__ import annotations

from ..errors import TopompiError

__all__ = ["ProbeError"]


class ProbeError(TopompiError, ValueError):
    """A job cannot be probed, or its time was too short to."""
