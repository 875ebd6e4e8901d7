"""One-sided benchmarks between ranks 0 and 1: windows made by ``Win.Allocate``, completed by ``Flush``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, ClassVar

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from .operations import Call, Contents
from .pairs import WINDOW, PairCall
from .patterns import pattern

__all__ = ["REMOTE"]


class Remote(PairCall):
    """An operation in which rank 0 accesses the memory of rank 1.

    Rank 1 makes no MPI call for the operation: it waits in the collective freeing of the window, in which the MPI
    library makes progress on rank 1, too.
    """

    datatype = MPI.UINT8_T  # one byte per item, and unlike MPI.BYTE a type that MPI can add
    blocks = ("slots", "slots")
    changes: ClassVar[bool] = True  # True if the operation changes the memory of the target
    completed: ClassVar[str] = "MPI_Win_flush"  # MPI's name of the call that completes the operation

    def __init__(self, rank: int, ranks: int, nbytes: int) -> None:
        super().__init__(rank, ranks, nbytes)
        self.windows: list[tuple[MPI.Win, MPI.Intracomm]] = []

    @classmethod
    def rows(cls, kind: str, ranks: int) -> int:
        return cls.window or 1

    @classmethod
    def footprint(cls, ranks: int, nbytes: int) -> int:
        return 3 * nbytes * (cls.window or 1)

    @classmethod
    @contextmanager
    def seated(cls, sides: Mapping[str, MPI.Intracomm]) -> Iterator[tuple[Mapping[str, Any], list[str]]]:
        yield sides, ["Window creation: MPI_Win_allocate", f"Synchronization: {cls.completed}"]

    def opened(self, comm: MPI.Intracomm) -> MPI.Win:
        """Make a window over memory of ranks 0 and 1, and open an epoch on it. Collective over these two ranks."""
        everyone = comm.Get_group()
        two = everyone.Incl([0, 1])
        pair = MPI.Intracomm(comm).Create_group(two)
        window = MPI.Win.Allocate(self.send.nbytes, self.item(), comm=pair)
        for group in (two, everyone):
            group.Free()
        self.windows.append((window, pair))
        self.begin(window)
        return window

    def begin(self, window: MPI.Win) -> None:
        """Open the access epoch in which all one-sided calls on a window are made."""
        window.Lock_all(MPI.MODE_NOCHECK)

    def end(self, window: MPI.Win) -> None:
        """Close the access epoch of a window."""
        window.Unlock_all()

    def synchronise(self, window: MPI.Win) -> None:
        """Make stores to the window's memory visible to MPI, and data from MPI visible to loads."""
        window.Sync()

    def bind(self, comm: MPI.Intracomm, root: int) -> Call:
        window = self.opened(comm)
        reach, complete = self.reaching(window), self.completing(window)

        def call() -> None:
            reach()
            complete()

        return call if self.leads or self.ways == 2 else _nothing

    def completing(self, window: MPI.Win) -> Call:
        """Return a function that completes the calls of one operation on a window."""
        return partial(window.Flush, 1)

    def reaching(self, window: MPI.Win) -> Callable[[], None]:
        """Return a function that makes the one-sided calls of one operation on a window; the caller completes them."""
        raise NotImplementedError

    def release(self) -> None:
        for window, pair in self.windows:
            pair.Barrier()
            self.end(window)
            window.Free()
            pair.Free()
        self.windows.clear()

    def verify(self, comm: MPI.Intracomm, native: MPI.Intracomm, root: int) -> bool:
        self.prepare(root)
        call = self.bind(comm, root)
        window, pair = self.windows[-1]
        exposed: Any = window  # mpi4py does not declare that a window is a buffer
        memory = np.frombuffer(exposed, dtype=self.dtype).reshape(self.send.shape)
        memory[...] = self.contents(self.rank)
        for step in (_nothing, call, _nothing):
            self.synchronise(window)
            pair.Barrier()
            step()
        self.synchronise(window)
        right = bool(np.array_equal(memory, self.after())) and self.correct(root)
        self.release()
        return right

    def contents(self, rank: int) -> NDArray[Any]:
        """Return the data that a rank's window holds before the call; its send buffer holds the same data."""
        return pattern(np.arange(len(self.send)), rank, self.items).astype(self.dtype)

    def after(self) -> NDArray[np.generic]:
        """Return the data that this rank's window must hold after the call."""
        return self.contents(self.rank) if self.leads or not self.changes else self.result()

    def result(self) -> NDArray[np.generic]:
        """Return the data that the target's window must hold after the call, for operations that change it."""
        return self.contents(0)

    def sent(self, root: int) -> Contents:
        return self.contents(self.rank)


