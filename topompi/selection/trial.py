"""Trials: which candidate runs at which call. Stages are data; what comes next is a function of what was measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from ..execution.specs import NATIVE
from ..execution.timing import Order, interleave
from .judging import CHANCE, CLEAR, Verdict, judge

__all__ = ["AGAIN", "CONFIRM", "LONG", "LONG_CALLS", "SHORT_CALLS", "TOGETHER", "Contest", "Stage", "Trial", "proceed"]

Floats = NDArray[np.float64]

LONG = 0.05  # seconds of first calls from which on what went before a call is no more than noise to it
PATIENCE = 1.0  # seconds that the rounds of one stage may take together, where more than the fewest are made
MOST_SPOILT = 3  # stages with calls that failed natively, before a trial ends without a finding
TURN, TURNS = 2, 6  # timed calls of a candidate in a row at least, and turns of each where there are calls enough


@dataclass(frozen=True)
class Stage:
    """A stage of a trial.

    :param rounds: timed calls of each candidate at most.
    :param fewest: and at least, where calls take long.
    :param before: calls before each turn that do not count.
    :param rivals: how many go on to the next stage: the fastest; None for all.
    :param hopeless: a rival that is slower than native by this factor does not go on.
    :param rank: what the fastest are told by, of each candidate's times so far.
    :param needs: what the fastest rival's gain so far must be for the trial to go on: ``any``, ``clear`` in the median,
        ``steady`` too, or ``doubtful``: clear, but not steady.
    :param judged: how many stages, this one the last, are ranked and judged by all their calls together; 0 for none.
    :param turns: whether its turns are judged too.
    :param chance: of choosing one of two equals, at most.
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
        """Whether the finding so far leaves something to find out."""
        steady, gains = verdict.algorithm != NATIVE, verdict.ratio >= clear
        return {"any": True, "clear": gains, "steady": steady, "doubtful": gains and not steady}[self.needs]

    def affordable(self, seconds: float) -> int:
        """Rounds by the seconds of one: fewer of long calls, which are disturbed less and for which users wait."""
        rounds = int(min(PATIENCE / seconds, self.rounds)) if seconds > 0 else self.rounds
        return max(rounds, self.fewest)


# Connections are made. It does not count.
WARM_UP = Stage(1, 1, before=0, judged=0)
# By itself, for the best of a dozen was lucky too; twice, for over many classes of calls some are lucky once.
CONFIRM = Stage(54, 5, turns=True, needs="steady")
# What disturbs a short call makes it longer: the shortest time ranks candidates.
SHORT_CALLS = (
    WARM_UP,
    Stage(2, 2, rivals=4, hopeless=2.0),
    Stage(3, 2, rivals=2, hopeless=1.1, judged=2),
    Stage(5, 3, rivals=1, hopeless=1.1, judged=3, needs="clear"),
    CONFIRM,
    CONFIRM,
)
# Long calls vary by themselves, on shared links by a tenth: the shortest would be of the candidate that varies most.
# They meet little of what went before, and a user waits for them: all count, from the first on.
LONG_CALLS = (
    Stage(1, 1, before=0, rivals=4, hopeless=2.0, rank=np.median),
    Stage(3, 2, before=0, rivals=2, hopeless=1.1, rank=np.median, judged=2),
    Stage(5, 3, before=0, rivals=1, hopeless=1.1, rank=np.median, judged=3, needs="doubtful"),
    Stage(54, 5, before=0, judged=4),
)
# A rival that an earlier trial found faster.
AGAIN = (WARM_UP, CONFIRM)
# Calls that several communicators make at the same time, over the same links. What a candidate takes depends on what
# the others run: none is dropped and every call counts, so that all of them try the same candidate at the same time
# without a word between them. One of two equals costs little here, another schedule than the others' much: 8 of 11.
TOGETHER = (Stage(11, 11, before=0, chance=0.12),)


@dataclass(frozen=True)
class Contest:
    """The candidates of a trial, and how they are judged.

    :param candidates: names, native first.
    :param again: whether an earlier trial has found the only rival faster: a shorter one tells whether it still is.
    :param clear: a smaller gain is no reason to leave native.
    :param together: whether other communicators make the same trial at the same time, over the same links.
    """

    candidates: tuple[str, ...]
    again: bool = False
    clear: float = CLEAR
    together: bool = False

    def __post_init__(self) -> None:
        if not self.candidates or self.candidates[0] != NATIVE:
            raise ValueError(f"expecting candidates with {NATIVE} first, got {list(self.candidates)}")


