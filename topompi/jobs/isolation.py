"""Which jobs share which directed links between switches, from the routes alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, pairwise
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..network import Tables
from .errors import AllocationError

__all__ = ["Conflicts", "Routes", "TableRoutes", "TreeRoutes", "check"]

Indices = NDArray[np.int32]


class Routes(Protocol):
    """What is asked of routes: the links between switches that a job on some nodes can use."""

    @property
    def num_links(self) -> int:
        """Links are numbered below this."""
        ...

    def links_of(self, nodes: NDArray[np.integer]) -> NDArray[np.integer]:
        """Ascending numbers of the directed links on the routes between all ordered pairs of these nodes."""
        ...

    def table(self) -> NDArray[np.integer]:
        """Links from each leaf to each node, shape (leaves, nodes, longest), padded with -1."""
        ...


@dataclass(frozen=True, eq=False)
class TableRoutes:
    """Routes that follow the destination, as forwarding tables give them.

    :param network: links, rates and next links, with the nodes as its hosts; links have the fabric's numbers.
    :param leaf: leaf of each node, shape (nodes,).
    :param steps: links between switches from each leaf to each node in order, shape (leaves, nodes, longest), -1 beyond
        the end and between; if a node can be reached over several paths, the links of all.
    """

    network: Tables
    leaf: Indices
    steps: Indices

    @property
    def num_links(self) -> int:
        """Links are numbered below this: the directed links of the fabric."""
        return self.network.num_links

    def links_of(self, nodes: NDArray[np.integer]) -> NDArray[np.integer]:
        """Ascending numbers of the links between these nodes; cost: leaves x nodes of the job."""
        leaves = np.unique(self.leaf[nodes])
        used = np.zeros(self.num_links + 1, dtype=bool)
        used[self.steps[leaves[:, None], nodes[None, :]]] = True  # -1 is the last place
        return np.flatnonzero(used[:-1])

    def table(self) -> NDArray[np.integer]:
        """Links from each leaf to each node."""
        return self.steps


@dataclass(frozen=True, eq=False)
class TreeRoutes:
    """The tree of leaves and pods, where all of a job's traffic out of a leaf, or of a pod, is taken to share one link.

    The two levels of Pollard et al., Interference-free node allocation, SC18, section III-A.

    :param leaf: leaf of each node, shape (nodes,).
    :param pod: pod of each node, shape (nodes,).
    """

    leaf: Indices
    pod: Indices

    @cached_property
    def _counts(self) -> tuple[int, int]:
        return int(self.leaf.max()) + 1, int(self.pod.max()) + 1

    @property
    def num_links(self) -> int:
        """One up and one down link for each leaf and pod."""
        return 2 * sum(self._counts)

    def links_of(self, nodes: NDArray[np.integer]) -> NDArray[np.integer]:
        """Leaves' up-links first, then their down-links, then those of pods."""
        leaves, pods = np.unique(self.leaf[nodes]), np.unique(self.pod[nodes])
        count, above = self._counts
        leaves, pods = leaves[: len(leaves) * (len(leaves) > 1)], 2 * count + pods[: len(pods) * (len(pods) > 1)]
        return np.concatenate((leaves, leaves + count, pods, pods + above))

    def table(self) -> NDArray[np.integer]:
        """Links from each leaf to each node: up, up out of the pod, down into the pod, down."""
        count, above = self._counts
        start, end = np.arange(count)[:, None], self.leaf[None, :]
        first = np.searchsorted(self.leaf, np.arange(count))
        here, there = self.pod[first][:, None], self.pod[None, :]
        up, into = np.broadcast_arrays(2 * count + here, 2 * count + above + there)
        table = np.full((count, len(self.leaf), 4), -1, dtype=np.int32)
        table[:, :, 0], table[:, :, 1] = start, up
        table[:, :, 2], table[:, :, 3] = into, count + end
        table[np.broadcast_to(here == there, up.shape), 1:3] = -1
        table[np.broadcast_to(start == end, up.shape)] = -1
        return table


