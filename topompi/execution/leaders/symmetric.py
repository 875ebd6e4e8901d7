"""Collectives without a root, and reductions, over leaders: one rank per host, leaf switch and so on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from mpi4py import MPI

from ..areas import Call
from ..buffers import LARGEST_COUNT, Block, Blocks, Bytes, Integers, block, is_in_place, vector, whole
from ..levels import Levels
from ..operands import extent_of
from ..program import run_all
from .rooted import check_fits
from .stages import Exchange, Layout

__all__ = ["allgather", "allgatherv", "allreduce", "barrier", "reduce"]


def reduce(levels: Levels, sendbuf: Any, recvbuf: Any, op: MPI.Op, root: int) -> None:
    """Reduce level by level: each leader reduces its cluster's (host's, leaf switch's) vectors and sends the result.

    :param levels: the sub-communicators of leaders, by level of the topology.
    :param sendbuf: this rank's vector, in the form that mpi4py's ``Reduce`` takes.
    :param recvbuf: memory for the result; used at the root only.
    :param op: the operation. The MPI library runs the call if it does not commute.
    :param root: the root, the same on all ranks.

    Messages: one native reduction per sub-communicator; bytes: one vector leaves each cluster.
    Source: Subramoni 2013, section 3, for a reduction.
    """
    received = block(recvbuf, readonly=False) if levels.rank == root else None
    own = received if received is not None and is_in_place(sendbuf) else block(sendbuf, readonly=True)
    if not op.Is_commutative() or extent_of(own.datatype) is None:
        levels.comm.Reduce(sendbuf, recvbuf, op, root)
        return
    total = _Total(own, received, levels)
    stages = levels.plan(root).stages
    run_all([(total.turn(stage.me == stage.root), (levels.parts[stage.level], op, stage.root)) for stage in stages])
    if received is not None:
        total.settle()


def allreduce(levels: Levels, sendbuf: Any, recvbuf: Any, op: MPI.Op) -> None:
    """Reduce to the leaders, innermost level first; all-reduce among the outermost leaders; broadcast inwards.

    :param levels: the sub-communicators of leaders, by level of the topology.
    :param sendbuf: this rank's vector, in the form that mpi4py's ``Allreduce`` takes.
    :param recvbuf: memory for the result.
    :param op: the operation. The MPI library runs the call if it does not commute.

    Messages: two native collectives per sub-communicator, one on the outermost; bytes: one vector crosses each cluster
    border in each direction.
    """
    received = block(recvbuf, readonly=False)
    own = received if is_in_place(sendbuf) else block(sendbuf, readonly=True)
    unlike = own.datatype != received.datatype or own.count != received.count  # the MPI library raises an error then
    if unlike or not op.Is_commutative() or extent_of(own.datatype) is None:
        levels.comm.Allreduce(sendbuf, recvbuf, op)
        return
    total = _Total(own, received, levels)
    inner = [levels.parts[level] for level in sorted(levels.parts.keys() - {1}, reverse=True)]
    calls: list[Call] = [(total.turn(part.Get_rank() == 0), (part, op, 0)) for part in inner]
    if 1 in levels.parts:
        calls.append((total.reduce_to_all, (levels.parts[1], op)))
    run_all(calls + [(part.Bcast, (received.message, 0)) for part in reversed(inner)])


class _Total:
    """The vector that a rank has reduced so far: first its own vector, later in new memory or in its receive buffer.

    :param own: this rank's vector.
    :param received: the receive buffer; None if this rank has none.
    :param levels: the sub-communicators of leaders, by level.
    """

    def __init__(self, own: Block, received: Block | None, levels: Levels) -> None:
        self._own, self._target, self._alone = own, received, levels.alone
        self._held = own is received

    def turn(self, leads: bool) -> Callable[[MPI.Intracomm, MPI.Op, int], None]:
        """The method that runs a stage on this rank: ``reduce`` if it leads, else ``send``."""
        return self.reduce if leads else self.send

    def send(self, part: MPI.Intracomm, op: MPI.Op, root: int) -> None:
        """Send the vector to the root of a sub-communicator's reduction."""
        part.Reduce(self._target.message if self._held and self._target else self._own.message, None, op, root)

    def reduce(self, part: MPI.Intracomm, op: MPI.Op, root: int) -> None:
        """Reduce the vectors of a sub-communicator's ranks to this rank, its root."""
        part.Reduce(*self._ends(), op, root)

    def reduce_to_all(self, part: MPI.Intracomm, op: MPI.Op) -> None:
        """All-reduce the vectors of a sub-communicator's ranks."""
        part.Allreduce(*self._ends(), op)

    def settle(self) -> None:
        """Copy the vector to the receive buffer, unless it is there already."""
        if not self._held:
            sent, received = self._ends()
            self._alone.Sendrecv(sent, 0, 0, received, 0, 0)

    def _ends(self) -> tuple[Any, Any]:
        if self._target is None:
            memory = np.empty(self._own.count * self._own.datatype.extent, dtype=np.uint8)
            self._target = Block(MPI.buffer.frombuffer(memory), self._own.datatype, self._own.count)
        sent = MPI.IN_PLACE if self._held else self._own.message
        self._held = True
        return sent, self._target.message