class Calls:
    """The calls of one stage.

    :param candidates: those that take turns, native first.
    :param stage: the stage.
    :param rounds: timed calls of each.
    :ivar turn: timed calls of a candidate in a row.
    :ivar order: the candidate of each call, see ``interleave``.
    """

    def __init__(self, candidates: tuple[str, ...], stage: Stage, rounds: int) -> None:
        self.candidates, self.turn = candidates, max(TURN, rounds // TURNS)
        self.order: Order = interleave(len(candidates), rounds, self.turn, stage.before)

    def rounds(self, times: Floats, candidates: Sequence[str]) -> Floats:
        """The times of some candidates' calls that count, shape (candidates, rounds)."""
        return np.array([times[self.order == self.candidates.index(name)] for name in candidates])


History = Sequence[tuple[Calls, Floats]]  # of each stage its calls, and the slowest rank's seconds of each


def proceed(contest: Contest, history: History) -> Calls | Verdict:
    """The next stage of a trial, or its verdict after the last one.

    Source: K. Jamieson and A. Talwalkar, Non-stochastic best arm identification and hyperparameter optimization, 2016
    (successive halving). We always keep native, and let the rival that is left prove itself in calls of its own.

    :param contest: what is compared.
    :param history: what was measured so far, the same on all ranks.
    Cost: for short calls 4 for each candidate, at most 5 for each of five, 8 for each of three, and 60 or 120 for each
    of two; for long ones 1, 2, 3 and at most 10; where an earlier trial found the rival 61 for each of two.
    """
    if len(contest.candidates) == 1:
        return Verdict(NATIVE, 1.0, 0.0, "")
    stages = _stages(contest, history)
    if not history:
        return Calls(contest.candidates, stages[0], stages[0].rounds)
    stage, (calls, times) = stages[len(history) - 1], history[-1]
    if not stage.judged:
        # The shortest tells best what later calls will take: the others made connections.
        return Calls(calls.candidates, stages[1], stages[1].affordable(len(times) * float(times.min())))
    looks = [past.rounds(seconds, calls.candidates) for past, seconds in history[-stage.judged :]]
    seconds = np.concatenate(looks, axis=1)
    verdict = judge(calls.candidates, seconds, contest.clear, stage.chance, calls.turn if stage.turns else 1)
    places = _survivors(seconds, stage)
    if len(history) == len(stages) or len(places) == 1 or not stage.goes_on(verdict, contest.clear):
        return verdict
    rounds = stages[len(history)].affordable(float(np.median(seconds[places], axis=1).sum()))
    return Calls(tuple(calls.candidates[place] for place in places), stages[len(history)], rounds)


def _stages(contest: Contest, history: History) -> tuple[Stage, ...]:
    if contest.together:
        return TOGETHER
    # One alone may have been disturbed.
    if history and min(history[0][1][0], np.median(history[0][1])) >= LONG:
        return LONG_CALLS
    return AGAIN if contest.again else SHORT_CALLS


def _survivors(times: Floats, stage: Stage) -> list[int]:
    """Candidates worth another stage: native, the first, and the fastest of the others; none that failed."""
    typical = np.where(np.isinf(times).any(axis=1), inf, stage.rank(times, axis=1))
    others = 1 + np.argsort(typical[1:], kind="stable")
    better = [int(row) for row in others[: stage.rivals] if typical[row] < stage.hopeless * typical[0]]
    return [0, *sorted(better)]


class Trial:
    """The calls of one class of calls while its candidates are compared, as one rank sees them.

    The number of calls made so far decides which candidate runs, so all ranks run the same. The first call after a
    stage closes it, on all ranks. A call that failed on a rank has infinite time there, and its candidate loses.

    :param contest: what is compared.
    :ivar verdict: None until the last stage is closed.
    :ivar times: seconds of the stage's calls on this rank, shape (calls,); infinite where none were noted.
    """

    def __init__(self, contest: Contest) -> None:
        self.contest = contest
        self.verdict: Verdict | None = None
        self._spoilt = 0
        self._history: list[tuple[Calls, Floats]] = []
        self._go_on()

    def _go_on(self) -> None:
        """Lay out the calls of the next stage, if there is one."""
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
        """The algorithm of the next call; None at the end of a stage, until ``close`` is called."""
        return self._names[self._next] if self._next < len(self._names) else None

    def next(self) -> str | None:
        """Go on to the next call, and return its algorithm; None at the end of a stage."""
        algorithm = self.upcoming
        self._next += algorithm is not None
        return algorithm

    def note(self, seconds: float) -> None:
        """Note the seconds of the latest call on this rank."""
        self.times[self._next - 1] = seconds

    def close(self, times: Floats) -> None:
        """End a stage, whose calls took these seconds on their slowest ranks, shape (calls,).

        If the library's own calls failed in it, the program's mistakes did that: the stage is made once more, three
        times in all, and then the trial ends without a finding.
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
