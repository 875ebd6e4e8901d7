"""The state that a communicator needs to run plans: sub-communicators, the network, and the plans made so far."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from .groups import Groups
from .lru import LRU

if TYPE_CHECKING:
    from ..schedules import Network, Schedule
    from .binding import Binding

__all__ = ["PLANS_HELD", "Executor", "Shared"]

PLANS_HELD = 128  # plans and parts of the latest algorithms, roots and sizes; each has O(p) numbers
BINDINGS_HELD = 64  # plans bound to the buffers of the latest calls
BYTES_HELD = 1 << 26  # scratch memory of all bindings together

Shared: TypeAlias = "dict[tuple[str, str], Schedule | str]"


class Executor:
    """A communicator's groups and network, and the plans and bindings made for them.

    :param groups: the communicator and its sub-communicators.
    :param network: function that makes the network; called at the first need, because a network has n * n routes.
    :param plans: cache of this rank's parts of schedules and of the plans compiled from them; it may be shared by
        communicators over the same ranks. None for a new one.
    :param shared: schedules that rank 0 sent to all, by collective and algorithm, or reasons why there are none; never
        dropped, so that all ranks keep the same. None for an empty one.
    :ivar bindings: cache of plans bound to the buffers of the latest calls.
    :ivar unplanned: reason why the latest call of a method could not run by an algorithm, by both.
    :ivar ran: the binding that ran last and is not counted yet, while a recording is active; else None.
    """

    watched = False  # of the class, for all communicators: True while a recording is active

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
        """The network as the arrays that schedules take."""
        return self._make_network()

    def free(self) -> None:
        """Free the groups, and drop the bindings and shared schedules; collective."""
        self.shared.clear()
        self.bindings.clear()
        self.groups.free()
