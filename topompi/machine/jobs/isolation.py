"""Search for jobs that share directed links between switches, from nothing but their nodes and the routes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, pairwise
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...network import Tables
from .errors import AllocationError

__all__ = ["Conflicts", "JobRoutes", "TableRoutes", "TreeRoutes", "check"]

Indices = NDArray[np.int32]


class JobRoutes(Protocol):
    """The interface of routes, which give the directed links between switches that a job on given nodes can use."""

    @property
    def num_links(self) -> int:
        """Number of directed links; link numbers are below it."""
        ...

    def links_of(self, nodes: NDArray[np.integer]) -> NDArray[np.integer]:
        """Return ascending numbers of the links on the routes between all ordered pairs of these nodes."""
        ...

    def table(self) -> NDArray[np.integer]:
        """Return the links on the routes from leaves to nodes, shape (leaves, nodes, longest route), padded with -1."""
        ...

    @property
    def engine(self) -> str:
        """Origin of the routes, in words."""
        ...


@dataclass(frozen=True, eq=False)
class TableRoutes:
    """Routes in which each switch's next-hop link depends on the destination only, as in forwarding tables.

    :param network: tables of the fabric's links, their rates, and next-hop links; its hosts are the cluster's nodes.
    :param leaf: leaf of each node, shape (nodes,).
    :param steps: links between switches on the route from each leaf to each node in order, shape (leaves, nodes,
        longest route); -1 is padding, after and within a route. If there are alternative routes to a node (LMC), the
        links of all of them.
    :param engine: origin of the routes, in words.
    """

    network: Tables
    leaf: Indices
    steps: Indices
    engine: str = "unknown"

    @property
    def num_links(self) -> int:
        """Number of directed links of the fabric; link numbers are below it."""
        return self.network.num_links

    def links_of(self, nodes: NDArray[np.integer]) -> NDArray[np.integer]:
        """Return ascending numbers of the links on routes between these nodes. Cost: the job's leaves x its nodes."""
        leaves = np.unique(self.leaf[nodes])
        used = np.zeros(self.num_links + 1, dtype=bool)
        used[self.steps[leaves[:, None], nodes[None, :]]] = True  # the padding -1 marks the last place, added for it
        return np.flatnonzero(used[:-1])

    def table(self) -> NDArray[np.integer]:
        """Return the links on the routes from leaves to nodes, shape (leaves, nodes, longest route), padded with -1."""
        return self.steps


@dataclass(frozen=True, eq=False)
class TreeRoutes:
    """Routes in a tree of leaves and pods, in which all traffic of a job out of a leaf, or of a pod, uses one link.

    The two levels are those of Pollard et al., Interference-free node allocation, SC18, section III-A.

    :param leaf: leaf of each node, shape (nodes,).
    :param pod: pod of each node, shape (nodes,).
    """

    leaf: Indices
    pod: Indices
    engine: str = "assumed: one link up and one down for each leaf and each pod"

    def name_of(self, link: int) -> str:
        """Return the name of a link, numbered as in `links_of`, for example ``leaf 3 up``."""
        leaves, pods = self._counts
        kind, at, count = ("leaf", link, leaves) if link < 2 * leaves else ("pod", link - 2 * leaves, pods)
        return f"{kind} {at % count} {'up' if at < count else 'down'}"

    @cached_property
    def _counts(self) -> tuple[int, int]:
        return int(self.leaf.max()) + 1, int(self.pod.max()) + 1

    @property
    def num_links(self) -> int:
        """Number of links: one up and one down link per leaf and per pod."""
        return 2 * sum(self._counts)

    def links_of(self, nodes: NDArray[np.integer]) -> NDArray[np.integer]:
        """Return numbers of the links on routes between these nodes.

        They are in this order: up links of leaves, down links of leaves, up links of pods, down links of pods.
        """
        leaves, pods = np.unique(self.leaf[nodes]), np.unique(self.pod[nodes])
        count, above = self._counts
        leaves, pods = leaves[: len(leaves) * (len(leaves) > 1)], 2 * count + pods[: len(pods) * (len(pods) > 1)]
        return np.concatenate((leaves, leaves + count, pods, pods + above))

    def table(self) -> NDArray[np.integer]:
        """Return the links on the route from each leaf to each node, shape (leaves, nodes, 4), padded with -1.

        A route has up to four links: up out of the leaf, up out of the pod, down into the pod, down into the leaf.
        """
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
    """The pairs of jobs that share links or nodes, with these links and nodes.

    :param pairs: ascending numbers of the shared links by (job, other job), the smaller job number first.
    :param nodes: ascending numbers of the nodes on which both jobs hold slots, by (job, other job); the jobs then share
        these nodes' own links, too.
    """

    pairs: Mapping[tuple[int, int], NDArray[np.integer]]
    nodes: Mapping[tuple[int, int], NDArray[np.integer]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.pairs)

    @property
    def num_links(self) -> int:
        """Number of links that two or more jobs can use."""
        return len(np.unique(np.concatenate([[], *self.pairs.values()])))


def check(
    allocations: Mapping[int, ArrayLike], routes: JobRoutes, slots: Mapping[int, ArrayLike] | None = None
) -> Conflicts:
    """Find the pairs of jobs that can use the same directed links between switches, and these links.

    Links between a node and its leaf switch are not counted, because only the jobs on the node use them.

    :param allocations: nodes of each job, by job.
    :param routes: the cluster's routes.
    :param slots: slot that a job holds at each entry of its nodes, -1 for all slots of the node, by job; a job that is
        not in the mapping holds whole nodes.
    :raises AllocationError: if a slot, or a whole node, is held twice.

    Cost: one pass over the routes of the jobs, and one over the pairs of jobs on each shared link.
    """
    jobs = sorted(allocations)
    nodes = [np.asarray(allocations[job], dtype=np.int64).ravel() for job in jobs]
    slots = slots or {}
    shared = _nodes_of_several(jobs, nodes, slots)
    once = [np.unique(of_job) if job in slots else of_job for job, of_job in zip(jobs, nodes, strict=True)]
    return Conflicts(_pairs(jobs, [routes.links_of(of_job) for of_job in once]), shared)


def _pairs(jobs: Sequence[int], things: Sequence[NDArray[np.integer]]) -> dict[tuple[int, int], NDArray[np.integer]]:
    """Return the numbers that each pair of jobs has in common, ascending; a job may have a number only once."""
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
    """Return the nodes that each pair of jobs shares, after a check that no slot is held twice."""
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
