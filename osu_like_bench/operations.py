"""The collectives under test: their buffers, their calls, and the data that must arrive."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, ClassVar

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from .patterns import pattern
from .timing import Call, measure

__all__ = ["COLLECTIVES", "Call", "Contents", "Operation", "Times", "Typed", "Vector"]

Times = tuple[NDArray[np.float64], list[dict[str, float]]]
Contents = NDArray[Any] | None


class Operation:
    """One operation of one rank at one message size.

    :param rank: this rank.
    :param ranks: how many ranks take part.
    :param nbytes: message size in bytes: what OSU prints in its first column.
    """

    title: ClassVar[str]
    method: ClassVar[str]
    rooted: ClassVar[bool] = False
    sized: ClassVar[bool] = True
    paired: ClassVar[bool] = False  # point-to-point between ranks 0 and 1
    pairs: ClassVar[bool] = False  # between each rank of the first half and one of the second
    dtype: ClassVar[type[np.generic]] = np.uint8
    datatype: ClassVar[MPI.Datatype] = MPI.BYTE
    blocks: ClassVar[tuple[str, str]] = ("one", "one")  # of the send and the receive buffer: none, one or all
    scale: ClassVar[float] = 1.0  # the share of a timed call that counts as the time of one operation
    window: ClassVar[int | None] = None  # messages a call of a benchmark that prints bandwidth
    ways: ClassVar[int] = 1  # directions in which the window's messages go
    tests: ClassVar[int] = 0  # calls of Test while a non-blocking collective is under way
    atomic: ClassVar[bool] = False  # of one element alone
    extra: ClassVar[tuple[str, ...]] = ()  # titles of the columns beside the time, as ``time`` tells them
    sizes: ClassVar[str | None] = None  # message sizes unless told otherwise, where not OSU's

    def __init__(self, rank: int, ranks: int, nbytes: int) -> None:
        self.rank, self.ranks = rank, ranks
        self.items = nbytes // self.item()
        rows = [self.rows(kind, ranks) for kind in self.blocks]
        # Pages that no call touches, such as receive buffers off the root, are never made real.
        self.send, self.receive = (np.empty((count, self.items), dtype=self.dtype) for count in rows)

    @classmethod
    def item(cls) -> int:
        """Bytes of one element."""
        return int(np.dtype(cls.dtype).itemsize)

    @classmethod
    def rows(cls, kind: str, ranks: int) -> int:
        """The number of blocks of a buffer."""
        return {"none": 0, "one": 1, "all": ranks}[kind]

    @classmethod
    def footprint(cls, ranks: int, nbytes: int) -> int:
        """Bytes of both buffers on the rank that has most."""
        return nbytes * sum(cls.rows(kind, ranks) for kind in cls.blocks)

    @classmethod
    @contextmanager
    def seated(cls, sides: Mapping[str, MPI.Intracomm]) -> Iterator[tuple[Mapping[str, Any], list[str]]]:
        """For each side what ``bind`` takes in place of its communicator, and notes for the header. Collective."""
        yield sides, []

    def bind(self, comm: MPI.Intracomm, root: int) -> Call:
        """The call on a communicator as a function without arguments."""
        return self.called(comm, self.method, root)

    def called(self, comm: MPI.Intracomm, method: str, root: int) -> Callable[[], Any]:
        """A method of a communicator with this operation's arguments, as a function without any.

        :param comm: the communicator.
        :param method: mpi4py's name.
        :param root: of the call.
        """
        keywords = {"root": root} if self.rooted else {}
        return partial(getattr(comm, method), *self.arguments(root), **keywords)

    @classmethod
    def tuned(cls, **values: int | None) -> type[Operation]:
        """The same operation with other values of class variables; None leaves one as it is."""
        given = {name: value for name, value in values.items() if value is not None}
        return type(cls.__name__, (cls,), given) if given else cls

    @classmethod
    def messages(cls, ranks: int) -> int:
        """Messages of one size that a call of a benchmark that prints bandwidth moves."""
        return (cls.window or 0) * cls.ways * (ranks // 2 if cls.pairs else 1)

    def time(
        self,
        native: MPI.Intracomm,
        sides: Sequence[Any],
        roots: Sequence[int],
        ready: Call,
        repetitions: tuple[int, int],
    ) -> Times:
        """Seconds of each side's calls on this rank, shape (sides, iterations), and what else a side has to tell.

        :param native: a communicator over the ranks that call, for what the measurement itself has to send.
        :param sides: the communicators.
        :param roots: which successive calls take in turn.
        :param ready: called before each timed call.
        :param repetitions: timed calls, and untimed ones before them.
        """
        calls = [[self.bind(comm, root) for root in roots] for comm in sides]
        return measure(calls, ready, *repetitions), [{} for _ in sides]

    def release(self) -> None:
        """Free what ``bind`` made, after the last call; collective over the ranks that called."""

    def arguments(self, root: int) -> tuple[object, ...]:
        """The call's arguments on this rank, less the root; buffers that MPI ignores here are None."""
        return (
            None if self.sent(root) is None else self.spec(self.send),
            None if self.expected(root) is None else self.spec(self.receive),
        )

    def spec(self, buffer: NDArray[Any]) -> list[object]:
        """An mpi4py message for a whole buffer."""
        return [buffer, self.datatype]

    def sent(self, root: int) -> Contents:
        """The data that the send buffer must hold before and after the call; None if this rank sends nothing."""
        return None

    def expected(self, root: int) -> Contents:
        """The data that the receive buffer must hold after the call; None if this rank receives nothing."""
        return None

    def prepare(self, root: int) -> None:
        """Fill the send buffer, and the receive buffer with bytes that are wrong at every position."""
        sent, expected = self.sent(root), self.expected(root)
        if sent is not None:
            self.send[...] = sent
        if expected is not None:
            self.receive.view(np.uint8)[...] = ~np.ascontiguousarray(expected).view(np.uint8)

    def correct(self, root: int) -> bool:
        """Whether both buffers of this rank hold what they must after a call."""
        wanted = (self.sent(root), self.expected(root))
        pairs = zip(wanted, (self.send, self.receive), strict=True)
        return all(want is None or np.array_equal(want, buffer) for want, buffer in pairs)

    def verify(self, comm: MPI.Intracomm, native: MPI.Intracomm, root: int) -> bool:
        """Call once with known data; whether this rank's buffers are right. Collective.

        :param comm: the side under test.
        :param native: a communicator of the same ranks, for what the test itself has to send.
        :param root: of the call.
        """
        self.prepare(root)
        self.bind(comm, root)()
        self.release()
        return self.correct(root)

    @property
    def everyone(self) -> NDArray[np.int64]:
        """All ranks."""
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


