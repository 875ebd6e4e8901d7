"""The communicators under test; and a function that runs work on rank 0 and gives all ranks its result or error."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from mpi4py import MPI

import topompi
from topompi.errors import BenchmarkError, TopompiError
from topompi.inputs.hostlist import read_hosts
from topompi.mapping import place
from topompi.topology import TopologyInterface, load_routes

from .options import Options

__all__ = ["leave_together", "on_root", "open_sides", "rank_hosts"]

Value = TypeVar("Value")
PATIENCE = 5.0  # maximum seconds that ranks wait for each other at the end of a failed run, because some may not come


def on_root(comm: MPI.Intracomm, work: Callable[[], Value]) -> Value:
    """Run ``work`` on rank 0; return its result, or raise its TopompiError or OSError, on all ranks. Collective."""
    outcome: tuple[Value | None, Exception | None] = (None, None)
    if comm.rank == 0:
        try:
            outcome = (work(), None)
        except (TopompiError, OSError) as error:
            outcome = (None, error)
    value: Value
    value, failure = comm.bcast(outcome)
    if failure is not None:
        raise failure
    return value


def leave_together(comm: MPI.Intracomm) -> bool:
    """Wait until all ranks call this function, because the exit of a rank may end the other ranks.

    :returns: False if some ranks have not called it within 5 seconds.
    """
    request, deadline = comm.Ibarrier(), time.monotonic() + PATIENCE
    while not request.Test():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.001)
    return True


@contextmanager
def open_sides(options: Options) -> Iterator[tuple[MPI.Intracomm, dict[str, MPI.Intracomm]]]:
    """A context of a native communicator over all ranks, and of the communicator of each side to measure. Collective.

    After an error the communicators are not freed, because freeing is collective, and the other ranks may be in other
    calls.
    """
    native = MPI.COMM_WORLD.Dup()
    sides: dict[str, MPI.Intracomm] = {"native": native}
    if "topompi" in options.sides:
        inner = MPI.COMM_WORLD.Dup()  # a duplicate, as the native side has one
        sides["topompi"] = wrapped = _wrap(inner, options)
    yield native, {side: sides[side] for side in options.sides}
    if "topompi" in options.sides:
        wrapped.free()
        inner.Free()
    native.Free()


def _wrap(comm: MPI.Intracomm, options: Options) -> topompi.Intracomm:
    hosts = on_root(comm, lambda: rank_hosts(options, comm.size))
    if options.lfts is None:
        return topompi.Intracomm(comm, topology=options.topology, hosts=hosts)
    names = hosts or comm.allgather(MPI.Get_processor_name())
    return topompi.Intracomm(comm, topology=on_root(comm, lambda: _routed(options, names, hosts is not None)))


def _routed(options: Options, rank_hosts: list[str], virtual: bool) -> TopologyInterface:
    """Return the placement of the ranks on a topology source whose forwarding tables are in a separate file."""
    if options.topology is None:
        raise BenchmarkError("--lfts: expecting --topology too, for tables belong to a fabric, got none")
    routes = load_routes(options.topology, options.lfts)
    source = f"{options.topology} with {options.lfts}"
    return TopologyInterface.place(rank_hosts, routes, source=source, virtual=virtual)


def rank_hosts(options: Options, size: int) -> list[str] | None:
    """Return the virtual host of each rank; None if no virtual hosts are given, by option or environment."""
    given = options.hosts or os.environ.get("TOPOMPI_HOSTS")
    if not given:
        if options.place is not None:
            raise BenchmarkError("--place: expecting --hosts too, got no hosts to place ranks on")
        return None
    try:
        return place(size, read_hosts(given), options.place)
    except TopompiError:
        raise  # unchanged, although it is a ValueError, too: its message has the place in the host list
    except ValueError as error:
        raise BenchmarkError(str(error)) from error
