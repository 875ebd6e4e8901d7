"""The stages of a rooted collective over leaders on one rank: calls of the MPI library on parts of one buffer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from mpi4py import MPI

from ...schedules import RootedPlan, Stage
from ..buffers import Block, Bytes, Integers
from ..program import run_all

__all__ = ["Program"]


class Layout:
    """The offset of each block in this rank's buffer.

    A collective over leaders lines up the blocks of all ranks so that each leader's blocks are consecutive. The
    position of a block is its number in this line; a rank's buffer has some consecutive positions.

    :param sizes: bytes of every block, if it is a number; else bytes of each block from position ``low`` on, shape
        (blocks,).
    :param low: position of the first block in the buffer.
    """

    def __init__(self, sizes: int | Integers, low: int) -> None:
        self.low = low
        self.is_uniform = isinstance(sizes, int)
        self._sizes = sizes
        self._bounds = None if isinstance(sizes, int) else np.concatenate(([0], np.cumsum(sizes)))

    def at(self, position: Any) -> Any:
        """Offset in bytes of the block at a position, or of the blocks at an array of positions."""
        if self._bounds is None:
            return (position - self.low) * self._sizes
        return self._bounds[position - self.low]


class Exchange:
    """One rank's call in one stage: a gather or scatter on one sub-communicator, and the parts of its buffer to use.

    :param stage: the stage: its level, root and blocks.
    :param layout: the offsets of the blocks in the buffer.
    :param part: the sub-communicator of the stage's level.
    """

    __slots__ = ("_at_root", "_bytes", "_each", "_is_uniform", "_part", "_root", "_spans")

    def __init__(self, stage: Stage, layout: Layout, part: MPI.Intracomm) -> None:
        self._part, self._root = part, stage.root
        self._at_root = stage.me == stage.root
        self._is_uniform = layout.is_uniform and stage.equal > 0
        if not self._at_root:
            begin, end = int(layout.at(stage.begin[stage.me])), int(layout.at(stage.end[stage.me]))
            self._bytes, self._each = slice(begin, end), end - begin
        elif self._is_uniform:
            self._each = int(layout.at(layout.low + stage.equal))
            begin = int(layout.at(stage.first))
            self._bytes = slice(begin, begin + self._each * len(stage.begin))
        else:
            begins, ends = layout.at(stage.begin), layout.at(stage.end)
            self._spans = (ends - begins, begins)

    def gather(self, buffer: Bytes) -> None:
        """Send this rank's blocks, or, if it is the stage's root, receive the other ranks' blocks beside its own."""
        part, root = self._part, self._root
        if not self._at_root:
            message = [buffer[self._bytes], self._each, MPI.BYTE]
            if self._is_uniform:
                part.Gather(message, None, root)
            else:
                part.Gatherv(message, None, root)
        elif self._is_uniform:
            part.Gather(MPI.IN_PLACE, [buffer[self._bytes], self._each, MPI.BYTE], root)
        else:
            part.Gatherv(MPI.IN_PLACE, [buffer, self._spans, MPI.BYTE], root)

    def scatter(self, buffer: Bytes) -> None:
        """Receive this rank's blocks, or, if it is the stage's root, send the other ranks their blocks."""
        part, root = self._part, self._root
        if not self._at_root:
            message = [buffer[self._bytes], self._each, MPI.BYTE]
            if self._is_uniform:
                part.Scatter(None, message, root)
            else:
                part.Scatterv(None, message, root)
        elif self._is_uniform:
            part.Scatter([buffer[self._bytes], self._each, MPI.BYTE], MPI.IN_PLACE, root)
        else:
            part.Scatterv([buffer, self._spans, MPI.BYTE], MPI.IN_PLACE, root)


class Program:
    """The calls of one rank in a collective over leaders with given block sizes, computed once for many runs.

    :param plan: this rank's plan, namely its stages.
    :param sizes: bytes of every block, if it is a number; else bytes of each block that this rank holds, from position
        ``plan.low`` on, shape (blocks,).
    :param parts: sub-communicators of this rank, by level.
    :ivar length: bytes of this rank's buffer.
    :ivar origin: offset in bytes of the block at position 0, if this rank holds it; else 0.
    :ivar mine: part of the buffer for this rank's own block, as a Python slice.
    """

    def __init__(self, plan: RootedPlan, sizes: int | Integers, parts: Mapping[int, MPI.Intracomm]) -> None:
        layout = Layout(sizes, plan.low)
        self._single = plan.high - plan.low == 1
        self._exchanges = [Exchange(stage, layout, parts[stage.level]) for stage in plan.stages]
        self.length = int(layout.at(plan.high))
        self.origin = int(layout.at(0)) if plan.low <= 0 else 0
        self.mine = slice(int(layout.at(plan.position)), int(layout.at(plan.position + 1)))

    def gather(self, own: Block | None, buffer: Bytes | None, alone: MPI.Intracomm) -> Bytes:
        """Run the stages of a gather.

        :param own: this rank's block; None if it is in the buffer already.
        :param buffer: memory for the blocks, ``self.length`` bytes; if it is None, the method allocates it.
        :param alone: a communicator of this rank only; a message on it copies a block with gaps.
        :returns: the buffer, filled with the blocks that this rank holds.
        """
        if buffer is None and self._single and own is not None and own.dense:
            buffer = own.view()
        else:
            if buffer is None:
                buffer = np.zeros(self.length, dtype=np.uint8)
            if own is not None:
                own.copy_to(buffer[self.mine], alone)
        run_all([(exchange.gather, (buffer,)) for exchange in self._exchanges])
        return buffer

    def scatter(self, own: Block | None, buffer: Bytes | None, alone: MPI.Intracomm) -> None:
        """Run the stages of a scatter.

        :param own: memory for this rank's block; if it is None, the block stays in the buffer.
        :param buffer: blocks to send on the root, memory for received blocks on other ranks, ``self.length`` bytes; if
            it is None, the method allocates the memory.
        :param alone: a communicator of this rank only; a message on it copies a block with gaps.
        """
        if buffer is None and self._single and own is not None and own.dense:
            buffer, own = own.view(), None
        elif buffer is None:
            buffer = np.empty(self.length, dtype=np.uint8)
        run_all([(exchange.scatter, (buffer,)) for exchange in reversed(self._exchanges)])
        if own is not None:
            own.copy_from(buffer[self.mine], alone)
