"""Jobs that share a network: traces of their messages, and simulation of jobs side by side.

``traces`` reads recorded programs, ``placement`` places jobs on nodes, ``replay`` simulates jobs alone and together.
"""

from .errors import InterferenceError

__all__ = ["InterferenceError"]
