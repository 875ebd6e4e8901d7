"""The state kept with a communicator: its topology, sub-communicators, plans and choices."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI

from ..execution.executor import Executor
from ..execution.groups import Groups
from .calls import Calls
from .common import Bequest, Common
from .origin import Origin

if TYPE_CHECKING:
    from ..execution.rollcall import RollCall
    from ..selection.choice import Choice
    from ..selection.classes import Key
    from ..selection.selector import Selector
    from ..topology import TopologyInterface
    from .realnetwork import OnTheNetwork

__all__ = ["Parts", "attach", "attached"]


class Parts:
    """The parts of a communicator, each made when it is first used.

    :param comm: the user's communicator, as one of mpi4py's own kind; not owned.
    :param common: what it shares with other communicators over the same ranks.
    :param bequest: what it takes over from the communicator that it was made from; None if from none.
    :param native_calls: how many of its first calls the MPI library runs, if they are small.
    :param calls: the table of calls already chosen for, which may be in use already; None for a new one.
    :param quick: whether calls go by the table; False if they are checked or counted.
    :ivar groups: the communicator and its sub-communicators.
    :ivar executor: runs plans over the groups.
    :ivar length: room for the bytes of a pickled object, which the root tells the others.
    :ivar only: the one choice for every call, if there is only one; else None.
    """

    def __init__(
        self,
        comm: MPI.Intracomm,
        common: Common,
        bequest: Bequest | None = None,
        native_calls: int = 0,
        calls: Calls | None = None,
        *,
        quick: bool = True,
    ) -> None:
        self.common, self.native_calls = common, native_calls
        self.groups = Groups(comm, common.hierarchy)
        self._chosen = {} if bequest is None else bequest.chosen.copy()
        shared = {} if bequest is None else bequest.shared.copy()
        self.executor = Executor(self.groups, lambda: common.network, common.plans, shared)
        self.length = np.zeros(1, dtype=np.int64)
        self._heard: set[Key] = set()
        self.calls = Calls() if calls is None else calls
        if quick:
            self.calls.passes, self.calls.others = True, common.early if native_calls else common.natives
        # Decided from what all ranks know, since the selector would communicate.
        self.only = common.only if bequest is None else bequest.only or common.only

    @property
    def comm(self) -> MPI.Intracomm:
        """The user's communicator, of mpi4py's own kind."""
        return self.groups.comm

    @property
    def interface(self) -> TopologyInterface:
        """Where the ranks sit."""
        return self.common.interface

    @property
    def usable(self) -> bool:
        """Whether it has not been freed."""
        return self.groups.usable

    @cached_property
    def selector(self) -> Selector:
        """The selector of this communicator's algorithms."""
        from ..selection.selector import Selector

        common = self.common
        made = Selector(
            common.interface, self.groups.talks, common.siblings, common.policy, common.answers, common.known
        )
        made.final = self._chosen
        return made

    @cached_property
    def roll_call(self) -> RollCall:
        """The roll calls of this communicator."""
        from ..execution.rollcall import RollCall

        return RollCall(self.groups)

    def is_heard(self, key: Key) -> bool:
        """Whether the ranks can choose together for a call: all can read its arguments, as far as that is asked.

        It is asked where something collective comes before the call: rank 0's choice for its class, a trial, and what
        is made when an algorithm first runs.

        :param key: the class.
        """
        if key in self._heard and key not in self.selector.trials:
            return True
        from ..execution.planning import is_ready

        known = self.selector.known(key)
        ready = known is not None and is_ready(self.executor, key[0], known.algorithm)
        if not ready and not self.roll_call.hold(self.calls.made):
            return False
        self._heard.add(key)
        return True

    @cached_property
    def on_the_network(self) -> OnTheNetwork:
        """What the model would choose where the placement is virtual."""
        from .realnetwork import OnTheNetwork

        return OnTheNetwork(self.common, self.selector)

    @cached_property
    def origin(self) -> Origin:
        """The topology from which communicators made from this one take theirs; the communicator must exist."""
        return Origin(self.comm, self.common)

    @property
    def bequest(self) -> Bequest:
        """What a communicator takes over that is made from this one now, of the same ranks in the same order."""
        return Bequest(self.common, self.only, self._chosen.copy(), self.executor.shared.copy())

    def choice_of(self, method: str, nbytes: int) -> Choice | None:
        """The choice for calls of a method and size, if it is made and final; local."""
        if self.only is not None or "selector" not in self.__dict__:
            return self.only
        return self.selector.made(method, nbytes)

    def free(self) -> None:
        """Free sub-communicators, plans and the table of calls; collective. A second call does nothing."""
        self.calls.clear()
        self.executor.free()


_keyval = MPI.KEYVAL_INVALID


def _released(comm: MPI.Comm, keyval: int, state: Parts) -> None:
    state.free()


def _get_keyval() -> int:
    global _keyval
    if _keyval == MPI.KEYVAL_INVALID:
        _keyval = MPI.Comm.Create_keyval(delete_fn=_released)
    return _keyval


def attached(comm: MPI.Comm) -> Parts | None:
    """The state attached to a communicator, None if it has none yet."""
    state: Any = comm.Get_attr(_get_keyval())
    return state if isinstance(state, Parts) else None


def attach(comm: MPI.Comm, state: Parts) -> None:
    """Attach a state to a communicator in place of the one that it has; it is freed with the communicator."""
    comm.Set_attr(_get_keyval(), state)
