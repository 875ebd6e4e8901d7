"""Drawn jobs, matrices and simulations, which the tests of schedulers of half nodes share."""

import numpy as np
from hypothesis import strategies as st

from topompi.machine.colocation.scheduling.halves import on_halves
from topompi.machine.colocation.scheduling.table import RateTable, rate_table
from topompi.machine.colocation.speedups.matrix import Speedups
from topompi.machine.jobs import Workload

NAMES = ("cg", "ep", "ft", "mg")
seeds = st.integers(0, 2**32 - 1)


def table_of(ratio: object, names: tuple[str, ...] = NAMES) -> RateTable:
    """The rates of a matrix; a number stands for a matrix of it."""
    return rate_table(Speedups.of(names, np.broadcast_to(np.asarray(ratio, float), (len(names),) * 2)))


def drawn_table(rng: np.random.Generator) -> RateTable:
    """Rates from 0.5 to 1.6."""
    return table_of(rng.uniform(0.5, 1.6, (len(NAMES), len(NAMES))).round(2))


def drawn_jobs(rng: np.random.Generator, count: int, nodes: int, *, requests: bool = True) -> Workload:
    """Jobs of up to all nodes, of which some have requests, some shorter than the jobs run."""
    run = rng.integers(1, 60, count)
    request = np.where(rng.random(count) < 0.5, rng.integers(1, 90, count), 0) if requests else np.zeros(count, int)
    most = np.where(rng.random(count) < 0.2, nodes, max(1, nodes // 2))
    submit = np.sort(rng.integers(0, 1 + 5 * count, count))
    return Workload.of("drawn", submit=submit, run=run, nodes=rng.integers(1, most + 1), request=request)


def drawn_halves(rng: np.random.Generator, count: int, nodes: int, *, requests: bool = True) -> Workload:
    """The same, on half nodes, with drawn programs; one of ten jobs does not share."""
    jobs = drawn_jobs(rng, count, nodes, requests=requests)
    jobs = jobs.with_columns(shared=rng.random(count) < 0.9)
    return on_halves(jobs, NAMES, seed=int(rng.integers(1000)))
