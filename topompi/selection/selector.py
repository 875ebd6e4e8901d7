"""The selector of one communicator: the same answer on all ranks."""

from __future__ import annotations

import os
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
from mpi4py import MPI

from ..execution.specs import CALLS, LEVELS, NO_NEEDS, Needs
from ..execution.talks import Answers, Talks
from ..topology import TopologyInterface
from .choice import Choice
from .classes import Key, size_class
from .policy import Policy
from .trial import Trial

if TYPE_CHECKING:
    from ..views.jobshape import JobShape
    from ..views.siblings import Siblings
    from .advisor import Advisor

__all__ = ["Selector", "library"]


class Selector:
    """Chooses the algorithm of each call; all ranks call it for the same calls and get the same answer.

    Calls fall into classes by method, size (its bit length) and the needs of the operation. The root is no part of
    the class, so that roots that rotate share one trial. When a class is first seen rank 0 decides, by its own
    environment and files, and tells the others: what these have does not count. A trial's times are reduced over all
    ranks, and every rank draws the same verdict from them. See ``docs/rules.md``.

    :param interface: where the ranks sit.
    :param talks: the communicator's talks.
    :param siblings: the communicators that the same ``Split`` made; None if there are none.
    :param policy: what all ranks know of rank 0's environment.
    :param answers: rank 0's answers so far, those to other communicators over the same ranks among them.
    :param known: what ``known`` has found so far, perhaps for other communicators over the same ranks.
    :ivar final: the choices that will not change, by class.
    :ivar trials: those under way, by class; the same on all ranks, as ``final`` is.
    """

    def __init__(
        self,
        interface: TopologyInterface,
        talks: Talks,
        siblings: Siblings | None = None,
        policy: Policy | None = None,
        answers: Answers | None = None,
        known: dict[Key, Choice | None] | None = None,
    ) -> None:
        self._interface, self._siblings, self._policy = interface, siblings, policy
        self._answers = Answers() if answers is None else answers
        self._known = {} if known is None else known
        self._talks = talks
        self.final: dict[Key, Choice] = {}
        self._unmeasured: dict[Key, Choice] = {}  # what to run where a class cannot be timed
        self.trials: dict[Key, Trial] = {}
        self._typical: dict[str, int] = {}  # bytes of calls with blocks of any sizes

    def choose(
        self, method: str, nbytes: int, needs: Needs = NO_NEEDS, *, root: int | None = None, measurable: bool = True
    ) -> Choice:
        """The algorithm for a call.

        Collective until the choice is final: the first call of a class costs a broadcast of some hundred bytes, and a
        stage of a trial a reduction. The caller times a call of a trial after a barrier, with all ranks ready for it.

        :param method: mpi4py's name of it, for example ``Alltoall``.
        :param nbytes: its size, the same on all ranks: for ``Bcast`` the message; for ``Gather``, ``Scatter``,
            ``Allgather`` and ``Alltoall`` one block; for ``Reduce``, ``Allreduce`` and ``Reduce_scatter(_block)`` the
            whole vector; for ``Alltoallv`` and ``Alltoallw`` what ``typical`` says; 0 for the other v-forms.
        :param needs: the demands of a reduction's operation.
        :param root: of a rooted collective.
        :param measurable: whether the call can be timed; persistent ones cannot when they are made.
        :raises TopompiError: on all ranks, if rank 0's environment or rules file is not as wanted.
        """
        key = (method, size_class(nbytes), needs)
        if key in self.final:
            return self.final[key]
        made = self.final if measurable else self._unmeasured
        if key not in made and not (measurable and key in self.trials):
            answer = self._ask(key, root or 0, measurable=measurable)
            if isinstance(answer, Choice):
                made[key] = answer
            else:
                self.trials[key] = answer
        return made[key] if key in made else self._go_on(key)

    def made(self, method: str, nbytes: int) -> Choice | None:
        """The final choice for calls of a method and size, if there is one; local."""
        return self.final.get((method, size_class(nbytes), NO_NEEDS))

    def known(self, key: Key) -> Choice | None:
        """The choice for a class of calls that all ranks know without asking rank 0, if there is one; local."""
        if key not in self._known:
            policy = self._policy
            self._known[key] = None if policy is None else policy.choice(key, self._job, partial(self.runs, key))
        return self._known[key]

    def typical(self, method: str, own: int) -> int:
        """Bytes by which to choose for calls with blocks of any sizes, of which each rank knows only its own.

        It is the mean block of the rank that sends most, in the first call that moves anything; later calls take the
        same number. Collective, one reduction of 8 bytes a call, until then.

        :param method: the call.
        :param own: mean bytes of a block on this rank, in this call.
        """
        if not self._typical.get(method):
            self._typical[method] = int(self._talks.largest(np.array([own], dtype=np.int64))[0])
        return self._typical[method]

    def _go_on(self, key: Key) -> Choice:
        """The choice for the next call of a trial, or the final one after its last stage."""
        trial = self.trials[key]
        while (algorithm := trial.next()) is None and trial.verdict is None:
            trial.close(self._talks.largest(trial.times))
        if algorithm is not None or trial.verdict is None:
            return Choice(str(algorithm), "trial", None, trial)
        del self.trials[key]
        verdict = trial.verdict
        self.final[key] = Choice(verdict.algorithm, verdict.describe(), verdict.seconds if verdict.rival else None)
        if verdict.rival and self._talks.rank == 0:
            self._advisor.keep(key, verdict)
        return self.final[key]

    def _ask(self, key: Key, root: int, *, measurable: bool) -> Choice | Trial:
        """Rank 0's answer, on all ranks; its error too. What all ranks know it is not asked."""
        if (known := self.known(key)) is not None:
            return known
        runs = partial(self.runs, key)

        def asked() -> object:
            return key, measurable, os.environ.get("TOPOMPI_RULES"), os.environ.get("TOPOMPI_TUNE")

        answer = self._answers.ask(
            self._talks,
            asked,
            lambda: self._advisor.advise(key, root, runs, measurable=measurable),
            lambda said: isinstance(said, Choice),
        )
        return answer if isinstance(answer, Choice) else Trial(answer)

    def runs(self, key: Key, algorithm: str) -> bool:
        """Whether an algorithm can run for a class, and is not native by another name."""
        from ..execution.eligibility import can_run
        from ..schedules.registry import ALGORITHMS

        divides = algorithm != LEVELS or len(self._interface.levels) > 0
        found = ALGORITHMS.get(CALLS[key[0]].collective, {}).get(algorithm)
        alone = found is not None and found.joint and self._siblings is None  # then it is ``even`` by another name
        return divides and not alone and can_run(key[0], algorithm, key[2])

    @cached_property
    def _advisor(self) -> Advisor:
        from ..prediction.libraries import model_of
        from .advisor import Advisor  # with models and generators: rank 0 alone asks

        return Advisor(self._job, os.environ, model_of(MPI.Get_library_version()))

    @cached_property
    def _job(self) -> JobShape:
        from ..views.jobshape import JobShape

        return JobShape(self._interface, library(), MPI.Get_processor_name(), self._siblings)


def library() -> str:
    """The MPI library: vendor and version."""
    vendor, version = MPI.get_vendor()
    return f"{vendor} {'.'.join(map(str, version))}"
