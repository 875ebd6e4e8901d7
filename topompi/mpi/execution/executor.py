"""The state that a communicator needs to run plans: sub-communicators, the network, and the plans made so far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .groups import Groups
from .lru import LRU

if TYPE_CHECKING:
    from ...schedules import Network, Schedule
    from .binding import Binding

__all__ = ["FORMER", "ORDER", "PLANS_HELD", "Executor", "Shared"]

PLANS_HELD = 128  # maximum number of cached plans, and lists of one rank's transfers; each has O(p) numbers on p ranks
BINDINGS_HELD = 64  # maximum number of cached bindings (plans bound to the buffers of a call)
BYTES_HELD = 1 << 26  # maximum bytes of scratch memory of all cached bindings together

ORDER = ("", "order")  # key, in ``Shared``, of the order of hosts along rings and chains
FORMER = ("", "former order")  # key of the order that was in use before the network changed
Shared: TypeAlias = "dict[tuple[str, str], Schedule | str | NDArray[np.int64]]"


class Executor:
    """A communicator with its sub-communicators and network, and the plans and bindings made for it.

    A plan has one rank's transfers in a schedule, compiled; a binding is a plan with the addresses of a call's buffers.

    :param groups: the communicator and its sub-communicators.
    :param network: function that makes the network; called at the first need, because n hosts have n * n routes.
    :param plans: cache of this rank's transfers in schedules and of the plans compiled from them, which communicators
        over the same ranks may share; if it is None, the executor makes a cache of its own.
    :param shared: schedule that rank 0 sent to all ranks, or the reason why there is none, by collective and algorithm;
        and the order of hosts along rings and chains, by ``ORDER``, and ``FORMER``, with which the search of a new one
        begins. Entries are never dropped, so that all ranks hold
        the same ones. If it is None, there are no entries yet.
    :ivar bindings: cache of the bindings of the latest calls.
    :ivar unplanned: reason why an algorithm could not run the latest call of a method, by method and algorithm.
    :ivar ran: the binding that ran last, until its messages are counted; None if no recording is active.
    """

    watched = False  # class attribute for all communicators: True while a recording of calls is active

    def __init__(
        self,
        groups: Groups,
        network: Callable[[], Network],
        plans: LRU | None = None,
        shared: Shared | None = None,
    ) -> None:
        self.groups, self._make_network = groups, network
        self.plans = LRU(PLANS_HELD) if plans is None else plans
        self.bindings = LRU(BINDINGS_HELD, BYTES_HELD)
        self.shared: Shared = {} if shared is None else shared
        self.unplanned: dict[tuple[str, str], str] = {}
        self.ran: Binding | None = None

    @cached_property
    def network(self) -> Network:
        """The network between the ranks' hosts, as the arrays from which schedules are generated; made at first use."""
        made, order = self._make_network(), self.shared.get(ORDER)
        return replace(made, order=order) if isinstance(order, np.ndarray) else made

    @property
    def has_order(self) -> bool:
        """Whether all ranks have the order of hosts along rings and chains."""
        return ORDER in self.shared

    @property
    def former_order(self) -> NDArray[np.int64] | None:
        """The order of hosts from before the network changed, with which the search of a new one begins; or None."""
        former = self.shared.get(FORMER)
        return former if isinstance(former, np.ndarray) else None

    def take_order(self, hosts: NDArray[np.int64]) -> None:
        """Generate rings and chains in an order of hosts (``Network.order``) that all ranks have."""
        self.shared[ORDER] = hosts
        self.network = replace(self.network, order=hosts)

    def free(self) -> None:
        """Free the groups, and drop the bindings and shared schedules; collective."""
        self.shared.clear()
        self.bindings.clear()
        self.groups.free()
