"""The exception of the network simulations."""

from ..errors import TopompiError

__all__ = ["NetsimError"]


class NetsimError(TopompiError, ValueError):
    """An error: a program or a network is inconsistent, a program never ends, or a time is below its lower bound."""
