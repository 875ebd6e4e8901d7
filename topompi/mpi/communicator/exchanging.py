"""A sparse exchange of arrays and objects between ranks that know to whom they send, but not who sends to them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from operator import index
from struct import Struct
from time import sleep
from typing import Any, NamedTuple, SupportsIndex

import numpy as np
from mpi4py import MPI

from ..execution.contexts import Channel
from ..execution.native import NativeIntracomm
from .kinds import handle_of
from .state import working

__all__ = ["exchange"]

# Numbers of the channels. Two exchanges in a row take different ones: a rank that has left the first sends in the
# second while others are still in the first; none can be two ahead.
HEADS, REST = (90, 91), (92, 93)
INLINE = 1 << 15  # bytes; arrays of up to this size are copied behind their description, larger ones follow it
# Bytes of the description, and number of arrays. A small array of numpy's own types is sent without pickle: the number
# is -1 minus that of its dimensions, and the description is its shape and the name of its type.
LENGTHS = Struct("qq")
# With more ranks than cores a rank that waits must leave its core to others. Open MPI's own polling does so where
# ``mpi_yield_when_idle`` is set, and a second time costs 5 %; MPICH's does not, and an exchange of 16 ranks on two
# cores took ten times as long.
YIELDING = MPI.get_vendor()[0] == "Open MPI"
ALIGNED = 16  # bytes; places of such arrays in messages are multiples of it


def exchange(
    comm: MPI.Intracomm, destinations: Iterable[int], payloads: Iterable[object]
) -> tuple[list[int], list[Any]]:
    """Send a payload to each destination; return the sources and payloads of what was sent to this rank; collective.

    Each rank knows only its own destinations. The non-blocking consensus of T. Hoefler, C. Siebert and A. Lumsdaine
    2010 (Scalable communication protocols for dynamic sparse data exchange) finds the end: a rank enters a barrier when
    all of its messages have been received, and receives until all ranks are in the barrier.

    :param comm: a communicator, of mpi4py's class or topompi's.
    :param destinations: ranks of ``comm``; a rank may occur several times, and may be the caller.
    :param payloads: an array or a picklable object for each destination.
    :returns: the sources, ascending, and the payload of each; payloads of one source are in the order of sending.
        Arrays are new and have the type and shape of those sent.
    :raises ValueError: on the rank whose destinations are out of range; the others receive nothing from it.
    :raises TypeError: on the rank whose destinations are no whole numbers; the others receive nothing from it.
    :raises Exception: the errors of pickle, on the rank whose payload cannot be pickled.

    Cost: one message per payload, two for arrays of more than 32 KiB, and one barrier.
    """
    state, plain = working(handle_of(comm)), NativeIntracomm(comm)
    state.exchanges = turn = 1 - state.exchanges
    heads, rest = (state.groups.channel(numbers[turn]) for numbers in (HEADS, REST))
    wrong: Exception | None = None
    parcels: list[_Parcel] = []
    try:
        parcels = _packed(plain.Get_size(), list(destinations), list(payloads))
    except Exception as error:  # any error, because the other ranks wait for this one in the barrier
        wrong = error
    arrived = _consensus(plain, heads, rest, parcels)
    if wrong is not None:
        raise wrong
    arrived.sort(key=lambda one: one.rank)
    return [one.rank for one in arrived], [one.payload() for one in arrived]


class _Parcel(NamedTuple):
    """A message: the rank at its other end, its description with small arrays, and large arrays that follow it."""

    rank: int
    head: bytes | bytearray
    arrays: list[Any]

    def payload(self) -> Any:
        """The payload of an arrived message."""
        described, number = LENGTHS.unpack_from(self.head)
        if number < 0:
            dtype, shape, begin = _form(bytes(self.head[: LENGTHS.size - 8 * (1 + number) + described]))
            return np.ndarray(shape, dtype, self.head, begin)
        begin = LENGTHS.size + 8 * number
        sizes = np.frombuffer(self.head, np.int64, number, LENGTHS.size).tolist()
        arrays = self.arrays
        if len(arrays) < number:
            ends = begin + described + np.cumsum([0, *sizes])
            arrays = [memoryview(self.head)[first:last] for first, last in pairwise(ends.tolist())]
        return MPI.pickle.loads_oob(memoryview(self.head)[begin : begin + described], arrays)


def _packed(size: int, destinations: Sequence[int], payloads: Sequence[object]) -> list[_Parcel]:
    """The messages of an exchange."""
    if len(destinations) != len(payloads):
        raise ValueError(f"exchange: expecting a payload for each of {len(destinations)} ranks, got {len(payloads)}")
    ranks = [_destination(one, size) for one in destinations]
    return [_parcel(rank, payload) for rank, payload in zip(ranks, payloads, strict=True)]


def _destination(rank: SupportsIndex, size: int) -> int:
    said = f"exchange: expecting destinations in range({size}), got {rank!r}"
    try:
        number = index(rank)
    except TypeError:
        raise TypeError(said) from None
    if not 0 <= number < size:
        raise ValueError(said)
    return number


def _parcel(rank: int, payload: object) -> _Parcel:
    if type(payload) is np.ndarray and 0 < payload.nbytes <= INLINE and payload.flags.c_contiguous:
        begin = _description(payload.dtype, payload.shape)
        if begin:
            return _Parcel(rank, begin + payload.tobytes(), [])
    pickled: Any = MPI.pickle.dumps_oob(payload)  # to mypy mpi4py's buffers are no buffers
    described, arrays = pickled
    sizes = np.array([len(memoryview(one).cast("B")) for one in arrays], dtype=np.int64)
    parts = [LENGTHS.pack(len(described), len(sizes)), sizes.tobytes(), described]
    if sizes.sum() <= INLINE:
        return _Parcel(rank, b"".join([*parts, *arrays]), [])
    return _Parcel(rank, b"".join(parts), arrays)


# An exchange is repeated, mostly with arrays of few forms. To remember them takes an exchange of six small arrays from
# 53 to 29 us of the processor, which matters where ranks share processors.
@lru_cache(1024)
def _description(dtype: np.dtype[np.generic], shape: tuple[int, ...]) -> bytes:
    """The bytes before those of an array that is sent without pickle; none for types that numpy's names do not tell."""
    if dtype.kind not in "biufc":
        return b""
    name = dtype.str.encode()
    begin = LENGTHS.pack(len(name), -1 - len(shape)) + np.array(shape, np.int64).tobytes() + name
    return begin + bytes(-len(begin) % ALIGNED)


