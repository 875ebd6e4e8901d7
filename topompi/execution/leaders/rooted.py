"""Rooted collectives over leaders, run on the levels' sub-communicators by the MPI library's own collectives."""

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

REFUSED = -1  # in place of the size of a block, of a rank that finds something wrong with its own call


def bcast(levels: Levels, message: Any, root: int) -> None:
    """Broadcast from the root outwards through its clusters' leaders, then from each leader inwards.

    :param levels: of the communicator, for calls of this kind.
    :param message: as mpi4py's ``Bcast`` takes it; sent by the root, received by the others.
    :param root: the root, the same on all ranks.
    Messages: those of one native broadcast a sub-communicator; bytes: one copy enters each cluster.
    Source: Subramoni 2013, section 3.1.2, with the departure described at ``schedules.Hierarchy``.
    """
    run_all([(levels.parts[one.level].Bcast, (message, one.root)) for one in reversed(levels.plan(root).stages)])


def gather(levels: Levels, sendbuf: Any, recvbuf: Any, root: int) -> None:
    """Gather blocks of one size over the leaders, and restore rank order at the root.

    :param levels: of the communicator, for calls of this kind.
    :param sendbuf: this rank's block, as mpi4py's ``Gather`` takes it.
    :param recvbuf: room for the blocks of all ranks; read at the root only.
    :param root: the root, the same on all ranks.
    Messages: those of one native gather a sub-communicator; bytes: each block crosses each cluster border once; the
    root copies everything once more where the order of arrival is not the order of ranks.
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
    """Gather blocks of any sizes over the leaders: first the sizes, then the blocks.

    :param levels: of the communicator, for calls of this kind.
    :param sendbuf: this rank's block, as mpi4py's ``Gatherv`` takes it.
    :param recvbuf: room for the blocks of all ranks, with their counts; read at the root only.
    :param root: the root, the same on all ranks.
    :raises TopompiError: at the root, if another rank refuses the call; it has then received what the others send.
    Messages and bytes: those of ``gather`` twice, the first time with 8 bytes a rank, since a leader does not know
    how much the ranks behind it send.
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
    """Scatter blocks of one size over the leaders: the mirror image of ``gather``.

    :param levels: of the communicator, for calls of this kind.
    :param sendbuf: the blocks for all ranks, as mpi4py's ``Scatter`` takes them; read at the root only.
    :param recvbuf: room for this rank's block.
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
    """Scatter blocks of any sizes over the leaders, first the sizes; the mirror image of ``gatherv``.

    :param levels: of the communicator, for calls of this kind.
    :param sendbuf: the blocks for all ranks, as mpi4py's ``Scatterv`` takes them; read at the root only.
    :param recvbuf: room for this rank's block.
    :param root: the root, the same on all ranks.
    :raises TopompiError: on all other ranks, if the root refuses the call.
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
    """Take a rank's part in a call of ``gatherv`` or ``scatterv`` that it refuses: others may wait for it, or send.

    The sizes that go ahead tell them of it. The rank sends and keeps no block of its own, and passes on the others'.

    :param levels: as for the call.
    :param form: of the call.
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
    """Raise where another rank refuses the call of which these sizes went ahead."""
    refused = sizes < 0
    if refused.any():
        names = ", ".join(map(str, np.unique(np.broadcast_to(ranks, sizes.shape)[refused])))
        raise TopompiError(f"expecting all ranks to take part in the call, got an error on rank {names}")


def _equal_blocks(levels: Levels, root: int, size: int) -> tuple[RootedPlan, Program]:
    """The plan and its program for blocks of one size in bytes, made once."""
    made: tuple[RootedPlan, Program] = levels.stages.made(
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
    _, program = _equal_blocks(levels, root, 8)
    message = block([np.array([own], dtype=np.int64), MPI.INT64_T], readonly=True)
    return program.gather(message, None, levels.alone).view(np.int64)


def _scatter_sizes(levels: Levels, root: int, sizes: Integers | None) -> Integers:
    """Sizes in bytes of the blocks that this rank will hold, from position ``plan.low`` on."""
    _, program = _equal_blocks(levels, root, 8)
    buffer = np.zeros(program.length // 8, dtype=np.int64)
    if sizes is not None:
        buffer[-len(sizes) :] = sizes
    program.scatter(None, buffer.view(np.uint8), levels.alone)
    return buffer
