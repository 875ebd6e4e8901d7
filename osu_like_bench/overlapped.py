"""Non-blocking collectives: how much of their time passes while the rank computes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from time import perf_counter
from typing import Any

import numpy as np
from mpi4py import MPI

from .operations import Call, Operation, Times
from .timing import measure

__all__ = ["Overlapped", "overlapped"]

ORDER = 25  # of the matrix whose products are the dummy computation, as in OSU
PRODUCTS, TRIALS = 100, 5  # by which a product is timed: the fastest trial counts


class Overlapped(Operation):
    """A non-blocking collective, timed alone and around a computation that takes as long.

    Its time is that of start, computation, calls of ``Test`` and ``Wait`` together. Overlap is the part of the pure
    communication that is not seen: 100 % less (overall - compute) / pure, never below 0 %.
    """

    extra = ("Compute(us)", "Pure Comm.(us)", "Overlap(%)")

    def bind(self, comm: MPI.Intracomm, root: int) -> Call:
        """The communication alone: start and wait."""
        start = self.called(comm, self.method, root)

        def call() -> None:
            start().Wait()

        return call

    def time(
        self,
        native: MPI.Intracomm,
        sides: Sequence[Any],
        roots: Sequence[int],
        ready: Call,
        repetitions: tuple[int, int],
    ) -> Times:
        """As ``Operation.time``; the pure communication comes first, for the computation has to take as long.

        :param native: as ``Operation.time``; likewise ``sides``, ``roots``, ``ready`` and ``repetitions``.
        """
        alone = super().time(native, sides, roots, ready, repetitions)[0]
        # Whatever held up one iteration is not to make the computation long: its length is by the median.
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
        """The call with a computation of so many seconds within, in equal parts with a ``Test`` after each."""
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
    """The mean over ranks, at every rank. Collective."""
    return native.allreduce(values) / native.size


@cache
def _operands() -> tuple[Any, Any]:
    return np.full((ORDER, ORDER), 0.5, np.float32), np.ones(ORDER, np.float32)


@cache
def _product() -> float:
    """Seconds of one product of matrix and vector."""
    matrix, vector = _operands()
    trials = []
    for _ in range(TRIALS):
        begin = perf_counter()
        for _ in range(PRODUCTS):
            matrix.dot(vector)
        trials.append((perf_counter() - begin) / PRODUCTS)
    return min(trials)


def overlapped(kind: type[Operation]) -> type[Operation]:
    """The non-blocking form of a collective."""
    facts = {"title": f"Non-blocking {kind.title}", "method": f"I{kind.method.lower()}"}
    return type(f"I{kind.__name__}", (Overlapped, kind), facts)
