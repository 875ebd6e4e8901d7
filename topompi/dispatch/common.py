"""What communicators over the same ranks have in common, so that making, using and freeing one more costs little."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from mpi4py import MPI

from ..execution.executor import PLANS_HELD
from ..execution.latest import Latest
from ..execution.rankzero import Answers
from ..selection.choice import Choice
from ..selection.policy import Policy
from ..views.part import restricted
from .calls import Calls

if TYPE_CHECKING:
    from ..execution.executor import Shared
    from ..schedules import Hierarchy, Network
    from ..selection.classes import Key
    from ..topology import TopologyInterface
    from ..views.siblings import Meeting, Siblings

__all__ = ["Bequest", "Common", "Origin"]

GROUPS_HELD = 16  # of the latest communicators' ranks, for each topology
BYTES_HELD = 1 << 26  # of the routes of their networks together, as far as they are known beforehand
BYTES_OF_PAIR = 32  # of the routes between two hosts, roughly


class Common:
    """What communicators over the same ranks in the same order share on this process.

    Nothing in it is agreed between ranks: it is worked out alike on all of them, and what one rank still has and
    another has dropped is worked out again there.

    :param interface: where the ranks sit.
    :param policy: what all ranks know of rank 0's environment.
    :param meeting: the split that made such a communicator; None for any other.
    :ivar plans: this rank's parts of schedules, and the plans made of them.
    :ivar answers: rank 0's choices.
    :ivar left: whether a class of calls is always the MPI library's, as all ranks know without asking rank 0.
    :ivar natives: the calls that every such communicator leaves to the MPI library, known without asking rank 0.
    """

    def __init__(self, interface: TopologyInterface, policy: Policy, meeting: Meeting | None = None) -> None:
        self.interface, self.policy, self._meeting = interface, policy, meeting
        self.plans = Latest(PLANS_HELD)
        self.answers = Answers()
        self.left: dict[Key, bool] = {}
        self.natives = Calls()

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


class Origin:
    """The topology of a communicator from which communicators of some of its ranks take theirs.

    :param comm: the communicator, which may be freed before they are.
    :param common: of its ranks.
    :ivar policy: what all ranks know of rank 0's environment.
    :ivar rank: this rank's number in the topology.
    """

    def __init__(self, comm: MPI.Intracomm, common: Common) -> None:
        self.interface, self.policy, self.rank = common.interface, common.policy, comm.Get_rank()
        self._whole = np.arange(self.interface.num_ranks)
        self._group = comm.Get_group()
        self._commons = Latest(GROUPS_HELD, BYTES_HELD)
        self._common = common if common.siblings is None else Common(common.interface, self.policy)

    def common_of(self, comm: MPI.Intracomm, meeting: Meeting | None) -> Common:
        """What communicators over the ranks of this one have in common; no communication.

        :param comm: a communicator of some of the ranks.
        :param meeting: the split that made it; None if none did.
        Cost: O(ranks) for ranks that are known already.
        """
        group = comm.Get_group()
        # MPICH 5.0.2: the group of a grid smaller than its parent has all of the parent's ranks, the grid's first.
        ranks = np.array(MPI.Group.Translate_ranks(group, None, self._group))[: comm.Get_size()]
        group.Free()
        if meeting is None and np.array_equal(ranks, self._whole):
            return self._common
        key = ranks.tobytes(), None if meeting is None else meeting.key
        found: Common | None = self._commons.get(key)
        if found is None:
            found = Common(restricted(self.interface, ranks), self.policy, meeting)
            self._commons.put(key, found, BYTES_OF_PAIR * found.interface.num_hosts**2)
        return found

    def __del__(self) -> None:
        if not MPI.Is_finalized():  # else MPI has freed it
            self._group.Free()
