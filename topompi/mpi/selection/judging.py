"""Verdicts of trials: whether another candidate (``rival``) is faster than native, the MPI library's own algorithm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, exp, inf, sqrt

import numpy as np
from numpy.typing import NDArray

from ..execution.specs import NATIVE

__all__ = ["CHANCE", "CLEAR", "JOBS_DIFFER", "Verdict", "judge"]

Floats = NDArray[np.float64]

CLEAR = 1.05  # least gain (native's median time over the candidate's) with which a candidate replaces native
# Greatest probability with which a candidate as fast as native may win by luck: it must win 8 of 9 rounds, or 35 of 54.
CHANCE = 0.036
# The same probability for turns (calls of one candidate in a row) instead of rounds: it must win 5 of 6 turns.
CHANCE_TURNS = 0.11
JOBS_DIFFER = 0.1  # standard deviation between jobs of the logarithm of a gain, as measured in docs/lab/emulated.md
SURE = 2.33  # number of standard deviations by which a gain must exceed 1; luck explains it in one of a hundred cases


@dataclass(frozen=True)
class Verdict:
    """The result of a trial, or of several trials of the same candidate against native.

    :param algorithm: name of the winner.
    :param ratio: native's median time over that of the fastest other candidate, above 1 if the latter was faster. For
        several trials it is the geometric mean over all trials but the first. The first one selected this candidate
        from several, so that its ratio is likely to be too high by luck.
    :param seconds: median time of the winner, in seconds.
    :param rival: name of the fastest candidate except native; "" if native was the only candidate.
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
        """The combined verdict of the trials so far and a later one, which compared only this candidate with native."""
        share = 1 / self.trials  # weight of the later trial in the mean, in which the first trial has no weight
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
    """Judge a trial: native wins, unless the fastest other candidate is clearly and steadily faster.

    A candidate is clearly faster if the ratio of medians is at least ``clear``. It is steadily faster if it beats
    native in more rounds than luck would explain; rounds are compared because their calls met the same disturbances. If
    ``turn`` is above 1, its median time must also beat native's in more turns (calls of one candidate in a row) than
    luck would explain, because one disturbance often slows several successive calls. A candidate that failed in any
    call loses.

    :param candidates: names of the candidates, native first.
    :param times: seconds of each call on its slowest rank, shape (candidates, rounds).
    :param clear: least ratio of native's median time to the candidate's.
    :param chance: greatest probability with which luck may let one of two equal candidates win.
    :param turn: number of calls that a candidate made in a row.
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
    """Whether a candidate wins more rounds against native than luck would explain.

    :param rival: times of the candidate, shape (rounds,).
    :param native: times of native in the same rounds, shape (rounds,).
    :param chance: greatest probability with which an equally fast candidate may win as many rounds.
    """
    rounds = len(rival)
    lost = rounds - int((rival < native).sum())
    # scipy.stats.binomtest gives the same, but importing it takes a second on every rank.
    return lost == 0 or sum(comb(rounds, losses) for losses in range(lost + 1)) <= chance * 2**rounds
