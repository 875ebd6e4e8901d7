"""Measurements of every algorithm of a method, whose calls take turns on buffers made for this purpose."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial

import numpy as np
from mpi4py import MPI

from ...schedules.registry import ALGORITHMS, suited
from ...schedules.segments import variants
from ...topology import TopologyInterface
from ...views.jobshape import JobShape
from ..execution.eligibility import can_run
from ..execution.executor import Executor
from ..execution.running import run
from ..execution.specs import CALLS, NATIVE, Form, Varying
from ..execution.timing import interleave, slowest, time_in_turn
from ..selection.selector import library
from ..selection.trial import LONG
from .record import Measured, TuneRecord

__all__ = ["METHODS", "candidates", "contenders", "measure", "record_of", "whole"]

# Methods that can be tuned: those in which all ranks know the size of a call, or find a common one (``Alltoallv``).
# Calls that may have uneven blocks are measured with equal blocks.
METHODS = tuple(
    name
    for name, spec in CALLS.items()
    if spec.sized_by is not None or (spec.uneven and spec.counts is Varying.COUNTED)
)
# Number of rounds after which the times are reduced over all ranks. After the first reduction slow algorithms are
# dropped.
ROUNDS = 4
HOPELESS = 4.0  # factor; an algorithm slower than native by this factor is dropped, because it will not win
ITEM = 4  # bytes of each number in the vector of a reduction
FORCED = "OMPI_MCA_coll_tuned_"

Progress = Callable[[str], None]


def measure(
    executor: Executor, method: str, nbytes: int, rounds: int, algorithms: Sequence[str] | None, progress: Progress
) -> list[Measured]:
    """Time the algorithms of a method at one size, in turns; the same result on all ranks. Collective.

    Each algorithm runs once to make its plan; algorithms that cannot run on this network or at this size are left out.
    Then all take turns. Before each timed call there is a barrier, and, if calls are shorter than 0.05 s, an untimed
    call of the same algorithm. Algorithms four times slower than native are dropped after four rounds.

    :param executor: the executor, which holds the communicator's plans and sub-communicators.
    :param method: mpi4py's name of the call.
    :param nbytes: size in bytes, as ``Selector.choose`` counts it.
    :param rounds: number of timed calls of each algorithm.
    :param algorithms: names of the algorithms to time, as ``contenders`` takes them; if it is None, all that can run.
    :param progress: function that shows a line of text about the measurement under way.
    :returns: the times of each algorithm that ran, native among them.
    """
    groups = executor.groups
    comm, nbytes = groups.comm, whole(method, nbytes, groups.size)
    arguments = _arguments(method, nbytes, groups.size, groups.rank)
    names = contenders(executor, method, nbytes, algorithms)
    names = [name for name in names if run(executor, method, name, arguments) == name]  # this run makes the plan
    calls = {name: [partial(run, executor, method, name, arguments)] for name in names}

    def timed(names: list[str], rounds: int, before: int) -> dict[str, list[float]]:
        order = interleave(len(names), rounds, before=before)
        seconds = slowest(comm, time_in_turn([calls[name] for name in names], order, comm.Barrier))
        return dict(zip(names, seconds.tolist(), strict=True))

    times: dict[str, list[float]] = {name: [] for name in names}
    before = int(timed([NATIVE], 1, 0)[NATIVE][0] < LONG)
    for done in range(0, rounds, ROUNDS):
        progress(f"{method} {nbytes} bytes, {len(names)} algorithms, round {done + 1} of {rounds}")
        for name, seconds in timed(names, min(ROUNDS, rounds - done), before).items():
            times[name] += seconds
        if not done:
            native = np.median(times[NATIVE])
            names = [name for name in names if np.median(times[name]) < HOPELESS * native]
    return [Measured(method, nbytes, name, tuple(column)) for name, column in times.items()]


def whole(method: str, nbytes: int, size: int) -> int:
    """The least size in bytes, at least the given one, with which a call can be made.

    The vector of a reduction must have whole numbers of 4 bytes, that of a reduce-scatter as many for each rank.

    :param method: mpi4py's name of the call.
    :param nbytes: given size in bytes.
    :param size: number of ranks.
    """
    spec = CALLS[method]
    unit = ITEM * (size if spec.form is Form.REDUCE_SCATTER else 1) if spec.reduces else 1
    return -(-nbytes // unit) * unit


def contenders(executor: Executor, method: str, nbytes: int, algorithms: Sequence[str] | None) -> list[str]:
    """Names of the algorithms to measure at one size, native first; some may turn out unable to run on the network.

    :param executor: the executor, which holds the communicator's plans and sub-communicators.
    :param method: mpi4py's name of the call.
    :param nbytes: size in bytes, as ``Selector.choose`` counts it.
    :param algorithms: names of algorithms; a name with a segment size (``chain/8K``) stands for itself, a name without
        one also for its useful variants with cut messages. If it is None, all algorithms that can run are measured.
    """
    suitable, ranks = suited(CALLS[method].collective, executor.network), executor.groups.size
    uncut = [name for name in candidates(method) if name in (NATIVE, *suitable)]
    cut = variants(CALLS[method].collective, uncut, whole(method, nbytes, ranks), ranks)
    names = [*uncut, *cut]
    if algorithms is not None:
        names = [name for name in names if name in algorithms or name.partition("/")[0] in algorithms]
        names += [name for name in algorithms if name not in names and can_run(method, name)]
    return names


def candidates(method: str) -> list[str]:
    """Names of the algorithms that can run a method with a commutative operation, native first."""
    return [name for name in (NATIVE, *ALGORITHMS[CALLS[method].collective]) if can_run(method, name)]


def record_of(comm: MPI.Intracomm, interface: TopologyInterface, results: Sequence[Measured]) -> TuneRecord:
    """The record of a tuning run with given results, the same on all ranks. Collective.

    :param comm: communicator of all ranks.
    :param interface: the placement of the ranks.
    :param results: the results of ``measure``.
    """
    job = JobShape(interface, library(), MPI.Get_processor_name())
    return TuneRecord(
        name="",
        library=library(),
        ranks=interface.num_ranks,
        hosts=interface.num_hosts,
        ranks_per_host=job.ranks_per_host,
        nodes=tuple(comm.allgather(MPI.Get_processor_name())),
        description=interface.describe(),
        topology=job.topology,
        forced=_forced(),
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        results=tuple(results),
    )


def _arguments(method: str, nbytes: int, size: int, rank: int) -> tuple[object, ...]:
    """The arguments of a call with root 0; all buffers are written once, so that their pages exist."""

    def block(count: int = 1) -> object:
        return np.ones(nbytes * count, dtype=np.uint8)

    def vector(items: int) -> object:
        return np.ones(items, dtype=np.float32)

    spec, at_root, items = CALLS[method], rank == 0, nbytes // ITEM
    if spec.form is Form.BROADCAST:
        messages: tuple[object, ...] = (block(),)
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
    """The algorithms that environment variables force Open MPI to use, by method in lower case."""
    if os.environ.get(f"{FORCED}use_dynamic_rules", "0").lower() not in ("1", "t", "true", "enabled", "yes", "y"):
        return {}
    names = {method: os.environ.get(f"{FORCED}{method.lower()}_algorithm", "") for method in METHODS}
    return {method.lower(): word for method, word in names.items() if word not in ("", "0", "ignore")}
