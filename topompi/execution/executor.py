"""What a communicator needs to run plans: sub-communicators, the network, and the plans made so far."""

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

PLANS_HELD = 128  # for the latest algorithms, roots and sizes; each holds O(p) numbers
BINDINGS_HELD = 64  # of plans to the latest buffers
BYTES_HELD = 1 << 26  # of scratch of all bindings together

Shared: TypeAlias = "dict[tuple[str, str], Schedule | str]"


class Executor:
    """A communicator's groups and network, and the plans and bindings made for them.

    :param groups: the communicator and its sub-communicators.
    :param network: called for the network when that is first needed, since it holds n * n routes.
    :param plans: this rank's parts of schedules, and the plans made of them, perhaps with those of other communicators
        over the same ranks.
    :param shared: schedules that rank 0 made for all, by collective and algorithm, or why there is none; never dropped,
        so that all ranks have the same.
    :ivar bindings: plans bound to the buffers of the latest calls.
    :ivar unplanned: why the latest call of a method could not run by an algorithm, by both.
    :ivar ran: while a recording watches, the binding of the latest plan that ran and has not been counted.
    """

    watched = False  # for all of them: whether a recording wants to know what ran

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
        """Free the groups, and drop what is bound to them; collective."""
        self.shared.clear()
        self.bindings.clear()
        self.groups.free()
