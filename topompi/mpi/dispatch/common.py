"""The state that communicators over the same ranks share, so that a further one costs little to make and use."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from ...views.part import restricted
from ..execution.executor import PLANS_HELD
from ..execution.lru import LRU
from ..execution.talks import Answers
from ..selection.choice import Choice
from ..selection.policy import Policy
from .calls import Calls

if TYPE_CHECKING:
    from ...schedules import Hierarchy, Network
    from ...topology import TopologyInterface
    from ...views.siblings import Siblings, SplitArguments
    from ..prediction.predictor import Predictor
    from ..prediction.untuned import Prediction
    from ..selection.classes import Key

__all__ = ["Common"]

ORDERS_HELD = 32  # maximum number of cached rank orders, one per communication graph; each has p numbers on p ranks
PARTS_HELD = 32  # maximum number of groups of ranks, and of splits, whose state each topology keeps, the latest ones
BYTES_HELD = 1 << 27  # maximum bytes of the routes of these groups' networks, as estimated by ``BYTES_OF_PAIR``
NOWHERE = -1  # color of a rank that is in no new communicator
BYTES_OF_ROW = 4  # bytes of memory that a split takes per byte that the ranks exchanged for it, roughly
BYTES_OF_PAIR = 32  # bytes of memory that a network's routes take per pair of hosts, roughly

Integers = NDArray[np.int64]


class Common:
    """The state that communicators over the same ranks in the same order share on this process.

    The ranks need no messages to keep it consistent, because every rank computes the same values from the same inputs.
    If one rank has dropped a value that another still holds, it computes the value again. If the topology of a
    communicator was found, and not taken from another's, its ``Common`` is the origin of all communicators made from
    it: its methods ``over`` and ``split`` make theirs.

    :param place: function that makes the placement of the ranks on the fabric, called at the first need.
    :param policy: rank 0's settings, known to all ranks.
    :param meeting: the colors and keys of the ``Split`` that made the communicators; None if no ``Split`` did.
    :param group: the ranks of an origin, as an MPI group that is freed with this object.
    :ivar plans: cache of this rank's transfers in schedules, and of the plans compiled from them.
    :ivar answers: choices that rank 0 has made for all ranks.
    :ivar orders: cache of the rank orders that this process computed.
    :ivar known: choice that every rank can make alone, by class of calls (method, size class, needs of the operation);
        None if rank 0 must be asked.
    :ivar predicted: choices of ``real_predictor``, by class of calls.
    :ivar natives: table of calls that the MPI library runs on all these communicators. It has only methods whose every
        call the library runs: a call of any other method may have to make a sub-communicator together with ranks that
        do not find the call in their tables.
    :ivar early: table of calls that the MPI library runs only among a communicator's first calls. A call that is not in
        it is looked up in ``natives``.
    """

    def __init__(
        self,
        place: Callable[[], TopologyInterface],
        policy: Policy,
        *,
        meeting: SplitArguments | None = None,
        group: MPI.Group = MPI.GROUP_NULL,
    ) -> None:
        self._place, self.policy, self._meeting, self._group = place, policy, meeting, group
        self.plans = LRU(PLANS_HELD)
        self.answers = Answers()
        self.orders = LRU(ORDERS_HELD)
        self.known: dict[Key, Choice | None] = {}
        self.predicted: dict[Key, Prediction] = {}
        self._left: dict[str, bool] = {}
        self._parts = LRU(PARTS_HELD, BYTES_HELD)
        self.natives, self.early = Calls(), Calls()
        self.early.until, self.early.others = policy.native_calls, self.natives

    @cached_property
    def interface(self) -> TopologyInterface:
        """The placement of the ranks on the fabric."""
        return self._place()

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
    def real_predictor(self) -> Predictor:
        """The cost model for the ranks of a virtual placement, as if they really ran on its hosts."""
        from ..prediction.libraries import model_of
        from ..prediction.machines import machine_from
        from ..prediction.predictor import Predictor

        interface = replace(self.interface, virtual=False)
        return Predictor(interface, model_of(MPI.Get_library_version()), self.siblings, machine_from(os.environ))

    @cached_property
    def only(self) -> Choice | None:
        """The single choice for every call, also on any subset of the ranks; None if choices may differ by call."""
        return self.policy.only(self.interface)

    @property
    def begun(self) -> bool:
        """Whether ``only`` has been computed, and with it all that the first communicator has to wait for."""
        return "only" in vars(self)

    # The rest is of an origin.

    @cached_property
    def rank(self) -> int:
        """Number of this process in the topology of the origin."""
        return self._group.Get_rank()

    @cached_property
    def minds_siblings(self) -> bool:
        """Whether a choice may depend on the other communicators that the same split made."""
        return self.policy.minds_siblings(self.interface)

    def covers(self, comm: MPI.Comm) -> bool:
        """Whether all ranks of a communicator are in the topology. Local: no communication."""
        return MPI.UNDEFINED not in self.ranks_of(comm)

    def ranks_of(self, comm: MPI.Comm) -> Integers:
        """Numbers in the topology of a communicator's members, in the order of their ranks, shape (members,). Local."""
        group = MPI.Comm.Get_group(comm)
        # In MPICH 5.0.2 the group of a grid (``Create_cart``) smaller than its parent also has, after the grid's ranks,
        # the parent's other ranks.
        ranks = MPI.Group.Translate_ranks(group, None, self._group)[: MPI.Comm.Get_size(comm)]
        group.Free()
        return np.array(ranks, dtype=np.int64)

    def group_of(self, ranks: Integers) -> MPI.Group:
        """A new MPI group of some ranks of the topology, shape (members,)."""
        return self._group.Incl(ranks.tolist())

    def over(self, comm: MPI.Comm) -> Common:
        """The common state of the ranks of a communicator made from the origin, however it was made. Local.

        Cost: O(ranks). The part of the topology for these ranks is computed at its first need.
        """
        return self._over(self.ranks_of(comm))

    def _over(self, ranks: Integers) -> Common:
        if np.array_equal(ranks, np.arange(self.interface.num_ranks)):
            return self
        key = ranks.tobytes()
        found: Common | None = self._parts.get(key)
        if found is None:
            found = self._part(ranks)
            self._parts.put(key, found, self._bytes(ranks))
        return found

    def _part(self, ranks: Integers, meeting: SplitArguments | None = None) -> Common:
        return Common(partial(restricted, self.interface, ranks), self.policy, meeting=meeting)

    def _bytes(self, ranks: Integers) -> int:
        return int(BYTES_OF_PAIR * min(len(ranks), self.interface.num_hosts) ** 2)

    def split(self, rows: bytes) -> tuple[Integers, Common | None] | None:
        """The result of a split for this rank: its new communicator's ranks in the topology, and their common state.

        A rank that is in no new communicator gets no ranks and None. If a color is invalid, so that MPI raises an
        error, the result is None. Local.

        :param rows: three 32-bit integers per member of the split communicator, in rank order: color, key, and rank in
            the topology.

        Cost: O(p log p) for p members; much less if the split is one of the latest ones.
        """
        key = "split", rows
        found: tuple[Integers, Common | None] | None = self._parts.get(key)
        if found is None and (meeting := self._met(rows)) is not None:
            ranks = meeting.members
            common = self._part(ranks, meeting) if meeting.divides else self._over(ranks)
            found = ranks, common if len(ranks) else None
            self._parts.put(key, found, self._bytes(ranks) + BYTES_OF_ROW * len(rows))
        return found

    def _met(self, rows: bytes) -> SplitArguments | None:
        from ...views.siblings import SplitArguments  # loaded only if a choice may depend on siblings: on several hosts

        table = np.frombuffer(rows, dtype=np.int32).reshape(-1, 3).astype(np.int64)
        color = table[:, 0]
        color[color == MPI.UNDEFINED] = NOWHERE
        where = int(np.flatnonzero(table[:, 2] == self.rank)[0])
        return SplitArguments(self.interface, table, where) if bool((color >= NOWHERE).all()) else None

    def __del__(self) -> None:
        if not MPI.Is_finalized() and self._group != MPI.GROUP_NULL:  # MPI_Finalize frees all groups
            self._group.Free()
