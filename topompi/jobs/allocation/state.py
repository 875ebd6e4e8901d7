"""What an allocator knows of the cluster: which nodes are held, by which running jobs."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..cluster import Cluster
from ..errors import AllocationError

__all__ = ["Allocator", "Job", "Placement", "State"]


class Job(NamedTuple):
    """What an allocator is told of a job: its number, nodes, and estimated seconds."""

    number: int
    size: int
    estimate: int = 0


class Placement(NamedTuple):
    """Nodes held by a job, of which it uses the first ``job.size``; and what the allocator wants to know later."""

    nodes: NDArray[np.integer]
    role: Any = None


class State:
    """The nodes held by a set of jobs: a function of that set alone, whatever happened before.

    For plans, jobs of different times may hold a node together: ``busy`` counts them.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.free = cluster.num_nodes
        self.busy = np.zeros(cluster.num_nodes, dtype=np.int32)
        self._leaf_free = np.diff(cluster.leaf_start).astype(np.int64)
        self._pod_free = np.diff(cluster.leaf_start[cluster.pod_start]).astype(np.int64)
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

    def copy(self) -> State:
        """A state that changes on its own."""
        made = copy.copy(self)
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray | dict):
                setattr(made, name, value.copy())
        return made

    def preview(self) -> State:
        """A copy that is asked only whether jobs fit; jobs that start there hold no node of another one."""
        return self.copy()

    def _change(self, job: Job, placement: Placement, sign: int) -> None:
        nodes = placement.nodes
        if not len(nodes):  # only counted
            self.free -= sign * job.size
            return
        changed = self._hold(nodes, sign)
        leaves = np.bincount(self.cluster.leaf[changed], minlength=self.cluster.num_leaves)
        self._leaf_free -= sign * leaves
        self._pod_free -= sign * np.add.reduceat(leaves, self.cluster.pod_start[:-1])
        self.free -= sign * len(changed)

    def _hold(self, nodes: NDArray[np.integer], sign: int) -> NDArray[np.integer]:
        """One job more or less on some nodes; those that are no longer free, or free again."""
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
    after other jobs have ended; where it is not, a promise to a job keeps the nodes found for it. Which nodes are found
    depends on the job's size and the state alone.
    """

    name = ""
    by_count = False
    monotone = True

    def state(self, cluster: Cluster) -> State:
        """The state of the cluster without jobs."""
        return State(cluster)

    def place(self, job: Job, state: State) -> Placement | None:
        """Nodes for a job now, or None where it has to wait."""
        raise NotImplementedError

    def feasible(self, job: Job, state: State) -> bool:
        """Whether `place` finds nodes."""
        return self.place(job, state) is not None

    def adopt(self, job: Job, nodes: NDArray[np.integer], cluster: Cluster) -> Placement:
        """What a job holds that somebody else has started.

        :param job: the job.
        :param nodes: on which it runs.
        :param cluster: of these nodes.
        """
        return Placement(nodes)

    def admits(self, placement: Placement, state: State) -> bool:
        """Whether a job may start on nodes that were found for it in another state."""
        return not state.busy[placement.nodes].any()
