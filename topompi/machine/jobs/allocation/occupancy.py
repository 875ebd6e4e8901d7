"""The state on which an allocator decides, that is, the running jobs and the nodes that they hold."""

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
    """A job as an allocator sees it.

    :param number: number that identifies the job; in a simulation, its position in the workload.
    :param size: least number of nodes on which the job can run.
    :param estimate: estimated run time in seconds.
    :param asks: the job's values in further columns of the workload, by column, for example of ``slots``.
    """

    number: int
    size: int
    estimate: int = 0
    asks: Mapping[str, Any] = NOTHING

    @property
    def slots(self) -> int:
        """Number of slots that the job asks for; 0 if it asks for whole nodes."""
        slots: int = self.asks.get("slots", 0)
        return slots

    @property
    def shared(self) -> bool:
        """Whether other jobs may use further slots of this job's nodes."""
        shared: bool = self.asks.get("shared", False)
        return shared


class Placement(NamedTuple):
    """The nodes, or slots of nodes, that a job holds, and ``role``, which the allocator stores for its own later use.

    Without ``slots``, the job holds whole nodes and uses the first ``job.size`` of them. With ``slots``, the job uses
    the slot ``slots[i]`` of the node ``nodes[i]``, for each i.
    """

    nodes: NDArray[np.integer]
    role: Any = None
    slots: NDArray[np.integer] | None = None

    def used(self, size: int) -> NDArray[np.integer]:
        """Return the entries of ``nodes`` that a job of this size uses; a node appears once per slot."""
        return self.nodes[:size] if self.slots is None else self.nodes


