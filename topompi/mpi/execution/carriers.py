"""Alltoallv by carriers, ranks that send between hosts for their host: one message from each host to each other host.

Each message has the sizes of its blocks first, then the blocks.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from mpi4py import MPI

from ...errors import TopompiError
from .areas import Call
from .buffers import LARGEST_COUNT, Blocks, Bytes, Integers, is_in_place, vector
from .contexts import Channel
from .executor import Executor
from .parcels import Parcel, Parcels, Route
from .program import run_all
from .specs import CallSpec

__all__ = ["alltoallv", "carriers_of", "take_part"]

WORD = 8  # bytes of the number that has the size of a block


def carriers_of(executor: Executor, spec: CallSpec) -> tuple[Route, Channel]:
    """The route of this rank's blocks by carriers, and the channel of all messages; collective at its first use.

    :param executor: the communicator's executor.
    :param spec: the description of the call.
    """
    groups = executor.groups
    route: Route = executor.plans.made(("route",), lambda: Route(executor.network.rank_host, groups.rank))
    return route, groups.channel(spec.number)


def alltoallv(route: Route, channel: Channel, alone: MPI.Intracomm, sendbuf: object, recvbuf: object) -> None:
    """Send a block of any size from each rank to each rank, in three stages.

    Ranks first send their blocks to the carriers of their host; carriers of different hosts then exchange; at last each
    carrier sends the arrived blocks to the ranks of its host. The sizes of the blocks are sent ahead of them, because a
    carrier that is neither sender nor receiver of a block does not know its size. A rank with an error in its arguments
    forwards the other ranks' blocks before it raises the error.

    :param route: the rank to which this rank sends each block in each stage.
    :param channel: the channel (communicator and tag) of all messages.
    :param alone: a communicator of this rank only, which copies blocks with gaps.
    :param sendbuf: the blocks for all ranks, in the form that mpi4py's ``Alltoallv`` takes.
    :param recvbuf: memory for the blocks of all ranks, in the form that mpi4py's ``Alltoallv`` takes.
    :raises TopompiError: if another rank, from which this rank expects a block, has an error in its arguments; the
        blocks of all other ranks are in ``recvbuf`` then.

    Messages: n (n - 1) between n hosts; in a host of m ranks m (m - 1) in the first stage and as many in the last.
    Bytes: each block crosses from host to host once, and is sent inside a host up to twice; each time 8 bytes for its
    size go with it. Source: the three-step exchange of Bienz, Gropp and Olson 2019, as in
    ``schedules.alltoall.aggregation``, here for blocks whose size only sender and receiver know.
    """
    try:
        received = vector(recvbuf, len(route.order), readonly=False)
        sent = received if is_in_place(sendbuf) else vector(sendbuf, len(route.order), readonly=True)
        expected, own = received.sizes, _packed(sent, route.order, alone)
    except Exception:  # any error, because the other ranks do not know of it and wait for this rank
        take_part(route, channel)
        raise
    came = _Exchange(route, channel).run(own)
    told = np.empty_like(came.sizes)
    told[route.arrival] = came.sizes
    if (told > expected).any():
        raise MPI.Exception(MPI.ERR_TRUNCATE)
    received.of_sizes(np.maximum(told, 0)).unpack(came.data, route.arrival, alone)
    refused = np.flatnonzero((told < 0) & (expected > 0)).tolist()
    if refused:
        names = ", ".join(map(str, refused))
        raise TopompiError(f"expecting all ranks to take part in the call, got an error on rank {names}")


def take_part(route: Route, channel: Channel) -> None:
    """Forward the other ranks' blocks in an ``alltoallv`` whose arguments are wrong on this rank.

    The other ranks wait for this rank as a carrier. It sends no blocks of its own, and keeps none.

    :param route: the rank to which this rank sends each block in each stage.
    :param channel: the channel (communicator and tag) of all messages.
    """
    _Exchange(route, channel).run(Parcel.refused(len(route.order)))


def _packed(sent: Blocks, order: Integers, alone: MPI.Intracomm) -> Parcel:
    if (sent.counts < 0).any():
        raise MPI.Exception(MPI.ERR_COUNT)
    data = np.empty(int(sent.sizes.sum()), dtype=np.uint8)
    sent.pack(data, order, alone)
    return Parcel(sent.sizes[order], data)


class _Exchange:
    """One run of the three stages on this rank. Blocks that are missing because an MPI call failed count as refused."""

    def __init__(self, route: Route, channel: Channel) -> None:
        self._route, (self._comm, self._tag) = route, channel
        self._requests: list[MPI.Request] = []
        self._held: list[Bytes] = []  # messages that are being sent; kept, because MPI reads their memory
        self._came: dict[int, Parcel] = {}
        self._direct = Parcel.refused(0)

    def run(self, own: Parcel) -> Parcel:
        """Run the stages, and return the blocks for this rank, sorted by sending rank as in ``Route.arrival``.

        :param own: this rank's blocks for all ranks, sorted by receiving rank as in ``Route.order``.
        """
        route = self._route
        stages: list[tuple[dict[int, int], Callable[[Parcels], Parcels]]] = [
            (route.to_collect, lambda _: route.handed(own)),
            (route.to_exchange, self._sorted),
            (route.to_hand_out, route.exchanged),
        ]
        calls: list[Call] = []
        for number, (expected, made) in enumerate(stages):
            calls.append((self._send, (made, stages[number - 1][0] if number else {})))
            calls += [(self._receive, (peer, blocks)) for peer, blocks in expected.items() if peer != route.rank]
        run_all([*calls, (MPI.Request.Waitall, (self._requests,))])
        return route.arrived(self._direct, self._complete(route.to_hand_out))

    def _sorted(self, parcels: Parcels) -> Parcels:
        self._direct, sent = self._route.collected(parcels)
        return sent

    def _complete(self, expected: dict[int, int]) -> Parcels:
        """The parcels that a stage received, by sending rank; a refused parcel from each rank whose parcel is missing.

        :param expected: number of blocks in the parcel from each sending rank.
        """
        came, self._came = self._came, {}
        return {peer: came[peer] if peer in came else Parcel.refused(number) for peer, number in expected.items()}

    def _send(self, made: Callable[[Parcels], Parcels], expected: dict[int, int]) -> None:
        """Start to send the parcels of a stage.

        :param made: function that makes these parcels from the parcels that the previous stage received.
        :param expected: number of blocks in each of the previous stage's parcels, by sending rank.
        """
        for peer, parcel in made(self._complete(expected)).items():
            if peer == self._route.rank:
                self._came[peer] = parcel
            elif len(parcel):
                message = np.concatenate((parcel.sizes.view(np.uint8), parcel.data))
                self._held.append(message)
                for begin in range(0, len(message), LARGEST_COUNT):
                    part = [message[begin : begin + LARGEST_COUNT], MPI.BYTE]
                    self._requests.append(self._comm.Isend(part, peer, self._tag))

    def _receive(self, peer: int, blocks: int) -> None:
        status = MPI.Status()
        try:
            self._comm.Probe(peer, self._tag, status)
        finally:  # even if a signal handler raises: a message left here would match the next call
            self._came[peer] = self._received(peer, blocks, status.Get_count(MPI.BYTE))

    def _received(self, peer: int, blocks: int, length: int) -> Parcel:
        """Receive a parcel, which is one message, or several if it is longer than a message may be.

        The first message has the sizes of all blocks, from which the number of bytes that follow is known.

        :param peer: the sending rank.
        :param blocks: number of blocks in the parcel.
        :param length: bytes of the first message.
        """
        message = np.empty(length, dtype=np.uint8)
        self._comm.Recv([message, MPI.BYTE], peer, self._tag)
        sizes = message[: WORD * blocks].view(np.int64)
        rest = WORD * blocks + int(np.maximum(sizes, 0).sum()) - length
        data = message[WORD * blocks :]
        if rest:
            data = np.concatenate((data, np.empty(rest, dtype=np.uint8)))
            for begin in range(len(data) - rest, len(data), LARGEST_COUNT):
                self._comm.Recv([data[begin : begin + LARGEST_COUNT], MPI.BYTE], peer, self._tag)
        return Parcel(sizes, data)
