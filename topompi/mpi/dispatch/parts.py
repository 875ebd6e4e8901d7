"""The state that topompi keeps with a communicator: topology, sub-communicators, plans and choices."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI

from ..execution.executor import Executor
from ..execution.groups import Groups
from ..execution.specs import NATIVE
from .calls import Calls
from .common import Bequest, Common
from .origin import Origin

if TYPE_CHECKING:
    from ...topology import TopologyInterface
    from ..execution.rollcall import RollCall
    from ..selection.choice import Choice
    from ..selection.classes import Key
    from ..selection.selector import Selector
    from .realnetwork import OnTheNetwork

__all__ = ["Parts", "attach", "attached", "detach"]


class Parts:
    """The state that topompi keeps with one communicator; each part of it is made at its first use.

    :param comm: the user's communicator, as an instance of mpi4py's own class; not freed here.
    :param common: the state shared with other communicators over the same ranks.
    :param bequest: the state taken over from the parent communicator; None if there is no parent.
    :param native_calls: number of the communicator's first calls among which the MPI library runs the small ones.
    :param calls: the communicator's table of calls, which may be in use already; if it is None, a table is made.
    :param quick: True to look calls up in the table; False if each call is to be checked or counted.
    :ivar groups: the communicator and its sub-communicators.
    :ivar executor: the plans made so far, and everything that running them needs.
    :ivar length: buffer (1 int64) for the size in bytes of a pickled object, which the root sends before the object.
    :ivar quick: whether calls are neither checked nor counted.
    :ivar only: the single choice for every call; None if there are several.
    :ivar neighbours: the ``Neighbours`` of a communicator with a topology; None until the first call of them.
    :ivar exchanges: number of sparse exchanges (``topompi.exchange``) so far, modulo 2.
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
        self.neighbours: Any = None  # not typed, because its module imports this one
        self.exchanges = 0
        self._heard: set[Key] = set()
        self._met = False
        self.calls = Calls() if calls is None else calls
        self.quick = quick
        if quick:
            self.calls.passes, self.calls.others = True, common.early if native_calls else common.natives
        # Taken from data that all ranks have, and not from the selector, which may have to send messages.
        self.only = common.only if bequest is None else bequest.only or common.only

    @property
    def comm(self) -> MPI.Intracomm:
        """The user's communicator, as an instance of mpi4py's own class."""
        return self.groups.comm

    @property
    def interface(self) -> TopologyInterface:
        """The placement of the ranks on the fabric."""
        return self.common.interface

    @property
    def usable(self) -> bool:
        """Whether the communicator has not been freed yet."""
        return self.groups.usable

    @cached_property
    def selector(self) -> Selector:
        """The selector of this communicator, which chooses its algorithms."""
        from ..selection.selector import Selector

        common = self.common
        made = Selector(
            common.interface, self.groups.talks, common.siblings, common.policy, common.answers, common.known
        )
        made.final = self._chosen
        return made

    @cached_property
    def roll_call(self) -> RollCall:
        """The communicator's roll calls: exchanges by which all ranks learn whether each can read its arguments."""
        from ..execution.rollcall import RollCall

        return RollCall(self.groups)

    def is_heard(self, key: Key) -> bool:
        """Whether every rank can read its arguments of a call, so that the ranks can choose an algorithm together.

        The ranks ask each other only if a collective step precedes the call: rank 0's choice for the class of calls, a
        trial, or the set-up of an algorithm that runs for the first time. In all other cases the answer is True.

        :param key: class of the call: method, size class, needs of the operation.
        """
        if key in self._heard and key not in self.selector.trials:
            return True
        known = self.selector.known(key)
        ready = known is not None and known.algorithm == NATIVE
        if known is not None and not ready:
            from ..execution.eligibility import is_ready  # slow, because it imports all generators of schedules

            ready = is_ready(self.executor, key[0], known.algorithm)
        if not ready and not self.roll_call.hold(self.calls.made):
            return False
        self._heard.add(key)
        return True

    def meet_once(self) -> None:
        """Let all ranks meet before the first reduction of objects, if plans may run requests; collective.

        In the first one mpi4py makes a communicator, and keeps Python's lock until all ranks take part. Without the
        lock, the thread of ``execution.aside`` could not go on with a plan for which another rank waits before.
        """
        if not self._met and self.common.policy.asks_for_requests:
            self._met = True
            self.comm.Barrier()

    @cached_property
    def on_the_network(self) -> OnTheNetwork:
        """The cost model's choices for the network of a virtual placement, as if the ranks really ran there."""
        from .realnetwork import OnTheNetwork

        return OnTheNetwork(self.common, self.selector)

    @cached_property
    def origin(self) -> Origin:
        """The topology for communicators made from this one, which must not be freed before this property is read."""
        return Origin(self.comm, self.common)

    @property
    def bequest(self) -> Bequest:
        """The state that a new communicator with the same ranks in the same order takes over."""
        return Bequest(self.common, self.only, self._chosen.copy(), self.executor.shared.copy())

    def choice_of(self, method: str, nbytes: int) -> Choice | None:
        """The final choice for calls of a method and size; None if it is not made yet. Local: no communication."""
        if self.only is not None or "selector" not in self.__dict__:
            return self.only
        return self.selector.made(method, nbytes)

    def free(self) -> None:
        """Free sub-communicators, plans and the table of calls; collective. A second call has no effect."""
        self.calls.clear()
        if self.usable and not MPI.Is_finalized():
            if self.neighbours is not None:
                self.neighbours.free()
            if self.groups.connected:
                self.roll_call.end()
        self.neighbours = None
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
    """The state attached to a communicator; None if none is attached yet."""
    state: Any = MPI.Comm.Get_attr(comm, _get_keyval())
    return state if isinstance(state, Parts) else None


def detach(comm: MPI.Comm) -> None:
    """Free the state attached to a communicator, and remove it; collective.

    MPICH 5.0 frees an attribute but leaves it in the communicator's list until all are deleted. A callback of the user
    that duplicates the communicator meanwhile, as mpi4py's first reduction of objects does, would follow that list.
    """
    state = attached(comm)
    if state is not None:
        state.free()
        MPI.Comm.Delete_attr(comm, _get_keyval())


def attach(comm: MPI.Comm, state: Parts) -> None:
    """Attach a state to a communicator, replacing an attached one; it is freed with the communicator."""
    MPI.Comm.Set_attr(comm, _get_keyval(), state)
