"""Tuning without an application: every algorithm of a method in turn, on buffers of our own."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from time import perf_counter
from typing import Any

import numpy as np
from mpi4py import MPI

from ..execution.executor import Executor
from ..execution.running import can_run, run
from ..execution.specs import CALLS, Form
from ..schedules.registry import ALGORITHMS
from ..schedules.segments import variants
from ..topology import TopologyInterface
from .choice import COLLECTIVE, LEVELS, NATIVE
from .job import Job
from .selector import library
from .trial import LONG
from .tunerecord import Measured, TuneRecord

__all__ = ["METHODS", "measure", "record_of"]

# What has a size that all ranks know, and so classes to tune.
METHODS = tuple(name for name, spec in CALLS.items() if spec.sized_by is not None)
PROBED = 3  # rounds after which the hopeless are left out
HOPELESS = 4.0  # times native's time
ITEM = 4  # bytes of the numbers that are reduced
FORCED = "OMPI_MCA_coll_tuned_"

Progress = Callable[[str], None]


def measure(
    executor: Executor, method: str, nbytes: int, rounds: int, algorithms: Sequence[str] | None, progress: Progress
) -> list[Measured]:
    """Time the algorithms of a method at one size, interleaved; alike on all ranks. Collective.

    Each algorithm runs once to make its plan; what the network or the size does not allow is left out. Then in each
    round every algorithm is timed once, in the order A B C, C B A, B C A, A C B, after a call of its own that does not
    count unless calls are long (see ``Trial``); before each call a barrier, not timed.
    What is four times slower than native after three rounds is not run again.

    :param executor: of the communicator.
    :param nbytes: size in bytes, as ``Selector.choose`` counts.
    :param algorithms: those to run; None for all that can.
    :param progress: is told what goes on.
    """
    groups = executor.groups
    comm, nbytes = groups.comm, whole(method, nbytes, groups.size)
    arguments = _arguments(method, nbytes, groups.size, groups.rank)
    uncut = candidates(method)
    cut = variants(COLLECTIVE[method], uncut, nbytes, groups.size)
    names = [name for name in (*uncut, *cut) if algorithms is None or name.partition("/")[0] in algorithms]
    names = [name for name in names if name != LEVELS or groups.divided]
    names = [name for name in names if run(executor, method, name, arguments) == name]  # plans are made here
    times: dict[str, list[float]] = {name: [] for name in names}
    long = bool(_slowest(comm, {NATIVE: [_time(executor, method, NATIVE, arguments)]})[NATIVE][0] >= LONG)
    for turn in range(rounds):
        progress(f"{method} {nbytes} bytes, {len(names)} algorithms, round {turn + 1} of {rounds}")
        start = turn // 2 % len(names)  # none is always the first one after a pause
        for name in (names[start:] + names[:start])[:: -1 if turn % 2 else 1]:
            for _ in range(1 if long else 2):
                seconds = _time(executor, method, name, arguments)
            times[name].append(seconds)
        if turn + 1 == PROBED:
            probe = {name: np.median(column) for name, column in _slowest(comm, times).items()}
            names = [name for name in names if probe[name] < HOPELESS * probe[NATIVE]]
    return [Measured(method, nbytes, name, tuple(column)) for name, column in _slowest(comm, times).items()]


def whole(method: str, nbytes: int, size: int) -> int:
    """The next size in bytes that a method can have: whole numbers, and equal blocks where a vector is cut."""
    spec = CALLS[method]
    unit = ITEM * (size if spec.form is Form.REDUCE_SCATTER else 1) if spec.reduces else 1
    return -(-nbytes // unit) * unit


def _slowest(comm: MPI.Intracomm, times: dict[str, list[float]]) -> dict[str, list[float]]:
    """Of each call the time of the slowest rank, alike on all ranks. Collective."""
    table = np.array([time for column in times.values() for time in column])
    comm.Allreduce(MPI.IN_PLACE, table, MPI.MAX)
    ends = np.cumsum([len(column) for column in times.values()])
    return {name: part.tolist() for name, part in zip(times, np.split(table, ends[:-1]), strict=True)}


def candidates(method: str) -> list[str]:
    """Native, and what can run for a method with an operation that commutes."""
    return [name for name in (NATIVE, LEVELS, *ALGORITHMS[COLLECTIVE[method]]) if can_run(method, name)]


def record_of(comm: MPI.Intracomm, interface: TopologyInterface, results: Sequence[Measured]) -> TuneRecord:
    """The record of a run with these results, on all ranks. Collective."""
    job = Job(interface, library(), MPI.Get_processor_name())
    return TuneRecord(
        name="",
        library=library(),
        ranks=job.ranks,
        hosts=job.hosts,
        ranks_per_host=job.ranks_per_host,
        nodes=tuple(comm.allgather(MPI.Get_processor_name())),
        description=interface.describe(),
        topology=job.topology,
        forced=_forced(),
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        results=tuple(results),
    )


def _time(executor: Executor, method: str, name: str, arguments: tuple[Any, ...]) -> float:
    executor.groups.comm.Barrier()
    begin = perf_counter()
    run(executor, method, name, arguments)
    return perf_counter() - begin


def _arguments(method: str, nbytes: int, size: int, rank: int) -> tuple[Any, ...]:
    """Buffers of a call with root 0, whose pages are real."""

    def block(count: int = 1) -> Any:
        return np.ones(nbytes * count, dtype=np.uint8)

    def vector(items: int) -> Any:
        return np.ones(items, dtype=np.float32)

    spec, at_root, items = CALLS[method], rank == 0, nbytes // ITEM
    if spec.form is Form.BROADCAST:
        messages: tuple[Any, ...] = (block(),)
    elif spec.form is Form.GATHER:
        messages = (block(), block(size) if at_root or not spec.rooted else None)
    elif spec.form is Form.SCATTER:
        messages = (block(size) if at_root else None, block())
    elif spec.form is Form.ALLTOALL:
        messages = (block(size), block(size))
    else:
        messages = (vector(items), vector(items // size if spec.form is Form.REDUCE_SCATTER else items))
    rest = {"recvcounts": [items // size] * size, "op": MPI.SUM, "root": 0}
    return (*messages, *(rest[name] for name in spec.parameters if name in rest))


def _forced() -> dict[str, str]:
    """Methods whose algorithm the environment forces on Open MPI, and to which."""
    if os.environ.get(f"{FORCED}use_dynamic_rules", "0").lower() not in ("1", "t", "true", "enabled", "yes", "y"):
        return {}
    names = {method: os.environ.get(f"{FORCED}{method.lower()}_algorithm", "") for method in METHODS}
    return {method.lower(): word for method, word in names.items() if word not in ("", "0", "ignore")}
