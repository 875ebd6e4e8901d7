"""The blocking and persistent collectives on buffers, run by the algorithm chosen for each call."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from time import perf_counter
from typing import Any

from mpi4py import MPI

from ..dispatch.calls import blocking, persistent
from ..dispatch.choosing import choose, run_chosen, runner
from ..dispatch.counters import counters
from ..dispatch.parts import Parts
from ..dispatch.reasons import why_ran
from ..execution.native import NativeIntracomm
from ..execution.specs import CALLS, NATIVE, Form, Needs
from . import agreement
from .handle import ALL, Handle

__all__ = ["Collectives"]


class Collectives(Handle):
    """MPI's collectives on buffers, blocking and persistent; each behaves exactly as mpi4py documents it.

    The methods are generated from the table of calls, ``execution.specs.CALLS``.
    """

    def _choose(self, method: str, arguments: tuple[Any, ...], root: int | None, op: MPI.Op | None) -> None:
        """Choose an algorithm and run the call by it. If the user asked for checks or counters, check and count it."""
        if self._knows_natives():
            self._calls.made -= 1  # because the call is made again in the next line, and counted there
            getattr(self, method)(*arguments)
            return
        state = self._working()
        with agreement.checked(self, method, arguments, root, op) if self._checks else nullcontext():
            self._run_chosen(state, method, arguments, root, op)

    def _run_chosen(
        self, state: Parts, method: str, arguments: tuple[Any, ...], root: int | None, op: MPI.Op | None
    ) -> None:
        spec, again = CALLS[method], None
        if not (self._checks or counters.enabled):
            again = _chosen_again(method, root, op)
        choice, size = choose(state, spec, arguments, root, op, young=self._calls.made <= state.native_calls)
        if choice.always:
            state.only = choice
            self._leave_all(state)
        begin = perf_counter()
        ran = run_chosen(self, state, spec, choice, arguments, again)
        if counters.enabled:
            seconds = perf_counter() - begin if choice.trial is None else choice.trial.latest
            why = why_ran(state, method, choice, ran, size, root, op)
            counters.count(method, size, ran, why, choice.predicted, seconds)

    def barrier(self) -> None:
        """Wait for all ranks, as ``Barrier`` does."""
        self.Barrier()

    def bcast(self, obj: Any, root: int = 0) -> Any:
        """Broadcast the root's object, pickled once, by the algorithm chosen for the size of the pickled bytes."""
        known = self._held is not None or self._knows_natives() or self._calls is ALL
        if known and self._calls.all:
            return NativeIntracomm.bcast(self, obj, root)
        state = self._working()
        with agreement.checked(self, "bcast", (obj, root), root, None) if self._checks else nullcontext():
            return self._bcast_chosen(state, obj, root)

    def _bcast_chosen(self, state: Parts, obj: Any, root: int) -> Any:
        length, is_root = state.length, state.groups.rank == root
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

    def scan(self, sendobj: Any, op: MPI.Op | Callable[[Any, Any], Any] = MPI.SUM) -> Any:
        """The combination, in rank order, of the objects of all ranks up to and including this rank."""
        return self._combine("Scan", sendobj, op)

    def exscan(self, sendobj: Any, op: MPI.Op | Callable[[Any, Any], Any] = MPI.SUM) -> Any:
        """The combination, in rank order, of the objects of all ranks before this rank; None on rank 0."""
        return self._combine("Exscan", sendobj, op)

    def _combine(self, method: str, sendobj: Any, op: Any) -> Any:
        """Reduce objects by the algorithm that is chosen without knowing their size. No trial times these calls."""
        name, state = method.lower(), self._working()
        with agreement.checked(self, name, (sendobj, op), None, op) if self._checks else nullcontext():
            return self._combine_chosen(state, method, sendobj, op)

    def _combine_chosen(self, state: Parts, method: str, sendobj: Any, op: Any) -> Any:
        name, spec = method.lower(), CALLS[method]
        choice = state.only or state.selector.choose(method, 0, Needs(order=True), measurable=False)
        if counters.enabled:
            counters.count(name, 0, choice.algorithm, choice.reason)
        if choice.algorithm == "native":
            state.meet_once()
            return getattr(NativeIntracomm, name)(state.comm, sendobj, op)
        from ..execution import objects

        return objects.combine(state.executor, spec.collective, choice.algorithm.partition("/")[0], sendobj, op)

    def _prepare(self, method: str, arguments: tuple[Any, ...], info: MPI.Info) -> MPI.Prequest:
        """A persistent request of a collective: topompi's if a rule names a schedule, else the MPI library's."""
        state, given = self._working(), dict(zip(CALLS[method].parameters, arguments, strict=True))
        root, op = given.get("root"), given.get("op")
        with agreement.checked(self, f"{method}_init", arguments, root, op) if self._checks else nullcontext():
            return self._prepare_chosen(state, method, arguments, root, op, info)

    def _prepare_chosen(
        self,
        state: Parts,
        method: str,
        arguments: tuple[Any, ...],
        root: int | None,
        op: MPI.Op | None,
        info: MPI.Info,
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


def _chosen_again(method: str, root: int | None, op: MPI.Op | None) -> Callable[..., None]:
    def call(handle: Collectives, *arguments: Any) -> None:
        handle._choose(method, arguments, root, op)

    return call


for _spec in CALLS.values():
    setattr(Collectives, _spec.name, blocking(_spec, vars(Handle)["_calls"], __name__))
    if _spec.form is not Form.NOTHING:
        setattr(Collectives, f"{_spec.name}_init", persistent(_spec, __name__))
