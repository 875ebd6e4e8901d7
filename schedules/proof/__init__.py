"""A symbolic proof that a schedule does what MPI defines, in any order in which its ranks may run it."""

from .error import ScheduleError
from .proof import Proof, check

__all__ = ["Proof", "ScheduleError", "check"]
