"""Trials, which compare algorithms (candidates) by timing the program's own calls, and drop slow ones stage by stage.

Which candidate runs the next call depends only on the number of calls and on times that all ranks know, so that all
ranks run the same one. In names, a rival is a candidate other than native, the MPI library's own algorithm.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from ..execution.specs import NATIVE
from ..execution.timing import Order, interleave
from .judging import CHANCE, CLEAR, Verdict, judge

__all__ = [
    "AGAIN",
    "CONFIRM",
    "LONG",
    "LONG_CALLS",
    "SHORT_CALLS",
    "TOGETHER",
    "Contest",
    "Trial",
    "TrialStage",
    "proceed",
]

Floats = NDArray[np.float64]

LONG = 0.05  # seconds from which a call is long, so that the effect of the preceding call on it is no more than noise
PATIENCE = 1.0  # maximum seconds of all rounds of one stage, unless its least number of rounds takes longer
MOST_SPOILT = 3  # if calls of native failed in this many stages, the trial ends, and native wins
# A turn is several timed calls of a candidate in a row: their minimum number, and the number of turns, if there are
# enough calls.
TURN, TURNS = 2, 6


@dataclass(frozen=True)
class TrialStage:
    """A stage of a trial: how often each candidate is called, and which candidates enter the next stage.

    :param rounds: maximum number of timed calls of each candidate.
    :param fewest: minimum number of timed calls of each candidate, made even if calls are long.
    :param before: number of untimed calls before each turn (calls of one candidate in a row).
    :param rivals: number of candidates besides native, the fastest ones, that enter the next stage; None if all enter.
    :param hopeless: factor; a candidate slower than native by this factor does not enter the next stage.
    :param rank: function of a candidate's times so far, whose result sorts the candidates, for example the median.
    :param needs: gain of the fastest candidate over native with which the trial goes on: ``any``, ``clear`` (in the
        median), ``steady`` (clear, and in most rounds), or ``doubtful`` (clear, but not steady).
    :param judged: number of stages, up to and including this one, whose times are judged together; 0 if this stage's
        times are not judged.
    :param turns: True if, to win, a candidate must also be faster in most turns.
    :param chance: greatest probability with which a candidate as fast as native may win by luck.
    """

    rounds: int
    fewest: int
    before: int = 1
    rivals: int | None = None
    hopeless: float = inf
    rank: Callable[..., Floats] = np.min
    needs: str = "any"
    judged: int = 1
    turns: bool = False
    chance: float = CHANCE

    def goes_on(self, verdict: Verdict, clear: float) -> bool:
        """Whether the trial goes on after this stage, because another stage could change the verdict so far.

        :param verdict: the verdict so far.
        :param clear: least gain over native.
        """
        steady, gains = verdict.algorithm != NATIVE, verdict.ratio >= clear
        return {"any": True, "clear": gains, "steady": steady, "doubtful": gains and not steady}[self.needs]

    def affordable(self, seconds: float) -> int:
        """Number of rounds of this stage, if a round takes ``seconds``: fewer if calls are long."""
        rounds = int(min(PATIENCE / seconds, self.rounds)) if seconds > 0 else self.rounds
        return max(rounds, self.fewest)


# The first calls are slower, because they make connections. They are not judged.
WARM_UP = TrialStage(1, 1, before=0, judged=0)
# The fastest candidate is compared with native in new calls, because the fastest of a dozen was probably also lucky.
# Trials have this stage twice, because with many classes of calls a slower candidate wins it once in some of them.
CONFIRM = TrialStage(54, 5, turns=True, needs="steady")
# Disturbances only lengthen a short call, so the shortest time ranks candidates.
SHORT_CALLS = (
    WARM_UP,
    TrialStage(2, 2, rivals=4, hopeless=2.0),
    TrialStage(3, 2, rivals=2, hopeless=1.1, judged=2),
    TrialStage(5, 3, rivals=1, hopeless=1.1, judged=3, needs="clear"),
    CONFIRM,
    CONFIRM,
)
# Long calls vary by themselves, on shared links by a tenth, so that the shortest time would favour the candidate that
# varies most; therefore the median ranks candidates. Every call is timed and judged, from the first on, because the
# preceding call has little effect on a long call, and because untimed long calls would cost the user much time.
LONG_CALLS = (
    TrialStage(1, 1, before=0, rivals=4, hopeless=2.0, rank=np.median),
    TrialStage(3, 2, before=0, rivals=2, hopeless=1.1, rank=np.median, judged=2),
    TrialStage(5, 3, before=0, rivals=1, hopeless=1.1, rank=np.median, judged=3, needs="doubtful"),
    TrialStage(54, 5, before=0, judged=4),
)
# The trial of a candidate that an earlier trial found faster.
AGAIN = (WARM_UP, CONFIRM)
# Several communicators make these calls at the same time over the same links, and a candidate's time depends on what
# the others run. Therefore no candidate is dropped and every call is judged, so that all communicators try the same
# candidate at the same time without communicating. 8 wins of 11 are enough, because choosing one of two equal
# candidates by luck costs little here, but running another schedule than the other communicators costs much.
TOGETHER = (TrialStage(11, 11, before=0, chance=0.12),)


@dataclass(frozen=True)
class Contest:
    """The candidates of a trial, and how they are judged.

    :param candidates: names of the candidates, native first.
    :param again: True for a shorter trial of native and one candidate, which an earlier trial found faster.
    :param clear: least gain (native's median time over the candidate's) with which a candidate replaces native.
    :param together: True if other communicators make the same trial at the same time, over the same links.
    """

    candidates: tuple[str, ...]
    again: bool = False
    clear: float = CLEAR
    together: bool = False

    def __post_init__(self) -> None:
        if not self.candidates or self.candidates[0] != NATIVE:
            raise ValueError(f"expecting candidates with {NATIVE} first, got {list(self.candidates)}")


class CallOrder:
    """The order of the calls in one stage of a trial.

    :param candidates: names of the candidates that take turns, native first.
    :param stage: the stage.
    :param rounds: number of timed calls of each candidate.
    :ivar turn: number of timed calls of a candidate in a row.
    :ivar order: index of the candidate of each call, shape (calls,); -1 - index for an untimed call.
    """

    def __init__(self, candidates: tuple[str, ...], stage: TrialStage, rounds: int) -> None:
        self.candidates, self.turn = candidates, max(TURN, rounds // TURNS)
        self.order: Order = interleave(len(candidates), rounds, self.turn, stage.before)

    def rounds(self, times: Floats, candidates: Sequence[str]) -> Floats:
        """The times in seconds of the named candidates' timed calls, shape (candidates, rounds).

        :param times: seconds of all calls of the stage, shape (calls,).
        :param candidates: names of candidates.
        """
        return np.array([times[self.order == self.candidates.index(name)] for name in candidates])


History = Sequence[tuple[CallOrder, Floats]]  # for each stage: its calls, and each call's seconds on its slowest rank


def proceed(contest: Contest, history: History) -> CallOrder | Verdict:
    """The calls of the next stage of a trial, or the verdict after the last stage.

    Source: K. Jamieson and A. Talwalkar, Non-stochastic best arm identification and hyperparameter optimization, 2016
    (successive halving). Departures: native always stays, and the last candidate is measured again in separate calls.

    :param contest: the candidates, and how they are judged.
    :param history: the stages so far with the times of their calls, the same on all ranks.

    Cost of a trial, in calls per candidate and stage, with native as one of the candidates. If calls are short: 4 in
    the first two stages, then at most 5 of five candidates, 8 of three candidates, and 60 or 120 of two candidates. If
    calls are long: 1, 2, 3 and at most 10. If an earlier trial found the candidate: 61 of two candidates.
    """
    if len(contest.candidates) == 1:
        return Verdict(NATIVE, 1.0, 0.0, "")
    stages = _stages(contest, history)
    if not history:
        return CallOrder(contest.candidates, stages[0], stages[0].rounds)
    stage, (calls, times) = stages[len(history) - 1], history[-1]
    if not stage.judged:
        # The shortest time is the best estimate of later calls, because the longer ones include making connections.
        return CallOrder(calls.candidates, stages[1], stages[1].affordable(len(times) * float(times.min())))
    looks = [past.rounds(seconds, calls.candidates) for past, seconds in history[-stage.judged :]]
    seconds = np.concatenate(looks, axis=1)
    verdict = judge(calls.candidates, seconds, contest.clear, stage.chance, calls.turn if stage.turns else 1)
    places = _survivors(seconds, stage)
    if len(history) == len(stages) or len(places) == 1 or not stage.goes_on(verdict, contest.clear):
        return verdict
    rounds = stages[len(history)].affordable(float(np.median(seconds[places], axis=1).sum()))
    return CallOrder(tuple(calls.candidates[place] for place in places), stages[len(history)], rounds)


def _stages(contest: Contest, history: History) -> tuple[TrialStage, ...]:
    if contest.together:
        return TOGETHER
    # Native's call and the median call must both be long, because a single call may have been disturbed.
    if history and min(history[0][1][0], np.median(history[0][1])) >= LONG:
        return LONG_CALLS
    return AGAIN if contest.again else SHORT_CALLS


def _survivors(times: Floats, stage: TrialStage) -> list[int]:
    """Indices of candidates for the next stage: native (0), and the fastest others without failed calls."""
    typical = np.where(np.isinf(times).any(axis=1), inf, stage.rank(times, axis=1))
    others = 1 + np.argsort(typical[1:], kind="stable")
    better = [int(row) for row in others[: stage.rivals] if typical[row] < stage.hopeless * typical[0]]
    return [0, *sorted(better)]


class Trial:
    """The state on one rank of a trial, which compares candidates by timing the calls of one class.

    The number of calls made so far determines the candidate of the next call, so that all ranks run the same one. All
    ranks end a stage in the first call that comes after the stage's calls. A call that failed on a rank has an infinite
    time on that rank, and its candidate loses.

    :param contest: the candidates, and how they are judged.
    :ivar verdict: the verdict; None until the last stage has ended.
    :ivar times: seconds of the present stage's calls on this rank, shape (calls,); infinite for a call that failed or
        is not made yet.
    """

    def __init__(self, contest: Contest) -> None:
        self.contest = contest
        self.verdict: Verdict | None = None
        self._spoilt = 0
        self._history: list[tuple[CallOrder, Floats]] = []
        self._go_on()

    def _go_on(self) -> None:
        """Start the next stage, or take the verdict."""
        what = proceed(self.contest, self._history)
        self._names: list[str] = []
        if isinstance(what, Verdict):
            self.verdict = what
        else:
            self._calls = what
            self._names = [what.candidates[place if place >= 0 else -1 - place] for place in what.order]
        self._next, self.times = 0, np.full(len(self._names), inf)

    @property
    def upcoming(self) -> str | None:
        """Name of the candidate that runs the next call; None at the end of a stage, until ``close`` is called."""
        return self._names[self._next] if self._next < len(self._names) else None

    def next(self) -> str | None:
        """Advance to the next call, and return the name of the candidate that runs it; None at the end of a stage."""
        algorithm = self.upcoming
        self._next += algorithm is not None
        return algorithm

    def note(self, seconds: float) -> None:
        """Record the seconds of the latest call on this rank."""
        self.times[self._next - 1] = seconds

    @property
    def latest(self) -> float:
        """Seconds of the latest call on this rank."""
        return float(self.times[self._next - 1])

    def close(self, times: Floats) -> None:
        """End a stage: start the next one, or set the verdict.

        If a call of native failed, the program has made a mistake, and the stage is repeated. After three of these
        stages the trial ends, and native wins.

        :param times: seconds of each of the stage's calls on its slowest rank, shape (calls,).
        """
        if np.isinf(times[self._calls.order == 0]).any():
            self._spoilt += 1
            if self._spoilt < MOST_SPOILT:
                self._next, self.times = 0, np.full(len(self._names), inf)
            else:
                self.verdict = Verdict(NATIVE, 1.0, 0.0, "")
            return
        self._history.append((self._calls, np.asarray(times, dtype=np.float64)))
        self._go_on()
