"""Plans of rooted collectives over the leaders of clusters, level by level, for any root and sizes of clusters."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

__all__ = ["Hierarchy", "RootedPlan", "Stage"]

IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Stage:
    """One native collective on one sub-communicator, from the point of view of one of its members.

    Positions are indices into the order in which `RootedPlan.order` lists the blocks. In a gather, member m sends the
    blocks at positions ``begin[m]`` to ``end[m] - 1``, and the stage's root then has those at ``low`` to ``high - 1``.
    A scatter is the reverse.

    :param level: level of the sub-communicator, 1 for the outermost.
    :param root: rank of the stage's root in the sub-communicator.
    :param me: the member's own rank in the sub-communicator.
    :param begin: first position of each member's blocks, shape (members,).
    :param end: position behind the last of each member's blocks, shape (members,).
    :param low: first position that the root holds after a gather.
    :param high: position behind the last one that the root holds after a gather.
    """

    level: int
    root: int
    me: int
    begin: IntArray
    end: IntArray
    low: int
    high: int

    @cached_property
    def equal(self) -> int:
        """The number of blocks per member if all have the same number and lie side by side, else 0.

        If it is not 0, a gather without counts suffices. The number of blocks of a root that is the first member does
        not matter, because its own blocks are already in place, and the gather writes nothing to its slot.
        """
        size = self.end - self.begin
        others = np.arange(len(size)) != self.root
        length = size[others][0]
        start = self.begin[others] - length * np.flatnonzero(others)
        fits = (size[others] == length).all() and (start == start[0]).all()
        return int(length) if fits and (self.root == 0 or size[self.root] == length) else 0

    @property
    def first(self) -> int:
        """First position that the root's receive buffer covers: begin of the first slot if ``equal``, else ``low``.

        A slot is the room for one member's blocks. The position is negative if the root's own slot, which is the first
        and has the same size as the others, is larger than the number of its blocks.
        """
        other = 1 if self.root == 0 else 0
        return int(self.begin[other]) - self.equal * other if self.equal else self.low


@dataclass(frozen=True, eq=False)
class RootedPlan:
    """The stages of one rank for one root.

    :param order: rank whose block stands at each position, shape (p,); gathered blocks arrive at the root in this
        order.
    :param position: position of this rank's own block.
    :param stages: stages in the order of a gather; a scatter or broadcast runs them in reverse.
    :param low: first position that this rank's buffer covers, see ``Stage.first``.
    :param high: position behind the last one that this rank's buffer covers.
    """

    order: IntArray
    position: int
    stages: tuple[Stage, ...]
    low: int
    high: int

    @cached_property
    def inverse(self) -> IntArray:
        """The position of each rank's block in ``order``, shape (p,), by which blocks are put back into rank order."""
        inverse = np.empty_like(self.order)
        inverse[self.order] = np.arange(len(self.order))
        return inverse

    @cached_property
    def in_rank_order(self) -> bool:
        """Whether ``order`` is 0, 1, ..., p - 1."""
        return bool((self.order == np.arange(len(self.order))).all())


