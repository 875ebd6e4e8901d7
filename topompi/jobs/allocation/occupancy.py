"""What an allocator knows of the cluster: which nodes are held, by which running jobs."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..cluster import Cluster
from ..errors import AllocationError
from ..isolation import Conflicts, check
from ..workload import Workload

__all__ = ["NOTHING", "Allocator", "Job", "Occupancy", "Placement"]

NOTHING: Mapping[str, Any] = {}


class Job(NamedTuple):
    """A job as an allocator sees it: number, least nodes, estimated seconds, and the columns that it ``heeds``."""

    number: int
    size: int
    estimate: int = 0
    asks: Mapping[str, Any] = NOTHING

    @property
    def slots(self) -> int:
        """Slots that the job asks for; 0 for whole nodes."""
        slots: int = self.asks.get("slots", 0)
        return slots

    @property
    def shared(self) -> bool:
        """Whether other jobs may use further slots of its nodes."""
        shared: bool = self.asks.get("shared", False)
        return shared


class Placement(NamedTuple):
    """The nodes, or slots of nodes, that a job holds, and what the allocator wants to know later.

    Without ``slots`` the nodes are whole, and the job uses the first ``job.size``. With ``slots`` the job uses the slot
    ``slots[i]`` of the node ``nodes[i]``, for each i.
    """

    nodes: NDArray[np.integer]
    role: Any = None
    slots: NDArray[np.integer] | None = None

    def used(self, size: int) -> NDArray[np.integer]:
        """The entries of ``nodes`` that a job of this size uses; a node of several slots is there as often."""
        return self.nodes[:size] if self.slots is None else self.nodes


class Occupancy:
    """The nodes held by a set of jobs: a function of that set alone, whatever happened before.

    For plans, jobs of different times may hold a node together: ``busy`` counts them.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.free = cluster.num_nodes
        self.busy = np.zeros(cluster.num_nodes, dtype=np.int32)
        self._leaf_free = np.diff(cluster.leaf_start).astype(np.int64)
        self._pod_free = np.diff(cluster.leaf_start[cluster.pod_start]).astype(np.int64)
        self.closed = np.zeros(cluster.num_nodes, dtype=bool)
        self.any_closed = False
        self.running: dict[int, tuple[Job, Placement]] = {}

    @property
    def leaf_free(self) -> NDArray[np.int64]:
        """Free nodes of each leaf."""
        return self._leaf_free

    @property
    def pod_free(self) -> NDArray[np.int64]:
        """Free nodes of each pod."""
        return self._pod_free

    def start(self, job: Job, placement: Placement) -> None:
        """A job takes its nodes."""
        if job.number in self.running:
            raise AllocationError(f"expecting a job that does not run, got job {job.number}")
        self.running[job.number] = job, placement
        self._change(job, placement, 1)

    def end(self, index: int) -> None:
        """A job gives its nodes back."""
        job, placement = self.running.pop(index)
        self._change(job, placement, -1)

    def has_free(self, placement: Placement) -> bool:
        """Whether all nodes, or slots, of a placement are free."""
        return not self.busy[placement.nodes].any()

    def close(self, nodes: ArrayLike) -> None:
        """No job starts on these nodes until they are reopened; jobs that run there go on."""
        self._set_closed(np.asarray(nodes, dtype=np.int64), 1)

    def reopen(self, nodes: ArrayLike) -> None:
        """Jobs may start on these nodes again."""
        self._set_closed(np.asarray(nodes, dtype=np.int64), -1)

    def _set_closed(self, nodes: NDArray[np.integer], sign: int) -> None:
        changed = np.unique(nodes)
        changed = changed[self.closed[changed] != (sign > 0)]
        self.closed[changed] = sign > 0
        self.any_closed = bool(self.closed.any())
        self._count(self._hold(Placement(changed), sign), sign)

    def conflicts(self) -> Conflicts:
        """`isolation.check` of the running jobs, on the nodes that they use, not those that they only hold."""
        nodes = {index: placement.used(job.size) for index, (job, placement) in self.running.items()}
        slots = {index: held.slots for index, (_, held) in self.running.items() if held.slots is not None}
        return check(nodes, self.cluster.links, slots)

    def copy(self) -> Occupancy:
        """A state that changes on its own."""
        made = copy.copy(self)
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray | dict):
                setattr(made, name, value.copy())
        return made

    def preview(self) -> Occupancy:
        """A copy that is asked only whether jobs fit; jobs that start there hold no node of another one."""
        return self.copy()

    def _change(self, job: Job, placement: Placement, sign: int) -> None:
        if not len(placement.nodes):  # only counted
            self.free -= sign * job.size
            return
        self._count(self._hold(placement, sign), sign)

    def _count(self, changed: NDArray[np.integer], sign: int) -> None:
        """The sums of free nodes, after these are no longer free (1) or free again (-1)."""
        leaves = np.bincount(self.cluster.leaf[changed], minlength=self.cluster.num_leaves)
        self._leaf_free -= sign * leaves
        self._pod_free -= sign * np.add.reduceat(leaves, self.cluster.pod_start[:-1])
        self.free -= sign * len(changed)

    def _hold(self, placement: Placement, sign: int) -> NDArray[np.integer]:
        """One job more or less on some nodes; those that are no longer free, or free again."""
        nodes = placement.nodes
        self.busy[nodes] += sign
        changed: NDArray[np.integer] = nodes[self.busy[nodes] == (1 if sign > 0 else 0)]
        return changed

    def first_free(self, leaf: int, count: int) -> NDArray[np.integer]:
        """The lowest free nodes of a leaf, at most so many."""
        first = int(self.cluster.leaf_start[leaf])
        return first + np.flatnonzero(self.busy[first : int(self.cluster.leaf_start[leaf + 1])] == 0)[:count]

    def take(self, leaves: NDArray[np.integer], count: int) -> NDArray[np.integer]:
        """So many free nodes, leaf after leaf in the given order."""
        parts: list[NDArray[np.integer]] = []
        for leaf in leaves.tolist():
            if count <= 0:
                break
            parts.append(self.first_free(leaf, count))
            count -= len(parts[-1])
        return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)


