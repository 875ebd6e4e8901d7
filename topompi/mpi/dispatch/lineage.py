"""How a communicator came to be, and the values that it passes on to communicators made from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .counters import counters

if TYPE_CHECKING:
    from ..execution.executor import Shared
    from ..selection.choice import Choice
    from ..selection.classes import Key
    from ..selection.policy import Policy
    from .common import Common
    from .state import State

__all__ = ["Lineage"]


@dataclass(slots=True)
class Lineage:
    """How a communicator came to be, and the values that its state begins with.

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

    def child(self, state: State | None, *, same: bool) -> Lineage:
        """The lineage of a communicator made from this one; without ``common``, unless it has the same ranks. Local.

        All ranks take over equal values, because making a communicator is a collective call of the parent, which comes
        between the same two other collective calls on every rank.

        :param state: this communicator's state; None if it has none.
        :param same: True if the new communicator has the same ranks in the same order.
        """
        made = Lineage(self.origin or (None if state is None else state.origin), policy=self.policy, owned=True)
        live = state if state is not None and state.usable else None
        common = self.common if live is None else live.common
        if not same:  # what the parent has chosen for all calls on its own ranks need not be valid on some of them
            made.only = common.only if common is not None and common.begun else self.only
        elif live is None:
            made.common, made.only, made.chosen, made.shared = common, self.only, self.chosen, self.shared
        else:
            made.common, made.only = common, live.only
            made.chosen, made.shared = live.chosen.copy(), live.executor.shared.copy()
        return made
