"""The measured trial: which candidate runs at which call, and who wins; pure, so that all ranks decide alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, exp, inf, sqrt

import numpy as np
from numpy.typing import NDArray

from .choice import NATIVE

__all__ = [
    "CLEAR",
    "CLEAR_APART",
    "AbreastTrial",
    "Contest",
    "Trial",
    "Verdict",
    "floor",
    "interval",
    "judge",
    "rounds_of",
    "survivors",
]

Floats = NDArray[np.float64]

STAGES = (2, 3, 5, 54, 54)  # timed rounds of each stage at most; the slower candidates are dropped between them
FEWEST = (2, 2, 3, 5, 5)  # and at least, where rounds take long
KEPT = (4, 2, 1)  # rivals that go on after the first stage, of two looks, after the second and the third
CHOOSING = 4  # the stage with which short calls begin to be decided by each stage alone
PATIENCE = 1.0  # seconds that the rounds of one stage may take together, where more than the fewest are made
LONG = 0.05  # seconds of first calls from which on what went before a call is no more than noise to it
TURN = 2  # calls of a candidate that are timed in a row, at least
TURNS = 6  # of each candidate, where there are calls enough
CLEAR = 1.05  # a gain below this is no reason to leave the MPI library's own
CLEAR_APART = 1.2  # likewise where neighbours on the same links try other candidates at the time
HOPELESS = (2.0, 1.10)  # slower than native by this after the first and the second stage: not run again
ABREAST = 11  # timed calls of each candidate where none is dropped
JOBS_APART = 0.1  # standard deviation of the logarithm of a gain from job to job: docs/emulated.md
SURELY = 2.33  # such deviations of the mean above no gain at all: one chance in a hundred
CHANCE = 0.036  # of choosing one of two equal candidates in one look: 8 of 9 rounds, 35 of 54
CHANCE_TURNS = 0.11  # likewise of turns, whose calls share what they met: 5 of 6
CHANCE_ABREAST = 0.12  # likewise, 8 of 11: one of two equals costs little, another schedule than the siblings' much


@dataclass(frozen=True)
class Contest:
    """What a trial is to compare.

    :param candidates: names, native first.
    :param again: whether an earlier trial has found the only rival faster: a shorter one tells whether it still is.
    """

    candidates: tuple[str, ...]
    again: bool = False


@dataclass(frozen=True)
class Verdict:
    """How a trial ended, or several of the same rival.

    :param algorithm: the winner.
    :param ratio: native's median time over the best rival's: above 1 where the rival was faster. Of several trials the
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
        """Whether later jobs need not look again: at native, which loses nothing, or a gain beyond what jobs differ."""
        if self.algorithm == NATIVE:
            return True
        return self.trials > 1 and self.ratio >= exp(SURELY * JOBS_APART / sqrt(self.trials - 1))

    def and_then(self, later: Verdict) -> Verdict:
        """This verdict for a rival and that of a later trial of it alone, taken together."""
        trials, share = self.trials + 1, 1 / self.trials  # of the later one: the first does not count
        ratio = self.ratio ** (1 - share) * later.ratio**share
        if ratio < CLEAR:
            return Verdict(NATIVE, ratio, later.seconds, later.rival, trials)
        return Verdict(self.algorithm, ratio, self.seconds, later.rival, trials)

    def describe(self) -> str:
        """The reason in words."""
        if not self.rival:
            return "native: only candidate"
        if self.algorithm == NATIVE:
            word = f"{1 / self.ratio:.2f}x slower" if self.ratio < 1 / CLEAR else "not clearly faster"
            return f"measured: {self.rival}, the best rival, is {word}"
        return f"measured: {self.ratio:.2f}x faster than native"