class Allocator:
    """A policy of allocation: which free nodes a job gets, or none.

    ``by_count`` says that a job fits wherever enough nodes are free. ``monotone`` says that a job that fits still fits
    after other jobs have ended; where it is not, a promise to a job keeps the nodes found for it. ``heeds`` names
    further columns of the workload: which nodes are found depends on these, the job's size and the state alone.
    ``holds_more`` allows placements of more nodes than the job needs, ``names_nodes`` is false if nodes are counted.
    """

    name = ""
    by_count = False
    monotone = True
    heeds: tuple[str, ...] = ()
    holds_more = False
    names_nodes = True

    def state(self, cluster: Cluster) -> Occupancy:
        """The state of the cluster without jobs."""
        return Occupancy(cluster)

    def sizes(self, workload: Workload, cluster: Cluster) -> NDArray[np.integer]:
        """The least nodes of each job."""
        return workload.nodes

    def place(self, job: Job, state: Occupancy) -> Placement | None:
        """Nodes for a job now, or None where it has to wait."""
        raise NotImplementedError

    def feasible(self, job: Job, state: Occupancy) -> bool:
        """Whether `place` finds nodes."""
        return self.place(job, state) is not None

    def adopt(
        self, job: Job, nodes: NDArray[np.integer], cluster: Cluster, slots: NDArray[np.integer] | None = None
    ) -> Placement:
        """The placement of a job that was started outside.

        :param job: the job.
        :param nodes: on which it runs.
        :param cluster: of these nodes.
        :param slots: for each entry of ``nodes``, the slot that the job holds there; none: it holds whole nodes.
        """
        return Placement(nodes, slots=slots)

    def admits(self, placement: Placement, state: Occupancy) -> bool:
        """Whether a job may start on nodes that were found for it in another state."""
        return state.has_free(placement)
