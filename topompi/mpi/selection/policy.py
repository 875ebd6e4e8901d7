"""The choices of algorithms that all ranks can make without asking rank 0."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from ...inputs.settings import cache_directory, tuning
from ..prediction.scope import unmodelled
from .choice import Choice

if TYPE_CHECKING:
    from ...topology import TopologyInterface
    from ...views.jobshape import JobShape
    from .classes import Key
    from .rules import Rules

__all__ = ["UNRULED", "Policy", "is_forgetful"]

UNRULED = Choice("native", "native: a schedule runs persistent calls only if a rule says so", local=True)


@dataclass(frozen=True)
class Policy:
    """Settings from rank 0's environment, sent to all ranks of a communicator; communicators made from it inherit them.

    :param rules: the rules file; None if there is none.
    :param forgetful: True if nothing is to be measured, and no trials of earlier jobs are remembered.
    :param native_calls: number of a derived communicator's first calls among which the MPI library runs the small ones.
    :param neighbours: ``TOPOMPI_NEIGHBOURS``, the word that decides on neighbourhood collectives; empty if the cost
        model or a trial does.
    :param measures: whether trials may be made.
    :param checks: seconds in a call after which the watchdog prints a line, by ``TOPOMPI_CHECK``; 0 if calls are not
        checked.
    """

    rules: Rules | None = None
    forgetful: bool = False
    native_calls: int = 0
    neighbours: str = ""
    measures: bool = False
    checks: int = 0
    alone: ClassVar[Choice] = Choice("native", "native: one rank")

    def only(self, interface: TopologyInterface) -> Choice | None:
        """The single choice for every call of a job; None if there are several."""
        if interface.num_ranks == 1:
            return self.alone
        if interface.num_hosts == 1 and not interface.levels:
            ruled = "" if self.rules is None else f"; no rule of {self.rules.name} applies within one host"
            return Choice("native", f"native: one host{ruled}")
        return None if self.rules is not None else self._unmodelled(interface)

    def choice(self, key: Key, job: JobShape, runs: Callable[[str], bool]) -> Choice | None:
        """The choice for a class of calls; None if rank 0 must be asked.

        :param key: the class: method, size class, needs of the operation.
        :param job: the job's shape, the same on all ranks except for the machine's name.
        :param runs: function of an algorithm's name; True if the algorithm can run calls of the class.
        """
        return self._ruled(key, job, runs, self._unmodelled(job.interface))

    def request(self, key: Key, job: JobShape, runs: Callable[[str], bool]) -> Choice:
        """The choice for a class of persistent calls, which only a rule takes from the MPI library.

        :param key: the class: method, size class, needs of the operation.
        :param job: the job's shape, the same on all ranks except for the machine's name.
        :param runs: function of an algorithm's name; True if the algorithm can run calls of the class.
        """
        return self._ruled(key, job, runs, UNRULED) or UNRULED

    def _ruled(self, key: Key, job: JobShape, runs: Callable[[str], bool], otherwise: Choice | None) -> Choice | None:
        """The choice of the rules file; ``otherwise`` if no rule applies."""
        if self.rules is None:
            return otherwise
        from .classes import class_bytes

        smallest = class_bytes(key[1])[0]
        choice = self.rules.choice(key[0], smallest, job, runs) or otherwise
        said = self.rules.passed_over(key[0], smallest, job, runs, key[2])
        return choice and replace(choice, reason="; ".join(filter(None, (choice.reason, said))), local=True)

    @property
    def asks_for_requests(self) -> bool:
        """Whether plans may run persistent or non-blocking calls; the same on all ranks."""
        ruled = self.rules is not None and any(rule.algorithm != "native" for rule in self.rules.rules)
        return ruled or self.neighbours not in ("", "native")

    def asks(self, method: str) -> bool:
        """Whether a rule takes calls of a method from the MPI library; the same on all ranks."""
        return self.rules is not None and any(name != "native" for name in self.rules.algorithms(method))

    def leaves(self, method: str, interface: TopologyInterface) -> bool:
        """Whether the MPI library runs every call of a method, whatever the arguments; the same on all ranks."""
        return self._unmodelled(interface) is not None and not self.asks(method)

    def minds_siblings(self, interface: TopologyInterface) -> bool:
        """Whether a choice may depend on siblings, the other communicators that the same ``Split`` makes."""
        if interface.routes is None or interface.num_hosts < 2:
            return False
        named = self.rules is not None and self.rules.name_joint
        return named or self._unmodelled(interface) is None

    def _unmodelled(self, interface: TopologyInterface) -> Choice | None:
        why = unmodelled(interface) if self.forgetful else ""
        return Choice("native", f"native: {why}", local=True) if why else None


def is_forgetful(environment: Mapping[str, str]) -> bool:
    """Whether nothing may be measured, and no trials of earlier jobs are remembered.

    :param environment: environment variables, with ``TOPOMPI_TUNE`` and ``TOPOMPI_REPRODUCIBLE``.
    """
    tune, remembered = tuning(environment), False
    with suppress(RuntimeError):  # the user has no home directory
        remembered = any(cache_directory().glob("*.json"))
    return tune == "off" or (tune == "" and not remembered)
