"""Rank 0's choice of an algorithm: by the rules file, else by results of earlier trials, else by the cost model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import islice

from ...inputs.settings import reproducible, tuning
from ...schedules.registry import ALGORITHMS
from ...schedules.segments import variants
from ...views.jobshape import JobShape
from ..execution.specs import CALLS, NATIVE
from ..prediction.libraries import Library
from ..prediction.machines import machine_from
from ..prediction.predictor import PAIRWISE, Predictor
from ..prediction.untuned import predict
from .choice import Choice
from .classes import Key, class_bytes, middle_of
from .judging import CLEAR, Verdict
from .memory import VerdictFile
from .rules import Rules
from .trial import Contest

__all__ = ["CLEAR_OF_SIBLINGS", "MOST_CUT", "MOST_RIVALS", "Advisor"]

# A trial has at most this many schedules, in addition to ``native``, and this many variants of them with cut messages,
# because every candidate costs calls of the program.
MOST_RIVALS = 12
MOST_CUT = 4
UNPROMISING = 4.0  # factor; a schedule is not tried if its predicted time exceeds the shortest by more than this
CLEAR_OF_SIBLINGS = 1.2  # least gain over native, raised because siblings on the same links may try other candidates

Runs = Callable[[str], bool]


class Advisor:
    """The choice of algorithms by rules file, remembered trials and cost model, without MPI; used on rank 0 only.

    :param job: the job: its ranks' placement, MPI library and siblings.
    :param environment: environment variables: ``TOPOMPI_RULES`` is the path of the rules file; ``TOPOMPI_TUNE`` is
        empty (default: start no trials), ``measure`` (start a trial for each class of calls, unless the verdict of an
        earlier trial is remembered and sure), ``again`` (start a trial for each class), or ``off`` (start no trials,
        and ignore remembered verdicts); with ``TOPOMPI_REPRODUCIBLE`` it is
        ``off``; ``TOPOMPI_MACHINE`` names the parameters of the cost model.
    :param library: the model of the MPI library; None if it is unknown.
    :raises TopompiError: if ``TOPOMPI_TUNE`` is another word, or the rules file is malformed.
    """

    def __init__(self, job: JobShape, environment: Mapping[str, str], library: Library | None = None) -> None:
        self.job, self.tune, self._same = job, tuning(environment), reproducible(environment)
        path = environment.get("TOPOMPI_RULES")
        self.rules = Rules.read(path) if path else Rules("", ())
        self.memory = VerdictFile(job)
        self.predictor = Predictor(job.interface, library, job.siblings, machine_from(environment))

    def advise(self, key: Key, root: int, runs: Runs, *, measurable: bool) -> Choice | Contest:
        """The choice for a class of calls, or, if a trial is to find it, the trial's candidates.

        A rule applies if it matches calls of the smallest size of the class. The cost model predicts the times of calls
        of the middle size.

        :param key: the class: method, size class, needs of the operation.
        :param root: the root of the present call, for the cost model; calls with other roots are in the same class.
        :param runs: function of an algorithm's name; True if the algorithm can run calls of the class.
        :param measurable: True if the calls can be timed.
        """
        root = 0 if self._same else root  # which root is first may differ from job to job
        answer = self._answer(key, root, runs, measurable=measurable)
        said = self.rules.passed_over(key[0], class_bytes(key[1])[0], self.job, runs, key[2])
        return replace(answer, reason=f"{answer.reason}; {said}") if said and isinstance(answer, Choice) else answer

    def _answer(self, key: Key, root: int, runs: Runs, *, measurable: bool) -> Choice | Contest:
        method, number, needs = key
        ruled = self.rules.choice(method, class_bytes(number)[0], self.job, runs)
        if ruled is not None:
            return ruled
        measures = measurable and self.tune in ("measure", "again")
        verdict = self.memory.recall(key) if self.tune in ("", "measure") else None
        if verdict is not None and runs(verdict.algorithm):
            # Siblings that make the same trial must compare the same candidates. They make no second trial, because
            # each has its own verdict from the first one, and a second trial compares only the winner of the first one.
            if measures and not verdict.sure and not self._together(key):
                return self._contest(key, [verdict.algorithm], again=True)
            trials = "an earlier trial" if verdict.trials == 1 else f"{verdict.trials} earlier trials"
            return Choice(verdict.algorithm, f"{verdict.describe()}, in {trials}", verdict.seconds)
        middle = middle_of(number)
        if measures:
            return self._contest(key, self.rivals(key, middle, root, runs))
        said = predict(self.predictor, method, middle, root, runs, commutative=not needs.order)
        unruled = bool(self.predictor.inapplicable) and not self.rules.rules
        forgetful = self.tune == "off" or (self.tune == "" and not self.memory.read())
        return Choice(said.algorithm, said.reason, said.seconds, always=unruled and forgetful)

    def rivals(self, key: Key, nbytes: int, root: int, runs: Runs) -> list[str]:
        """The candidates that a trial compares with native: schedules that are fast by the cost model.

        If the communicator has siblings (made by the same ``Split``) and the class has long alltoalls, all siblings try
        the same candidates, namely the schedules made for alltoalls that share links.

        :param key: the class of calls: method, size class, needs of the operation.
        :param nbytes: a size in the class, in bytes, for which the cost model predicts times.
        :param root: the root of the present call.
        :param runs: function of an algorithm's name; True if the algorithm can run calls of the class.
        """
        method, ranks = key[0], self.job.interface.num_ranks
        collective = CALLS[method].collective
        known = ALGORITHMS.get(collective, {})
        if self._together(key):
            shared = [name for name, one in known.items() if one.shares_links and runs(name)]
            return [*shared, *filter(runs, variants(collective, shared, nbytes, ranks))]
        tried = {name for name, one in known.items() if one.trial and runs(name) and self.predictor.fits(one)}
        ranking = self.predictor.rank(method, nbytes, root, tried.__contains__)
        most = UNPROMISING * ranking[0][1] if ranking else 0.0
        rivals = [name for name, seconds in ranking if not seconds > most]  # keeps NaN, too: an unknown time
        cut = filter(runs, variants(collective, rivals, nbytes, ranks))
        return [*rivals[:MOST_RIVALS], *islice(cut, MOST_CUT)]

    def keep(self, key: Key, verdict: Verdict) -> None:
        """Remember a trial's verdict on a class of calls.

        The verdict is combined with a remembered one on the same candidate, unless ``TOPOMPI_TUNE`` is ``again``.
        """
        before = self.memory.recall(key) if self.tune == "measure" else None
        if before is not None and before.algorithm == verdict.rival:
            verdict = before.and_then(verdict)
        self.memory.keep(key, verdict)

    def _contest(self, key: Key, rivals: list[str], *, again: bool = False) -> Contest:
        """The candidates of a trial, and how they are judged.

        An alltoall whose siblings may try other candidates at the same time, over the same links, must gain more.

        :param key: the class of calls: method, size class, needs of the operation.
        :param rivals: names of the candidates except native.
        :param again: True for a shorter trial of a candidate that an earlier trial found faster.
        """
        together = self._together(key)
        apart = self.job.siblings is not None and CALLS[key[0]].collective == "alltoall" and not together
        return Contest((NATIVE, *rivals), again, CLEAR_OF_SIBLINGS if apart else CLEAR, together)

    def _together(self, key: Key) -> bool:
        """Whether a class has long alltoalls and siblings exist, which make them at the same time over shared links."""
        exchange = self.job.siblings is not None and CALLS[key[0]].collective == "alltoall"
        return exchange and class_bytes(key[1])[0] > PAIRWISE
