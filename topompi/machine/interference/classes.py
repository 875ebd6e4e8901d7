"""Classes of jobs by the usage of the links between switches: low, moderate or extreme."""

from __future__ import annotations

from dataclasses import dataclass

from .errors import InterferenceError

__all__ = ["CLASSES", "Thresholds"]

CLASSES = ("low", "moderate", "extreme")


@dataclass(frozen=True)
class Thresholds:
    """The least usage of a moderate and of an extreme job, the largest over all levels above the hosts' own links.

    The text of Jokanovic 2014 has no numbers. The defaults give the classes that it prints, to kernels of the sizes in
    its table 5.3. At a usage of 1 a level cannot carry what the job sends on a crossbar.

    :param moderate: least usage of a moderate job.
    :param extreme: least usage of an extreme job.
    """

    moderate: float = 0.09
    extreme: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.moderate <= self.extreme:
            text = f"{self.moderate:g} and {self.extreme:g}"
            raise InterferenceError(f"thresholds: expecting 0 < moderate <= extreme, got {text}")

    def name(self, usage: float) -> str:
        """The class of a job with this largest usage."""
        return CLASSES[(usage >= self.moderate) + (usage >= self.extreme)]

    def __str__(self) -> str:
        return f"moderate from {self.moderate:g}, extreme from {self.extreme:g}"
