"""Rooted collectives over leaders (one rank per host, leaf switch and so on), by MPI calls among them."""

from __future__ import annotations

from typing import Any

import numpy as np
from mpi4py import MPI

from ...errors import TopompiError
from ...schedules import RootedPlan
from ..buffers import LARGEST_COUNT, Block, Blocks, Bytes, Integers, block, blocks, is_in_place, vector
from ..levels import Levels
from ..program import run_all
from ..specs import Form
from .stages import Program

__all__ = ["bcast", "check_fits", "gather", "gatherv", "scatter", "scatterv", "take_part"]

REFUSED = -1  # sent in place of a block's size by a rank that has an error in its own arguments


def bcast(levels: Levels, message: Any, root: int) -> None:
    """Broadcast from the root outwards through the leaders of its clusters, then inwards from each leader.

    :param levels: the sub-communicators of leaders, by level of the topology.
    :param message: the message, in the form that mpi4py's ``Bcast`` takes; sent by the root, received by the others.
    :param root: the root, the same on all ranks.

    Messages: one native broadcast per sub-communicator; bytes: one copy enters each cluster.
    Source: Subramoni 2013, section 3.1.2, with the departure described at ``schedules.Hierarchy``.
    """
    run_all([(levels.parts[one.level].Bcast, (message, one.root)) for one in reversed(levels.plan(root).stages)])


def gather(levels: Levels, sendbuf: Any, recvbuf: Any, root: int) -> None:
    """Gather blocks of one size over the leaders, and restore rank order at the root.

    :param levels: the sub-communicators of leaders, by level of the topology.
    :param sendbuf: this rank's block, in the form that mpi4py's ``Gather`` takes.
    :param recvbuf: memory for the blocks of all ranks; used at the root only.
    :param root: the root, the same on all ranks.

    Messages: one native gather per sub-communicator; bytes: each block crosses each cluster border once; the root
    copies everything once more if blocks do not arrive in rank order.
    """
    received = blocks(recvbuf, levels.size, readonly=False) if levels.rank == root else None
    own = _own_block(sendbuf, received, root)
    size = own.size if received is None else received.block(root).size
    if size * levels.size > LARGEST_COUNT:
        levels.comm.Gather(sendbuf, recvbuf, root)
        return
    plan, program = _equal_blocks(levels, root, size)
    if received is None:
        program.gather(own, None, levels.alone)
        return
    direct = _direct(received, plan)
    already_there = direct is not None and is_in_place(sendbuf)
    buffer = program.gather(None if already_there else own, direct, levels.alone)
    check_fits(own.size, size)
    if direct is None:
        _restore(levels, plan, received, buffer[program.origin :])


def gatherv(levels: Levels, sendbuf: Any, recvbuf: Any, root: int) -> None:
    """Gather blocks of different sizes over the leaders: first the sizes, then the blocks.

    :param levels: the sub-communicators of leaders, by level of the topology.
    :param sendbuf: this rank's block, in the form that mpi4py's ``Gatherv`` takes.
    :param recvbuf: memory for the blocks of all ranks, with their counts; used at the root only.
    :param root: the root, the same on all ranks.
    :raises TopompiError: at the root, if another rank has an error in its arguments; by then ``recvbuf`` has the blocks
        of all other ranks.

    Messages: twice those of ``gather``, because a leader does not know how much the ranks of its cluster send. Bytes:
    those of ``gather``, and before them 8 bytes per rank for the size of its block.
    """
    plan = levels.plan(root)
    received = vector(recvbuf, levels.size, readonly=False) if levels.rank == root else None
    own = _own_block(sendbuf, received, root)
    told = _gather_sizes(levels, root, own.size)
    sizes = np.maximum(told, 0)
    program = Program(plan, sizes, levels.parts)
    if received is None:
        program.gather(own, None, levels.alone)
        return
    arrived, expected = sizes[-levels.size :], received.sizes[plan.order]
    direct = _direct(received, plan) if (arrived == expected).all() else None
    already_there = direct is not None and is_in_place(sendbuf)
    buffer = program.gather(None if already_there else own, direct, levels.alone)
    _check_all_take_part(told[-levels.size :], plan.order)
    check_fits(arrived, expected)
    if direct is None:
        received.of_sizes(arrived[plan.inverse]).unpack(buffer, plan.order, levels.alone)


