"""The exception of the network simulations."""

from ..errors import TopompiError

__all__ = ["NetsimError"]


class NetsimError(TopompiError, ValueError):
    """A program or a network is inconsistent, a program never ends, or a result is below its lower bound."""
