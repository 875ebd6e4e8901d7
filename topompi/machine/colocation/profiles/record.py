"""The profile of a program: what one run in compact mode did per node and second, and what it waited for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from ..errors import ColocationError

__all__ = ["METRICS", "Profile", "merged"]

METRICS = ("flops", "memory", "mpi", "hits", "misses")
_ROUNDING = 1e-3  # by which shares may add up to more than 1, because reports print them with few digits


@dataclass(frozen=True)
class Profile:
    """A program's profile, from a run in compact mode (whole nodes, all cores used); NaN or 0 if unknown.

    Counts are summed over the ranks and divided by the number of nodes and by the run time.

    :ivar program: name of the program.
    :ivar processes: number of ranks.
    :ivar nodes: number of nodes.
    :ivar seconds: run time.
    :ivar flops: floating-point instructions per second and node.
    :ivar memory: bytes from memory per second and node.
    :ivar mpi: share of the run time in MPI calls, in [0, 1].
    :ivar hits: hits of the last-level cache per second and node.
    :ivar misses: misses of the last-level cache per second and node.
    :ivar operations: floating-point operations per second and node, with packed ones by their width; no axis.
    :ivar shares: share of the time in MPI that each call took, by the call's name without ``MPI_``.
    :ivar kind: kind of the program as a ``Kind``'s value, if its user knows it; else empty.
    """

    program: str
    processes: int = 0
    nodes: int = 0
    seconds: float = math.nan
    flops: float = math.nan
    memory: float = math.nan
    mpi: float = math.nan
    hits: float = math.nan
    misses: float = math.nan
    operations: float = math.nan
    shares: Mapping[str, float] = field(default_factory=dict)
    kind: str = ""

    def __post_init__(self) -> None:
        for name in (*METRICS, "operations"):
            value = getattr(self, name)
            if value < 0 or math.isinf(value) or (name == "mpi" and value > 1):
                wanted = "a share in [0, 1]" if name == "mpi" else "a number from 0"
                raise ColocationError(f"{self.program}: {name}: expecting {wanted}, got {value:g}")
        if self.seconds <= 0 or math.isinf(self.seconds):
            raise ColocationError(f"{self.program}: seconds: expecting a positive time, got {self.seconds:g}")
        wrong = next((call for call, share in self.shares.items() if not 0 <= share <= 1), None)
        if wrong is not None:
            raise ColocationError(
                f"{self.program}: shares: {wrong}: expecting a share in [0, 1], got {self.shares[wrong]:g}"
            )
        if (whole := sum(self.shares.values())) > 1 + _ROUNDING:
            raise ColocationError(f"{self.program}: shares: expecting shares that add up to at most 1, got {whole:.3f}")

    @property
    def missing(self) -> tuple[str, ...]:
        """Names of the metrics that are unknown."""
        return tuple(name for name in METRICS if math.isnan(getattr(self, name)))


def merged(first: Profile, second: Profile) -> Profile:
    """Return the profile of a program of which two reports each know a part.

    :param first: profile from one report.
    :param second: profile of the same program from another report.
    :raises ColocationError: if both know a value, and the values differ.
    """
    made: dict[str, Any] = {}
    for name in (one.name for one in fields(Profile)):
        ours, theirs = getattr(first, name), getattr(second, name)
        unknown = not ours or ours != ours
        if not unknown and theirs and theirs == theirs and ours != theirs:
            raise ColocationError(f"{first.program}: {name}: expecting one value, got {ours} and {theirs}")
        made[name] = theirs if unknown else ours
    return Profile(**made)
