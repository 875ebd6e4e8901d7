"""State shared by communicators over the same ranks, so that a further communicator costs little to make and use."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from ..execution.executor import PLANS_HELD
from ..execution.lru import LRU
from ..execution.talks import Answers
from ..selection.choice import Choice
from ..selection.policy import Policy
from .calls import Calls

if TYPE_CHECKING:
    from ...schedules import Hierarchy, Network
    from ...topology import TopologyInterface
    from ...views.siblings import Meeting, Siblings
    from ..execution.executor import Shared
    from ..selection.classes import Key

__all__ = ["Bequest", "Common"]

ORDERS_HELD = 32  # maximum number of cached rank orders, one per communication graph; each has p numbers on p ranks


class Common:
    """The state that communicators over the same ranks in the same order share on this process.

    The ranks need no messages to keep it consistent, because every rank computes the same values from the same inputs.
    If one rank has dropped a value that another still holds, it computes the value again.

    :param interface: the placement of the ranks on the fabric.
    :param policy: rank 0's settings, known to all ranks.
    :param meeting: the colors and keys of the ``Split`` that made the communicators; None if no ``Split`` did.
    :ivar plans: cache of this rank's transfers in schedules, and of the plans compiled from them.
    :ivar answers: choices that rank 0 has made for all ranks.
    :ivar orders: cache of the rank orders that this process computed.
    :ivar known: choice that every rank can make alone, by class of calls (method, size class, needs of the operation);
        None if rank 0 must be asked.
    :ivar natives: table of calls that the MPI library runs on all these communicators. It has only methods whose every
        call the library runs: a call of any other method may have to make a sub-communicator together with ranks that
        do not find the call in their tables.
    :ivar early: table of calls that the MPI library runs only among a communicator's first calls. A call that is not in
        it is looked up in ``natives``.
    """

    def __init__(self, interface: TopologyInterface, policy: Policy, meeting: Meeting | None = None) -> None:
        self.interface, self.policy, self._meeting = interface, policy, meeting
        self.plans = LRU(PLANS_HELD)
        self.answers = Answers()
        self.orders = LRU(ORDERS_HELD)
        self.known: dict[Key, Choice | None] = {}
        self._left: dict[str, bool] = {}
        self.natives, self.early = Calls(), Calls()
        self.early.until, self.early.others = policy.native_calls, self.natives

    def leaves(self, method: str) -> bool:
        """Whether the MPI library runs every call of a method, whatever the arguments; the same on all ranks."""
        if method not in self._left:
            self._left[method] = self.policy.leaves(method, self.interface)
        return self._left[method]

    @cached_property
    def siblings(self) -> Siblings | None:
        """The communicators that the same ``Split`` made; None if there are none."""
        return None if self._meeting is None else self._meeting.siblings

    @cached_property
    def hierarchy(self) -> Hierarchy:
        """The ranks, partitioned by each level of their topology."""
        from ...schedules import Hierarchy  # not at the top: its code is slow to load, and needed at the first use only

        return Hierarchy(self.interface.num_ranks, [level.cluster for level in self.interface.levels])

    @cached_property
    def network(self) -> Network:
        """The network between the ranks' hosts, as the arrays from which schedules are generated."""
        from ...views.network import network_of

        network = network_of(self.interface)
        return network if self.siblings is None else replace(network, siblings=self.siblings.sibling_groups)

    @cached_property
    def only(self) -> Choice | None:
        """The single choice for every call, also on any subset of the ranks; None if choices may differ by call."""
        return self.policy.only(self.interface)

    @cached_property
    def bequest(self) -> Bequest:
        """The state that any new communicator over the same ranks takes over."""
        return Bequest(self, self.only, {}, {})


class Bequest(NamedTuple):
    """The state that a new communicator takes over from its parent.

    All ranks take over equal values, because making a communicator is a collective call of the parent, which comes
    between the same two other collective calls on every rank.

    :param common: the parent's shared state, if the new communicator has the same ranks in the same order; else None.
    :param only: the single choice for every call; None if there are several.
    :param chosen: the final choices of the parent's selector.
    :param shared: the schedules that rank 0 has generated and sent to all ranks.
    """

    common: Common | None
    only: Choice | None
    chosen: dict[Key, Choice]
    shared: Shared

    @property
    def of_some(self) -> Bequest | None:
        """The part of the inherited state that is also valid for a subset of the ranks; None if no part is."""
        if self.common is None:
            return self
        return None if self.common.only is None else Bequest(None, self.common.only, {}, {})