@lru_cache(1024)
def _form(description: bytes) -> tuple[np.dtype[np.generic], tuple[int, ...], int]:
    """The type, the shape, and the place of the first byte of an array behind its description."""
    dimensions = -1 - LENGTHS.unpack_from(description)[1]
    end = LENGTHS.size + 8 * dimensions
    shape = np.frombuffer(description, np.int64, dimensions, LENGTHS.size).tolist()
    return np.dtype(description[end:].decode()), tuple(shape), -(-len(description) // ALIGNED) * ALIGNED


def _consensus(plain: MPI.Intracomm, heads: Channel, rest: Channel, parcels: Sequence[_Parcel]) -> list[_Parcel]:
    """Send messages, and receive until no rank has one under way; returns the messages that arrived."""
    requests = [heads.comm.Issend([one.head, MPI.BYTE], one.rank, heads.tag) for one in parcels]
    requests += [rest.comm.Isend([array, MPI.BYTE], one.rank, rest.tag) for one in parcels for array in one.arrays]
    arrived: list[_Parcel] = []
    coming: list[MPI.Request] = []
    barrier: MPI.Request | None = None
    status = MPI.Status()
    while True:
        message = heads.comm.Improbe(MPI.ANY_SOURCE, heads.tag, status)
        if message is not None:
            head = bytearray(status.Get_count(MPI.BYTE))
            message.Recv([head, MPI.BYTE])
            arrived.append(_Parcel(status.Get_source(), head, []))
            coming += _rest(arrived[-1], rest)
        elif barrier is None and MPI.Request.Testall(requests):
            barrier = plain.Ibarrier()
        elif barrier is not None and barrier.Test():
            break
        elif not YIELDING:
            sleep(0)
    MPI.Request.Waitall(coming)
    return arrived


def _rest(parcel: _Parcel, rest: Channel) -> list[MPI.Request]:
    """Receive the arrays that follow a description."""
    described, number = LENGTHS.unpack_from(parcel.head)
    if number < 0:
        return []
    sizes = np.frombuffer(parcel.head, np.int64, number, LENGTHS.size).tolist()
    if len(parcel.head) > LENGTHS.size + 8 * number + described or not sum(sizes):
        return []
    parcel.arrays.extend(bytearray(size) for size in sizes)
    return [rest.comm.Irecv([array, MPI.BYTE], parcel.rank, rest.tag) for array in parcel.arrays]
