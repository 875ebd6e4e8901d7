"""Allocation on clusters whose parts no links join: each job gets nodes of one part."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..cluster import Cluster
from ..workload import Workload
from .occupancy import Allocator, Job, Occupancy, Placement

__all__ = ["OnePart"]


class OnePart(Allocator):
    """An allocator that gives each job nodes of one connected part, because its processes could not reach other parts.

    The inner allocator first chooses among all nodes. If the chosen nodes lie in several parts, it chooses again in
    each part, in the order of their numbers, as if the nodes of all other parts were closed, until it finds nodes.

    :param inner: the allocator that chooses.
    :param part: number of each node's part, from 0, shape (nodes,).
    """

    # Enough nodes may be free, but in several parts. After an end of a job, the inner allocator may choose nodes of
    # several parts where it chose nodes of one part before.
    by_count = False
    monotone = False

    def __init__(self, inner: Allocator, part: NDArray[np.integer]) -> None:
        self.inner, self.part = inner, part
        self.name, self.heeds, self.holds_more = inner.name, inner.heeds, inner.holds_more
        self.others = [np.flatnonzero(part != number) for number in range(int(part.max()) + 1)]

    def state(self, cluster: Cluster) -> Occupancy:
        """Return the state of the cluster without jobs."""
        return self.inner.state(cluster)

    def sizes(self, workload: Workload, cluster: Cluster) -> NDArray[np.integer]:
        """Return the least number of nodes that each job can run on, shape (jobs,)."""
        return self.inner.sizes(workload, cluster)

    def place(self, job: Job, state: Occupancy) -> Placement | None:
        """Return nodes of one part, or None if the job has to wait. Cost: a copy of the state per part tried."""
        found = self.inner.place(job, state)
        if found is not None and self._in_one(found, job.size):
            return found
        for others in self.others:
            if job.slots or job.size <= min(state.free, len(self.part) - len(others)):
                alone = state.copy()
                alone.close(others)
                found = self.inner.place(job, alone)
                if found is not None and self._in_one(found, job.size):
                    return found
        return None

    def _in_one(self, placement: Placement, size: int) -> bool:
        parts = self.part[placement.used(size)]
        return bool((parts == parts[0]).all())

    def adopt(
        self, job: Job, nodes: NDArray[np.integer], cluster: Cluster, slots: NDArray[np.integer] | None = None
    ) -> Placement:
        """Return the placement of a job that runs already, by the inner allocator.

        :param job: the job.
        :param nodes: the nodes on which the job runs.
        :param cluster: the cluster that has these nodes.
        :param slots: slot that the job holds at each entry of ``nodes``; None if it holds whole nodes.
        """
        return self.inner.adopt(job, nodes, cluster, slots)

    def resume(self, job: Job, nodes: NDArray[np.integer], cluster: Cluster) -> Placement:
        """Return the placement of a job that this allocator placed, by the inner allocator.

        :param job: the job.
        :param nodes: the nodes that it uses.
        :param cluster: the cluster that has these nodes.
        """
        return self.inner.resume(job, nodes, cluster)

    def admits(self, placement: Placement, state: Occupancy) -> bool:
        """Return whether a job may start now on nodes that were found for it in an earlier state."""
        return self.inner.admits(placement, state)
