"""Non-blocking collectives, and the share of their time that overlaps with computation."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from time import perf_counter
from typing import Any

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from .operations import Call, Operation, TimedCalls, Times
from .timing import measure

__all__ = ["Overlapped", "overlapped"]

ORDER = 25  # order of the matrix whose products are the dummy computation, as in OSU
PRODUCTS, TRIALS = 100, 5  # products per trial, and trials, of which the fastest gives a product's time


class Overlapped(Operation):
    """A non-blocking collective, timed alone and around a computation that takes equally long.

    The time of a call is that of its start, the computation with calls of ``Test``, and ``Wait`` together ("overall").
    Overlap is the share of the communication's time alone ("pure") that the computation hides: 100 % x (1 - (overall -
    compute) / pure), at least 0 %.
    """

    extra = ("Compute(us)", "Pure Comm.(us)", "Overlap(%)")

    def bind(self, comm: MPI.Intracomm, root: int) -> Call:
        """Return the call without computation, a start followed by ``Wait``, as a function without arguments."""
        start = self.called(comm, self.method, root)

        def call() -> None:
            start().Wait()

        return call

    def time(self, series: TimedCalls) -> Times:
        """Time the calls of each side on this rank, with a computation between start and ``Wait``.

        Calls without computation are timed first, because the computation must last as long as they do.
        """
        native, sides, roots, ready, repetitions = series
        alone = super().time(series)[0]
        # The median sets the length of the computation, so that a delay in one iteration does not extend it.
        pure, typical = _mean(native, np.stack([alone.mean(axis=1), np.median(alone, axis=1)]))
        spent: list[list[float]] = [[] for _ in sides]
        calls = [
            [self._computing(self.called(comm, self.method, root), seconds, times) for root in roots]
            for comm, seconds, times in zip(sides, typical.tolist(), spent, strict=True)
        ]
        overall = measure(calls, ready, *repetitions)
        compute = _mean(native, np.array([np.mean(times[-repetitions[0] :]) for times in spent]))
        hidden = np.clip(100 * (1 - (_mean(native, overall.mean(axis=1)) - compute) / pure), 0, 100)
        columns = zip(compute.tolist(), pure.tolist(), hidden.tolist(), strict=True)
        return overall, [dict(zip(self.extra, values, strict=True)) for values in columns]

    def _computing(self, start: Callable[[], MPI.Request], seconds: float, times: list[float]) -> Call:
        """Return a function that starts the collective, computes, and waits.

        The computation has equal parts, and ``Test`` follows each of them.

        :param start: function that starts the collective.
        :param seconds: duration of the computation in seconds.
        :param times: list to which the function appends the computation's measured seconds.
        """
        parts = max(self.tests, 1)
        products, matrix, vector = max(round(seconds / _product() / parts), 1), *_operands()

        def call() -> None:
            request, spent = start(), 0.0
            for _ in range(parts):
                begin = perf_counter()
                for _ in range(products):
                    matrix.dot(vector)
                spent += perf_counter() - begin
                if self.tests:
                    request.Test()
            request.Wait()
            times.append(spent)

        return call


def _mean(native: MPI.Intracomm, values: Any) -> Any:
    """Return the mean over ranks, on every rank. Collective."""
    return native.allreduce(values) / native.size


@cache
def _operands() -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    return np.full((ORDER, ORDER), 0.5, np.float32), np.ones(ORDER, np.float32)


@cache
def _product() -> float:
    """Return the seconds of one product of matrix and vector, the fastest of some trials."""
    matrix, vector = _operands()
    trials = []
    for _ in range(TRIALS):
        begin = perf_counter()
        for _ in range(PRODUCTS):
            matrix.dot(vector)
        trials.append((perf_counter() - begin) / PRODUCTS)
    return min(trials)


def overlapped(kind: type[Operation]) -> type[Operation]:
    """Return the operation that measures the non-blocking counterpart of a collective (``Ibcast`` for ``Bcast``)."""
    facts = {"title": f"Non-blocking {kind.title}", "method": f"I{kind.method.lower()}"}
    return type(f"I{kind.__name__}", (Overlapped, kind), facts)