def allgather(levels: Levels, sendbuf: Any, recvbuf: Any) -> None:
    """Gather at the leaders, innermost level first; allgather among the outermost; broadcast inwards; sort by rank.

    :param levels: the sub-communicators of leaders, by level of the topology.
    :param sendbuf: this rank's block, in the form that mpi4py's ``Allgather`` takes.
    :param recvbuf: memory for the blocks of all ranks.

    Messages: two native collectives per sub-communicator, one on the outermost; bytes: each block leaves each cluster
    once and enters it once.
    """
    received = whole(recvbuf, levels.size, readonly=False)
    size = received.size // levels.size
    if received.size > LARGEST_COUNT:
        levels.comm.Allgather(sendbuf, recvbuf)
        return
    own = None if is_in_place(sendbuf) else block(sendbuf, readonly=True)
    counts = np.full(levels.size, received.count // levels.size, dtype=np.int64)
    places = Blocks(received.buffer, received.datatype, counts, received.displ + np.cumsum(counts) - counts)
    _gather_to_all(levels, own, places, size)


def allgatherv(levels: Levels, sendbuf: Any, recvbuf: Any) -> None:
    """Allgather blocks of different sizes, which all ranks know, in the same stages as ``allgather``.

    :param levels: the sub-communicators of leaders, by level of the topology.
    :param sendbuf: this rank's block, in the form that mpi4py's ``Allgatherv`` takes.
    :param recvbuf: memory for the blocks of all ranks, with their counts.
    """
    received = vector(recvbuf, levels.size, readonly=False)
    if received.sizes.sum() > LARGEST_COUNT:
        levels.comm.Allgatherv(sendbuf, recvbuf)
        return
    own = None if is_in_place(sendbuf) else block(sendbuf, readonly=True)
    _gather_to_all(levels, own, received, received.sizes)


def _gather_to_all(levels: Levels, own: Block | None, places: Blocks, sizes: int | Integers) -> None:
    plan = levels.plan(0)
    mine = places.block(levels.rank)
    check_fits(mine.size if own is None else own.size, mine.size)
    direct = plan.in_rank_order and plan.low >= 0 and places.dense and places.side_by_side
    # With blocks of one size, a gather may use positions below 0, for which the buffer then has room.
    layout = Layout(sizes, min(plan.low, 0)) if isinstance(sizes, int) else Layout(sizes[plan.order], 0)
    buffer = places.view() if direct else np.empty(int(layout.at(levels.size)), dtype=np.uint8)
    here = slice(int(layout.at(plan.position)), int(layout.at(plan.position + 1)))
    if own is not None or not direct:
        (mine if own is None else own).copy_to(buffer[here], levels.alone)
    _spread(levels, layout, buffer)
    if not direct:
        places.unpack(buffer[int(layout.at(0)) :], plan.order, levels.alone)


def _spread(levels: Levels, layout: Layout, buffer: Bytes) -> None:
    """Complete a buffer, in which each rank has put its own block, by the blocks of all other ranks.

    :param levels: the sub-communicators of leaders, by level.
    :param layout: the offsets of the blocks, in the order that a gather to rank 0 over leaders gives them.
    :param buffer: memory for the blocks of all ranks.
    """
    calls: list[Call] = []
    for stage in levels.plan(0).stages:
        part = levels.parts[stage.level]
        if stage.level > 1:
            calls.append((Exchange(stage, layout, part).gather, (buffer,)))
        else:
            begins, ends = layout.at(stage.begin), layout.at(stage.end)
            calls.append((part.Allgatherv, (MPI.IN_PLACE, [buffer, (ends - begins, begins), MPI.BYTE])))
    everything = [buffer[int(layout.at(0)) :], MPI.BYTE]
    run_all(calls + [(levels.parts[level].Bcast, (everything, 0)) for level in sorted(levels.parts.keys() - {1})])


def barrier(levels: Levels) -> None:
    """Wait for all ranks: barriers level by level outwards, so that leaders stand for their clusters, and back inwards.

    Messages: two native barriers per sub-communicator, one on the outermost.
    """
    inwards = sorted(levels.parts)
    for level in reversed(inwards):
        levels.parts[level].Barrier()
    for level in inwards:
        if level > 1:
            levels.parts[level].Barrier()
