"""Rooted collectives over leaders, run on the levels' sub-communicators by the MPI library's own collectives."""

from __future__ import annotations

from typing import Any

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from schedules import RootedPlan, Stage

from .buffers import Blocks, Bytes, Integers, blocks, is_in_place, vector
from .levels import Levels

__all__ = ["bcast", "gather", "gatherv", "scatter", "scatterv"]

# Bytes of one message that every MPI can count; where blocks of one size exceed it together, all ranks know, and
# leave the call to the MPI library.
LARGEST_COUNT = 2**31 - 1


class Layout:
    """Where each block of a plan lies in this rank's buffer.

    :param sizes: bytes of every block (all alike), or of the blocks from position ``low`` on.
    :param low: position at which the buffer begins.
    """

    def __init__(self, sizes: int | Integers, low: int) -> None:
        self.low = low
        self._size = sizes if isinstance(sizes, int) else 0
        self._bounds = None if isinstance(sizes, int) else np.concatenate(([0], np.cumsum(sizes)))

    @property
    def alike(self) -> bool:
        """Whether all blocks have the same size."""
        return self._bounds is None

    def at(self, position: Any) -> Any:
        """First byte of the block at a position (a number or an array of them)."""
        if self._bounds is None:
            return (position - self.low) * self._size
        return self._bounds[position - self.low]

    def part(self, buffer: Bytes, first: int, last: int) -> Bytes:
        """The bytes of the blocks ``first:last``."""
        return buffer[self.at(first) : self.at(last)]


def bcast(levels: Levels, message: Any, root: int) -> None:
    """Broadcast along the root's clusters outwards, then from each leader inwards.

    Messages: those of one native broadcast a sub-communicator; bytes: one copy enters each cluster.
    Source: Subramoni 2013, section 3.1.2, with the departure described at ``schedules.Hierarchy``.
    """
    for stage in reversed(levels.plan(root).stages):
        levels.parts[stage.level].Bcast(message, stage.root)


def gather(levels: Levels, sendbuf: Any, recvbuf: Any, root: int) -> None:
    """Gather blocks of one size over the leaders, and restore rank order at the root.

    Messages: those of one native gather a sub-communicator; bytes: each block crosses each cluster border once; the
    root copies everything once more where the order of arrival is not the order of ranks.
    """
    plan = levels.plan(root)
    received = None
    if levels.rank == root:
        received = blocks(recvbuf, levels.size, readonly=False)
    own = _own_block(sendbuf, received, root)
    size = int(own.sizes[0] if received is None else received.sizes[0])
    if size * levels.size > LARGEST_COUNT:
        levels.comm.Gather(sendbuf, recvbuf, root)
        return
    direct = None if received is None else _direct(received, plan)
    buffer = _gather_blocks(levels, plan, own, Layout(size, plan.low), direct)
    if received is not None:
        _check_fits(own.sizes, received.sizes[:1])
        if direct is None:
            _restore(levels, plan, received, buffer[(0 - plan.low) * size :])


def gatherv(levels: Levels, sendbuf: Any, recvbuf: Any, root: int) -> None:
    """Gather blocks of any sizes over the leaders: first the sizes, then the blocks.

    Messages and bytes: those of ``gather`` twice, the first time with 8 bytes a rank, since a leader does not know
    how much the ranks behind it send.
    """
    plan = levels.plan(root)
    received = None
    if levels.rank == root:
        received = vector(recvbuf, levels.size, readonly=False)
    own = _own_block(sendbuf, received, root)
    sizes = _gather_sizes(levels, plan, int(own.sizes[0]))
    direct = None
    if received is not None and (sizes[-levels.size :] == received.sizes[plan.order]).all():
        direct = _direct(received, plan)
    buffer = _gather_blocks(levels, plan, own, Layout(sizes, plan.low), direct)
    if received is not None:
        arrived = sizes[-levels.size :]
        _check_fits(arrived, received.sizes[plan.order])
        if direct is None:
            received.of_sizes(arrived[plan.inverse]).unpack(buffer, plan.order, levels.alone)


