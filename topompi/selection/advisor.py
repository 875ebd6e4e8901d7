"""Rank 0's advice: from the rules file, else from earlier trials, else from the cost model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import islice

from ..execution.specs import CALLS, LEVELS, NATIVE
from ..inputs.settings import word_of
from ..prediction.libraries import Library
from ..prediction.predictor import PAIRWISE, Predictor
from ..prediction.untuned import predict
from ..schedules.registry import ALGORITHMS
from ..schedules.segments import variants
from ..views.jobshape import JobShape
from .choice import Choice
from .classes import Key, class_bytes
from .judging import CLEAR, Verdict
from .memory import Memory
from .rules import Rules
from .trial import Contest

__all__ = ["CLEAR_OF_SIBLINGS", "MOST_CUT", "MOST_RIVALS", "Advisor"]

MOST_RIVALS = 12  # schedules in a trial, not counting native and the levels
MOST_CUT = 4  # and those of them with messages that are cut
UNPROMISING = 4.0  # times the cheapest by the model: not tried
CLEAR_OF_SIBLINGS = 1.2  # the gain that counts where siblings on the same links may try other candidates at the time

Runs = Callable[[str], bool]


class Advisor:
    """Chooses by rules, memory and cost model, without MPI: rank 0 asks it and sends the answer to the others.

    :param job: the job.
    :param environment: where ``TOPOMPI_RULES`` names the rules file, and ``TOPOMPI_TUNE`` says what may be measured:
        nothing new (empty, the default), ``measure`` what is not remembered or not sure, ``again`` all, or ``off``:
        nothing is measured or remembered.
    :param library: the model of the MPI library; None where it is unknown.
    :raises TopompiError: for another word, or a rules file that is not as wanted.
    """

    def __init__(self, job: JobShape, environment: Mapping[str, str], library: Library | None = None) -> None:
        self.job, self.tune = job, word_of("TOPOMPI_TUNE", environment)
        path = environment.get("TOPOMPI_RULES")
        self.rules = Rules.read(path) if path else Rules("", ())
        self.memory = Memory(job)
        self.predictor = Predictor(job.interface, library, job.siblings)

    def advise(self, key: Key, root: int, runs: Runs, *, measurable: bool) -> Choice | Contest:
        """The choice for a class of calls, or what to compare in a trial.

        Rules are matched with the smallest size of the class; the model predicts the middle one.

        :param key: the class.
        :param root: the root of this call, for the model; calls with other roots are in the same class.
        :param runs: whether an algorithm can run for such calls.
        :param measurable: whether the calls can be timed.
        """
        answer = self._answer(key, root, runs, measurable=measurable)
        said = self.rules.passed_over(key[0], class_bytes(key[1])[0], self.job, runs, key[2])
        return replace(answer, reason=f"{answer.reason}; {said}") if said and isinstance(answer, Choice) else answer

    def _answer(self, key: Key, root: int, runs: Runs, *, measurable: bool) -> Choice | Contest:
        method, number, needs = key
        smallest, largest = class_bytes(number)
        ruled = self.rules.choice(method, smallest, self.job, runs)
        if ruled is not None:
            return ruled
        measures = measurable and self.tune in ("measure", "again")
        verdict = self.memory.recall(key) if self.tune in ("", "measure") else None
        if verdict is not None and runs(verdict.algorithm):
            # Siblings never make a second trial together: each remembers a verdict of its own, so that the next time
            # they would compare different rivals.
            if measures and not verdict.sure and not self._together(key):
                return self._contest(key, [verdict.algorithm], again=True)
            trials = "an earlier trial" if verdict.trials == 1 else f"{verdict.trials} earlier trials"
            return Choice(verdict.algorithm, f"{verdict.describe()}, in {trials}", verdict.seconds)
        middle = (smallest + largest + 1) // 2
        if measures:
            return self._contest(key, self.rivals(key, middle, root, runs))
        said = predict(self.predictor, method, middle, root, runs, commutative=not needs.order)
        unruled = bool(self.predictor.inapplicable) and not self.rules.rules
        forgetful = self.tune == "off" or (self.tune == "" and not self.memory.read())
        return Choice(said.algorithm, said.reason, said.seconds, always=unruled and forgetful)

    def rivals(self, key: Key, nbytes: int, root: int, runs: Runs) -> list[str]:
        """The algorithms that a trial compares with native: ``levels``, and schedules that the model finds promising.

        Siblings that exchange long messages all try the same few schedules, which are made to share links.

        :param key: the class.
        :param nbytes: a size of it in bytes.
        :param root: of the call at hand.
        :param runs: whether an algorithm can run for such calls.
        """
        method, ranks = key[0], self.job.interface.num_ranks
        collective = CALLS[method].collective
        known = ALGORITHMS.get(collective, {})
        if self._together(key):
            shared = [name for name, one in known.items() if one.shares_links and runs(name)]
            return [*shared, *filter(runs, variants(collective, shared, nbytes, ranks))]
        tried = {name for name, one in known.items() if one.trial and runs(name)}
        ranking = self.predictor.rank(method, nbytes, root, tried.__contains__)
        most = UNPROMISING * ranking[0][1] if ranking else 0.0
        rivals = [name for name, seconds in ranking if not seconds > most]  # nor those that it does not cost
        cut = filter(runs, variants(collective, rivals, nbytes, ranks))
        return [*([LEVELS] if runs(LEVELS) else []), *rivals[:MOST_RIVALS], *islice(cut, MOST_CUT)]

    def keep(self, key: Key, verdict: Verdict) -> None:
        """Remember a trial's verdict, with those of earlier trials of its rival unless all is measured again."""
        before = self.memory.recall(key) if self.tune == "measure" else None
        if before is not None and before.algorithm == verdict.rival:
            verdict = before.and_then(verdict)
        self.memory.keep(key, verdict)

    def _contest(self, key: Key, rivals: list[str], *, again: bool = False) -> Contest:
        """The contest of native with some rivals, judged more strictly where siblings try others on the same links."""
        together = self._together(key)
        apart = self.job.siblings is not None and CALLS[key[0]].collective == "alltoall" and not together
        return Contest((NATIVE, *rivals), again, CLEAR_OF_SIBLINGS if apart else CLEAR, together)

    def _together(self, key: Key) -> bool:
        """Whether siblings make such calls, long alltoalls, at the same time and compete for links: also in a trial."""
        exchange = self.job.siblings is not None and CALLS[key[0]].collective == "alltoall"
        return exchange and class_bytes(key[1])[0] > PAIRWISE
