"""The frozen bounds of a machine, by which profiles are normalised, and the thresholds of its rules."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ..errors import ColocationError
from .record import METRICS, Profile

__all__ = ["AXES", "KindLimits", "System", "Tag"]

# Names of a spider plot's axes, in the order of ``METRICS``.
AXES = ("FLOPS", "memory", "MPI time", "LLC hits", "LLC misses")
_ABOVE = 1.05  # bound of FLOPS over the largest observed value; the source says only "larger"


@dataclass(frozen=True)
class KindLimits:
    """Limits between the kinds of programs, on normalised axes. The published rules name none: these are ours.

    :ivar communication: least MPI time of a compute-bound program with considerable communication.
    :ivar memory: least memory bandwidth of a compute-bound program with considerable memory accesses.
    :ivar irregular: least LLC misses of a memory-bound program with irregular accesses.
    :ivar idle: least share of MPI time in waiting calls of a communication-bound program that idles.
    """

    communication: float = 0.15
    memory: float = 0.3
    irregular: float = 0.6
    idle: float = 0.5

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not 0 < value < math.inf:
                raise ColocationError(f"thresholds: {name}: expecting a positive number, got {value:g}")


@dataclass(frozen=True)
class Tag:
    """A program's profile on axes that a system's bounds normalise; NaN if a metric is unknown.

    An axis is in [0, 1], and above 1 if the program exceeds the system's bound.

    :ivar program: name of the program.
    :ivar flops: FLOPS.
    :ivar memory: memory bandwidth.
    :ivar mpi: share of time in MPI.
    :ivar hits: hits of the last-level cache.
    :ivar misses: misses of the last-level cache.
    :ivar shares: share of the time in MPI that each call took.
    """

    program: str
    flops: float = math.nan
    memory: float = math.nan
    mpi: float = math.nan
    hits: float = math.nan
    misses: float = math.nan
    shares: Mapping[str, float] = field(default_factory=dict)

    @property
    def axes(self) -> tuple[float, ...]:
        """The five axes, in the order of ``METRICS``."""
        return tuple(getattr(self, name) for name in METRICS)

    def require(self, *axes: str) -> None:
        """Check that some axes are known.

        :param axes: names of the axes.
        :raises ColocationError: if one is unknown.
        """
        for name in axes:
            if math.isnan(getattr(self, name)):
                raise ColocationError(f"{self.program}: {name}: expecting a measured value, got none")


@dataclass(frozen=True)
class System:
    """Upper bounds of the metrics on a machine. Lower bounds are 0.

    Bounds are frozen, because a bound that followed the programs would change all kinds with each new program.

    :ivar name: name of the machine.
    :ivar flops: floating-point instructions per second and node.
    :ivar memory: bytes per second and node: the best rate of STREAM.
    :ivar hits: hits of the last-level cache per second and node.
    :ivar misses: misses of the last-level cache per second and node.
    :ivar mpi: share of time in MPI; it is normalised already.
    :ivar thresholds: limits between the kinds of programs.
    """

    name: str
    flops: float
    memory: float
    hits: float
    misses: float
    mpi: float = 1.0
    thresholds: KindLimits = field(default_factory=KindLimits)

    def __post_init__(self) -> None:
        for name in METRICS:
            if not 0 < getattr(self, name) < math.inf:
                raise ColocationError(f"{self.name}: {name}: expecting a positive bound, got {getattr(self, name):g}")

    @classmethod
    def observed(
        cls, name: str, profiles: Iterable[Profile], memory: float, thresholds: KindLimits | None = None
    ) -> System:
        """Return bounds that contain some profiles: 1.05 times the most FLOPS, and the most hits and misses.

        :param name: name of the machine.
        :param profiles: profiles of programs; those that lack a metric do not count for its bound.
        :param memory: best rate of STREAM on a node, in bytes per second; 0 for the most observed.
        :param thresholds: limits between the kinds; by default ours.
        :raises ColocationError: if no profile has a metric.
        """
        every = list(profiles)
        most = {key: max((v for one in every if (v := getattr(one, key)) > 0), default=0.0) for key in METRICS}
        for key in ("flops", "hits", "misses") + (() if memory else ("memory",)):
            if not most[key]:
                raise ColocationError(f"{name}: {key}: expecting a profile with a positive value, got none")
        return cls(
            name, _ABOVE * most["flops"], memory or most["memory"], most["hits"], most["misses"],
            thresholds=thresholds or KindLimits(),
        )  # fmt: skip

    def tag(self, profile: Profile) -> Tag:
        """Return the program's profile on normalised axes.

        :param profile: the profile.
        """
        axes = {name: getattr(profile, name) / getattr(self, name) for name in METRICS}
        return Tag(profile.program, **axes, shares=profile.shares)