class Trial:
    """The calls of one class while its candidates are compared.

    Each stage runs its candidates in turn, in the order A B C, C B A, A B C, so that drift favours none. The first
    call of each is a warm-up, in which connections are made. After it a turn is three calls, of which the first does
    not count: what is sought is the time of a call after its like, and another algorithm leaves other
    links busy and other code in the caches. Calls that are so long that this matters little all count. The call's
    number alone decides what runs: ranks that make equally many calls run the same. A stage is closed by the call after
    its last one, on all ranks: a call that failed on some rank has no time there, and loses. Successive halving: K.
    Jamieson and A. Talwalkar, Non-stochastic best arm identification and hyperparameter optimization, 2016. A fourth
    stage is made where the best rival was clearly faster, and of short calls it alone counts: of a dozen that were
    looked at, the best was lucky too. Where the rival wins it, a fifth has to find the same: of many classes of calls
    some are lucky once. Of long ones all count, and a fourth is made where the rival was not steadily faster. Where an
    earlier trial found a rival, the fifth stage is the first one.

    :param candidates: names, native first.
    :param clear: a gain below this is no reason to leave native.
    :param again: whether an earlier trial has found the only rival faster.
    Cost: 4 calls for each candidate, then at most 5 for each of five, 8 for each of three and perhaps 60 or 120 for
    each of two; where calls are long, 1, 2, 3 and at most 10. Four to six reductions of some ten numbers. Once more, 61
    for each of two.
    """

    def __init__(self, candidates: Sequence[str], clear: float = CLEAR, *, again: bool = False) -> None:
        if not candidates or candidates[0] != NATIVE:
            raise ValueError(f"expecting candidates with {NATIVE} first, got {list(candidates)}")
        self.candidates, self._clear, self._again = list(candidates), clear, again
        self._kept = np.empty((len(candidates), 0))
        self._stage, self._warm, self._long = 0, False, False
        self._open(1)

    def _open(self, rounds: int) -> None:
        """Lay out the calls of a stage: candidates by their places, and -1 - place for a call that does not count."""
        count = len(self.candidates)
        before = 1 if self._warm and not self._long else 0
        self._order = []
        self._turn = max(TURN, rounds // TURNS)
        for turn in range(-(-rounds // self._turn)):
            timed = min(self._turn, rounds - turn * self._turn)
            for place in range(count)[:: -1 if turn % 2 else 1]:
                self._order += [-1 - place] * before + [place] * timed
        self._names = [self.candidates[place if place >= 0 else -1 - place] for place in self._order]
        self._times = np.full(len(self._order), inf)
        self._call = -1

    @property
    def upcoming(self) -> str | None:
        """The algorithm of the next call; None where a stage is complete, for ``close`` to go on."""
        return self._names[self._call + 1] if self._call + 1 < len(self._names) else None

    def next(self) -> str | None:
        """The algorithm of the next call, which is under way from here on."""
        algorithm = self.upcoming
        if algorithm is not None:
            self._call += 1
        return algorithm

    def note(self, seconds: float) -> None:
        """The time of the latest call on this rank; one that failed has none, and counts as endless."""
        self._times[self._call] = seconds

    @property
    def times(self) -> Floats:
        """This rank's times of the stage, in the order of calls; infinite where there is none."""
        return self._times

    def close(self, times: Floats) -> Verdict | None:
        """End a stage: the verdict after the last one, or where nothing rivals native; else None, and go on.

        :param times: of each call of the stage the time of its slowest rank, alike on all ranks.
        """
        times, order = np.asarray(times, dtype=np.float64), np.array(self._order)
        if not self._warm:
            self._warm = True
            self._long = bool(min(times[0], np.median(times)) >= LONG)  # one alone may have been disturbed
            if not self._long:
                self._stage = len(STAGES) - 1 if self._again else 0
                # The shortest tells best what later ones will take: the first ones make connections.
                self._open(rounds_of(self._stage, len(times) * float(times.min())))
                return None
        rounds = np.array([times[order == place] for place in range(len(self.candidates))])
        self._kept = np.concatenate((self._kept, rounds), axis=1)
        self._stage += 1
        alone = self._stage >= CHOOSING and not self._long
        if alone:
            verdict = judge(self.candidates, rounds, self._clear, turn=self._turn)
        else:
            verdict = judge(self.candidates, self._kept, self._clear)
        if self._decided(verdict):
            return verdict
        if self._stage < CHOOSING:
            self._drop()
        if len(self.candidates) == 1:
            return verdict
        self._open(rounds_of(self._stage, float(np.median(self._kept, axis=1).sum())))
        return None

    def _drop(self) -> None:
        """Go on with native and the fastest of the others."""
        hopeless = HOPELESS[min(self._stage, len(HOPELESS)) - 1]
        # What disturbs a short call makes it longer; long ones vary by themselves, on shared links by a tenth: of such
        # the luckiest call would be one of the candidate that varies most.
        times = np.median(self._kept, axis=1) if self._long else self._kept.min(axis=1)
        times[np.isinf(self._kept).any(axis=1)] = inf  # it failed
        kept = survivors(times, KEPT[self._stage - 1], hopeless)
        self.candidates = [self.candidates[place] for place in kept]
        self._kept = self._kept[kept]

    def _decided(self, verdict: Verdict) -> bool:
        """Whether the stage that is complete was the last one."""
        if self._stage == CHOOSING - 1:
            return verdict.ratio < self._clear or (self._long and verdict.algorithm != NATIVE)
        if self._stage == CHOOSING:
            return self._long or verdict.algorithm == NATIVE
        return self._stage == len(STAGES)


class AbreastTrial(Trial):
    """The trial of calls that several communicators make at the same time, over the same links.

    What a candidate takes depends on what the others run at the time. So none is dropped and every call counts: all
    communicators that make such calls together try the same candidate at the same time, without a word between them.

    Cost: 11 calls for each candidate, one reduction.
    """

    def __init__(self, candidates: Sequence[str]) -> None:
        super().__init__(candidates)
        self._long = True
        self._open(ABREAST)

    def close(self, times: Floats) -> Verdict:
        """The verdict."""
        order = np.array(self._order)
        rounds = np.array([times[order == place] for place in range(len(self.candidates))])
        return judge(self.candidates, rounds, chance=CHANCE_ABREAST)


def rounds_of(stage: int, seconds: float) -> int:
    """Rounds of a stage whose rounds take so long: long calls are disturbed less, and a user waits for them."""
    affordable = int(min(PATIENCE / seconds, STAGES[stage])) if seconds > 0 else STAGES[stage]
    return max(affordable, FEWEST[stage])


def survivors(times: Floats, rivals: int, hopeless: float) -> list[int]:
    """Candidates worth another stage: native, the first, and the fastest of the others.

    :param times: seconds of each candidate.
    :param rivals: how many of the others go on at most.
    :param hopeless: those slower than native by this factor do not.
    """
    others = 1 + np.argsort(times[1:], kind="stable")
    better = [int(row) for row in others[:rivals] if times[row] < hopeless * times[0]]
    return [0, *sorted(better)]


def judge(
    candidates: Sequence[str], times: Floats, clear: float = CLEAR, chance: float = CHANCE, turn: int = 1
) -> Verdict:
    """The winner: native, unless the fastest rival is clearly and steadily faster.

    Clearly: in the median. Steadily: in so many rounds, compared with native's time of the same round, which
    met the same disturbance, as chance would seldom bring about; in all where they are few. Likewise in the medians of
    turns: what slows a call at times slows those after it as well, so that many calls may tell no more than few turns.

    :param candidates: names, native first.
    :param times: seconds, the slowest rank's, shape (candidates, rounds).
    :param clear: how many times as fast the rival is at least.
    :param chance: of choosing one of two equals, at most.
    :param turn: rounds in which a candidate's calls followed each other.
    """
    medians = np.median(times, axis=1)
    if len(candidates) == 1:
        return Verdict(NATIVE, 1.0, float(medians[0]), "")
    best = 1 + int(np.argmin(medians[1:]))
    ratio = float(medians[0] / medians[best]) if 0 < medians[best] < inf else 0.0
    steady = _steady(times[best], times[0], chance)
    if turn > 1:
        cuts = range(turn, times.shape[1], turn)
        turns = np.array([np.median(part, axis=1) for part in np.split(times[[0, best]], cuts, axis=1)]).T
        steady = steady and _steady(turns[1], turns[0], CHANCE_TURNS)
    won = best if ratio >= clear and steady else 0
    return Verdict(candidates[won], ratio, float(medians[won]), candidates[best])


def _steady(rival: Floats, native: Floats, chance: float) -> bool:
    """Whether the rival's times are below native's as often as chance would seldom bring about."""
    return int((rival < native).sum()) >= steadily(len(rival), chance)


def steadily(rounds: int, chance: float) -> int:
    """Of so many rounds, how many one has to win for it to be no more than a chance; all where they are few."""
    chances = np.cumsum([comb(rounds, lost) / 2**rounds for lost in range(rounds + 1)])
    return rounds - max(int((chances <= chance).sum()) - 1, 0)


def interval(ratios: Floats) -> tuple[float, float]:
    """A 95 % interval of the median of independent numbers; the extremes below 6 numbers."""
    if len(ratios) < 6:
        return float(ratios.min()), float(ratios.max())
    return floor(ratios, 0.025), -floor(-ratios, 0.025)


def floor(ratios: Floats, chance: float) -> float:
    """What the median of independent numbers is above, but for a chance; 0 where they are too few to say.

    Source: W. R. Thompson, On confidence ranges for the median and other expectation distributions for populations
    of unknown distribution form, 1936: an order statistic.
    """
    ordered, count = np.sort(ratios), len(ratios)
    outside, place = 0.0, -1
    while place + 1 < count and outside + comb(count, place + 1) / 2**count <= chance:
        place += 1
        outside += comb(count, place) / 2**count
    return float(ordered[place]) if place >= 0 else 0.0
