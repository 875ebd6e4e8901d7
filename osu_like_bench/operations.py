"""The collectives under test: their buffers, their calls, and the data that must arrive."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from .patterns import pattern
from .timing import Call, measure

__all__ = ["COLLECTIVES", "Call", "Contents", "Operation", "TimedCalls", "Times", "Typed", "VectorCall"]

Times = tuple[NDArray[np.float64], list[dict[str, float]]]
Contents = NDArray[np.generic] | None


class TimedCalls(NamedTuple):
    """The calls of one operation that are timed, on each side in turn.

    :ivar native: communicator over the calling ranks, for messages of the measurement itself.
    :ivar sides: the communicator of each side under test.
    :ivar roots: roots of successive calls, used in turn.
    :ivar ready: function called before each timed call.
    :ivar repetitions: number of timed calls of each side, and number of untimed calls before them.
    """

    native: MPI.Intracomm
    sides: Sequence[Any]
    roots: Sequence[int]
    ready: Call
    repetitions: tuple[int, int]


class Operation:
    """One measured operation (an MPI call) of one rank at one message size: buffers, calls, and validation of data.

    :param rank: number of this rank.
    :param ranks: number of ranks that take part.
    :param nbytes: message size in bytes, as OSU prints it in its first column.
    """

    title: ClassVar[str]
    method: ClassVar[str]
    rooted: ClassVar[bool] = False
    sized: ClassVar[bool] = True
    paired: ClassVar[bool] = False  # point-to-point between ranks 0 and 1
    pairs: ClassVar[bool] = False  # point-to-point between each rank of the first half and one of the second
    dtype: ClassVar[type[np.generic]] = np.uint8
    datatype: ClassVar[MPI.Datatype] = MPI.BYTE
    blocks: ClassVar[tuple[str, str]] = ("one", "one")  # blocks in the send and the receive buffer: none, one, all
    scale: ClassVar[float] = 1.0  # share of a timed call that counts as the time of one operation
    window: ClassVar[int | None] = None  # messages per call of a benchmark that prints bandwidth
    ways: ClassVar[int] = 1  # number of directions in which the window's messages go
    tests: ClassVar[int] = 0  # calls of Test during a non-blocking collective
    atomic: ClassVar[bool] = False  # True if a message has a single element
    extra: ClassVar[tuple[str, ...]] = ()  # titles of the columns after the time; ``time`` returns their values
    sizes: ClassVar[str | None] = None  # default message sizes, MIN:MAX; None if they are OSU's

    def __init__(self, rank: int, ranks: int, nbytes: int) -> None:
        self.rank, self.ranks = rank, ranks
        self.items = nbytes // self.item()
        rows = [self.rows(kind, ranks) for kind in self.blocks]
        # Memory pages that no call touches, for example of receive buffers off the root, are never allocated.
        self.send, self.receive = (np.empty((count, self.items), dtype=self.dtype) for count in rows)

    @classmethod
    def item(cls) -> int:
        """Return the bytes of one element."""
        return int(np.dtype(cls.dtype).itemsize)

    @classmethod
    def rows(cls, kind: str, ranks: int) -> int:
        """Return the number of blocks of a buffer.

        :param kind: an item of ``blocks``: ``none``, ``one`` or ``all``.
        :param ranks: number of ranks.
        """
        return {"none": 0, "one": 1, "all": ranks}[kind]

    @classmethod
    def footprint(cls, ranks: int, nbytes: int) -> int:
        """Return the bytes of both buffers on the rank that has the most."""
        return nbytes * sum(cls.rows(kind, ranks) for kind in cls.blocks)

    @classmethod
    @contextmanager
    def seated(cls, sides: Mapping[str, MPI.Intracomm]) -> Iterator[tuple[Mapping[str, Any], list[str]]]:
        """A context of the objects that ``bind`` takes as communicators, and of notes for the header. Collective.

        :param sides: communicator under test, by the name of its side (implementation).
        """
        yield sides, []

    def bind(self, comm: MPI.Intracomm, root: int) -> Call:
        """Return the call on a communicator as a function without arguments."""
        return self.called(comm, self.method, root)

    def called(self, comm: MPI.Intracomm, method: str, root: int) -> Callable[[], Any]:
        """Return a method of a communicator, with this operation's arguments, as a function without arguments.

        :param comm: the communicator.
        :param method: mpi4py's name of the method.
        :param root: root of the call.
        """
        keywords = {"root": root} if self.rooted else {}
        return partial(getattr(comm, method), *self.arguments(root), **keywords)

    @classmethod
    def tuned(cls, **values: int | None) -> type[Operation]:
        """Return a subclass of this operation with other values of class variables; None leaves a variable as it is."""
        given = {name: value for name, value in values.items() if value is not None}
        return type(cls.__name__, (cls,), given) if given else cls

    @classmethod
    def messages(cls, ranks: int) -> int:
        """Return the number of messages that all ranks together send in one call, if the benchmark prints bandwidth."""
        return (cls.window or 0) * cls.ways * (ranks // 2 if cls.pairs else 1)

    def time(self, series: TimedCalls) -> Times:
        """Time the calls of each side on this rank.

        :returns: seconds, shape (sides, timed calls), and other values of each side by the title of their column.
        """
        calls = [[self.bind(comm, root) for root in series.roots] for comm in series.sides]
        return measure(calls, series.ready, *series.repetitions), [{} for _ in series.sides]

    def release(self) -> None:
        """Free what ``bind`` made, after the last call; collective over the calling ranks."""

    def arguments(self, root: int) -> tuple[object, ...]:
        """Return the call's arguments on this rank, without the root; buffers that MPI ignores here are None."""
        return (
            None if self.sent(root) is None else self.spec(self.send),
            None if self.expected(root) is None else self.spec(self.receive),
        )

    def spec(self, buffer: NDArray[np.generic]) -> list[object]:
        """Return the arguments by which mpi4py sends or receives a whole buffer: the buffer and its datatype."""
        return [buffer, self.datatype]

    def sent(self, root: int) -> Contents:
        """Return the data that the send buffer must hold before and after the call; None if this rank sends nothing."""
        return None

    def expected(self, root: int) -> Contents:
        """Return the data that the receive buffer must hold after the call; None if this rank receives nothing."""
        return None

    def prepare(self, root: int) -> None:
        """Fill the send buffer, and the receive buffer with bytes that are wrong at every position."""
        sent, expected = self.sent(root), self.expected(root)
        if sent is not None:
            self.send[...] = sent
        if expected is not None:
            self.receive.view(np.uint8)[...] = ~np.ascontiguousarray(expected).view(np.uint8)

    def correct(self, root: int) -> bool:
        """Return whether both buffers of this rank hold the right data after a call."""
        wanted = (self.sent(root), self.expected(root))
        pairs = zip(wanted, (self.send, self.receive), strict=True)
        return all(want is None or np.array_equal(want, buffer) for want, buffer in pairs)

    def verify(self, comm: MPI.Intracomm, native: MPI.Intracomm, root: int) -> bool:
        """Make one call with known data; return whether this rank's buffers are right after it. Collective.

        :param comm: communicator of the side under test.
        :param native: communicator over the same ranks, for messages of the test itself.
        :param root: root of the call.
        """
        self.prepare(root)
        self.bind(comm, root)()
        self.release()
        return self.correct(root)

    @property
    def everyone(self) -> NDArray[np.int64]:
        """The numbers of all ranks, shape (ranks,)."""
        return np.arange(self.ranks)


