"""A kernel over MPI: its phases as calls that an application makes, on the communicator of each compared side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

import topompi
from topompi.machine.interference.kernels.kernel import Alltoalls, Burst, Kernel, Phase, Sums

from ..operations import Call, Operation
from ..options import SIDES
from ..patterns import contribution, contribution_sum, pattern

__all__ = ["KernelBenchmark", "Seat"]

Bytes = NDArray[np.uint8]
Contents = Callable[[], NDArray[Any]]


@dataclass(eq=False)
class Seat:
    """The communicators on which one side (topompi's or the native one) runs a kernel.

    :param comm: communicator whose rank r is rank r of the kernel.
    :param groups: communicators of this rank's row and column, by phase name (``rows``, ``columns``), made when first
        needed.
    """

    comm: MPI.Intracomm
    groups: dict[str, MPI.Intracomm] = field(default_factory=dict)

    def group(self, phase: Alltoalls) -> MPI.Intracomm:
        """Return the communicator of this rank's row or column. Collective if it does not exist yet."""
        if phase.name not in self.groups:
            of, at = np.argwhere(phase.groups == self.comm.Get_rank())[0].tolist()
            # mpi4py declares only that Split returns a communicator; it is an intracommunicator if ``comm`` is one.
            self.groups[phase.name] = cast(MPI.Intracomm, self.comm.Split(of, at))
        return self.groups[phase.name]


class KernelBenchmark:
    """A kernel as a benchmark: it has the attributes and methods of the class ``Operation`` that the runner uses.

    :param kernel: the kernel, with as many ranks as the run has.
    :param reorder: True if topompi's side reorders the ranks.
    :param sides: number of measured sides (communicators), each with buffers of its own.
    """

    rooted, sized, paired, pairs, atomic = False, True, False, False, False
    scale, window, extra = 1.0, None, ()

    def __init__(self, kernel: Kernel, reorder: bool, sides: int) -> None:
        self.kernel, self.reorder, self.num_sides = kernel, reorder, sides
        self.title, self.sizes = kernel.title, kernel.sizes

    def __call__(self, rank: int, ranks: int, nbytes: int) -> Operation:
        """Return one iteration of the kernel on a rank.

        :param rank: number of this rank.
        :param ranks: number of ranks, which is the kernel's.
        :param nbytes: bytes of a message.
        """
        return _Iteration(self.kernel, rank, nbytes)

    def item(self) -> int:
        """Return the bytes of the smallest message."""
        return 1

    def footprint(self, ranks: int, nbytes: int) -> int:
        """Return the bytes of the buffers of all sides."""
        return self.num_sides * self.kernel.footprint(nbytes)

    @contextmanager
    def seated(self, sides: Mapping[str, MPI.Intracomm]) -> Iterator[tuple[dict[str, Seat], list[str]]]:
        """A context of each side's communicators, by side, and of notes for the header. Collective.

        Topompi's side has reordered ranks if ``reorder`` is True. After an error the communicators are not freed,
        because freeing is collective, and the other ranks may be in other calls.

        :param sides: communicator of each side, by name.
        """
        notes, made = [self.kernel.describe()], []
        seats = {side: Seat(comm) for side, comm in sides.items()}
        if self.reorder and SIDES[0] in sides:
            comm: Any = topompi.remap(sides[SIDES[0]], self.kernel.graph)
            seats[SIDES[0]], made = Seat(comm), [comm]
            if report := topompi.mapping_report(comm):
                notes.append(f"topompi's order of ranks: {report.describe()}")
        yield seats, notes
        for seat in seats.values():
            made = [*seat.groups.values(), *made]
        for comm in made:
            comm.free() if isinstance(comm, topompi.Intracomm) else comm.Free()


class _Iteration(Operation):
    """One iteration at one message size; each side has its own buffers, because its ranks may have another order."""

    def __init__(self, kernel: Kernel, rank: int, nbytes: int) -> None:
        self.rank, self.ranks = rank, kernel.ranks
        self.phases = kernel.phases(nbytes)
        self._parts: dict[Seat, list[_Part]] = {}

    def bind(self, comm: Any, root: int) -> Call:
        parts = self._on(comm)
        for part in parts:
            part.prepare()
        calls = [part.call for part in parts]

        def iteration() -> None:
            for call in calls:
                call()

        return calls[0] if len(calls) == 1 else iteration

    def prepare(self, root: int) -> None:
        """Do nothing here: buffers are filled per side, because a process has another kernel rank on each side."""

    def verify(self, comm: Any, native: MPI.Intracomm, root: int) -> bool:
        self.bind(comm, root)()
        return all(part.correct() for part in self._on(comm))

    def _on(self, seat: Seat) -> list[_Part]:
        if seat not in self._parts:
            self._parts[seat] = [_part(phase, seat) for phase in self.phases]
        return self._parts[seat]


def _part(phase: Phase, seat: Seat) -> _Part:
    if isinstance(phase, Burst):
        return _Exchange(phase, seat.comm)
    return _Transpose(phase, seat) if isinstance(phase, Alltoalls) else _Sum(phase, seat.comm)


class _Part:
    """A phase of a kernel as one rank runs it: its calls, its buffers, and their validation.

    :param sent: function that makes the data to send.
    :param expected: function that makes the data that must arrive.
    """

    def __init__(self, sent: Contents, expected: Contents) -> None:
        self.sent, self.expected = sent, expected
        self.send, self.receive = sent(), expected()

    def call(self) -> None:
        """Run the phase once; this is timed."""
        raise NotImplementedError

    def prepare(self) -> None:
        """Fill the send buffer, and the receive buffer with bytes that are wrong at every position."""
        self.send[...] = self.sent()
        self.receive.view(np.uint8)[...] = ~self.expected().view(np.uint8)

    def correct(self) -> bool:
        """Return whether both buffers hold the right data after a call."""
        return np.array_equal(self.sent(), self.send) and np.array_equal(self.expected(), self.receive)


class _Exchange(_Part):
    """Non-blocking receives and sends, all at once; the bytes encode sender and direction."""

    def __init__(self, phase: Burst, comm: MPI.Intracomm) -> None:
        self.comm, me = comm, comm.Get_rank()
        out, into = (np.flatnonzero(ends == me) for ends in (phase.source, phase.target))
        super().__init__(partial(_contents, phase, out), partial(_contents, phase, into))
        self.outgoing = _messages(self.send, phase, out, phase.target)
        self.incoming = _messages(self.receive, phase, into, phase.source)

    def call(self) -> None:
        receive, send = self.comm.Irecv, self.comm.Isend
        requests = [receive(buffer, peer, tag) for buffer, peer, tag in self.incoming]
        requests += [send(buffer, peer, tag) for buffer, peer, tag in self.outgoing]
        MPI.Request.Waitall(requests)


def _contents(phase: Burst, rows: NDArray[np.intp]) -> Bytes:
    """Return the bytes of some messages, one after the other."""
    ends = zip(phase.source[rows].tolist(), phase.tag[rows].tolist(), phase.nbytes[rows].tolist(), strict=True)
    return np.concatenate([np.empty(0, np.uint8), *(pattern(source, tag, items)[0] for source, tag, items in ends)])


def _messages(
    buffer: Bytes, phase: Burst, rows: NDArray[np.intp], peers: NDArray[np.int64]
) -> list[tuple[list[object], int, int]]:
    """Return part of the buffer, peer and tag of each message."""
    parts = np.split(buffer, np.cumsum(phase.nbytes[rows])[:-1]) if len(rows) else []
    ends = zip(parts, peers[rows].tolist(), phase.tag[rows].tolist(), strict=True)
    return [([part, MPI.BYTE], peer, tag) for part, peer, tag in ends]


class _Transpose(_Part):
    """An alltoall on a row or a column; the bytes encode both ranks in the whole grid."""

    def __init__(self, phase: Alltoalls, seat: Seat) -> None:
        self.comm, me = seat.group(phase), seat.comm.Get_rank()
        of = phase.groups[np.argwhere(phase.groups == me)[0][0]]
        super().__init__(partial(pattern, me, of, phase.nbytes), partial(pattern, of, me, phase.nbytes))
        self.message = [self.send, MPI.BYTE], [self.receive, MPI.BYTE]

    def call(self) -> None:
        self.comm.Alltoall(*self.message)


class _Sum(_Part):
    """An allreduce of doubles whose sum is exact."""

    def __init__(self, phase: Sums, comm: MPI.Intracomm) -> None:
        self.comm, ranks, items = comm, comm.Get_size(), phase.nbytes // 8
        mine, total = partial(contribution, comm.Get_rank(), ranks, items), partial(contribution_sum, ranks, items)
        super().__init__(lambda: mine().astype(np.float64), lambda: total().astype(np.float64))
        self.message = [self.send, MPI.DOUBLE], [self.receive, MPI.DOUBLE]

    def call(self) -> None:
        self.comm.Allreduce(*self.message, MPI.SUM)
