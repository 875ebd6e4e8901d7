"""Virtual network blocks (A. Jokanovic, Resource management techniques aware of interference, 2014, section 4.2).

A job is small if it fits a leaf (the nodes of one leaf switch), else big. Big jobs fill leaves from the first one up
(the big block), small jobs from the last one down (the small block). A big job takes whole leaves, and the rest of its
nodes (its remainder) on a leaf that the remainders of several jobs share (a remainder leaf); or it takes, in each of
several leaves, the largest power of two of nodes that a leaf has. The source does not define which leaves are remainder
leaves; here they are the first leaves of each pod and all leaves smaller than the largest. A big job may take an empty
one of full size whole.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..cluster import Cluster
from ..errors import AllocationError
from .occupancy import Allocator, Job, Occupancy, Placement

__all__ = ["RULES", "BlockAllocator"]

RULES = "abcdef"
NO_LEAF = -1
Indices = NDArray[np.integer]


class _Blocks(Occupancy):
    """A state of the cluster that counts the jobs on each leaf.

    On each leaf, ``small`` counts the jobs of the small block, ``big`` the jobs of the big block, and ``owned`` the big
    jobs that have more than their remainder there. ``small_placed`` and ``big_placed`` leave out jobs that this policy
    has not placed: these may be anywhere, and therefore do not move the limits of the blocks.
    """

    def __init__(self, cluster: Cluster, remainder_leaves: int | None) -> None:
        super().__init__(cluster)
        count = cluster.num_leaves
        self.small, self.big, self.owned = (np.zeros(count, dtype=np.int64) for _ in range(3))
        self.small_placed, self.big_placed = (np.zeros(count, dtype=np.int64) for _ in range(2))
        sizes, starts = np.diff(cluster.leaf_start), cluster.pod_start
        in_pod = np.diff(starts)
        each = np.minimum(in_pod // 3, 2) if remainder_leaves is None else np.full(len(in_pod), remainder_leaves)
        place = np.arange(count) - starts[:-1][cluster.pod_of_leaf]
        self.full = sizes == cluster.leaf_size
        self.remainders = (place < each[cluster.pod_of_leaf]) | ~self.full
        self.part = 2 ** (cluster.leaf_size.bit_length() - 1)

    def _change(self, job: Job, placement: Placement, sign: int) -> None:
        super()._change(job, placement, sign)
        block, remainder = placement.role
        leaves = np.unique(self.cluster.leaf[placement.nodes])
        if block in ("small", "adopted small"):
            self.small[leaves] += sign
            self.small_placed[leaves] += sign * (block == "small")
        elif block != "stray":
            self.big[leaves] += sign
            self.big_placed[leaves] += sign * (block != "adopted big")
        if block in ("big", "adopted big"):
            self.owned[leaves[leaves != remainder]] += sign

    def limits(self, blocks: bool) -> tuple[int, int]:
        """Return the number of the last leaf that big jobs may use, and of the first leaf that small jobs may use.

        :param blocks: whether rule a is on; if it is off, both kinds of jobs may use all leaves.
        """
        last = self.cluster.num_leaves - 1
        if not blocks:
            return last, 0
        small, big = np.flatnonzero(self.small_placed), np.flatnonzero(self.big_placed)
        return int(small[0]) - 1 if len(small) else last, int(big[-1]) + 1 if len(big) else 0


class BlockAllocator(Allocator):
    """The allocation policy of virtual network blocks.

    :param off: letters of the rules that are switched off. a: big jobs use only leaves before the first leaf with a
        small job, and small jobs only leaves after the last one with a big job; b: big jobs may take a part of 2^k
        nodes in each of several leaves, and jobs of 1 or 2 nodes the leaves' other nodes; c: remainders share the
        remainder leaves (without c, each takes an empty leaf); d: small jobs may use remainder leaves of the big block;
        e: neighbouring leaves of one pod are preferred; f: a job waits if these rules give it no nodes (without f, it
        gets any free nodes).
    :param remainder_leaves: number of remainder leaves per pod; None for a third of the pod's leaves, but at most 2.
    :param multiples: whether parts of 2^k nodes (rule b) are given to all jobs whose number of nodes is a multiple of
        2^k; if False, only to jobs whose number of nodes is a power of two.
    """

    name = "blocks"

    def __init__(self, off: str = "", remainder_leaves: int | None = None, multiples: bool = False) -> None:
        if set(off) - set(RULES):
            raise AllocationError(f"blocks: expecting rules among {RULES}, got {off!r}")
        self.on = frozenset(RULES) - frozenset(off)
        self.remainder_leaves, self.multiples = remainder_leaves, multiples

    def state(self, cluster: Cluster) -> Occupancy:
        """Return the state of the cluster without jobs."""
        return _Blocks(cluster, self.remainder_leaves)

    def adopt(
        self, job: Job, nodes: NDArray[np.integer], cluster: Cluster, slots: NDArray[np.integer] | None = None
    ) -> Placement:
        """Return the placement of a job that already runs; it counts as small if it fits a leaf, else as big.

        Its leaves count as used by the small or the big block, but do not move the limits, because they may be
        anywhere.

        :param job: the job.
        :param nodes: the whole nodes on which the job runs.
        :param cluster: the cluster that has these nodes.
        :param slots: ignored, because this policy gives whole nodes only.
        """
        return Placement(nodes, (f"adopted {'small' if job.size <= cluster.leaf_size else 'big'}", NO_LEAF))

    def place(self, job: Job, state: Occupancy) -> Placement | None:
        """Return nodes by the rules that are on, or None if the job has to wait."""
        assert isinstance(state, _Blocks)
        if job.size > state.free:
            return None
        small = job.size <= state.cluster.leaf_size
        found = self._small(job.size, state) if small else self._big(job.size, state)
        if found is None and "f" not in self.on:
            return Placement(np.flatnonzero(state.busy == 0)[: job.size], ("stray", NO_LEAF))
        return found

    def _small(self, size: int, state: _Blocks) -> Placement | None:
        first = state.limits("a" in self.on)[1]
        leaves = np.arange(state.cluster.num_leaves)
        fits = leaves[(state.leaf_free >= size) & (leaves >= first) & (state.big == 0)]
        if len(fits):
            return Placement(state.first_free(int(fits[-1]), size), ("small", NO_LEAF))
        inside = (state.small == 0) & state.full & ~state.remainders
        tails = leaves[inside & (state.cluster.leaf_size - state.part >= size)]
        if "b" in self.on and size <= 2:
            for leaf in tails.tolist():
                start = int(state.cluster.leaf_start[leaf]) + state.part
                free = start + np.flatnonzero(state.busy[start : int(state.cluster.leaf_start[leaf + 1])] == 0)
                if len(free) >= size:
                    return Placement(free[:size], ("guest", NO_LEAF))
        if "d" in self.on:
            fits = leaves[state.remainders & (state.owned == 0) & (state.small == 0) & (state.leaf_free >= size)]
            if len(fits):
                # Leaves with remainders come first, because a big job may still take an empty leaf whole. An empty leaf
                # is not refused, because otherwise a small job that fits beside a remainder would not fit when it ends.
                leaf = int(fits[np.argmax(state.big[fits] > 0)])
                return Placement(state.first_free(leaf, size), ("guest", NO_LEAF))
        return None

    def _big(self, size: int, state: _Blocks) -> Placement | None:
        last, whole = state.limits("a" in self.on)[0], state.cluster.leaf_size
        leaves = np.arange(state.cluster.num_leaves)
        usable = (leaves <= last) & (state.small == 0)
        if "b" in self.on and size % state.part == 0 and (self.multiples or size & (size - 1) == 0):
            free = usable & state.full & (_busy_in_part(state) == 0) & ~(state.remainders & (state.big > 0))
            found = self._choose(size // state.part, free, state)
            return None if found is None else _parts(found, state.part, state)
        count, rest = divmod(size, whole)
        remainder, free = NO_LEAF, usable & state.full & (state.leaf_free == whole)
        if rest:
            fits = usable & state.remainders & (state.owned == 0) & (state.leaf_free >= rest)
            if "c" not in self.on:
                fits = usable & (state.big == 0) & (state.leaf_free == np.diff(state.cluster.leaf_start))
                fits &= state.leaf_free >= rest
            # Used remainder leaves come first, because a big job may still take an empty one whole.
            order = sorted(np.flatnonzero(fits).tolist(), key=lambda leaf: (state.big[leaf] == 0, leaf))
            if not order:
                return None
            remainder = order[0]
            free[remainder] = False
        found = self._choose(count, free, state)
        if found is None:
            return None
        nodes = [state.take(found, count * whole)]
        if rest:
            nodes.append(state.first_free(remainder, rest))
        return Placement(np.concatenate(nodes), ("big", remainder if "c" in self.on else NO_LEAF))

    def _choose(self, count: int, free: NDArray[np.bool_], state: _Blocks) -> Indices | None:
        """Choose ``count`` free leaves; remainder leaves are chosen only if the others do not suffice.

        The result is None if too few leaves are free.
        """
        for among in (free & ~state.remainders, free):
            if among.sum() >= count:
                return _near(count, among, state.cluster) if "e" in self.on else np.flatnonzero(among)[:count]
        return None


def _busy_in_part(state: _Blocks) -> Indices:
    starts = state.cluster.leaf_start
    total = np.concatenate(([0], np.cumsum(state.busy > 0)))
    busy: Indices = total[np.minimum(starts[:-1] + state.part, starts[1:])] - total[starts[:-1]]
    return busy


def _parts(leaves: Indices, part: int, state: _Blocks) -> Placement:
    nodes = state.cluster.leaf_start[leaves][:, None] + np.arange(part)
    return Placement(nodes.ravel().astype(np.int64), ("big", NO_LEAF))


def _near(count: int, free: NDArray[np.bool_], cluster: Cluster) -> Indices:
    """Choose ``count`` free leaves, as near to each other as possible.

    In this order of preference: neighbouring leaves of one pod, any leaves of one pod, neighbouring leaves, leaves of
    the pods that have the most free ones.
    """
    leaves, pods = np.flatnonzero(free), cluster.pod_of_leaf
    span = leaves[count - 1 :] - leaves[: len(leaves) - count + 1]
    same = pods[leaves[count - 1 :]] == pods[leaves[: len(leaves) - count + 1]]
    for wanted in ((span == count - 1) & same, same, span == count - 1):
        if wanted.any():
            at = int(np.argmax(wanted))
            return leaves[at : at + count]
    most = np.argsort(-np.bincount(pods[leaves], minlength=cluster.num_pods), kind="stable")
    place = np.empty_like(most)
    place[most] = np.arange(len(most))
    return np.sort(leaves[np.argsort(place[pods[leaves]], kind="stable")][:count])