class Bcast(Operation):
    title, method, rooted = "Broadcast Latency", "Bcast", True
    blocks = ("none", "one")

    def arguments(self, root: int) -> tuple[object, ...]:
        return (self.spec(self.receive),)

    def expected(self, root: int) -> Contents:
        return pattern(root, 0, self.items)

    def prepare(self, root: int) -> None:
        super().prepare(root)
        if self.rank == root:
            self.receive[...] = pattern(root, 0, self.items)


class Gather(Operation):
    title, method, rooted = "Gather Latency", "Gather", True
    blocks = ("one", "all")

    def sent(self, root: int) -> Contents:
        return pattern(self.rank, 0, self.items)

    def expected(self, root: int) -> Contents:
        return pattern(self.everyone, 0, self.items) if self.rank == root else None


class Scatter(Operation):
    title, method, rooted = "Scatter Latency", "Scatter", True
    blocks = ("all", "one")

    def sent(self, root: int) -> Contents:
        return pattern(root, self.everyone, self.items) if self.rank == root else None

    def expected(self, root: int) -> Contents:
        return pattern(root, self.rank, self.items)


class Allgather(Gather):
    title, method, rooted = "Allgather Latency", "Allgather", False

    def expected(self, root: int) -> Contents:
        return pattern(self.everyone, 0, self.items)


class AlltoallCall(Operation):
    title, method = "All-to-All Personalized Exchange Latency", "Alltoall"
    blocks = ("all", "all")

    def sent(self, root: int) -> Contents:
        return pattern(self.rank, self.everyone, self.items)

    def expected(self, root: int) -> Contents:
        return pattern(self.everyone, self.rank, self.items)


class VectorCall(Operation):
    """A collective with counts (``Gatherv``, ...); as in OSU, all counts are equal, but the library cannot know it."""

    def spec(self, buffer: NDArray[np.generic]) -> list[object]:
        """Return the buffer as mpi4py takes it, with a count and a displacement per block if it has several blocks."""
        if self.blocks[buffer is self.receive] == "one":
            return super().spec(buffer)
        counts = np.full(len(buffer), self.items, dtype=np.int32)
        return [buffer, (counts, np.arange(len(buffer)) * self.items), self.datatype]


class Typed(Operation):
    """A collective with a datatype for each block (``Alltoallw``); as in OSU, all datatypes are equal."""

    def spec(self, buffer: NDArray[np.generic]) -> list[object]:
        """Return the buffer as mpi4py takes it, with a count, a displacement and a datatype per block."""
        counts = np.full(len(buffer), self.items, dtype=np.int32)
        places = np.arange(len(buffer)) * self.items * self.item()
        return [buffer, (counts, places), [self.datatype] * len(buffer)]


class Gatherv(VectorCall, Gather):
    title, method = "Gatherv Latency", "Gatherv"


class Scatterv(VectorCall, Scatter):
    title, method = "Scatterv Latency", "Scatterv"


class Alltoallv(VectorCall, AlltoallCall):
    title, method = "All-to-Allv Personalized Exchange Latency", "Alltoallv"


class Allgatherv(VectorCall, Allgather):
    title, method = "Allgatherv Latency", "Allgatherv"


class Alltoallw(Typed, AlltoallCall):
    title, method = "All-to-Allw Personalized Exchange Latency", "Alltoallw"


COLLECTIVES: dict[str, type[Operation]] = {
    kind.method.lower(): kind
    for kind in (
        *(Bcast, Gather, Gatherv, Scatter, Scatterv),
        *(Allgather, Allgatherv, AlltoallCall, Alltoallv, Alltoallw),
    )
}
