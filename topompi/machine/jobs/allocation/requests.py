"""Requests of jobs: their sizes, and their values in the workload's further columns that an allocator heeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..cluster import Cluster
from ..workload import Workload
from .occupancy import NOTHING, Allocator, Job

__all__ = ["Requests", "requests_of"]

Integers = NDArray[np.integer]


@dataclass(frozen=True, eq=False)
class Requests:
    """The requests of n jobs: their sizes, and their values in the workload's further columns that an allocator heeds.

    :param sizes: least number of nodes of each job, shape (n,).
    :param kinds: number of each job's kind, shape (n,); jobs have the same kind if their requests are equal. If the
        allocator heeds no further columns, the number is the job's size.
    :param asks: for each kind, a mapping from the columns that the allocator heeds to the kind's values; empty if the
        allocator heeds no further columns.
    """

    sizes: Integers
    kinds: Integers
    asks: Sequence[Mapping[str, Any]] = ()

    def of_job(self, index: int, estimate: int = 0) -> Job:
        """Return the request of one job, as allocators take it.

        :param index: position of the job in the workload.
        :param estimate: estimated run time of the job in seconds.
        """
        asks = self.asks[int(self.kinds[index])] if self.asks else NOTHING
        return Job(index, int(self.sizes[index]), estimate, asks)

    def asks_of_jobs(self) -> list[Mapping[str, Any]]:
        """Return for each job its values in the columns that the allocator heeds."""
        if not self.asks:
            return [NOTHING] * len(self.sizes)
        return [self.asks[kind] for kind in self.kinds.tolist()]


def requests_of(workload: Workload, cluster: Cluster, allocator: Allocator) -> Requests:
    """Return the requests of all jobs. Cost: a sort of each column that the allocator heeds.

    :param workload: the jobs.
    :param cluster: the cluster on which they run.
    :param allocator: the allocator, which defines sizes and heeded columns.
    """
    sizes = allocator.sizes(workload, cluster)
    if not allocator.heeds:
        return Requests(sizes, sizes)
    columns = {"slots": workload.slots, "shared": workload.shared, **workload.columns}
    heeded = [columns[word] if word in columns else workload[word] for word in allocator.heeds]
    codes = np.stack([sizes, *(np.unique(column, return_inverse=True)[1] for column in heeded)])
    _, first, kinds = np.unique(codes, axis=1, return_index=True, return_inverse=True)
    rows = zip(*(column[first].tolist() for column in heeded), strict=True)
    return Requests(sizes, kinds.reshape(-1), [dict(zip(allocator.heeds, row, strict=True)) for row in rows])
