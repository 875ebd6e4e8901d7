"""The blocking and persistent collectives on buffers, run by the algorithm chosen for each call."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI

from ..dispatch.calls import blocking, persistent
from ..dispatch.choosing import choose, run_chosen, runner
from ..dispatch.counters import counters
from ..dispatch.reasons import why_ran
from ..dispatch.state import State
from ..execution.native import NativeIntracomm
from ..execution.specs import CALLS, NATIVE, Form, Needs
from . import agreement
from .handle import CALLS_SLOT, Handle, calls_of
from .lifetime import Lifetime
from .state import is_the_librarys, working

if TYPE_CHECKING:
    from ..execution.objects import Function

__all__ = ["Collectives", "count_calls"]


def run(comm: Handle, method: str, arguments: tuple[object, ...], root: int | None, op: MPI.Op | None) -> None:
    """Choose an algorithm and run a call by it. If the user asked for checks or counters, check and count it.

    :param comm: the communicator.
    :param method: name of the call, a key of ``CALLS``.
    :param arguments: all arguments of mpi4py's method, in their order.
    :param root: the root; None in a call without one.
    :param op: the operation of a reduction; None in other calls.
    """
    calls = calls_of(comm)
    calls.made = calls.made or 1  # nobody has counted the call that made the table
    if is_the_librarys(comm):
        getattr(NativeIntracomm, method)(comm, *arguments)
        return
    state = working(comm)
    with agreement.checked(comm, method, arguments, root, op):
        _run_chosen(comm, state, method, arguments, root, op)


def _run_chosen(
    comm: Handle, state: State, method: str, arguments: tuple[object, ...], root: int | None, op: MPI.Op | None
) -> None:
    spec, again = CALLS[method], None
    if state.quick:
        again = _chosen_again(method, root, op)
    young = calls_of(comm).made <= state.native_calls
    choice, size = choose(state, spec, arguments, root, op, young=young)
    if choice.always:
        state.only = choice
        state.leave_all()
    begin = perf_counter()
    ran = run_chosen(comm, state, spec, choice, arguments, again)
    if counters.enabled:
        seconds = perf_counter() - begin if choice.trial is None else choice.trial.latest
        why = why_ran(state, method, choice, ran, size, root, op)
        counters.count(method, size, ran, why, choice.predicted, seconds)


def _chosen_again(method: str, root: int | None, op: MPI.Op | None) -> Callable[..., None]:
    def call(handle: Handle, *arguments: object) -> None:
        run(handle, method, arguments, root, op)

    return call


def _broadcast(state: State, obj: object, root: int) -> object:
    """Broadcast an object by the algorithm chosen for the size of its pickled bytes."""
    length, is_root = np.zeros(1, dtype=np.int64), state.groups.rank == int(root)  # mpi4py takes any number
    pickled: Any = MPI.pickle.dumps(obj) if is_root else b""
    length[0] = len(pickled)
    NativeIntracomm.Bcast(state.comm, length, root)
    if not is_root:
        pickled = bytearray(length[0])
    size = int(length[0])
    choice = state.only or state.selector.choose("Bcast", size, root=root, measurable=False)
    ran = runner(state, "Bcast", choice.algorithm)(state.comm, [pickled, MPI.BYTE], root) or "native"
    if counters.enabled:
        why = why_ran(state, "Bcast", choice, ran, size, root, None)
        counters.count("bcast", size, ran, why, choice.predicted)
    return MPI.pickle.loads(pickled)


def _combine(comm: Handle, method: str, sendobj: object, op: Function) -> object:
    """Reduce objects by the algorithm that is chosen without knowing their size. No trial times these calls."""
    name, state = method.lower(), working(comm)
    with agreement.checked(comm, name, (sendobj, op), None, op):
        choice = state.only or state.selector.choose(method, 0, Needs(order=True), measurable=False)
        if counters.enabled:
            counters.count(name, 0, choice.algorithm, choice.reason)
        if choice.algorithm == NATIVE:
            state.meet_once()
            return getattr(NativeIntracomm, name)(state.comm, sendobj, op)
        from ..execution import objects

        algorithm = choice.algorithm.partition("/")[0]
        return objects.combine(state.executor, CALLS[method].collective, algorithm, sendobj, op)


def prepare(comm: Handle, method: str, arguments: tuple[object, ...], info: MPI.Info) -> MPI.Prequest:
    """A persistent request of a collective: topompi's if a rule names a schedule, else the MPI library's.

    :param comm: the communicator.
    :param method: name of the blocking call, a key of ``CALLS``.
    :param arguments: all arguments of the blocking call, in their order.
    :param info: hints for the MPI library.
    """
    state = working(comm)
    given: dict[str, Any] = dict(zip(CALLS[method].parameters, arguments, strict=True))
    root, op = given.get("root"), given.get("op")
    with agreement.checked(comm, f"{method}_init", arguments, root, op):
        return _prepare_chosen(state, method, arguments, root, op, info)


def _prepare_chosen(
    state: State, method: str, arguments: tuple[object, ...], root: int | None, op: MPI.Op | None, info: MPI.Info
) -> MPI.Prequest:
    name, spec = f"{method}_init", CALLS[method]
    state.calls.made += 1
    choice, size = choose(state, spec, arguments, root, op, persistent=True)
    ours: MPI.Prequest | None = None
    if choice.algorithm != NATIVE:
        from ..execution import running

        ours = running.prepare(state.executor, method, choice.algorithm, arguments)
    request = getattr(NativeIntracomm, name)(state.comm, *arguments, info) if ours is None else ours
    if counters.enabled:
        ran = NATIVE if ours is None else choice.algorithm
        why = why_ran(state, method, choice, ran, size, root, op)
        counters.count(name, size, ran, why, choice.predicted)
    done: MPI.Prequest = request
    return done


class Collectives(Lifetime):
    """MPI's collectives on buffers, blocking and persistent; each behaves exactly as mpi4py documents it.

    The methods are generated from the table of calls, ``execution.specs.CALLS``.
    """

    __slots__ = ()

    def barrier(self) -> None:
        """Wait for all ranks, as ``Barrier`` does."""
        Collectives.Barrier(self)

    def bcast(self, obj: object, root: int = 0) -> object:
        """Broadcast the root's object, pickled once, by the algorithm chosen for the size of the pickled bytes."""
        if is_the_librarys(self):
            return NativeIntracomm.bcast(self, obj, root)
        state = working(self)
        with agreement.checked(self, "bcast", (obj, root), root):
            return _broadcast(state, obj, root)

    def scan(self, sendobj: object, op: Function = MPI.SUM) -> object:
        """The combination, in rank order, of the objects of all ranks up to and including this rank."""
        return _combine(self, "Scan", sendobj, op)

    def exscan(self, sendobj: object, op: Function = MPI.SUM) -> object:
        """The combination, in rank order, of the objects of all ranks before this rank; None on rank 0."""
        return _combine(self, "Exscan", sendobj, op)


_counted: list[str] = []  # names of the methods that count their calls


def count_calls(count: Callable[[], None]) -> None:
    """Let each blocking collective on buffers call a function first. Later calls of ``count_calls`` do nothing.

    The shutter takes the number of calls for a program's progress.

    :param count: the function, which counts one call.
    """
    if not _counted:
        for name in CALLS:
            setattr(Collectives, name, _counting(getattr(Collectives, name), count))
            _counted.append(name)


def _counting(method: Callable[..., None], count: Callable[[], None]) -> Callable[..., None]:
    @wraps(method)
    def call(comm: Collectives, *arguments: object, **named: object) -> None:
        count()
        method(comm, *arguments, **named)

    return call


for _spec in CALLS.values():
    setattr(Collectives, _spec.name, blocking(_spec, CALLS_SLOT, __name__, run))
    if _spec.form is not Form.NOTHING:
        setattr(Collectives, f"{_spec.name}_init", persistent(_spec, __name__, prepare))