class Put(Remote):
    title = "MPI_Put Latency"

    def reaching(self, window: MPI.Win) -> Callable[[], None]:
        messages = [(self.spec(row), slot * self.items) for slot, row in enumerate(self.send)]
        peer = self.peer

        def reach() -> None:
            for message, place in messages:
                window.Put(message, peer, place)

        return reach


class Get(Remote):
    title, changes = "MPI_Get Latency", False

    def reaching(self, window: MPI.Win) -> Callable[[], None]:
        messages = [(self.spec(row), slot * self.items) for slot, row in enumerate(self.receive)]

        def reach() -> None:
            for message, place in messages:
                window.Get(message, 1, place)

        return reach

    def expected(self, root: int) -> Contents:
        return self.contents(1) if self.leads else None


class PutBandwidth(Put):
    title, window = "MPI_Put Bandwidth", WINDOW


class GetBandwidth(Get):
    title, window = "MPI_Get Bandwidth", WINDOW


class PutBiBandwidth(PutBandwidth):
    """The bandwidth of puts that both ranks make at the same time, between two fences."""

    title, ways, completed = "MPI_Put Bi-Directional Bandwidth", 2, "MPI_Win_fence"

    def begin(self, window: MPI.Win) -> None:
        window.Fence(MPI.MODE_NOPRECEDE)

    def end(self, window: MPI.Win) -> None:
        window.Fence(MPI.MODE_NOSUCCEED)

    def synchronise(self, window: MPI.Win) -> None:
        window.Fence()

    def completing(self, window: MPI.Win) -> Call:
        return window.Fence

    def after(self) -> NDArray[np.generic]:
        return self.contents(self.peer)


class Accumulate(Remote):
    title = "MPI_Accumulate Latency"

    def reaching(self, window: MPI.Win) -> Callable[[], None]:
        message = self.spec(self.send)

        def reach() -> None:
            window.Accumulate(message, 1, 0, MPI.SUM)

        return reach

    def contents(self, rank: int) -> NDArray[Any]:
        # Below 100, so that the sum of two numbers fits a byte: if it did not, Open MPI 5.0.11 would saturate sums of
        # 16 or more bytes, and wrap shorter ones modulo 256.
        return super().contents(rank) % 100

    def result(self) -> NDArray[np.generic]:
        total: NDArray[Any] = self.contents(0) + self.contents(1)
        return total


class GetAccumulate(Accumulate):
    title = "MPI_Get_accumulate Latency"

    def reaching(self, window: MPI.Win) -> Callable[[], None]:
        message, result = self.spec(self.send), self.spec(self.receive)

        def reach() -> None:
            window.Get_accumulate(message, result, 1, 0, MPI.SUM)

        return reach

    def expected(self, root: int) -> Contents:
        return self.contents(1) if self.leads else None


class FetchAndOp(GetAccumulate):
    title = "MPI_Fetch_and_op Latency"
    dtype, datatype, atomic, sizes = np.int64, MPI.INT64_T, True, "8:8"

    def reaching(self, window: MPI.Win) -> Callable[[], None]:
        message, result = self.spec(self.send), self.spec(self.receive)

        def reach() -> None:
            window.Fetch_and_op(message, result, 1, 0, MPI.SUM)

        return reach


class CompareAndSwap(FetchAndOp):
    title = "MPI_Compare_and_swap Latency"

    def reaching(self, window: MPI.Win) -> Callable[[], None]:
        message, result = self.spec(self.send), self.spec(self.receive)
        compared = [self.contents(1), self.datatype]

        def reach() -> None:
            window.Compare_and_swap(message, compared, result, 1, 0)

        return reach

    def result(self) -> NDArray[np.generic]:
        return self.contents(0)


def _nothing() -> None:
    """Do nothing: the call of rank 1 while rank 0 accesses its memory."""


REMOTE = {
    "put_latency": Put,
    "put_bw": PutBandwidth,
    "put_bibw": PutBiBandwidth,
    "get_latency": Get,
    "get_bw": GetBandwidth,
    "acc_latency": Accumulate,
    "get_acc_latency": GetAccumulate,
    "fop_latency": FetchAndOp,
    "cas_latency": CompareAndSwap,
}
