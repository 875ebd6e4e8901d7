"""Verdicts of trials: whether a rival is faster than native, from times that were measured in turns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, exp, inf, sqrt

import numpy as np
from numpy.typing import NDArray

from ..execution.specs import NATIVE

__all__ = ["CHANCE", "CLEAR", "JOBS_DIFFER", "Verdict", "judge"]

Floats = NDArray[np.float64]

CLEAR = 1.05  # a smaller gain is no reason to leave the MPI library's own
CHANCE = 0.036  # of choosing one of two equal candidates in one look: 8 of 9 rounds, 35 of 54
CHANCE_TURNS = 0.11  # the same for turns, whose calls depend on each other: 5 of 6
JOBS_DIFFER = 0.1  # standard deviation of the logarithm of a gain from job to job: docs/lab/emulated.md
SURE = 2.33  # such deviations of the mean above no gain at all: one chance in a hundred


@dataclass(frozen=True)
class Verdict:
    """The result of a trial, or of several trials of one rival.

    :param algorithm: the winner.
    :param ratio: native's median time over the best rival's: above 1 where the rival was faster. For several trials the
        geometric mean of all but the first one, which chose the rival among others: the best of many was lucky too.
    :param seconds: the winner's median time.
    :param rival: the fastest candidate but native; empty where there was none.
    :param trials: how many.
    """

    algorithm: str
    ratio: float
    seconds: float
    rival: str
    trials: int = 1

    @property
    def sure(self) -> bool:
        """Whether later jobs need no further trial: native won, or the gain is larger than jobs differ by chance."""
        later = self.trials - 1
        return self.algorithm == NATIVE or (later > 0 and self.ratio >= exp(SURE * JOBS_DIFFER / sqrt(later)))

    def and_then(self, later: Verdict) -> Verdict:
        """The verdict for a rival together with that of a later trial of it alone."""
        share = 1 / self.trials  # of the later one: the first does not count
        ratio = self.ratio ** (1 - share) * later.ratio**share
        winner, seconds = (NATIVE, later.seconds) if ratio < CLEAR else (self.algorithm, self.seconds)
        return Verdict(winner, ratio, seconds, later.rival, self.trials + 1)

    def describe(self) -> str:
        """The reason in words."""
        if not self.rival:
            return "native: only candidate"
        if self.ratio == 0:
            return f"measured: {self.rival} failed in a call"
        if self.algorithm == NATIVE:
            word = f"{1 / self.ratio:.2f}x slower" if self.ratio < 1 / CLEAR else "not clearly faster"
            return f"measured: {self.rival}, the best rival, is {word}"
        return f"measured: {self.ratio:.2f}x faster than native"


def judge(
    candidates: Sequence[str], times: Floats, clear: float = CLEAR, chance: float = CHANCE, turn: int = 1
) -> Verdict:
    """The winner: native, unless the fastest rival is clearly and steadily faster.

    A rival is clearly faster by its median. It is steadily faster where it wins more rounds against native's time of
    the same round, which met the same disturbance, than chance would often give to one of two equals. The medians of
    turns must say the same: what slows a call often slows those after it too, so that many calls may tell no more than
    few turns. A rival that failed in any call loses.

    :param candidates: names, native first.
    :param times: seconds, the slowest rank's, shape (candidates, rounds).
    :param clear: how many times as fast the rival is at least.
    :param chance: of choosing one of two equals, at most.
    :param turn: rounds in which a candidate's calls followed each other.
    """
    medians = np.median(times, axis=1)
    medians[1:][np.isinf(times[1:]).any(axis=1)] = inf
    if len(candidates) == 1:
        return Verdict(NATIVE, 1.0, float(medians[0]), "")
    best = 1 + int(np.argmin(medians[1:]))
    ratio = float(medians[0] / medians[best]) if 0 < medians[best] < inf else 0.0
    steady = _steady(times[best], times[0], chance)
    if turn > 1:
        turns = [np.median(times[[best, 0], at : at + turn], axis=1) for at in range(0, times.shape[1], turn)]
        rival, native = np.transpose(turns)
        steady = steady and _steady(rival, native, CHANCE_TURNS)
    won = best if ratio >= clear and steady else 0
    return Verdict(candidates[won], ratio, float(medians[won]), candidates[best])


def _steady(rival: Floats, native: Floats, chance: float) -> bool:
    """Whether the rival wins all rounds, or so many that one of two equals would do so with this chance at most."""
    rounds = len(rival)
    lost = rounds - int((rival < native).sum())
    return lost == 0 or sum(comb(rounds, losses) for losses in range(lost + 1)) <= chance * 2**rounds
