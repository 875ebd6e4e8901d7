"""Verdicts of trials: whether a rival is faster than native, by times of calls that took turns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, exp, inf, sqrt

import numpy as np
from numpy.typing import NDArray

from ..execution.specs import NATIVE

__all__ = ["CHANCE", "CLEAR", "JOBS_DIFFER", "Verdict", "judge"]

Floats = NDArray[np.float64]

CLEAR = 1.05  # least gain for which native is left
CHANCE = 0.036  # probability that one of two equal candidates wins by luck: 8 of 9 rounds, 35 of 54
CHANCE_TURNS = 0.11  # the same for turns, whose calls depend on each other: 5 of 6
JOBS_DIFFER = 0.1  # standard deviation of the logarithm of a gain between jobs: docs/lab/emulated.md
SURE = 2.33  # standard deviations of the mean by which a sure gain exceeds none: an error of one in a hundred


@dataclass(frozen=True)
class Verdict:
    """The result of a trial, or of several trials of one rival.

    :param algorithm: name of the winner.
    :param ratio: native's median time over the best rival's, above 1 if the rival was faster. For several trials, the
        geometric mean of the ratios of all except the first, which selected the rival and so is biased by luck.
    :param seconds: median time of the winner, in seconds.
    :param rival: name of the fastest candidate except native; "" if native was the only one.
    :param trials: number of trials.
    """

    algorithm: str
    ratio: float
    seconds: float
    rival: str
    trials: int = 1

    @property
    def sure(self) -> bool:
        """Whether later jobs need no further trial: native won, or the gain exceeds the variation between jobs."""
        later = self.trials - 1
        return self.algorithm == NATIVE or (later > 0 and self.ratio >= exp(SURE * JOBS_DIFFER / sqrt(later)))

    def and_then(self, later: Verdict) -> Verdict:
        """The combined verdict of this trial and a later one, which compared only this rival with native."""
        share = 1 / self.trials  # weight of the later trial: the first trial has none
        ratio = self.ratio ** (1 - share) * later.ratio**share
        winner, seconds = (NATIVE, later.seconds) if ratio < CLEAR else (self.algorithm, self.seconds)
        return Verdict(winner, ratio, seconds, later.rival, self.trials + 1)

    def describe(self) -> str:
        """The reason for the winner, in words."""
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

    A rival is clearly faster if the ratio of medians is at least ``clear``. It is steadily faster if it beats native in
    more rounds than equal candidates would by luck; native's call of the same round met the same disturbances. With
    ``turn`` above 1 the medians of turns must agree, because a disturbance often slows several calls in a row, so that
    many calls may be no better evidence than a few turns. A rival that failed in any call loses.

    :param candidates: names of the candidates, native first.
    :param times: seconds of the slowest rank, shape (candidates, rounds).
    :param clear: least ratio of native's to the rival's median time.
    :param chance: greatest probability with which luck may let one of two equal candidates win.
    :param turn: number of rounds in which a candidate's calls followed each other.
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
    """Whether the rival wins so many rounds that an equal candidate would do it with probability ``chance`` at most."""
    rounds = len(rival)
    lost = rounds - int((rival < native).sum())
    return lost == 0 or sum(comb(rounds, losses) for losses in range(lost + 1)) <= chance * 2**rounds