class Alltoall(Operation):
    title, method = "All-to-All Personalized Exchange Latency", "Alltoall"
    blocks = ("all", "all")

    def sent(self, root: int) -> Contents:
        return pattern(self.rank, self.everyone, self.items)

    def expected(self, root: int) -> Contents:
        return pattern(self.everyone, self.rank, self.items)


class Vector(Operation):
    """A v-collective; as in OSU all counts are equal, but the library cannot know."""

    def spec(self, buffer: NDArray[Any]) -> list[object]:
        """An mpi4py message with a count and a place for each block, where there are several."""
        if self.blocks[buffer is self.receive] == "one":
            return super().spec(buffer)
        counts = np.full(len(buffer), self.items, dtype=np.int32)
        return [buffer, (counts, np.arange(len(buffer)) * self.items), self.datatype]


class Typed(Operation):
    """A w-collective, whose blocks have datatypes of their own; as in OSU these are equal."""

    def spec(self, buffer: NDArray[Any]) -> list[object]:
        """An mpi4py message with a count, a place and a datatype for each block."""
        counts = np.full(len(buffer), self.items, dtype=np.int32)
        places = np.arange(len(buffer)) * self.items * self.item()
        return [buffer, (counts, places), [self.datatype] * len(buffer)]


class Gatherv(Vector, Gather):
    title, method = "Gatherv Latency", "Gatherv"


class Scatterv(Vector, Scatter):
    title, method = "Scatterv Latency", "Scatterv"


class Alltoallv(Vector, Alltoall):
    title, method = "All-to-Allv Personalized Exchange Latency", "Alltoallv"


class Allgatherv(Vector, Allgather):
    title, method = "Allgatherv Latency", "Allgatherv"


class Alltoallw(Typed, Alltoall):
    title, method = "All-to-Allw Personalized Exchange Latency", "Alltoallw"


COLLECTIVES: dict[str, type[Operation]] = {
    "bcast": Bcast,
    "gather": Gather,
    "gatherv": Gatherv,
    "scatter": Scatter,
    "scatterv": Scatterv,
    "allgather": Allgather,
    "allgatherv": Allgatherv,
    "alltoall": Alltoall,
    "alltoallv": Alltoallv,
    "alltoallw": Alltoallw,
}
