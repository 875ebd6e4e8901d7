"""What a simulated network refuses."""

from ..errors import TopompiError

__all__ = ["NetsimError"]


class NetsimError(TopompiError, ValueError):
    """A program or a network contradicts itself, a program never ends, or a result is below its bound."""