def scatter(levels: Levels, sendbuf: Any, recvbuf: Any, root: int) -> None:
    """Scatter blocks of one size over the leaders: the mirror image of ``gather``."""
    plan = levels.plan(root)
    sent = None
    if levels.rank == root:
        sent = blocks(sendbuf, levels.size, readonly=True)
    own = None if levels.rank == root and is_in_place(recvbuf) else blocks(recvbuf, readonly=False)
    size = int((own if sent is None else sent).sizes[0])  # type: ignore[union-attr] # own is None at the root only
    if size * levels.size > LARGEST_COUNT:
        levels.comm.Scatter(sendbuf, recvbuf, root)
        return
    buffer = None if sent is None else _direct(sent, plan)
    if sent is not None and buffer is None:
        buffer = np.empty((levels.size - plan.low) * size, dtype=np.uint8)
        _arrange(levels, plan, sent, buffer[(0 - plan.low) * size :])
    _scatter_blocks(levels, plan, own, Layout(size, plan.low), buffer)


def scatterv(levels: Levels, sendbuf: Any, recvbuf: Any, root: int) -> None:
    """Scatter blocks of any sizes over the leaders, first the sizes; the mirror image of ``gatherv``."""
    plan = levels.plan(root)
    sent = None
    if levels.rank == root:
        sent = vector(sendbuf, levels.size, readonly=True)
    own = None if levels.rank == root and is_in_place(recvbuf) else blocks(recvbuf, readonly=False)
    sizes = _scatter_sizes(levels, plan, None if sent is None else sent.sizes[plan.order])
    buffer = None if sent is None else _direct(sent, plan)
    if sent is not None and buffer is None:
        buffer = np.empty(int(sent.sizes.sum()), dtype=np.uint8)
        sent.pack(buffer, plan.order, levels.alone)
    _scatter_blocks(levels, plan, own, Layout(sizes, plan.low), buffer)


def _own_block(sendbuf: Any, received: Blocks | None, root: int) -> Blocks:
    """What this rank sends in a gather; at the root it may stand in the receive buffer already."""
    if received is not None and is_in_place(sendbuf):
        return received.block(root)
    return blocks(sendbuf, readonly=True)


def _check_fits(sent: Integers, expected: Integers) -> None:
    if (sent > expected).any():
        raise MPI.Exception(MPI.ERR_TRUNCATE)


def _direct(user: Blocks, plan: RootedPlan) -> Bytes | None:
    """The user's buffer, if the blocks can be moved to or from it as they stand there; else None."""
    if plan.in_rank_order and plan.low >= 0 and user.dense and user.side_by_side:
        return user.view()
    return None


def _restore(levels: Levels, plan: RootedPlan, user: Blocks, packed: Bytes) -> None:
    """Copy blocks of one size, as they arrived, to their places in rank order."""
    if user.dense:
        _permute(packed, plan.inverse, user.view())
    else:
        user.unpack(packed, plan.order, levels.alone)


def _arrange(levels: Levels, plan: RootedPlan, user: Blocks, packed: Bytes) -> None:
    """Copy blocks of one size, in rank order at the user's, to the order in which they leave."""
    if user.dense:
        _permute(user.view(), plan.order, packed)
    else:
        user.pack(packed, plan.order, levels.alone)


