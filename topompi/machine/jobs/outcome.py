"""The result of a simulation: start, end and nodes of each job."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .cluster import Cluster
from .workload import Workload

__all__ = ["Outcome"]

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Outcome:
    """Starts, ends and nodes of n jobs, as columns in the order of the workload.

    :param workload: the jobs.
    :param cluster: the cluster.
    :param policy: names of the queue, the allocator and the model of run times.
    :param start: second of each start, shape (n,); -1 for rejected jobs, which did not run.
    :param start_pass: number of the pass over the queue that started each job, from 0, shape (n,); there may be several
        passes in a second.
    :param end: second of each end, shape (n,); -1 for rejected jobs.
    :param offset: position of each job's first node in ``nodes``, shape (n + 1,); all 0 if nodes were only counted.
    :param nodes: nodes held by the jobs, job after job.
    :param slots: slot that is held at each entry of ``nodes``, -1 for all slots of the node; None if all jobs held
        whole nodes.
    :param lost: ascending positions of the jobs that ended because one of their nodes went down.
    :param unfit: ascending positions of the jobs that find no nodes even if no other job runs and all nodes are up.
    """

    workload: Workload
    cluster: Cluster
    policy: tuple[str, str, str]
    start: Integers
    start_pass: Integers
    end: Integers
    offset: Integers
    nodes: NDArray[np.int32]
    slots: NDArray[np.int32] | None = None
    lost: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    unfit: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, dtype=np.intp))

    @cached_property
    def ran(self) -> NDArray[np.intp]:
        """Positions of the jobs that ran."""
        return np.flatnonzero(self.start >= 0)

    @property
    def rejected(self) -> NDArray[np.intp]:
        """Positions of the jobs that the cluster cannot run under this policy."""
        return np.flatnonzero(self.start < 0)

    @cached_property
    def rejections(self) -> dict[str, int]:
        """Number of the rejected jobs by reason, in words; reasons without jobs are left out."""
        part, machine = self.cluster.part, self.cluster.num_nodes
        joined = machine if part is None else int(np.bincount(part).max())
        sizes, unfit = self.workload.nodes[self.rejected], np.isin(self.rejected, self.unfit)
        reasons = (
            (f"more than the machine's {machine:,} nodes", unfit & (sizes > machine)),
            (f"more than the {joined:,} nodes that links join", unfit & (joined < sizes) & (sizes <= machine)),
            (f"no nodes by {self.policy[1]}, even alone", unfit & (sizes <= joined)),
            ("too few nodes that are up", ~unfit),
        )
        return {reason: int(which.sum()) for reason, which in reasons if which.any()}

    @property
    def has_nodes(self) -> bool:
        """Whether the nodes that jobs held are known."""
        return len(self.nodes) > 0

    def held_by(self, job: int) -> NDArray[np.int32]:
        """Return the nodes that a job held, each once."""
        nodes = self.nodes[self.offset[job] : self.offset[job + 1]]
        return nodes if self.slots_of(job) is None else np.unique(nodes)

    def nodes_of(self, job: int) -> NDArray[np.int32]:
        """Return the nodes that a job used, each once; under some policies a job holds more nodes than it uses."""
        held = self.held_by(job)
        return held[: self.workload.nodes[job]] if self.slots_of(job) is None else held

    def slots_of(self, job: int) -> NDArray[np.int32] | None:
        """Return the slot that a job held at each entry of its nodes, -1 for all slots; None if it held whole nodes."""
        if self.slots is None:
            return None
        slots = self.slots[self.offset[job] : self.offset[job + 1]]
        return slots if (slots >= 0).any() else None

    def resources_of(self, job: int) -> NDArray[np.int64]:
        """Return ascending cluster-wide numbers of a job's slots, or of its nodes if all jobs held whole nodes."""
        if self.slots is None:
            return np.sort(self.held_by(job)).astype(np.int64)
        at = slice(self.offset[job], self.offset[job + 1])
        return np.sort(self.cluster.slots_of(self.nodes[at], self.slots[at]))

    @property
    def num_resources(self) -> int:
        """Number of slots of the cluster, or of nodes if `resources_of` returns nodes."""
        return self.cluster.num_nodes if self.slots is None else self.cluster.num_slots
