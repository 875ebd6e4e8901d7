"""The blocking buffer collectives: the network's way where it pays, else the MPI library's."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

from mpi4py import MPI

from ..dispatch.counters import counters
from ..dispatch.direct import direct
from ..dispatch.known import Run
from ..execution.keys import lasting
from ..execution.levels import Levels
from ..execution.methods import METHODS
from ..selection import Choice
from . import agreement
from .handle import Handle
from .sizes import UNEVEN, nbytes, own_bytes

if TYPE_CHECKING:
    from ..selection.trial import Trial

__all__ = ["Collectives"]

# ``planned``, with all generators of schedules, takes a third of the time to import that all of topompi does: it is
# imported where the first call is not the library's.
_Native = MPI.Intracomm
NOT_UNDERSTOOD = Choice("native", "the MPI library's to run or to refuse")
# Raised by the look for a call like an earlier one: there is none, or the message is no array.
NEW = (AttributeError, KeyError)


class Collectives(Handle):
    """The buffer collectives of MPI, blocking; each keeps mpi4py's contract to the letter."""

    # What is known to be the library's does not come here where ``direct`` is compiled; where it is not, of settled
    # communicators (see ``settled``) methods that were taken before do, as in ``call = comm.Bcast``, and those of
    # classes derived from ours. Calls like an earlier one are looked up in the methods. Where ranks outnumber cores all
    # is cold, and each object looked at costs half a percent of a broadcast of 1 KiB on 16 ranks, as does each look
    # that the interpreter cannot specialise: hence slots, plain dictionaries, whole numbers for keys, no look at the
    # type of the message.

    def Barrier(self) -> None:
        """Wait until all ranks have come."""
        self._run("Barrier", ())

    def Bcast(self, buf: Any, root: int = 0) -> None:
        """Broadcast a message from one rank to all others."""
        if self._settled:
            _Native.Bcast(self, buf, root)
            return
        try:
            run = self._known_bcast[root][buf.nbytes]
        except NEW:
            run = chosen("Bcast", root)
        run(self, buf, root)

    def Gather(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        """Gather blocks of one size at one rank."""
        if self._settled:
            _Native.Gather(self, sendbuf, recvbuf, root)
            return
        try:
            run = self._known_gather[root][sendbuf.nbytes]
        except NEW:
            run = chosen("Gather", root)
        run(self, sendbuf, recvbuf, root)

    def Gatherv(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        """Gather blocks of any sizes at one rank."""
        self._run("Gatherv", (sendbuf, recvbuf, root), root)

    def Scatter(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        """Scatter blocks of one size from one rank."""
        if self._settled:
            _Native.Scatter(self, sendbuf, recvbuf, root)
            return
        try:
            run = self._known_scatter[root][recvbuf.nbytes]
        except NEW:
            run = chosen("Scatter", root)
        run(self, sendbuf, recvbuf, root)

    def Scatterv(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        """Scatter blocks of any sizes from one rank."""
        self._run("Scatterv", (sendbuf, recvbuf, root), root)

    def Allgather(self, sendbuf: Any, recvbuf: Any) -> None:
        """Gather blocks of one size at all ranks."""
        if self._settled:
            _Native.Allgather(self, sendbuf, recvbuf)
            return
        try:
            run = self._known_allgather[recvbuf.nbytes]
        except NEW:
            run = chosen("Allgather")
        run(self, sendbuf, recvbuf)

    def Allgatherv(self, sendbuf: Any, recvbuf: Any) -> None:
        """Gather blocks of any sizes at all ranks."""
        self._run("Allgatherv", (sendbuf, recvbuf))

    def Alltoall(self, sendbuf: Any, recvbuf: Any) -> None:
        """Exchange blocks of one size between all ranks."""
        if self._settled:
            _Native.Alltoall(self, sendbuf, recvbuf)
            return
        try:
            run = self._known_alltoall[recvbuf.nbytes]
        except NEW:
            run = chosen("Alltoall")
        run(self, sendbuf, recvbuf)

    def Alltoallv(self, sendbuf: Any, recvbuf: Any) -> None:
        """Exchange blocks of any sizes between all ranks."""
        self._run("Alltoallv", (sendbuf, recvbuf))

    def Alltoallw(self, sendbuf: Any, recvbuf: Any) -> None:
        """Exchange blocks of any sizes and datatypes between all ranks."""
        self._run("Alltoallw", (sendbuf, recvbuf))

    def Reduce(self, sendbuf: Any, recvbuf: Any, op: MPI.Op = MPI.SUM, root: int = 0) -> None:
        """Reduce vectors to one rank."""
        if self._settled:
            _Native.Reduce(self, sendbuf, recvbuf, op, root)
            return
        try:
            run = self._known_reduce[id(op)][root][sendbuf.nbytes]
        except NEW:
            run = chosen("Reduce", root, op)
        run(self, sendbuf, recvbuf, op, root)

    def Allreduce(self, sendbuf: Any, recvbuf: Any, op: MPI.Op = MPI.SUM) -> None:
        """Reduce vectors, the result for all ranks."""
        if self._settled:
            _Native.Allreduce(self, sendbuf, recvbuf, op)
            return
        try:
            run = self._known_allreduce[id(op)][recvbuf.nbytes]
        except NEW:
            run = chosen("Allreduce", None, op)
        run(self, sendbuf, recvbuf, op)

    def Reduce_scatter(
        self, sendbuf: Any, recvbuf: Any, recvcounts: Sequence[int] | None = None, op: MPI.Op = MPI.SUM
    ) -> None:
        """Reduce vectors, a part of any size of the result for each rank."""
        if self._settled:
            _Native.Reduce_scatter(self, sendbuf, recvbuf, recvcounts, op)
            return
        try:
            run = self._known_reduce_scatter[id(op)][sendbuf.nbytes]
        except NEW:
            run = chosen("Reduce_scatter", None, op)
        run(self, sendbuf, recvbuf, recvcounts, op)

    def Reduce_scatter_block(self, sendbuf: Any, recvbuf: Any, op: MPI.Op = MPI.SUM) -> None:
        """Reduce vectors, a block of the result for each rank."""
        if self._settled:
            _Native.Reduce_scatter_block(self, sendbuf, recvbuf, op)
            return
        try:
            run = self._known_reduce_scatter_block[id(op)][sendbuf.nbytes]
        except NEW:
            run = chosen("Reduce_scatter_block", None, op)
        run(self, sendbuf, recvbuf, op)

    def _run(self, method: str, arguments: tuple[Any, ...], root: int | None = None, op: MPI.Op | None = None) -> None:
        """Check where it is asked for, choose, run; time it where somebody wants to know."""
        if self._settled:
            getattr(_Native, method)(self, *arguments)
            return
        levels = self._working()
        if self._checks:
            agreement.check(levels.comm, method, arguments, root, op)
        choice, size = choose(levels, method, arguments, root, op)
        if choice.always:
            levels.only = choice
            self._settle(levels)
        if choice.trial is not None:  # what is timed is the call, not its plan
            from ..execution import running as planned

            planned.ready(levels, method, choice.algorithm, arguments)
        if counters.enabled:
            self._count(levels, method, size, choice, arguments)
            return
        run = runner(levels, method, choice.algorithm)
        if choice.trial is not None:
            run = timed(levels.comm, choice.trial, run)
        if not self._checks and choice is not NOT_UNDERSTOOD and lasting(op):
            again = run if choice.trial is None else tried(method, root, op, choice, run)
            if (alike := levels.known.add(method, arguments, root, op, again)) is not None:
                setattr(self, f"_known_{method.lower()}", alike)
        run(self, *arguments)

    def _count(self, levels: Levels, method: str, size: int, choice: Choice, arguments: tuple[Any, ...]) -> None:
        """Run a call and count it."""
        if choice.trial is not None:
            levels.comm.Barrier()
        begin = perf_counter()
        ran = execute(levels, method, choice.algorithm, arguments)
        seconds = perf_counter() - begin
        if choice.trial is not None:
            choice.trial.note(seconds)
        why = choice.reason if ran == choice.algorithm else f"{choice.algorithm} cannot run here; {choice.reason}"
        counters.count(method, size, ran, why, choice.predicted, seconds)


for _name in ("Barrier", *METHODS):
    setattr(Collectives, _name, direct(getattr(Collectives, _name), Handle._left))


def chosen(method: str, root: int | None = None, op: MPI.Op | None = None) -> Run:
    """What chooses for a call of a kind not seen before, and runs it."""
    return lambda handle, *arguments: handle._run(method, arguments, root, op)


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
        if levels.only:
            bytes_of = own_bytes if method in UNEVEN else nbytes
            return levels.only, bytes_of(method, arguments, levels.size)
        if method in UNEVEN:  # a rank knows its own blocks only
            size = levels.selector.typical(method, lambda: own_bytes(method, arguments, levels.size))
        else:
            size = nbytes(method, arguments, levels.size)
    except (TypeError, ValueError, BufferError):
        return NOT_UNDERSTOOD, 0
    commutes = op is None or op.Is_commutative()
    choice = levels.selector.choose(method, size, root=root, commutative=commutes, measurable=measurable)
    return choice, size


def runner(levels: Levels, method: str, algorithm: str) -> Run:
    """What runs a collective by an algorithm, of a handle and the arguments."""
    if algorithm == "native":
        native: Run = getattr(_Native, method)
        return native
    from ..execution import running as planned

    run = partial(planned.run, levels, method, algorithm)
    return lambda handle, *arguments: run(arguments)


def timed(comm: MPI.Intracomm, trial: Trial, run: Run) -> Run:
    """What runs a call of a trial: all ranks begin together, and each notes what the call took there."""

    def call(handle: MPI.Intracomm, *arguments: Any) -> None:
        comm.Barrier()
        begin = perf_counter()
        run(handle, *arguments)
        trial.note(perf_counter() - begin)

    return call


def tried(method: str, root: int | None, op: MPI.Op | None, choice: Choice, run: Run) -> Run:
    """What runs calls like one of a trial as long as the trial stays with its algorithm; the next one is chosen for.

    In a trial a call is to meet what calls will meet after it: with more work between two of them the network would
    come to rest, and take from many ranks at once what it does not take from them call after call.
    """
    trial, algorithm = choice.trial, choice.algorithm
    choose_first = chosen(method, root, op)

    def again(handle: MPI.Intracomm, *arguments: Any) -> None:
        if trial is not None and trial.upcoming == algorithm:
            trial.next()
            run(handle, *arguments)
        else:
            choose_first(handle, *arguments)

    return again


def execute(levels: Levels, method: str, algorithm: str, arguments: tuple[Any, ...]) -> str:
    """Run a collective by the algorithm of this name; returns the name of what ran."""
    if algorithm != "native":
        from ..execution import running as planned

        return planned.run(levels, method, algorithm, arguments)
    getattr(_Native, method)(levels.comm, *arguments)
    return algorithm
