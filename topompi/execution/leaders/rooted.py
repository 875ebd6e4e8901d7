"""Rooted collectives over leaders, run on the levels' sub-communicators by the MPI library's own collectives."""

from __future__ import annotations

from typing import Any

import numpy as np
from mpi4py import MPI

from ...schedules import RootedPlan
from ..buffers import Block, Blocks, Bytes, Integers, block, blocks, is_in_place, vector
from ..levels import Levels
from .stages import Program

__all__ = ["bcast", "check_fits", "gather", "gatherv", "scatter", "scatterv"]

# Bytes of one message that every MPI can count; where blocks of one size exceed it together, all ranks know, and
# leave the call to the MPI library.
LARGEST_COUNT = 2**31 - 1


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
    received = blocks(recvbuf, levels.size, readonly=False) if levels.rank == root else None
    own = _own_block(sendbuf, received, root)
    size = own.size if received is None else received.block(root).size
    if size * levels.size > LARGEST_COUNT:
        levels.comm.Gather(sendbuf, recvbuf, root)
        return
    plan, program = _alike(levels, root, size)
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
    """Gather blocks of any sizes over the leaders: first the sizes, then the blocks.

    Messages and bytes: those of ``gather`` twice, the first time with 8 bytes a rank, since a leader does not know
    how much the ranks behind it send.
    """
    plan = levels.plan(root)
    received = vector(recvbuf, levels.size, readonly=False) if levels.rank == root else None
    own = _own_block(sendbuf, received, root)
    sizes = _gather_sizes(levels, root, own.size)
    program = Program(plan, sizes, levels.parts)
    if received is None:
        program.gather(own, None, levels.alone)
        return
    arrived, expected = sizes[-levels.size :], received.sizes[plan.order]
    direct = _direct(received, plan) if (arrived == expected).all() else None
    already_there = direct is not None and is_in_place(sendbuf)
    buffer = program.gather(None if already_there else own, direct, levels.alone)
    check_fits(arrived, expected)
    if direct is None:
        received.of_sizes(arrived[plan.inverse]).unpack(buffer, plan.order, levels.alone)


def scatter(levels: Levels, sendbuf: Any, recvbuf: Any, root: int) -> None:
    """Scatter blocks of one size over the leaders: the mirror image of ``gather``."""
    sent = blocks(sendbuf, levels.size, readonly=True) if levels.rank == root else None
    own = _wanted_block(recvbuf, sent)
    size = own.size if own is not None and sent is None else sent.block(root).size  # type: ignore[union-attr] # one is
    if size * levels.size > LARGEST_COUNT:
        levels.comm.Scatter(sendbuf, recvbuf, root)
        return
    plan, program = _alike(levels, root, size)
    buffer = None if sent is None else _direct(sent, plan)
    if sent is not None and buffer is None:
        buffer = np.empty(program.length, dtype=np.uint8)
        _arrange(levels, plan, sent, buffer[program.origin :])
    _deliver(program, own, buffer, levels)


def scatterv(levels: Levels, sendbuf: Any, recvbuf: Any, root: int) -> None:
    """Scatter blocks of any sizes over the leaders, first the sizes; the mirror image of ``gatherv``."""
    plan = levels.plan(root)
    sent = vector(sendbuf, levels.size, readonly=True) if levels.rank == root else None
    own = _wanted_block(recvbuf, sent)
    sizes = _scatter_sizes(levels, root, None if sent is None else sent.sizes[plan.order])
    program = Program(plan, sizes, levels.parts)
    buffer = None if sent is None else _direct(sent, plan)
    if sent is not None and buffer is None:
        buffer = np.empty(program.length, dtype=np.uint8)
        sent.pack(buffer, plan.order, levels.alone)
    _deliver(program, own, buffer, levels)


def _alike(levels: Levels, root: int, size: int) -> tuple[RootedPlan, Program]:
    """The plan and its program for blocks of one size in bytes, made once."""
    made: tuple[RootedPlan, Program] = levels.kept(
        (root, size), lambda: (levels.plan(root), Program(levels.plan(root), size, levels.parts))
    )
    return made


def _own_block(sendbuf: Any, received: Blocks | None, root: int) -> Block:
    """What this rank sends in a gather; at the root it may stand in the receive buffer already."""
    if received is not None and is_in_place(sendbuf):
        return received.block(root)
    return block(sendbuf, readonly=True)


def _wanted_block(recvbuf: Any, sent: Blocks | None) -> Block | None:
    """Where this rank wants its block of a scatter; None at a root that leaves it where it is."""
    if sent is not None and is_in_place(recvbuf):
        return None
    return block(recvbuf, readonly=False)


def _deliver(program: Program, own: Block | None, buffer: Bytes | None, levels: Levels) -> None:
    """Run a scatter, and put this rank's block where it wants it."""
    if own is not None:
        check_fits(program.mine.stop - program.mine.start, own.size)
    program.scatter(own, buffer, levels.alone)


def check_fits(sent: Any, expected: Any) -> None:
    """Raise MPI's own error where more bytes are sent than are expected; numbers or arrays of them."""
    if np.any(sent > expected):
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


def _gather_sizes(levels: Levels, root: int, own: int) -> Integers:
    """Sizes in bytes of the blocks that this rank will hold, from position ``plan.low`` on."""
    _, program = _alike(levels, root, 8)
    message = block([np.array([own], dtype=np.int64), MPI.INT64_T], readonly=True)
    return program.gather(message, None, levels.alone).view(np.int64)


def _scatter_sizes(levels: Levels, root: int, sizes: Integers | None) -> Integers:
    """Sizes in bytes of the blocks that this rank will hold, from position ``plan.low`` on."""
    _, program = _alike(levels, root, 8)
    buffer = np.zeros(program.length // 8, dtype=np.int64)
    if sizes is not None:
        buffer[-len(sizes) :] = sizes
    program.scatter(None, buffer.view(np.uint8), levels.alone)
    return buffer