def scatter(levels: Levels, sendbuf: Any, recvbuf: Any, root: int) -> None:
    """Scatter blocks of one size over the leaders, by the messages of ``gather`` in reverse order and direction.

    :param levels: the sub-communicators of leaders, by level of the topology.
    :param sendbuf: the blocks for all ranks, in the form that mpi4py's ``Scatter`` takes; used at the root only.
    :param recvbuf: memory for this rank's block.
    :param root: the root, the same on all ranks.
    """
    sent = blocks(sendbuf, levels.size, readonly=True) if levels.rank == root else None
    own = _wanted_block(recvbuf, sent)
    size = own.size if own is not None and sent is None else sent.block(root).size  # type: ignore[union-attr] # one is
    if size * levels.size > LARGEST_COUNT:
        levels.comm.Scatter(sendbuf, recvbuf, root)
        return
    plan, program = _equal_blocks(levels, root, size)
    buffer = None if sent is None else _direct(sent, plan)
    if sent is not None and buffer is None:
        buffer = np.empty(program.length, dtype=np.uint8)
        _arrange(levels, plan, sent, buffer[program.origin :])
    _deliver(program, own, buffer, levels)


def scatterv(levels: Levels, sendbuf: Any, recvbuf: Any, root: int) -> None:
    """Scatter blocks of different sizes over the leaders: first the sizes, then the blocks.

    :param levels: the sub-communicators of leaders, by level of the topology.
    :param sendbuf: the blocks for all ranks, in the form that mpi4py's ``Scatterv`` takes; used at the root only.
    :param recvbuf: memory for this rank's block.
    :param root: the root, the same on all ranks.
    :raises TopompiError: on all other ranks, if the root has an error in its arguments.
    """
    plan = levels.plan(root)
    sent = vector(sendbuf, levels.size, readonly=True) if levels.rank == root else None
    own = _wanted_block(recvbuf, sent)
    sizes = _scatter_sizes(levels, root, None if sent is None else sent.sizes[plan.order])
    _check_all_take_part(sizes, root)
    program = Program(plan, sizes, levels.parts)
    buffer = None if sent is None else _direct(sent, plan)
    if sent is not None and buffer is None:
        buffer = np.empty(program.length, dtype=np.uint8)
        sent.pack(buffer, plan.order, levels.alone)
    _deliver(program, own, buffer, levels)


def take_part(levels: Levels, form: Form, root: int) -> None:
    """Take part in a ``gatherv`` or ``scatterv`` whose arguments are wrong on this rank, because other ranks wait.

    The sizes, which are sent before the blocks, tell the other ranks of the error. This rank forwards their blocks, but
    sends and keeps none of its own.

    :param levels: the sub-communicators of leaders, by level of the topology.
    :param form: pattern of the call, GATHER or SCATTER.
    :param root: the root, the same on all ranks.
    """
    if form is Form.GATHER:
        sizes = np.maximum(_gather_sizes(levels, root, REFUSED), 0)
        Program(levels.plan(root), sizes, levels.parts).gather(None, None, levels.alone)
        return
    sizes = _scatter_sizes(levels, root, np.full(levels.size, REFUSED) if levels.rank == root else None)
    if (sizes >= 0).all():
        Program(levels.plan(root), sizes, levels.parts).scatter(None, None, levels.alone)


def _check_all_take_part(sizes: Integers, ranks: int | Integers) -> None:
    """Raise TopompiError if the sizes show that another rank has an error in its arguments.

    :param sizes: bytes of each block; negative for a rank with an error.
    :param ranks: rank of each size; one number if all sizes come from one rank.
    """
    refused = sizes < 0
    if refused.any():
        names = ", ".join(map(str, np.unique(np.broadcast_to(ranks, sizes.shape)[refused])))
        raise TopompiError(f"expecting all ranks to take part in the call, got an error on rank {names}")


def _equal_blocks(levels: Levels, root: int, size: int) -> tuple[RootedPlan, Program]:
    """The stages of a rooted collective on this rank, and their calls for blocks of ``size`` bytes each; cached."""
    made: tuple[RootedPlan, Program] = levels.stages.made(
        (root, size), lambda: (levels.plan(root), Program(levels.plan(root), size, levels.parts))
    )
    return made


