"""What selection answers, and the classes of calls that it answers for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ..execution.specs import CALLS

__all__ = [
    "COLLECTIVE",
    "LEVELS",
    "NATIVE",
    "PAIRWISE",
    "Choice",
    "Key",
    "Timed",
    "abreast",
    "class_bytes",
    "size_class",
]

NATIVE, LEVELS = "native", "levels"

# Above so many bytes libraries exchange pair by pair: MPICH (R. Thakur, R. Rabenseifner and W. Gropp, Optimization of
# collective communication operations in MPICH, 2005) with a partner a step, and Open MPI likewise.
PAIRWISE = 32768

COLLECTIVE = {name: spec.collective for name, spec in CALLS.items()}  # of each call

Key = tuple[str, int, bool]  # method, size class, whether the operation commutes


class Timed(Protocol):
    """A trial, as the calls know it that are made in it."""

    @property
    def upcoming(self) -> str | None:
        """The algorithm of the next call; None where a choice has to be made first."""

    def next(self) -> str | None:
        """The algorithm of the next call, which is under way from here on."""

    def note(self, seconds: float) -> None:
        """Take the time of the latest call on this rank."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What to run for one call, and why.

    :param algorithm: ``native``, ``levels``, or a name of ``schedules.registry.ALGORITHMS``.
    :param reason: in words, with the numbers that decided.
    :param predicted: seconds by the cost model or an earlier measurement; None where nothing predicts.
    :param trial: the trial that this call is one of: it wants to know what it took on this rank.
    :param always: every call of this communicator would be answered so, of any method and size.
    """

    algorithm: str
    reason: str
    predicted: float | None = None
    trial: Timed | None = None
    always: bool = False


def size_class(nbytes: int) -> int:
    """Class of a size in bytes: its bit length, so that a class holds 2**(k - 1) to 2**k - 1 bytes; 0 holds 0."""
    return nbytes.bit_length()


def class_bytes(number: int) -> tuple[int, int]:
    """Smallest and largest size in bytes of a class."""
    return (1 << number >> 1, (1 << number) - 1)


def abreast(key: Key) -> bool:
    """Whether communicators that make such calls at the same time are tried all together: long alltoalls fill links."""
    method, number, _ = key
    return COLLECTIVE[method] == "alltoall" and class_bytes(number)[0] > PAIRWISE
