"""What all ranks can decide of a call without asking rank 0."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from ..inputs.settings import cache_directory
from ..prediction.scope import unmodelled
from .choice import Choice

if TYPE_CHECKING:
    from ..topology import TopologyInterface
    from ..views.jobshape import JobShape
    from .classes import Key
    from .rules import Rules

__all__ = ["Policy", "is_forgetful"]


@dataclass(frozen=True)
class Policy:
    """What rank 0 said of its environment when a communicator was made: true of all that are made from it.

    :param rules: the rules file; None if there is none.
    :param forgetful: whether nothing is measured, and nothing remembered of any job.
    :param native_calls: how many first calls of a communicator made from another one the MPI library runs.
    """

    rules: Rules | None = None
    forgetful: bool = False
    native_calls: int = 0
    alone: ClassVar[Choice] = Choice("native", "native: one rank")

    def only(self, interface: TopologyInterface) -> Choice | None:
        """The choice for every call of a job, if there is only one."""
        if interface.num_ranks == 1:
            return self.alone
        if interface.num_hosts == 1 and not interface.levels:
            ruled = "" if self.rules is None else f"; no rule of {self.rules.name} applies within one host"
            return Choice("native", f"native: one host{ruled}")
        return None if self.rules is not None else self._unmodelled(interface)

    def choice(self, key: Key, job: JobShape, runs: Callable[[str], bool]) -> Choice | None:
        """The choice for a class of calls; None where rank 0 has to be asked.

        :param key: the class.
        :param job: the job; equal on all ranks but for the machine.
        :param runs: whether an algorithm can run for such calls.
        """
        if self.rules is not None:
            from .classes import class_bytes

            smallest = class_bytes(key[1])[0]
            choice = self.rules.choice(key[0], smallest, job, runs) or self._unmodelled(job.interface)
            said = self.rules.passed_over(key[0], smallest, job, runs, key[2])
            return choice and replace(choice, reason="; ".join(filter(None, (choice.reason, said))), local=True)
        return self._unmodelled(job.interface)

    def leaves(self, method: str, interface: TopologyInterface) -> bool:
        """Whether all ranks know that every call of a method is the MPI library's, whatever its arguments are."""
        named = () if self.rules is None else self.rules.algorithms(method)
        return self._unmodelled(interface) is not None and all(name == "native" for name in named)

    def minds_siblings(self, interface: TopologyInterface) -> bool:
        """Whether a choice may depend on the other communicators that the same split made."""
        if interface.routes is None or interface.num_hosts < 2:
            return False
        named = self.rules is not None and self.rules.name_joint
        return named or self._unmodelled(interface) is None

    def _unmodelled(self, interface: TopologyInterface) -> Choice | None:
        why = unmodelled(interface) if self.forgetful else ""
        return Choice("native", f"native: {why}", local=True) if why else None


def is_forgetful(environment: Mapping[str, str]) -> bool:
    """Whether nothing may be measured, and nothing is remembered of any job.

    :param environment: where ``TOPOMPI_TUNE`` stands.
    """
    tune, remembered = environment.get("TOPOMPI_TUNE", ""), False
    with suppress(RuntimeError):  # a user without a home directory
        remembered = any(cache_directory().glob("*.json"))
    return tune == "off" or (tune == "" and not remembered)
