"""The selector of algorithms for one communicator, with the same answers on all ranks."""

from __future__ import annotations

import os
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
from mpi4py import MPI

from ...topology import TopologyInterface
from ..execution.specs import CALLS, NO_NEEDS, Needs
from ..execution.talks import Answers, Talks
from .choice import Choice
from .classes import Key, size_class
from .policy import UNRULED, Policy
from .trial import Trial

if TYPE_CHECKING:
    from ...views.jobshape import JobShape
    from ...views.siblings import Siblings
    from .advisor import Advisor

__all__ = ["Selector", "library"]


class Selector:
    """The chooser of an algorithm for each call. All ranks ask it for the same calls, and get the same answers.

    A class has the calls with the same method, size class (bit length of the size) and needs of the operation. The root
    does not count, so that calls with changing roots share one trial. At the first call of a class rank 0 decides, by
    its own environment and files, and sends its answer to all ranks; the other ranks' environments are ignored. A trial
    times candidates in the program's own calls; the times are reduced over all ranks, and every rank computes the same
    verdict from them. See ``docs/rules.md``.

    :param interface: the placement of the ranks.
    :param talks: the messages by which the communicator's ranks decide together.
    :param siblings: the communicators that the same ``Split`` made; None if there are none.
    :param policy: rank 0's settings, known to all ranks; if it is None, rank 0 is asked for each class.
    :param answers: store of rank 0's answers, shared with other communicators over the same ranks; if it is None, the
        selector makes its own.
    :param known: store of the results of the method ``known``, shared with other communicators over the same ranks; if
        it is None, the selector makes its own.
    :ivar final: the choices that will not change, by class; the same on all ranks.
    :ivar trials: the trials that are not finished, by class; the same on all ranks.
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
        self._unmeasured: dict[Key, Choice] = {}  # choices for calls that cannot be timed
        self._requested: dict[Key, Choice] = {}  # choices for persistent calls
        self.trials: dict[Key, Trial] = {}
        self._typical: dict[str, int] = {}  # by method, the size in bytes by which calls with uneven blocks are classed

    def choose(
        self, method: str, nbytes: int, needs: Needs = NO_NEEDS, *, root: int | None = None, measurable: bool = True
    ) -> Choice:
        """The algorithm for a call.

        Collective until the choice is final: the first call of a class costs a broadcast of some hundred bytes, and
        each stage of a trial one reduction. The caller times a call of a trial, after a barrier of all ranks.

        :param method: mpi4py's name of the call, for example ``Alltoall``.
        :param nbytes: size of the call in bytes, the same on all ranks: the message of ``Bcast``; one block of
            ``Gather``, ``Scatter``, ``Allgather`` and ``Alltoall``; the whole vector of ``Reduce``, ``Allreduce`` and
            ``Reduce_scatter(_block)``; the result of ``typical`` for ``Alltoallv`` and ``Alltoallw``; 0 for other
            calls whose blocks may differ in size.
        :param needs: needs of a reduction's operation: operands in rank order, whole vectors, both or neither.
        :param root: the root; None in a call without one.
        :param measurable: True if the call can be timed; False if it sends objects.
        :raises TopompiError: if rank 0's environment or rules file is invalid; the same on all ranks.
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

    def request(self, method: str, nbytes: int, needs: Needs) -> Choice:
        """The algorithm for a persistent call, by the rules alone. Local: no communication.

        :param method: mpi4py's name of the blocking call, for example ``Alltoall``.
        :param nbytes: size of the call in bytes, as ``choose`` takes it.
        :param needs: needs of a reduction's operation: operands in rank order, whole vectors, both or neither.
        """
        key = (method, size_class(nbytes), needs)
        if self._policy is None:
            return UNRULED
        if key not in self._requested:
            self._requested[key] = self._policy.request(key, self._job, partial(self.runs, key))
        return self._requested[key]

    def made(self, method: str, nbytes: int) -> Choice | None:
        """The final choice for calls of a method and size; None if there is none yet. Local: no communication."""
        return self.final.get((method, size_class(nbytes), NO_NEEDS))

    def known(self, key: Key) -> Choice | None:
        """The choice for a class of calls, if all ranks can determine it without asking rank 0; else None."""
        if key not in self._known:
            policy = self._policy
            self._known[key] = None if policy is None else policy.choice(key, self._job, partial(self.runs, key))
        return self._known[key]

    def typical(self, method: str, own: int) -> int:
        """Size in bytes by which the algorithm is chosen for calls with uneven blocks; the same on all ranks.

        It is the mean block size of the rank that sends most, in the first call that moves data; later calls use the
        same number. Up to and including that call, each call is collective: one reduction of 8 bytes.

        :param method: name of the call, ``Alltoallv`` or ``Alltoallw``.
        :param own: mean size in bytes of this rank's blocks in the present call.
        """
        if not self._typical.get(method):
            self._typical[method] = int(self._talks.largest(np.array([own], dtype=np.int64))[0])
        return self._typical[method]

    def _go_on(self, key: Key) -> Choice:
        """The choice for the next call of a trial, or the final one after the last stage."""
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
        """The choice that all ranks can make, else rank 0's answer; an error of rank 0 is raised on all ranks."""
        if (known := self.known(key)) is not None:
            return known
        runs = partial(self.runs, key)

        def asked() -> object:
            return key, measurable, *map(os.environ.get, ("TOPOMPI_RULES", "TOPOMPI_TUNE", "TOPOMPI_REPRODUCIBLE"))

        answer = self._answers.ask(
            self._talks,
            asked,
            lambda: self._advisor.advise(key, root, runs, measurable=measurable),
            lambda said: isinstance(said, Choice),
        )
        return answer if isinstance(answer, Choice) else Trial(answer)

    def runs(self, key: Key, algorithm: str) -> bool:
        """Whether an algorithm can run calls of a class, and is no duplicate of another one on these ranks.

        :param key: the class of calls: method, size class, needs of the operation.
        :param algorithm: ``native``, or a name of ``schedules.ALGORITHMS``.
        """
        from ...schedules.registry import ALGORITHMS
        from ..execution.eligibility import can_run

        found = ALGORITHMS.get(CALLS[key[0]].collective, {}).get(algorithm)
        alone = found is not None and found.joint and self._siblings is None  # sends the same messages as ``even``
        return not alone and can_run(key[0], algorithm, key[2])

    @cached_property
    def _advisor(self) -> Advisor:
        from ..prediction.libraries import model_of
        from .advisor import Advisor  # imported here, because only rank 0 needs models and generators

        return Advisor(self._job, os.environ, model_of(MPI.Get_library_version()))

    @cached_property
    def _job(self) -> JobShape:
        from ...views.jobshape import JobShape

        return JobShape(self._interface, library(), MPI.Get_processor_name(), self._siblings)


def library() -> str:
    """Vendor and version of the MPI library."""
    vendor, version = MPI.get_vendor()
    return f"{vendor} {'.'.join(map(str, version))}"