@dataclass(frozen=True, eq=False)
class Conflicts:
    """Pairs of jobs and the links that they share.

    :param pairs: (job, other job) -> ascending link numbers; the first job is the smaller.
    :param nodes: (job, other job) -> ascending nodes of which both hold slots; they share these nodes' own links.
    """

    pairs: Mapping[tuple[int, int], NDArray[np.integer]]
    nodes: Mapping[tuple[int, int], NDArray[np.integer]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.pairs)

    @property
    def num_links(self) -> int:
        """Number of links that two jobs or more can use."""
        return len(np.unique(np.concatenate([[], *self.pairs.values()])))


def check(
    allocations: Mapping[int, ArrayLike], routes: Routes, slots: Mapping[int, ArrayLike] | None = None
) -> Conflicts:
    """Which jobs share which directed links between switches; links between a node and its leaf are the node's own.

    :param allocations: job -> its nodes.
    :param routes: the cluster's.
    :param slots: job -> the slot on each entry of its nodes, -1 for all slots; other jobs hold whole nodes.
    :raises AllocationError: if a slot, or a whole node, is held twice.
    Cost: the jobs' routes once, and the pairs of jobs on each shared link.
    """
    jobs = sorted(allocations)
    nodes = [np.asarray(allocations[job], dtype=np.int64).ravel() for job in jobs]
    slots = slots or {}
    shared = _nodes_of_several(jobs, nodes, slots)
    once = [np.unique(of_job) if job in slots else of_job for job, of_job in zip(jobs, nodes, strict=True)]
    return Conflicts(_pairs(jobs, [routes.links_of(of_job) for of_job in once]), shared)


def _pairs(jobs: Sequence[int], things: Sequence[NDArray[np.integer]]) -> dict[tuple[int, int], NDArray[np.integer]]:
    """Pairs of jobs that have a thing in common, and these things, ascending; each job has one only once."""
    owner = np.repeat(np.arange(len(jobs)), [len(of_job) for of_job in things])
    thing = np.concatenate([np.empty(0, np.int64), *things])
    order = np.lexsort((owner, thing))
    thing, owner = thing[order], owner[order]
    found: dict[tuple[int, int], list[int]] = {}
    starts = np.flatnonzero(np.diff(thing, prepend=-1))
    for first, last in pairwise((*starts.tolist(), len(thing))):
        for one, other in combinations(owner[first:last].tolist(), 2):
            found.setdefault((jobs[one], jobs[other]), []).append(int(thing[first]))
    return {pair: np.array(common) for pair, common in found.items()}


def _nodes_of_several(
    jobs: Sequence[int], nodes: Sequence[NDArray[np.integer]], slots: Mapping[int, ArrayLike]
) -> dict[tuple[int, int], NDArray[np.integer]]:
    """Pairs of jobs on one node, none of whose slots is held twice."""
    every = np.concatenate([np.empty(0, np.int64), *nodes])
    held, times = np.unique(every, return_counts=True)
    several = held[times > 1]
    if not len(several):
        return {}
    whole = [np.full(len(of_job), -1) for of_job in nodes]
    slot = np.concatenate([np.asarray(slots.get(job, one)).ravel() for job, one in zip(jobs, whole, strict=True)])
    if len(slot) != len(every):
        raise AllocationError(f"expecting a slot for each of {len(every)} nodes, got {len(slot)}")
    wrong = np.intersect1d(every[slot < 0], several)
    if len(wrong):
        raise AllocationError(f"expecting nodes of one job each, got node {wrong[0]} twice")
    twice, times = np.unique(np.stack((every, slot)), axis=1, return_counts=True)
    if (times > 1).any():
        node, at = twice[:, times > 1][:, 0].tolist()
        raise AllocationError(f"expecting slots of one job each, got slot {at} of node {node} twice")
    return _pairs(jobs, [np.unique(of_job) for of_job in nodes])
