"""A numbering of all blocks of all buffers of all ranks, and the output that MPI defines."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..schedule import INPUT, OUTPUT, SCRATCH, Schedule

if TYPE_CHECKING:
    from ..neighbourhood import Neighbourhood

__all__ = ["BUFFERS", "BlockPlaces", "ranges"]

Integers = NDArray[np.int64]
BUFFERS = ("input", "output", "scratch")
_REDUCTIONS = ("reduce", "reduce_scatter", "allreduce", "scan", "exscan")
_TO_ALL = ("bcast", "allgather", "allreduce", "scan")


class BlockPlaces:
    """The places (one per block of a buffer of a rank), numbered by buffer, then rank, then block.

    The places of the input are numbered below ``num_inputs``, in the order of all ranks' contributions; the places of
    the output follow in the order of all ranks' results.

    :param schedule: the schedule.
    :ivar blocks: number of blocks of each buffer of each rank, shape (3, p); the scratch is sized by ``reach``.
    """

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.reduces = schedule.collective in _REDUCTIONS
        self.blocks = np.stack([*_buffers(schedule), np.zeros(schedule.size, dtype=np.int64)])

    def reach(self, rows: int) -> None:
        """Extend the scratch buffer of each rank to the highest block that the first ``rows`` rows use."""
        schedule = self.schedule
        for side in ("source", "destination"):
            rank, buffer, block = (getattr(schedule, side + part)[:rows] for part in ("", "_buffer", "_block"))
            used = buffer == SCRATCH
            end = block[used].astype(np.int64) + schedule.count[:rows][used]
            np.maximum.at(self.blocks[SCRATCH], rank[used], end)

    @cached_property
    def first(self) -> Integers:
        """The place of block 0 of each buffer of each rank, shape (3, p)."""
        flat = self.blocks.ravel()
        return (np.cumsum(flat) - flat).reshape(self.blocks.shape)

    @property
    def num_inputs(self) -> int:
        """Number of places of the input."""
        return int(self.blocks[INPUT].sum())

    @property
    def outputs(self) -> range:
        """The places of the output."""
        start = self.num_inputs
        return range(start, start + int(self.blocks[OUTPUT].sum()))

    def __len__(self) -> int:
        return int(self.blocks.sum())

    def locate(self, place: int) -> tuple[int, int, int]:
        """The buffer, rank and block of a place."""
        flat = int(np.searchsorted(self.first.ravel(), place, side="right")) - 1
        return flat // self.schedule.size, flat % self.schedule.size, place - int(self.first.ravel()[flat])

    def name(self, place: int) -> str:
        """The name of a place in error messages."""
        buffer, rank, block = self.locate(place)
        return f"{BUFFERS[buffer]} block {block} of rank {rank}"

    @cached_property
    def wanted(self) -> Integers:
        """The value that MPI defines for each place of the output, shape (outputs,).

        For copies it is the place of the input with this value; for reductions it is the block whose contributions are
        combined.
        """
        schedule, share = self.schedule, self.schedule.share()
        if schedule.graph is not None:
            return self._along_edges(schedule.graph)
        each = int(self.blocks[INPUT].max()) if self.reduces else self.num_inputs
        if schedule.collective == "alltoall":
            start = (np.cumsum(share) - share.ravel()).reshape(share.shape)
            return ranges(start.T.ravel(), share.T.ravel())
        ranks = schedule.size if schedule.collective in _TO_ALL else 1
        return np.tile(np.arange(each), schedule.size - 1 if schedule.collective == "exscan" else ranks)

    def _along_edges(self, graph: Neighbourhood) -> Integers:
        """The place of the input that each place of the output of a neighbourhood collective has the value of."""
        edges, (_, begin) = graph.edges, graph.inputs()
        order = np.lexsort((edges.place, edges.destination))
        return ranges((self.first[INPUT, edges.source] + begin)[order], edges.size[order])

    @cached_property
    def combined(self) -> Integers:
        """The number of ranks (0, 1, ...) whose data each place of a reduction's output combines, shape (outputs,)."""
        size, blocks = self.schedule.size, self.schedule.blocks
        if self.schedule.collective == "scan":
            return np.repeat(np.arange(1, size + 1), blocks)
        if self.schedule.collective == "exscan":
            return np.repeat(np.arange(1, size), blocks)
        return np.full_like(self.wanted, size)


def ranges(start: Integers, length: Integers) -> Integers:
    """The ranges ``start[i], ..., start[i] + length[i] - 1`` of all i, concatenated."""
    if (length == 1).all():
        return start
    end = np.cumsum(length)
    return np.arange(end[-1] if len(end) else 0) + np.repeat(start - end + length, length)


def _buffers(schedule: Schedule) -> tuple[Integers, Integers]:
    """The number of blocks of each rank's input, and of each rank's output."""
    if schedule.graph is not None:
        return schedule.graph.inputs()[0], schedule.graph.outputs()[0]
    share, same = schedule.share(), np.full(schedule.size, schedule.blocks, dtype=np.int64)
    total = np.full(schedule.size, share.sum())
    at_root = np.arange(schedule.size) == (-1 if schedule.root is None else schedule.root)
    if schedule.collective == "alltoall":
        return share.sum(axis=1), share.sum(axis=0)
    return {
        "bcast": (same * at_root, same),
        "gather": (share, total * at_root),
        "scatter": (total * at_root, share),
        "allgather": (share, total),
        "reduce": (same, same * at_root),
        "reduce_scatter": (total, share),
        "allreduce": (same, same),
        "scan": (same, same),
        "exscan": (same, same * (np.arange(schedule.size) > 0)),
        "barrier": (0 * same, 0 * same),
    }[schedule.collective]