class Hierarchy:
    """Nested clusters of ranks and the rooted collectives over their leaders (Subramoni 2013, sections 3 and 2.3.1).

    Level 1 is the outermost; the clusters of the innermost level are single ranks. The leader of a cluster is its
    lowest rank. A sub-communicator of a level unites the leaders of all clusters of this level within one cluster of
    the next outer level, or within the whole communicator at level 1.

    In a gather, each cluster without the root first gathers at its leader, innermost level first. Then the blocks move
    inwards along the clusters that contain the root, outermost first: each stage gathers at the leader of the next
    inner cluster that contains the root, and the last stage at the root. A block thus enters the root's leaf switch
    once. If the root leads no cluster, the only extra cost is one transfer inside its innermost cluster, as in the
    source; here it is part of the last stage, which also gathers the blocks of the other ranks of this cluster.

    If the root leads all its clusters (as rank 0 does), all stages run innermost first, and blocks arrive in the
    clusters' own order, which is rank order if the ranks of each cluster are consecutive.

    Messages: at most members - 1 per sub-communicator. Bytes: each block crosses each cluster's border once.

    :param size: number of ranks, p.
    :param clusters: cluster of each rank at each level, coarsest first, nested, each of shape (p,), any numbers.
    :raises ValueError: if the levels are not nested or differ in length.
    """

    def __init__(self, size: int, clusters: Sequence[NDArray[np.integer]] = ()) -> None:
        rows = [np.zeros(size, dtype=np.int64), *map(_named_by_leader, clusters), np.arange(size)]
        if any(len(row) != size for row in rows):
            raise ValueError(f"expecting the cluster of each of {size} ranks at every level")
        for level, (outer, inner) in enumerate(itertools.pairwise(rows), 1):
            if (outer[inner] != outer).any():
                raise ValueError(f"a cluster of level {level} lies in two clusters of the level above")
        self._rows = np.stack(rows)

    @property
    def size(self) -> int:
        """Number of ranks, p."""
        return int(self._rows.shape[1])

    @property
    def num_levels(self) -> int:
        """Number of levels of sub-communicators; 1 if there are no clusters."""
        return len(self._rows) - 1

    def color(self, level: int, rank: int) -> int:
        """The colour of a rank in MPI's split for a level: its cluster one level above, or -1 if it is no member."""
        return int(self._rows[level - 1, rank]) if self._rows[level, rank] == rank else -1

    def members(self, level: int, rank: int) -> IntArray:
        """The ranks, ascending, of the level's sub-communicator inside the rank's cluster of the next outer level."""
        inside = self._rows[level - 1] == self._rows[level - 1, rank]
        return np.flatnonzero(inside & (self._rows[level] == np.arange(self.size)))

    def plan(self, root: int, rank: int) -> RootedPlan:
        """Plan the stages of one rank for one root.

        Cost: O(p log p + p levels) time, O(p) memory, the same on every rank.
        """
        rows = self._rows
        leads = rows[1, root] == root
        common = np.zeros(self.size, dtype=np.int64) if leads else self._common(root)
        order = np.lexsort((*rows[::-1], common))
        spans = self._spans(order)
        carried = None if leads else np.searchsorted(common[order], np.arange(self.num_levels + 1))
        stages = [
            self._stage(level, root, rank, spans, carried)
            for level in range(self.num_levels, 0, -1)
            if rows[level, rank] == rank and len(self.members(level, rank)) > 1
        ]
        if not leads:
            away = [stage for stage in stages if rows[stage.level - 1, rank] != rows[stage.level - 1, root]]
            stages = [*away, *stages[len(away) :][::-1]]
        gathered = [stage for stage in stages if stage.me == stage.root]
        own = int(np.flatnonzero(order == rank)[0])
        return RootedPlan(
            order=order,
            position=own,
            stages=tuple(stages),
            low=min([own, *(stage.first for stage in gathered)]),
            high=max([own + 1, *(stage.high for stage in gathered)]),
        )

    def _common(self, root: int) -> IntArray:
        """The number of levels at which each rank is in the same cluster as the root, shape (p,)."""
        shared: IntArray = (self._rows == self._rows[:, root][:, None]).sum(axis=0) - 1
        return shared

    def _spans(self, order: IntArray) -> tuple[IntArray, IntArray]:
        """The first position of the cluster that each rank leads at each level, and the position behind its last."""
        begin = np.zeros(self._rows.shape, dtype=np.int64)
        end = np.zeros_like(begin)
        for level, row in enumerate(self._rows[:, order]):
            begin[level, row[::-1]] = np.arange(self.size)[::-1]
            end[level, row] = np.arange(1, self.size + 1)
        return begin, end

    def _stage(
        self, level: int, root: int, rank: int, spans: tuple[IntArray, IntArray], carried: IntArray | None
    ) -> Stage:
        members = self.members(level, rank)
        me = int(np.searchsorted(members, rank))
        begin, end = spans[0][level, members], spans[1][level, members]
        around_root = self._rows[level - 1, rank] == self._rows[level - 1, root]
        target = int(np.searchsorted(members, self._rows[level, root])) if around_root else 0
        if carried is None or not around_root:
            return Stage(level, target, me, begin, end, int(begin.min()), int(end.max()))
        # The first member has already got all blocks from outside this cluster; they precede its own cluster's blocks.
        # The member whose cluster contains the root is the receiver, and has none of the blocks of this stage yet.
        before, after = int(carried[level - 1]), int(carried[level])
        begin[target] = end[target] = before
        begin[0] = 0
        end[0] = int(end[0]) if target else before
        return Stage(level, target, me, begin, end, 0, after)


def _named_by_leader(cluster: NDArray[np.integer]) -> IntArray:
    """Number each cluster by its lowest rank."""
    _, first, inverse = np.unique(cluster, return_index=True, return_inverse=True)
    leader: IntArray = first[inverse].astype(np.int64)
    return leader
