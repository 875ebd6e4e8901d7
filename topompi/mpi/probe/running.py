"""The probe of a job: one rank per host measures, and the other ranks sleep."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence

from mpi4py import MPI

from ..execution.native import NativeIntracomm
from .errors import ProbeError
from .measuring import MPIInstrument
from .meeting import sleep_until
from .rates import measure_rates
from .result import Probed
from .search import search

__all__ = ["probe"]

GRACE = 20.0  # seconds that a probe may take beyond its time limit; then it counts as hanging, and is aborted
# Number of times per round trip that a rank must sleep to count as sleeping. If it sleeps less often, some round trips,
# and so the shortest one, are without a sleep.
OFTEN = 0.5
TREE_SHARE = 0.6  # fraction of the time limit for measurements of the tree, if rates are measured in the rest

Progress = Callable[[str], None]


def probe(
    comm: MPI.Intracomm,
    seconds: float,
    rates: bool = True,
    hosts: Sequence[str] | None = None,
    progress: Progress = lambda words: None,
) -> Probed | None:
    """Measure the tree of a communicator's hosts; None on ranks that do not measure, which sleep. Collective.

    :param comm: communicator of all ranks; the first rank of each host measures.
    :param seconds: seconds after which no measurement begins. A job that still runs 20 s later is aborted.
    :param rates: True to measure rates, too.
    :param hosts: a name per rank, to treat each rank as a host of its own; None for the hosts on which the ranks run.
    :param progress: function called on each measuring rank with a line about the measurement under way.
    :raises ProbeError: if there are fewer than two hosts, or too little time; the same on all ranks.
    """
    if hosts is not None and len(hosts) != comm.size:
        raise ProbeError(f"--hosts: expecting as many hosts as ranks, {comm.size}, got {len(hosts)}")
    guard = threading.Timer(seconds + GRACE, _end, (comm, seconds + GRACE))
    guard.daemon = True
    guard.start()
    try:
        outcome = _measure(comm, seconds, rates, hosts, progress)
        sleep_until([comm.Ibarrier()])
        failed = comm.bcast(outcome if isinstance(outcome, ProbeError) else None)
    finally:
        guard.cancel()
    if failed is not None:
        raise failed
    assert not isinstance(outcome, ProbeError)  # else rank 0, which measures, has failed, too
    return outcome


def _measure(
    comm: MPI.Intracomm, seconds: float, rates: bool, hosts: Sequence[str] | None, progress: Progress
) -> Probed | ProbeError | None:
    """The tree found by the first ranks of hosts, or the error that prevents it; None on the other ranks."""
    begin = time.perf_counter()
    group = _first_ranks(comm, hosts is not None)
    if group == MPI.COMM_NULL:
        return None
    instrument = MPIInstrument(group, seconds)
    try:
        names = _names(group, hosts)
        found = search(len(names), instrument, (1 - TREE_SHARE) * seconds if rates else 0.0, progress)
        carried = measure_rates(found.levels, found.width, instrument, progress) if rates else None
        return Probed(names, found, carried, time.perf_counter() - begin, instrument.slept() > OFTEN)
    except ProbeError as error:
        return error
    finally:
        instrument.free()
        group.Free()


def _first_ranks(comm: MPI.Intracomm, virtual: bool) -> MPI.Intracomm:
    """A communicator of the first rank per host, or of all ranks if hosts are virtual; COMM_NULL on others."""
    near = comm.Split_type(MPI.COMM_TYPE_SHARED, comm.rank)
    first = virtual or near.rank == 0
    near.Free()
    return NativeIntracomm(comm.Split(0 if first else MPI.UNDEFINED, comm.rank))


def _names(group: MPI.Intracomm, hosts: Sequence[str] | None) -> list[str]:
    """The names of the hosts.

    :raises ProbeError: if there are fewer than two hosts, or two have the same name.
    """
    names = group.allgather(MPI.Get_processor_name()) if hosts is None else list(hosts)
    if len(names) < 2:
        raise ProbeError(f"expecting at least 2 hosts to probe, got {len(names)}: run it under mpirun, on several")
    twice = [name for place, name in enumerate(names) if name in names[:place]]
    if twice:
        raise ProbeError(f"expecting hosts of different names, got {twice[0]!r} twice")
    return names


def _end(comm: MPI.Intracomm, seconds: float) -> None:
    print(f"topompi: expecting the probe to end within {seconds:g} s, got no end", file=sys.stderr, flush=True)
    comm.Abort(1)
