"""The topology that a derived communicator takes from its ancestor, and the result of a ``Split``."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from ...views.part import restricted
from ..execution.lru import LRU
from .common import Common

if TYPE_CHECKING:
    from ...views.siblings import Meeting, Siblings

__all__ = ["Cut", "Origin"]

GROUPS_HELD = 16  # maximum number of groups of ranks, and of splits, whose state each topology keeps, the latest ones
BYTES_HELD = 1 << 26  # maximum bytes of the routes of these groups' networks, as estimated by ``BYTES_OF_PAIR``
NOWHERE = -1  # color of a rank that is in no new communicator
BYTES_OF_ROW = 4  # bytes of memory that a split takes per byte that the ranks exchanged for it, roughly
BYTES_OF_PAIR = 32  # bytes of memory that a network's routes take per pair of hosts, roughly


class Cut:
    """The result of a ``Split`` on one rank: the members of the new communicator in which the rank is.

    :param meeting: the colors and keys that the ranks exchanged, from which everything else is computed.
    :param whole: the MPI group of all ranks of the topology; not freed here.
    :ivar meeting: the colors and keys, if the split made several communicators and this rank is in one; else None.
    :ivar ranks: numbers in the topology of the members, in the order of their new ranks, shape (members,); empty if
        this rank is in no new communicator.
    :ivar group: an MPI group of the members.
    :ivar common: state shared by the communicators over the members; None until one of them is used.
    """

    def __init__(self, meeting: Meeting, whole: MPI.Group) -> None:
        self.ranks: NDArray[np.int64] = meeting.members
        self.meeting = meeting if len(self.ranks) and meeting.divides else None
        self.common: Common | None = None
        self._whole = whole

    @property
    def siblings(self) -> Siblings | None:
        """All communicators that the split made; None if it made a single one."""
        return None if self.meeting is None else self.meeting.siblings

    @cached_property
    def group(self) -> MPI.Group:
        """The MPI group of ``ranks``, made at the first use and freed with this object."""
        return self._whole.Incl(self.ranks.tolist()) if len(self.ranks) else MPI.GROUP_EMPTY

    def __del__(self) -> None:
        if "group" in self.__dict__ and len(self.ranks) and not MPI.Is_finalized():  # else MPI_Finalize has freed it
            self.group.Free()


class Origin:
    """A communicator's topology, from which communicators made from this communicator take the part of their ranks.

    :param comm: the communicator; it may be freed while derived communicators still exist.
    :param common: the shared state of the communicator's ranks.
    :ivar policy: rank 0's settings, known to all ranks.
    :ivar rank: number of this process in the topology, which is its rank in ``comm``.
    """

    def __init__(self, comm: MPI.Intracomm, common: Common) -> None:
        self.interface, self.policy, self.rank = common.interface, common.policy, comm.Get_rank()
        self._group, self._everyone = comm.Get_group(), np.arange(self.interface.num_ranks).tobytes()
        self._commons, self._cuts = LRU(GROUPS_HELD, BYTES_HELD), LRU(GROUPS_HELD, BYTES_HELD)
        self._common = common if common.siblings is None else Common(common.interface, self.policy)

    @cached_property
    def minds_siblings(self) -> bool:
        """Whether a choice may depend on the other communicators that the same split made."""
        return self.policy.minds_siblings(self.interface)

    def common_of(self, comm: MPI.Intracomm, cut: Cut | None) -> Common:
        """The shared state of communicators over the ranks of ``comm``. Local: no communication.

        :param comm: a communicator of some of the topology's ranks.
        :param cut: the split that made it; None if it was made otherwise or the split is unknown.

        Cost: O(1) if ``cut`` is given and known already; O(ranks) if only the ranks are known already; else computing
        the part of the topology for these ranks.
        """
        if cut is None:
            return self._common if self._is_whole(comm) else self._common_over(self.ranks_of(comm))
        if cut.common is None:
            parted = cut.meeting is not None
            cut.common = self._made(cut.ranks, cut.meeting) if parted else self._common_over(cut.ranks)
        return cut.common

    def _is_whole(self, comm: MPI.Intracomm) -> bool:
        if MPI.Comm.Get_size(comm) != self.interface.num_ranks:
            return False
        group = MPI.Comm.Get_group(comm)
        whole = MPI.Group.Compare(group, self._group) == MPI.IDENT
        group.Free()
        return whole

    def covers(self, comm: MPI.Intracomm) -> bool:
        """Whether all ranks of a communicator are in the topology. Local: no communication."""
        return MPI.UNDEFINED not in self.ranks_of(comm)

    def ranks_of(self, comm: MPI.Intracomm) -> NDArray[np.int64]:
        """Numbers in the topology of a communicator's members, in the order of their ranks, shape (members,). Local."""
        group = MPI.Comm.Get_group(comm)
        # In MPICH 5.0.2 the group of a grid (``Create_cart``) smaller than its parent also has, after the grid's ranks,
        # the parent's other ranks.
        ranks = MPI.Group.Translate_ranks(group, None, self._group)[: MPI.Comm.Get_size(comm)]
        group.Free()
        return np.array(ranks, dtype=np.int64)

    def _common_over(self, ranks: NDArray[np.int64]) -> Common:
        key = ranks.tobytes()
        if key == self._everyone:
            return self._common
        found: Common | None = self._commons.get(key)
        if found is None:
            found = self._made(ranks, None)
            self._commons.put(key, found, BYTES_OF_PAIR * found.interface.num_hosts**2)
        return found

    def _made(self, ranks: NDArray[np.int64], meeting: Meeting | None) -> Common:
        return Common(restricted(self.interface, ranks), self.policy, meeting)

    def cut_by(self, rows: bytes) -> Cut | None:
        """The result of a split for this rank; None if a color is invalid, so that MPI raises an error. Local.

        :param rows: three 32-bit integers per member of the split communicator, in rank order: color, key, and rank in
            the topology.

        Cost: O(p log p) for p members; much less if the split is one of the latest 16.
        """
        cut: Cut | None = self._cuts.get(rows)
        if cut is None and (meeting := self._met(rows)) is not None:
            cut = Cut(meeting, self._group)
            most = BYTES_OF_PAIR * min(len(cut.ranks), self.interface.num_hosts) ** 2
            self._cuts.put(rows, cut, most + BYTES_OF_ROW * len(rows))
        return cut

    def _met(self, rows: bytes) -> Meeting | None:
        from ...views.siblings import Meeting  # loaded only if a choice may depend on siblings: on several hosts

        table = np.frombuffer(rows, dtype=np.int32).reshape(-1, 3).astype(np.int64)
        color = table[:, 0]
        color[color == MPI.UNDEFINED] = NOWHERE
        where = int(np.flatnonzero(table[:, 2] == self.rank)[0])
        return Meeting(self.interface, table, where) if bool((color >= NOWHERE).all()) else None

    def __del__(self) -> None:
        if not MPI.Is_finalized():  # else MPI_Finalize has freed it
            self._group.Free()
