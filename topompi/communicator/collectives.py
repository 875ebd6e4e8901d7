"""The blocking buffer collectives: the network's way where it pays, else the MPI library's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter
from typing import Any

from mpi4py import MPI
from numpy import ndarray

from .. import agreement, planned
from ..counters import counters
from ..levels import Levels
from ..plankeys import lasting
from ..selection import Choice
from .handle import Handle
from .sizes import UNEVEN, nbytes, own_bytes

__all__ = ["Collectives"]

_Native = MPI.Intracomm
NOT_UNDERSTOOD = Choice("native", "the MPI library's to run or to refuse")
# Place among the arguments of the message whose bytes are the size of the call, as ``sizes.nbytes`` has it.
SIZED_BY = {
    "Bcast": 0,
    "Gather": 0,
    "Scatter": 1,
    "Allgather": 1,
    "Alltoall": 1,
    "Reduce": 0,
    "Allreduce": 1,
    "Reduce_scatter": 0,
    "Reduce_scatter_block": 0,
}


class Collectives(Handle):
    """The buffer collectives of MPI, blocking; each keeps mpi4py's contract to the letter."""

    # A flat communicator's call goes to _Native by name: a tenth of a microsecond sooner than through super(). Calls
    # like an earlier one are looked up in the method itself: where ranks outnumber cores, code and data are cold, and
    # one frame and one dictionary more make a broadcast of 1 KiB on 16 ranks 5 % slower.

    def Barrier(self) -> None:
        """Wait until all ranks have come."""
        if self._flat.usable:
            _Native.Barrier(self)
        else:
            self._run("Barrier", ())

    def Bcast(self, buf: Any, root: int = 0) -> None:
        """Broadcast a message from one rank to all others."""
        if self._flat.usable:
            _Native.Bcast(self, buf, root)
        elif type(buf) is ndarray and (run := self._known.get(("Bcast", buf.nbytes, root))):
            run(self, buf, root)
        else:
            self._run("Bcast", (buf, root), root)

    def Gather(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        """Gather blocks of one size at one rank."""
        if self._flat.usable:
            _Native.Gather(self, sendbuf, recvbuf, root)
        elif type(sendbuf) is ndarray and (run := self._known.get(("Gather", sendbuf.nbytes, root))):
            run(self, sendbuf, recvbuf, root)
        else:
            self._run("Gather", (sendbuf, recvbuf, root), root)

    def Gatherv(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        """Gather blocks of any sizes at one rank."""
        if self._flat.usable:
            _Native.Gatherv(self, sendbuf, recvbuf, root)
        else:
            self._run("Gatherv", (sendbuf, recvbuf, root), root)

    def Scatter(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        """Scatter blocks of one size from one rank."""
        if self._flat.usable:
            _Native.Scatter(self, sendbuf, recvbuf, root)
        elif type(recvbuf) is ndarray and (run := self._known.get(("Scatter", recvbuf.nbytes, root))):
            run(self, sendbuf, recvbuf, root)
        else:
            self._run("Scatter", (sendbuf, recvbuf, root), root)

    def Scatterv(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        """Scatter blocks of any sizes from one rank."""
        if self._flat.usable:
            _Native.Scatterv(self, sendbuf, recvbuf, root)
        else:
            self._run("Scatterv", (sendbuf, recvbuf, root), root)

    def Allgather(self, sendbuf: Any, recvbuf: Any) -> None:
        """Gather blocks of one size at all ranks."""
        if self._flat.usable:
            _Native.Allgather(self, sendbuf, recvbuf)
        elif type(recvbuf) is ndarray and (run := self._known.get(("Allgather", recvbuf.nbytes))):
            run(self, sendbuf, recvbuf)
        else:
            self._run("Allgather", (sendbuf, recvbuf))

    def Allgatherv(self, sendbuf: Any, recvbuf: Any) -> None:
        """Gather blocks of any sizes at all ranks."""
        if self._flat.usable:
            _Native.Allgatherv(self, sendbuf, recvbuf)
        else:
            self._run("Allgatherv", (sendbuf, recvbuf))

    def Alltoall(self, sendbuf: Any, recvbuf: Any) -> None:
        """Exchange blocks of one size between all ranks."""
        if self._flat.usable:
            _Native.Alltoall(self, sendbuf, recvbuf)
        elif type(recvbuf) is ndarray and (run := self._known.get(("Alltoall", recvbuf.nbytes))):
            run(self, sendbuf, recvbuf)
        else:
            self._run("Alltoall", (sendbuf, recvbuf))

    def Alltoallv(self, sendbuf: Any, recvbuf: Any) -> None:
        """Exchange blocks of any sizes between all ranks."""
        if self._flat.usable:
            _Native.Alltoallv(self, sendbuf, recvbuf)
        else:
            self._run("Alltoallv", (sendbuf, recvbuf))

    def Alltoallw(self, sendbuf: Any, recvbuf: Any) -> None:
        """Exchange blocks of any sizes and datatypes between all ranks."""
        if self._flat.usable:
            _Native.Alltoallw(self, sendbuf, recvbuf)
        else:
            self._run("Alltoallw", (sendbuf, recvbuf))

    def Reduce(self, sendbuf: Any, recvbuf: Any, op: MPI.Op = MPI.SUM, root: int = 0) -> None:
        """Reduce vectors to one rank."""
        if self._flat.usable:
            _Native.Reduce(self, sendbuf, recvbuf, op, root)
        elif type(sendbuf) is ndarray and (run := self._known.get(("Reduce", sendbuf.nbytes, root, id(op)))):
            run(self, sendbuf, recvbuf, op, root)
        else:
            self._run("Reduce", (sendbuf, recvbuf, op, root), root, op)

    def Allreduce(self, sendbuf: Any, recvbuf: Any, op: MPI.Op = MPI.SUM) -> None:
        """Reduce vectors, the result for all ranks."""
        if self._flat.usable:
            _Native.Allreduce(self, sendbuf, recvbuf, op)
        elif type(recvbuf) is ndarray and (run := self._known.get(("Allreduce", recvbuf.nbytes, id(op)))):
            run(self, sendbuf, recvbuf, op)
        else:
            self._run("Allreduce", (sendbuf, recvbuf, op), None, op)

    def Reduce_scatter(
        self, sendbuf: Any, recvbuf: Any, recvcounts: Sequence[int] | None = None, op: MPI.Op = MPI.SUM
    ) -> None:
        """Reduce vectors, a part of any size of the result for each rank."""
        if self._flat.usable:
            _Native.Reduce_scatter(self, sendbuf, recvbuf, recvcounts, op)
        elif type(sendbuf) is ndarray and (run := self._known.get(("Reduce_scatter", sendbuf.nbytes, id(op)))):
            run(self, sendbuf, recvbuf, recvcounts, op)
        else:
            self._run("Reduce_scatter", (sendbuf, recvbuf, recvcounts, op), None, op)

    def Reduce_scatter_block(self, sendbuf: Any, recvbuf: Any, op: MPI.Op = MPI.SUM) -> None:
        """Reduce vectors, a block of the result for each rank."""
        if self._flat.usable:
            _Native.Reduce_scatter_block(self, sendbuf, recvbuf, op)
        elif type(sendbuf) is ndarray and (run := self._known.get(("Reduce_scatter_block", sendbuf.nbytes, id(op)))):
            run(self, sendbuf, recvbuf, op)
        else:
            self._run("Reduce_scatter_block", (sendbuf, recvbuf, op), None, op)

    def _run(self, method: str, arguments: tuple[Any, ...], root: int | None = None, op: MPI.Op | None = None) -> None:
        """Check where it is asked for, choose, run; time it where somebody wants to know."""
        levels = self._working()
        if self._checks:
            agreement.check(levels.comm, method, arguments, root, op)
        choice, size = choose(levels, method, arguments, root, op)
        if choice.always:
            self._settle(levels)
        if not (choice.trial or counters.enabled):
            if choice is not NOT_UNDERSTOOD and lasting(op) and (key := likeness(method, arguments, root, op)):
                self._know(key, runner(levels, method, choice.algorithm))
            execute(levels, method, choice.algorithm, arguments)
            return
        if choice.trial:  # what is timed is the call: not its plan, nor the wait for the last rank to come
            planned.ready(levels, method, choice.algorithm, arguments)
            levels.comm.Barrier()
        begin = perf_counter()
        ran = execute(levels, method, choice.algorithm, arguments)
        seconds = perf_counter() - begin
        if choice.trial:
            commutes = op is None or op.Is_commutative()
            levels.selector.record(method, size, choice, seconds, root=root, commutative=commutes)
        if counters.enabled:
            why = choice.reason if ran == choice.algorithm else f"{choice.algorithm} cannot run here; {choice.reason}"
            counters.count(method, size, ran, why, choice.predicted, seconds)


def likeness(method: str, arguments: tuple[Any, ...], root: int | None, op: MPI.Op | None) -> tuple[Any, ...] | None:
    """What calls have in common that run alike, as the methods look it up; None where a size says too little."""
    if method not in SIZED_BY:
        return None
    message = arguments[SIZED_BY[method]]
    if type(message) is not ndarray:
        return None
    return (method, message.nbytes, *(() if root is None else (root,)), *(() if op is None else (id(op),)))


def choose(
    levels: Levels,
    method: str,
    arguments: tuple[Any, ...],
    root: int | None,
    op: MPI.Op | None,
    measurable: bool = True,
) -> tuple[Choice, int]:
    """The algorithm of a call, and the bytes by which it was chosen; alike on all ranks.

    What makes no sense to us (a root out of range, a message of a kind we do not know) is the MPI library's.
    """
    if root is not None and not 0 <= root < levels.size:
        return NOT_UNDERSTOOD, 0
    try:
        if method in UNEVEN:  # a rank knows its own blocks only
            size = levels.selector.typical(method, lambda: own_bytes(method, arguments, levels.size))
        else:
            size = nbytes(method, arguments, levels.size)
    except (TypeError, ValueError, BufferError):
        return NOT_UNDERSTOOD, 0
    commutes = op is None or op.Is_commutative()
    choice = levels.selector.choose(method, size, root=root, commutative=commutes, measurable=measurable)
    return choice, size


def runner(levels: Levels, method: str, algorithm: str) -> Callable[..., object]:
    """What runs a collective by an algorithm, of a handle and the arguments."""
    if algorithm == "native":
        native: Callable[..., object] = getattr(_Native, method)
        return native
    run = partial(planned.run, levels, method, algorithm)
    return lambda handle, *arguments: run(arguments)


def execute(levels: Levels, method: str, algorithm: str, arguments: tuple[Any, ...]) -> str:
    """Run a collective by the algorithm of this name; returns the name of what ran."""
    if algorithm != "native":
        return planned.run(levels, method, algorithm, arguments)
    getattr(_Native, method)(levels.comm, *arguments)
    return algorithm
