"""What a simulation found: when each job started and ended, and on which nodes."""

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
    """Starts, ends and nodes of jobs, columns of length n in the order of the workload.

    :param workload: what ran.
    :param cluster: where.
    :param policy: the queue, the allocator and the speed, in words.
    :param start: seconds, -1 for jobs that were rejected because they fit not even the empty cluster.
    :param start_pass: the pass that started each job, counted from 0: an instant may have several.
    :param end: seconds, -1 likewise.
    :param offset: of each job's first node in ``nodes``, shape (n + 1,); all 0 where nodes were only counted.
    :param nodes: nodes held by jobs, one after the other in the order of jobs.
    :param slots: the slot of each entry of ``nodes``, -1 for all slots of a node; none if all jobs held whole nodes.
    :param lost: ascending positions of jobs that ended because a node of theirs went down.
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

    @cached_property
    def ran(self) -> NDArray[np.intp]:
        """Positions of the jobs that ran."""
        return np.flatnonzero(self.start >= 0)

    @property
    def rejected(self) -> NDArray[np.intp]:
        """Positions of the jobs that the cluster cannot run under this policy."""
        return np.flatnonzero(self.start < 0)

    @property
    def has_nodes(self) -> bool:
        """Whether it is known which nodes jobs held."""
        return len(self.nodes) > 0

    def held_by(self, job: int) -> NDArray[np.int32]:
        """The nodes that a job held, each once."""
        nodes = self.nodes[self.offset[job] : self.offset[job + 1]]
        return nodes if self.slots_of(job) is None else np.unique(nodes)

    def nodes_of(self, job: int) -> NDArray[np.int32]:
        """The nodes that a job used, each once: some policies hold more."""
        held = self.held_by(job)
        return held[: self.workload.nodes[job]] if self.slots_of(job) is None else held

    def slots_of(self, job: int) -> NDArray[np.int32] | None:
        """The slots that a job held, one for each of its entries of ``nodes``; None if it held whole nodes."""
        if self.slots is None:
            return None
        slots = self.slots[self.offset[job] : self.offset[job + 1]]
        return slots if len(slots) and slots[0] >= 0 else None

    def resources_of(self, job: int) -> NDArray[np.int64]:
        """Ascending numbers of the slots that a job held, node by node; of nodes, if all jobs held whole ones."""
        if self.slots is None:
            return np.sort(self.held_by(job)).astype(np.int64)
        at = slice(self.offset[job], self.offset[job + 1])
        return np.sort(self.cluster.slots_of(self.nodes[at], self.slots[at]))

    @property
    def num_resources(self) -> int:
        """The number of slots, or of nodes, that `resources_of` counts."""
        return self.cluster.num_nodes if self.slots is None else self.cluster.num_slots