class Occupancy:
    """The state of a cluster: the nodes that a set of jobs holds.

    Equal sets of jobs give equal occupancies, whatever the order of their arrivals.

    ``busy`` counts the jobs that hold each node, and one more if the node is closed. It also exceeds 1 in a plan of
    future starts if several jobs are to hold a node one after another.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.free = cluster.num_nodes
        self.busy = np.zeros(cluster.num_nodes, dtype=np.int32)
        self._leaf_free: NDArray[np.int64] | None = None  # counted when an allocator asks for it
        self.closed = np.zeros(cluster.num_nodes, dtype=bool)
        self.any_closed = False
        self.running: dict[int, tuple[Job, Placement]] = {}

    @property
    def leaf_free(self) -> NDArray[np.int64]:
        """Number of free nodes of each leaf."""
        if self._leaf_free is None:
            self._leaf_free = np.add.reduceat(self._is_free(), self.cluster.leaf_start[:-1], dtype=np.int64)
        return self._leaf_free

    @property
    def pod_free(self) -> NDArray[np.int64]:
        """Number of free nodes of each pod."""
        return np.add.reduceat(self.leaf_free, self.cluster.pod_start[:-1])

    def _is_free(self) -> NDArray[np.bool_]:
        free: NDArray[np.bool_] = self.busy == 0
        return free

    def start(self, job: Job, placement: Placement) -> None:
        """Record that a job takes its nodes."""
        if job.number in self.running:
            raise AllocationError(f"expecting a job that does not run, got job {job.number}")
        self.running[job.number] = job, placement
        self._change(job, placement, 1)

    def end(self, index: int) -> None:
        """Record that the job of this number gives its nodes back."""
        job, placement = self.running.pop(index)
        self._change(job, placement, -1)

    def has_free(self, placement: Placement) -> bool:
        """Return whether all nodes, or slots, of a placement are free."""
        return not self.busy[placement.nodes].any()

    def close(self, nodes: ArrayLike) -> None:
        """Close nodes, so that no job starts on them until they are reopened; running jobs continue."""
        self._set_closed(np.asarray(nodes, dtype=np.int64), 1)

    def reopen(self, nodes: ArrayLike) -> None:
        """Reopen closed nodes, so that jobs may start on them again."""
        self._set_closed(np.asarray(nodes, dtype=np.int64), -1)

    def _set_closed(self, nodes: NDArray[np.integer], sign: int) -> None:
        changed = np.unique(nodes)
        changed = changed[self.closed[changed] != (sign > 0)]
        self.closed[changed] = sign > 0
        self.any_closed = bool(self.closed.any())
        self._count(self._hold(Placement(changed), sign), sign)

    def conflicts(self) -> Conflicts:
        """Return the links and nodes that running jobs share; nodes that a job holds but does not use do not count."""
        nodes = {index: placement.used(job.size) for index, (job, placement) in self.running.items()}
        slots = {index: held.slots for index, (_, held) in self.running.items() if held.slots is not None}
        return check(nodes, self.cluster.links, slots)

    def copy(self) -> Occupancy:
        """Return an independent copy of this state."""
        made = copy.copy(self)
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray | dict):
                setattr(made, name, value.copy())
        return made

    def preview(self) -> Occupancy:
        """Return a copy for tests of whether jobs fit; the copy may have only the numbers of free nodes.

        In the copy, no job may be started on nodes that another job holds.
        """
        return self.copy()

    def _change(self, job: Job, placement: Placement, sign: int) -> None:
        if not len(placement.nodes):  # the allocator counts nodes and does not determine which ones
            self.free -= sign * job.size
            return
        self._count(self._hold(placement, sign), sign)

    def _count(self, changed: NDArray[np.integer], sign: int) -> None:
        """Update the number of free nodes after the nodes ``changed`` became used (sign 1) or free (-1)."""
        self._leaf_free = None
        self.free -= sign * len(changed)

    def _hold(self, placement: Placement, sign: int) -> NDArray[np.integer]:
        """Add (1) or remove (-1) one job on the nodes of a placement; return the nodes that became used, or free."""
        nodes = placement.nodes
        held = self.busy[nodes] + sign
        self.busy[nodes] = held
        changed: NDArray[np.integer] = nodes[held == (1 if sign > 0 else 0)]
        return changed

    def first_free(self, leaf: int, count: int) -> NDArray[np.integer]:
        """Return the lowest free nodes of a leaf, at most ``count``."""
        first = int(self.cluster.leaf_start[leaf])
        return first + np.flatnonzero(self.busy[first : int(self.cluster.leaf_start[leaf + 1])] == 0)[:count]

    def take(self, leaves: NDArray[np.integer], count: int) -> NDArray[np.integer]:
        """Return ``count`` free nodes, leaf after leaf in the given order; fewer if the leaves have fewer."""
        parts: list[NDArray[np.integer]] = []
        for leaf in leaves.tolist():
            if count <= 0:
                break
            parts.append(self.first_free(leaf, count))
            count -= len(parts[-1])
        return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)


class Allocator:
    """The base class of policies of allocation, which choose free nodes for a job, or none if it has to wait.

    A policy declares its properties. ``by_count``: a job fits if and only if enough nodes are free. ``monotone``: a job
    that fits still fits after other jobs have ended; if this is false, a job that is promised a start is also promised
    the nodes found for it. ``heeds``: names of the workload's further columns that the found nodes depend on, besides
    the job's size and the state. ``holds_more``: a placement may have more nodes than the job needs. ``names_nodes``:
    false if the policy only counts nodes and does not determine which ones a job gets. ``node_slots``: number of slots
    that every node must have; None for any.
    """

    name = ""
    by_count = False
    monotone = True
    heeds: tuple[str, ...] = ()
    holds_more = False
    names_nodes = True
    node_slots: int | None = None

    def state(self, cluster: Cluster) -> Occupancy:
        """Return the state of the cluster without jobs."""
        return Occupancy(cluster)

    def sizes(self, workload: Workload, cluster: Cluster) -> NDArray[np.integer]:
        """Return the least number of nodes that each job can run on, shape (jobs,)."""
        return workload.nodes

    def place(self, job: Job, state: Occupancy) -> Placement | None:
        """Return nodes on which a job can start now, or None if it has to wait."""
        raise NotImplementedError

    def feasible(self, job: Job, state: Occupancy) -> bool:
        """Return whether `place` finds nodes."""
        return self.place(job, state) is not None

    def adopt(
        self, job: Job, nodes: NDArray[np.integer], cluster: Cluster, slots: NDArray[np.integer] | None = None
    ) -> Placement:
        """Return the placement of a job that runs already and was not placed by this allocator.

        :param job: the job.
        :param nodes: the nodes on which the job runs.
        :param cluster: the cluster that has these nodes.
        :param slots: slot that the job holds at each entry of ``nodes``; None if it holds whole nodes.
        """
        return Placement(nodes, slots=slots)

    def resume(self, job: Job, nodes: NDArray[np.integer], cluster: Cluster) -> Placement:
        """Return the placement of a job that this allocator placed, if only the nodes that it uses are still known.

        :param job: the job.
        :param nodes: the nodes that it uses.
        :param cluster: the cluster that has these nodes.
        """
        return self.adopt(job, nodes, cluster)

    def admits(self, placement: Placement, state: Occupancy) -> bool:
        """Return whether a job may start now on nodes that were found for it in an earlier state."""
        return state.has_free(placement)
