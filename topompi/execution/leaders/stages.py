"""The stages of a rooted plan as one rank runs them: native calls on slices of one buffer."""

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
    """Where each block of a plan lies in this rank's buffer, which begins with the block at position ``low``.

    :param sizes: bytes of every block, one number for all, or of the blocks from position ``low`` on.
    """

    def __init__(self, sizes: int | Integers, low: int) -> None:
        self.low = low
        self.is_uniform = isinstance(sizes, int)
        self._sizes = sizes
        self._bounds = None if isinstance(sizes, int) else np.concatenate(([0], np.cumsum(sizes)))

    def at(self, position: Any) -> Any:
        """First byte of the block at a position (a number or an array of them)."""
        if self._bounds is None:
            return (position - self.low) * self._sizes
        return self._bounds[position - self.low]


class Exchange:
    """One stage of one rank: its slices of the buffer, computed once."""

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
        """Send this rank's blocks, or receive those of the others between its own."""
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
        """The way back: receive this rank's blocks, or send the others theirs."""
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
    """A plan with the sizes of its blocks: the calls and slices of each run, computed once.

    :param plan: the plan of this rank.
    :param sizes: bytes of every block, or of the blocks from position ``plan.low`` on, as far as this rank holds them.
    :param parts: sub-communicator of each level.
    :ivar length: bytes of this rank's buffer.
    :ivar origin: where in it the block at position 0 begins, for a rank that holds it.
    :ivar mine: where in it this rank's own block lies.
    """

    def __init__(self, plan: RootedPlan, sizes: int | Integers, parts: Mapping[int, MPI.Intracomm]) -> None:
        layout = Layout(sizes, plan.low)
        self._single = plan.high - plan.low == 1
        self._exchanges = [Exchange(stage, layout, parts[stage.level]) for stage in plan.stages]
        self.length = int(layout.at(plan.high))
        self.origin = int(layout.at(0)) if plan.low <= 0 else 0
        self.mine = slice(int(layout.at(plan.position)), int(layout.at(plan.position + 1)))

    def gather(self, own: Block | None, buffer: Bytes | None, alone: MPI.Intracomm) -> Bytes:
        """Run the stages of a gather; returns the bytes of the buffer.

        :param own: this rank's block; None if the buffer has it.
        :param buffer: where to gather, ``length`` bytes; None for a buffer of the program's own.
        :param alone: a communicator of this rank only, which copies a block with gaps.
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

        :param own: where this rank wants its block; None to leave it in the buffer.
        :param buffer: the root's blocks, or where to receive, ``length`` bytes; None for a buffer of the program's own.
        :param alone: a communicator of this rank only, which copies a block with gaps.
        """
        if buffer is None and self._single and own is not None and own.dense:
            buffer, own = own.view(), None
        elif buffer is None:
            buffer = np.empty(self.length, dtype=np.uint8)
        run_all([(exchange.scatter, (buffer,)) for exchange in reversed(self._exchanges)])
        if own is not None:
            own.copy_from(buffer[self.mine], alone)
