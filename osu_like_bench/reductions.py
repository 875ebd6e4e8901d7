"""The reductions under test: sums of floats that hold whole numbers, so that every order of addition is exact."""

from __future__ import annotations

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from .operations import Contents, Operation
from .patterns import contribution, contribution_sum

__all__ = ["REDUCTIONS"]


class Allreduce(Operation):
    title, method = "Allreduce Latency", "Allreduce"
    dtype, datatype = np.float32, MPI.FLOAT

    def arguments(self, root: int) -> tuple[object, ...]:
        return (*super().arguments(root), MPI.SUM)

    def sent(self, root: int) -> Contents:
        return contribution(self.rank, self.ranks, self.items)[None, :]

    def expected(self, root: int) -> Contents:
        return contribution_sum(self.ranks, self.items)[None, :]


class Reduce(Allreduce):
    title, method, rooted = "Reduce Latency", "Reduce", True

    def expected(self, root: int) -> Contents:
        return super().expected(root) if self.rank == root else None


class ReduceScatter(Allreduce):
    """A reduce_scatter; the message size is that of the whole vector, as in OSU.

    The ranks' blocks may differ by one element.
    """

    title, method = "Reduce_scatter Latency", "Reduce_scatter"

    def __init__(self, rank: int, ranks: int, nbytes: int) -> None:
        super().__init__(rank, ranks, nbytes)
        self.counts = np.diff(np.arange(ranks + 1) * self.items // ranks).tolist()
        self.receive = np.empty((1, self.counts[rank]), dtype=self.dtype)

    def arguments(self, root: int) -> tuple[object, ...]:
        send, receive, op = super().arguments(root)
        return send, receive, self.counts, op

    def expected(self, root: int) -> Contents:
        start = sum(self.counts[: self.rank])
        return contribution_sum(self.ranks, self.items)[None, start : start + self.counts[self.rank]]


class ReduceScatterBlock(Allreduce):
    """A reduce_scatter_block; the message size is that of one rank's block."""

    title, method = "Reduce_scatter_block Latency", "Reduce_scatter_block"
    blocks = ("all", "one")

    def sent(self, root: int) -> Contents:
        return contribution(self.rank, self.ranks, self.ranks * self.items).reshape(self.ranks, -1)

    def expected(self, root: int) -> Contents:
        total: NDArray[np.generic] = contribution_sum(self.ranks, self.ranks * self.items).reshape(self.ranks, 1, -1)
        block: NDArray[np.generic] = total[self.rank]
        return block


class Scan(Allreduce):
    title, method = "Scan Latency", "Scan"

    def expected(self, root: int) -> Contents:
        return self.sum_before(self.rank + 1)

    def sum_before(self, rank: int) -> NDArray[np.generic]:
        """Return the sum of the contributions of all ranks below ``rank``."""
        total = np.zeros((1, self.items), dtype=np.float32)
        for lower in range(rank):
            total += contribution(lower, self.ranks, self.items)
        return total


class Exscan(Scan):
    title, method = "Exscan Latency", "Exscan"

    def expected(self, root: int) -> Contents:
        return self.sum_before(self.rank) if self.rank else None

    def arguments(self, root: int) -> tuple[object, ...]:
        return self.spec(self.send), self.spec(self.receive), MPI.SUM  # MPI ignores rank 0's receive buffer


REDUCTIONS: dict[str, type[Operation]] = {
    "reduce": Reduce,
    "allreduce": Allreduce,
    "reduce_scatter": ReduceScatter,
    "reduce_scatter_block": ReduceScatterBlock,
    "scan": Scan,
    "exscan": Exscan,
}
