"""Exchanges of uneven blocks by carriers inside hosts: one message for each pair of hosts, sizes ahead of blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from mpi4py import MPI

from ...errors import TopompiError
from ..areas import Call
from ..buffers import LARGEST_COUNT, Blocks, Bytes, DeviceMemoryError, Integers, is_in_place, vector
from ..contexts import Channel
from ..program import run_all
from .parcels import Parcel, Parcels, Route
from .rooted import check_fits

__all__ = ["alltoallv", "take_part_by_carriers"]

WORD = 8  # bytes of a size


def alltoallv(route: Route, channel: Channel, alone: MPI.Intracomm, sendbuf: Any, recvbuf: Any) -> None:
    """Exchange blocks of any sizes: ranks hand them to carriers, which exchange between hosts and hand them out.

    Sizes go ahead of the blocks, because a carrier knows those of neither end. A rank whose messages cannot be read
    takes its part all the same, and then raises.

    :param route: of this rank.
    :param channel: for the messages.
    :param alone: a communicator of this rank only, which copies blocks with gaps.
    :param sendbuf: the blocks for all ranks, as mpi4py's ``Alltoallv`` takes them.
    :param recvbuf: room for the blocks of all ranks.
    :raises TopompiError: if a rank refuses the call from which this one expects data; it then has that of the others.
    Messages: n (n - 1) between n hosts, and inside a host of m ranks m (m - 1) twice, in three stages. Bytes: each
    block between hosts once, up to twice more inside one, and with each block 8 bytes for its size. Source: the
    three-step exchange of Bienz, Gropp and Olson 2019, as in ``schedules.alltoall.aggregation``, for counts that two
    ranks know.
    """
    try:
        received = vector(recvbuf, len(route.order), readonly=False)
        sent = received if is_in_place(sendbuf) else vector(sendbuf, len(route.order), readonly=True)
        expected, own = received.sizes, _packed(sent, route.order, alone)
    except DeviceMemoryError:  # on all ranks, which leave the call to the MPI library
        raise
    except Exception:  # others wait for this rank, and do not know of it
        take_part_by_carriers(route, channel)
        raise
    came = _Exchange(route, channel).run(own)
    told = np.empty_like(came.sizes)
    told[route.arrival] = came.sizes
    check_fits(told, expected)
    received.of_sizes(np.maximum(told, 0)).unpack(came.data, route.arrival, alone)
    refused = np.flatnonzero((told < 0) & (expected > 0)).tolist()
    if refused:
        names = ", ".join(map(str, refused))
        raise TopompiError(f"expecting all ranks to take part in the call, got an error on rank {names}")


def take_part_by_carriers(route: Route, channel: Channel) -> None:
    """Take a rank's part in a call of ``alltoallv`` that it refuses: it carries, and sends and keeps nothing.

    :param route: of this rank.
    :param channel: for the messages.
    """
    _Exchange(route, channel).run(Parcel.refused(len(route.order)))


def _packed(sent: Blocks, order: Integers, alone: MPI.Intracomm) -> Parcel:
    if (sent.counts < 0).any():
        raise MPI.Exception(MPI.ERR_COUNT)
    data = np.empty(int(sent.sizes.sum()), dtype=np.uint8)
    sent.pack(data, order, alone)
    return Parcel(sent.sizes[order], data)


class _Exchange:
    """One run of the three stages. What a stage does not receive because a call failed counts as refused."""

    def __init__(self, route: Route, channel: Channel) -> None:
        self._route, (self._comm, self._tag) = route, channel
        self._requests: list[MPI.Request] = []
        self._held: list[Bytes] = []  # what is under way
        self._came: dict[int, Parcel] = {}
        self._direct = Parcel.refused(0)

    def run(self, own: Parcel) -> Parcel:
        """The blocks that arrive, in the order of ``Route.arrival``."""
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
        """What a stage received."""
        came, self._came = self._came, {}
        return {peer: came[peer] if peer in came else Parcel.refused(number) for peer, number in expected.items()}

    def _send(self, made: Callable[[Parcels], Parcels], expected: dict[int, int]) -> None:
        """Post what a stage sends, made of what the stage before received."""
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
        finally:  # a signal's handler may have raised; what is there would meet the next call
            self._came[peer] = self._received(peer, blocks, status.Get_count(MPI.BYTE))

    def _received(self, peer: int, blocks: int, length: int) -> Parcel:
        """A parcel: its sizes say how many bytes follow the first message of it."""
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
