"""The origin of a communicator, and the state that topompi keeps with it: sub-communicators, plans and choices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mpi4py import MPI

from ..execution.executor import Executor
from ..execution.groups import Groups
from ..execution.specs import NATIVE
from .calls import Calls
from .common import Common
from .counters import counters

if TYPE_CHECKING:
    from ...topology import TopologyInterface
    from ..execution.executor import Shared
    from ..execution.rollcall import RollCall
    from ..selection.choice import Choice
    from ..selection.classes import Key
    from ..selection.policy import Policy
    from ..selection.selector import Selector

__all__ = ["Lineage", "State", "attach", "attached", "detach"]


@dataclass(slots=True)
class Lineage:
    """The origin of a communicator: its parent's values, with which its state begins.

    :ivar origin: common state of the communicator from whose topology this one takes its ranks' part; None if it was
        made from none of topompi's.
    :ivar common: the state shared by communicators over the same ranks; None if it is not known yet.
    :ivar only: the parent's single choice for every call, if it is valid here, too; None if there are several.
    :ivar chosen: the final choices of a parent with the same ranks.
    :ivar shared: the schedules that rank 0 had sent to all ranks of a parent with the same ranks.
    :ivar policy: rank 0's settings; None if rank 0 has not been asked.
    :ivar owned: True if ``free`` frees the communicator, because the user did not bring it.
    :ivar lasts: True for handles of MPI.COMM_WORLD and MPI.COMM_SELF under the launcher: freeing them keeps the shared
        state.
    :ivar report: the report on the search for the order of the ranks, if they were re-ordered; not typed, because its
        room stands on this one.
    """

    origin: Common | None = None
    common: Common | None = None
    only: Choice | None = None
    chosen: Mapping[Key, Choice] = field(default_factory=dict)
    shared: Shared = field(default_factory=dict)
    policy: Policy | None = None
    owned: bool = False
    lasts: bool = False
    report: object = None

    @property
    def checks(self) -> int:
        """Seconds in a call after which the watchdog prints a line; 0 if calls are not checked."""
        return 0 if self.policy is None else self.policy.checks

    @property
    def is_quick(self) -> bool:
        """Whether calls may run straight from the table of calls, because they are neither checked nor counted."""
        return not self.checks and not counters.enabled


class State:
    """The state that topompi keeps with one communicator; each part of it is made at its first use.

    :param comm: the user's communicator, as an instance of mpi4py's own class; not freed here.
    :param common: the state shared with other communicators over the same ranks.
    :param lineage: how the communicator came to be, with the values that it took over; it is not kept.
    :param calls: the communicator's table of calls, which may be in use already; if it is None, a table is made.
    :ivar origin: common state of the communicator from whose topology communicators made from this one take theirs.
    :ivar native_calls: number of the communicator's first calls among which the MPI library runs the small ones.
    :ivar groups: the communicator and its sub-communicators.
    :ivar executor: the plans made so far, and everything that running them needs.
    :ivar chosen: the final choices of the selector, by class of calls.
    :ivar quick: whether calls are neither checked nor counted.
    :ivar only: the single choice for every call; None if there are several.
    :ivar neighbours: the ``Neighbours`` of a communicator with a topology; None until the first call of them.
    :ivar exchanges: number of sparse exchanges (``topompi.exchange``) so far, modulo 2.
    """

    def __init__(self, comm: MPI.Intracomm, common: Common, lineage: Lineage, calls: Calls | None = None) -> None:
        self.common, self.origin = common, lineage.origin or common
        self.native_calls = 0 if lineage.origin is None else common.policy.native_calls
        self.groups = Groups(comm, common.hierarchy)
        self.executor = Executor(self.groups, lambda: common.network, common.plans, lineage.shared.copy())
        self.chosen = dict(lineage.chosen)
        self.neighbours: Any = None  # not typed, because its module imports this one
        self.exchanges = 0
        self._heard: set[Key] = set()
        self._met = False
        self.calls = Calls() if calls is None else calls
        self.quick = lineage.is_quick
        if self.quick:
            self.calls.passes, self.calls.others = True, common.early if self.native_calls else common.natives
        # Taken from data that all ranks have, and not from the selector, which may have to send messages.
        only = common.only  # computed in any case, so that later communicators over these ranks know it at once
        self.only = lineage.only or only

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
        made.final = self.chosen
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

    def leave_all(self) -> None:
        """Leave every call to the MPI library until the state is freed, if the choice is the same for all calls."""
        self.calls.all = self.usable and self.only is not None and self.quick

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


def _released(comm: MPI.Comm, keyval: int, state: State) -> None:
    state.free()


def _get_keyval() -> int:
    global _keyval
    if _keyval == MPI.KEYVAL_INVALID:
        _keyval = MPI.Comm.Create_keyval(delete_fn=_released)
    return _keyval


def attached(comm: MPI.Comm) -> State | None:
    """The state attached to a communicator; None if none is attached yet."""
    state = MPI.Comm.Get_attr(comm, _get_keyval())
    return state if isinstance(state, State) else None


def detach(comm: MPI.Comm) -> None:
    """Free the state attached to a communicator, and remove it; collective.

    MPICH 5.0 frees an attribute but leaves it in the communicator's list until all are deleted. A callback of the user
    that duplicates the communicator meanwhile, as mpi4py's first reduction of objects does, would follow that list.
    """
    state = attached(comm)
    if state is not None:
        state.free()
        MPI.Comm.Delete_attr(comm, _get_keyval())


def attach(comm: MPI.Comm, state: State) -> None:
    """Attach a state to a communicator, replacing an attached one; it is freed with the communicator."""
    MPI.Comm.Set_attr(comm, _get_keyval(), state)
