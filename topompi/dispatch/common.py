"""What communicators over the same ranks have in common, so that making, using and freeing one more costs little."""

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
    from ..execution.executor import Shared
    from ..schedules import Hierarchy, Network
    from ..selection.classes import Key
    from ..topology import TopologyInterface
    from ..views.siblings import Meeting, Siblings

__all__ = ["Bequest", "Common"]

ORDERS_HELD = 32  # of ranks, for the latest communication graphs; each has O(p) numbers


class Common:
    """What communicators over the same ranks in the same order share on this process.

    Nothing in it is agreed between ranks: it is worked out alike on all of them, and what one rank still has and
    another has dropped is worked out again there.

    :param interface: where the ranks sit.
    :param policy: what all ranks know of rank 0's environment.
    :param meeting: the split that made such a communicator; None for any other.
    :ivar plans: this rank's parts of schedules, and the plans made of them.
    :ivar answers: rank 0's choices.
    :ivar orders: orders of the ranks that this process found.
    :ivar known: the choices that all ranks know without asking rank 0, by class; None where rank 0 has to be asked.
    :ivar natives: the calls that every such communicator leaves to the MPI library, of methods that it always leaves to
        it: of others a call may come first, on ranks that look it up nowhere, that makes a context.
    :ivar early: those that it leaves to it among its first calls, and then ``natives``.
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
        """Whether all ranks know that every call of a method is the MPI library's, whatever its arguments are."""
        if method not in self._left:
            self._left[method] = self.policy.leaves(method, self.interface)
        return self._left[method]

    @cached_property
    def siblings(self) -> Siblings | None:
        """The communicators that the same ``Split`` made; None if there are none."""
        return None if self._meeting is None else self._meeting.siblings

    @cached_property
    def hierarchy(self) -> Hierarchy:
        """The ranks, divided by the levels of their topology."""
        from ..schedules import Hierarchy  # this and what follows: not before a communicator is used

        return Hierarchy(self.interface.num_ranks, [level.cluster for level in self.interface.levels])

    @cached_property
    def network(self) -> Network:
        """The network as the arrays that schedules take."""
        from ..views.network import network_of

        network = network_of(self.interface)
        return network if self.siblings is None else replace(network, siblings=self.siblings.sibling_groups)

    @cached_property
    def only(self) -> Choice | None:
        """The choice for every call, if there is only one that all ranks know; any part of the ranks has it too."""
        return self.policy.only(self.interface)

    @cached_property
    def bequest(self) -> Bequest:
        """What a new communicator over the same ranks takes over, whichever it is made from."""
        return Bequest(self, self.only, {}, {})


class Bequest(NamedTuple):
    """What a new communicator takes over from the one that it is made from.

    Both are told the same on all ranks, since making it is a collective call of that communicator: it comes between
    the same two of its other calls everywhere.

    :param common: where the ranks and their order are the same; else None, and ``only`` is true of any of the ranks.
    :param only: the one choice for every call; None if there are several.
    :param chosen: the final choices of the selector so far.
    :param shared: the schedules that rank 0 has made for all.
    """

    common: Common | None
    only: Choice | None
    chosen: dict[Key, Choice]
    shared: Shared

    @property
    def of_some(self) -> Bequest | None:
        """What is left of it for some of the ranks."""
        if self.common is None:
            return self
        return None if self.common.only is None else Bequest(None, self.common.only, {}, {})