def _permute(source: Bytes, order: Integers, target: Bytes) -> None:
    """target[i] = source[order[i]] in blocks of equal size, by the widest machine word that divides a block."""
    size = len(target) // len(order)
    if not size:
        return
    word = next(width for width in (8, 4, 2, 1) if size % width == 0)
    kind = np.dtype(f"u{word}")
    rows = (len(order), size // word)
    # mode="clip" lets take() write to its output without a buffer between; the indices are a permutation anyway.
    np.take(source.view(kind).reshape(rows), order, axis=0, out=target.view(kind).reshape(rows), mode="clip")


def _gather_sizes(levels: Levels, plan: RootedPlan, own: int) -> Integers:
    """Sizes in bytes of the blocks that this rank will hold, from position ``plan.low`` on."""
    block = np.array([own], dtype=np.int64)
    message = blocks([block, MPI.INT64_T], readonly=True)
    buffer = _gather_blocks(levels, plan, message, Layout(8, plan.low), None)
    return buffer.view(np.int64)


def _scatter_sizes(levels: Levels, plan: RootedPlan, sizes: Integers | None) -> Integers:
    """Sizes in bytes of the blocks that this rank will hold, from position ``plan.low`` on."""
    buffer = np.zeros((plan.high - plan.low) * 8, dtype=np.uint8)
    if sizes is not None:
        buffer[-8 * len(sizes) :] = np.frombuffer(np.ascontiguousarray(sizes), dtype=np.uint8)
    _run_scatter(levels, plan, Layout(8, plan.low), buffer)
    return buffer.view(np.int64)


def _gather_blocks(levels: Levels, plan: RootedPlan, own: Blocks, layout: Layout, direct: Bytes | None) -> Bytes:
    """Run the stages of a gather; returns the buffer of this rank, whose first block is that at ``plan.low``."""
    single = plan.high - plan.low == 1
    if direct is None and single and own.dense:
        buffer = own.view()
    else:
        buffer = np.zeros(layout.at(plan.high), dtype=np.uint8) if direct is None else direct
        mine = layout.part(buffer, plan.position, plan.position + 1)
        _copy_out(levels, own, mine)
    for stage in plan.stages:
        part = levels.parts[stage.level]
        if stage.me != stage.root:
            sent = layout.part(buffer, int(stage.begin[stage.me]), int(stage.end[stage.me]))
            message = _message(sent, len(sent))
            if _without_counts(stage, layout):
                part.Gather(message, None, stage.root)
            else:
                part.Gatherv(message, None, stage.root)
        elif _without_counts(stage, layout):
            part.Gather(MPI.IN_PLACE, _equal_message(stage, layout, buffer), stage.root)
        else:
            part.Gatherv(MPI.IN_PLACE, _counted_message(stage, layout, buffer), stage.root)
    return buffer


def _scatter_blocks(levels: Levels, plan: RootedPlan, own: Blocks | None, layout: Layout, buffer: Bytes | None) -> None:
    """Run the stages of a scatter from the root's ``buffer``, and put this rank's block where it wants it."""
    if buffer is None and own is not None and own.dense and plan.high - plan.low == 1:
        _run_scatter(levels, plan, layout, own.view())
        return
    if buffer is None:
        buffer = np.empty(layout.at(plan.high), dtype=np.uint8)
    _run_scatter(levels, plan, layout, buffer)
    if own is not None:
        _copy_in(levels, layout.part(buffer, plan.position, plan.position + 1), own)


def _run_scatter(levels: Levels, plan: RootedPlan, layout: Layout, buffer: Bytes) -> None:
    for stage in reversed(plan.stages):
        part = levels.parts[stage.level]
        if stage.me != stage.root:
            received = layout.part(buffer, int(stage.begin[stage.me]), int(stage.end[stage.me]))
            message = _message(received, len(received))
            if _without_counts(stage, layout):
                part.Scatter(None, message, stage.root)
            else:
                part.Scatterv(None, message, stage.root)
        elif _without_counts(stage, layout):
            part.Scatter(_equal_message(stage, layout, buffer), MPI.IN_PLACE, stage.root)
        else:
            part.Scatterv(_counted_message(stage, layout, buffer), MPI.IN_PLACE, stage.root)


def _without_counts(stage: Stage, layout: Layout) -> bool:
    return stage.equal > 0 and layout.alike


def _message(data: Bytes, count: int) -> list[Any]:
    return [data, count, MPI.BYTE]


def _equal_message(stage: Stage, layout: Layout, buffer: Bytes) -> list[Any]:
    start = layout.at(stage.first)
    each = layout.at(layout.low + stage.equal)
    return _message(buffer[start : start + each * len(stage.begin)], each)


def _counted_message(stage: Stage, layout: Layout, buffer: Bytes) -> list[Any]:
    begin, end = layout.at(stage.begin), layout.at(stage.end)
    return [buffer, (end - begin, begin), MPI.BYTE]


def _copy_out(levels: Levels, own: Blocks, target: NDArray[np.uint8]) -> None:
    """Copy a user's block to its place in a buffer; nothing if it is there already."""
    if not own.dense:
        own.pack(target, np.array([0]), levels.alone)
        return
    source = own.view()[: len(target)]
    if source.ctypes.data != target.ctypes.data:
        target[: len(source)] = source


def _copy_in(levels: Levels, source: NDArray[np.uint8], own: Blocks) -> None:
    """Copy a block from a buffer to the user's."""
    _check_fits(np.array([len(source)]), own.sizes)
    if own.dense:
        own.view()[: len(source)] = source
    else:
        own.of_sizes(np.array([len(source)])).unpack(source, np.array([0]), levels.alone)
