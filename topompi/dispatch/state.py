"""The state kept with a communicator: its topology, sub-communicators, plans and choices."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mpi4py import MPI

from ..execution.executor import Executor
from ..execution.groups import Groups
from ..topology import TopologyInterface
from ..views.network import network_of
from .calls import Calls

if TYPE_CHECKING:
    from ..schedules import Network
    from ..selection.choice import Choice
    from ..selection.selector import Selector
    from ..views.siblings import Siblings

__all__ = ["State", "attach", "attached"]


class State:
    """The parts of a communicator, each made when it is first used.

    :param comm: the user's communicator, as one of mpi4py's own kind; not owned.
    :param interface: where its ranks sit.
    :param siblings: the communicators that the same ``Split`` made; None if there are none.
    :ivar groups: the communicator and its sub-communicators.
    :ivar executor: runs plans over the groups.
    :ivar calls: the table of calls already chosen for.
    :ivar only: the one choice for every call, if there is only one; else None.
    """

    def __init__(self, comm: MPI.Intracomm, interface: TopologyInterface, siblings: Siblings | None = None) -> None:
        self.interface, self.siblings = interface, siblings
        self.groups = Groups(comm, [level.cluster for level in interface.levels])
        self.executor = Executor(self.groups, self._network)
        self.calls = Calls()
        self.calls.passes = True
        # Decided from what all ranks know, since the selector would communicate.
        self.only = _only(self.groups, interface)

    def _network(self) -> Network:
        network = network_of(self.interface)
        return network if self.siblings is None else replace(network, siblings=self.siblings.sibling_groups)

    @property
    def comm(self) -> MPI.Intracomm:
        """The user's communicator, of mpi4py's own kind."""
        return self.groups.comm

    @property
    def usable(self) -> bool:
        """Whether it has not been freed."""
        return self.groups.usable

    @cached_property
    def selector(self) -> Selector:
        """The selector of this communicator's algorithms; collective at its first use."""
        from ..selection.selector import Selector

        return Selector(self.interface, self.comm, self.siblings)

    def choice_of(self, method: str, nbytes: int) -> Choice | None:
        """The choice for calls of a method and size, if it is made and final; local."""
        if self.only is not None or "selector" not in self.__dict__:
            return self.only
        return self.selector.made(method, nbytes)

    def free(self) -> None:
        """Free sub-communicators, plans and the table of calls; collective. A second call does nothing."""
        self.calls.clear()
        self.executor.free()


def _only(groups: Groups, interface: TopologyInterface) -> Choice | None:
    """The choice for every call on one rank, or on one host without inner levels; else None."""
    from ..selection.choice import Choice

    if groups.size == 1:
        return Choice("native", "native: one rank")
    return Choice("native", "native: one host") if interface.num_hosts == 1 and not groups.divided else None


_keyval = MPI.KEYVAL_INVALID


def _released(comm: MPI.Comm, keyval: int, state: State) -> None:
    state.free()


def _get_keyval() -> int:
    global _keyval
    if _keyval == MPI.KEYVAL_INVALID:
        _keyval = MPI.Comm.Create_keyval(delete_fn=_released)
    return _keyval


def attached(comm: MPI.Comm) -> State | None:
    """The state attached to a communicator, None if it has none yet."""
    state: Any = comm.Get_attr(_get_keyval())
    return state if isinstance(state, State) else None


def attach(comm: MPI.Comm, state: State) -> None:
    """Attach a state to a communicator in place of the one that it has; it is freed with the communicator."""
    comm.Set_attr(_get_keyval(), state)