def _own_block(sendbuf: Any, received: Blocks | None, root: int) -> Block:
    """The block of this rank to send in a gather; at the root of an in-place call it is in the receive buffer."""
    if received is not None and is_in_place(sendbuf):
        return received.block(root)
    return block(sendbuf, readonly=True)


def _wanted_block(recvbuf: Any, sent: Blocks | None) -> Block | None:
    """The memory for this rank's block of a scatter; None at a root that leaves its block in the send buffer."""
    if sent is not None and is_in_place(recvbuf):
        return None
    return block(recvbuf, readonly=False)


def _deliver(program: Program, own: Block | None, buffer: Bytes | None, levels: Levels) -> None:
    """Run a scatter, and put this rank's block into its receive buffer."""
    if own is not None:
        check_fits(program.mine.stop - program.mine.start, own.size)
    program.scatter(own, buffer, levels.alone)


def check_fits(sent: Any, expected: Any) -> None:
    """Raise MPI's truncation error if more bytes are sent than expected.

    :param sent: bytes sent; a number, or an array of the messages' bytes.
    :param expected: bytes expected; a number, or an array of the same shape.
    """
    if np.any(sent > expected):
        raise MPI.Exception(MPI.ERR_TRUNCATE)


def _direct(user: Blocks, plan: RootedPlan) -> Bytes | None:
    """The user's buffer, if the stages can use it directly; None if blocks must be copied.

    They can if its blocks lie side by side without gaps, and the stages have the blocks in rank order, too.
    """
    if plan.in_rank_order and plan.low >= 0 and user.dense and user.side_by_side:
        return user.view()
    return None


def _restore(levels: Levels, plan: RootedPlan, user: Blocks, packed: Bytes) -> None:
    """Copy blocks of one size from a buffer in which they lie as they arrived to rank order in the user's buffer."""
    if user.dense:
        _permute(packed, plan.inverse, user.view())
    else:
        user.unpack(packed, plan.order, levels.alone)


def _arrange(levels: Levels, plan: RootedPlan, user: Blocks, packed: Bytes) -> None:
    """Copy blocks of one size from rank order in the user's buffer to a buffer in which they lie as they are sent."""
    if user.dense:
        _permute(user.view(), plan.order, packed)
    else:
        user.pack(packed, plan.order, levels.alone)


def _permute(source: Bytes, order: Integers, target: Bytes) -> None:
    """Set target[i] = source[order[i]] for blocks of equal size, copied in the widest words that divide a block."""
    size = len(target) // len(order)
    if not size:
        return
    word = next(width for width in (8, 4, 2, 1) if size % width == 0)
    kind = np.dtype(f"u{word}")
    rows = (len(order), size // word)
    # With mode="clip", take() writes to its output without a temporary buffer; no index of a permutation is clipped.
    np.take(source.view(kind).reshape(rows), order, axis=0, out=target.view(kind).reshape(rows), mode="clip")


def _gather_sizes(levels: Levels, root: int, own: int) -> Integers:
    """Gather the sizes in bytes of the blocks that this rank will hold.

    :param levels: the sub-communicators of leaders, by level.
    :param root: the root, the same on all ranks.
    :param own: size of this rank's own block in bytes.
    :returns: the sizes, in the order in which the blocks will lie in this rank's buffer, shape (blocks,).
    """
    _, program = _equal_blocks(levels, root, 8)
    message = block([np.array([own], dtype=np.int64), MPI.INT64_T], readonly=True)
    return program.gather(message, None, levels.alone).view(np.int64)


def _scatter_sizes(levels: Levels, root: int, sizes: Integers | None) -> Integers:
    """Scatter the sizes in bytes of the blocks that this rank will hold.

    :param levels: the sub-communicators of leaders, by level.
    :param root: the root, the same on all ranks.
    :param sizes: on the root, the sizes of all blocks in the order of sending; None on the other ranks.
    :returns: the sizes, in the order in which the blocks will lie in this rank's buffer, shape (blocks,).
    """
    _, program = _equal_blocks(levels, root, 8)
    buffer = np.zeros(program.length // 8, dtype=np.int64)
    if sizes is not None:
        buffer[-len(sizes) :] = sizes
    program.scatter(None, buffer.view(np.uint8), levels.alone)
    return buffer
