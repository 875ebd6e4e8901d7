"""A symbolic proof that a schedule implements MPI's definition in every order in which its ranks may run it."""

from .error import ScheduleError
from .proof import Proof, check

__all__ = ["Proof", "ScheduleError", "check"]
