"""Rank 0's advice on an algorithm: by the rules file, else by earlier trials, else by the cost model."""

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

MOST_RIVALS = 12  # schedules in a trial, in addition to native and levels
MOST_CUT = 4  # variants with cut messages in a trial, in addition to these
UNPROMISING = 4.0  # a schedule whose predicted time is longer than the shortest one by this factor is not tried
CLEAR_OF_SIBLINGS = 1.2  # gain required while siblings on the same links may be trying other candidates

Runs = Callable[[str], bool]


class Advisor:
    """The choice of algorithms by rules, memory and cost model, without MPI; rank 0 asks it for all ranks.

    :param job: the job.
    :param environment: environment variables: ``TOPOMPI_RULES`` is the path of the rules file; ``TOPOMPI_TUNE`` is
        empty (default: measure nothing), ``measure`` (measure classes that are not remembered or not sure), ``again``
        (measure all), or ``off`` (neither measure nor remember).
    :param library: the model of the MPI library; None if it is unknown.
    :raises TopompiError: if ``TOPOMPI_TUNE`` is another word, or the rules file is malformed.
    """

    def __init__(self, job: JobShape, environment: Mapping[str, str], library: Library | None = None) -> None:
        self.job, self.tune = job, word_of("TOPOMPI_TUNE", environment)
        path = environment.get("TOPOMPI_RULES")
        self.rules = Rules.read(path) if path else Rules("", ())
        self.memory = Memory(job)
        self.predictor = Predictor(job.interface, library, job.siblings)

    def advise(self, key: Key, root: int, runs: Runs, *, measurable: bool) -> Choice | Contest:
        """The choice for a class of calls, or the contest for a trial.

        Rules are matched with the smallest size of the class; the model predicts times for the middle size.

        :param key: the class.
        :param root: the root of this call, for the model; calls with other roots are in the same class.
        :param runs: function that tells whether an algorithm can run calls of the class.
        :param measurable: True if the calls can be timed.
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
            # No second trial among siblings: their trials must compare the same candidates, but each remembers another
            # verdict.
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
        :param nbytes: a size in the class, in bytes.
        :param root: the root of the current call.
        :param runs: function that tells whether an algorithm can run calls of the class.
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
        rivals = [name for name, seconds in ranking if not seconds > most]  # true for NaN, too: unknown
        cut = filter(runs, variants(collective, rivals, nbytes, ranks))
        return [*([LEVELS] if runs(LEVELS) else []), *rivals[:MOST_RIVALS], *islice(cut, MOST_CUT)]

    def keep(self, key: Key, verdict: Verdict) -> None:
        """Remember a trial's verdict, combined with earlier verdicts on the same rival unless all is measured again."""
        before = self.memory.recall(key) if self.tune == "measure" else None
        if before is not None and before.algorithm == verdict.rival:
            verdict = before.and_then(verdict)
        self.memory.keep(key, verdict)

    def _contest(self, key: Key, rivals: list[str], *, again: bool = False) -> Contest:
        """The contest of native with some rivals, judged strictly while siblings try others on the same links."""
        together = self._together(key)
        apart = self.job.siblings is not None and CALLS[key[0]].collective == "alltoall" and not together
        return Contest((NATIVE, *rivals), again, CLEAR_OF_SIBLINGS if apart else CLEAR, together)

    def _together(self, key: Key) -> bool:
        """Whether a class has long alltoalls, which siblings make at the same time, also in trials, on shared links."""
        exchange = self.job.siblings is not None and CALLS[key[0]].collective == "alltoall"
        return exchange and class_bytes(key[1])[0] > PAIRWISE
