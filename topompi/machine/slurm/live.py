"""The present state of a running Slurm, asked by its own commands."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from ...inputs.files import InputFile
from ...inputs.slurm.commands import SHOW_JOBS, SHOW_STATES, SHOW_TOPOLOGY, printed
from ...inputs.slurm.nodes import node_states
from ...inputs.slurm.running import RunningJob, jobs_of
from ...topology import Report, Routes
from ...topology.client import Address, ask
from ...topology.routecheck import with_routes
from ...topology.sources import slurm
from ...views.cluster import cluster_of
from ..jobs import AllocationError, Cluster

__all__ = ["Renewal", "cluster_now", "nodes_now", "routes_now", "running_now"]

MINUTE = 60.0  # seconds
T = TypeVar("T")


def running_now(notes: list[str] | None = None, cluster: str | None = None) -> list[RunningJob]:
    """Ask ``squeue`` for the jobs that hold nodes, with those that are completing, suspended or configuring.

    :param notes: list that receives a line per running job that has no nodes.
    :param cluster: name of the cluster to ask; None for this machine's.
    :raises SourceError: if the command is not installed, or fails.
    :raises AllocationError: if its answer cannot be read.
    """
    return jobs_of(_asked(SHOW_JOBS, "running jobs", cluster), AllocationError, notes)


def nodes_now(cluster: str | None = None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Ask ``sinfo`` for the idle nodes that a job could get now, and for all others; errors as in `running_now`.

    :param cluster: name of the cluster to ask; None for this machine's.
    """
    return node_states([_asked(SHOW_STATES, "states of nodes", cluster)], AllocationError)


def cluster_now(report: Report, cluster: str | None = None) -> Cluster:
    """Ask ``scontrol`` for the tree of switches, and make a cluster of it; parameters and errors as in `routes_now`."""
    return cluster_of(routes_now(report, cluster))


def routes_now(report: Report, cluster: str | None = None) -> Routes:
    """Ask ``scontrol`` for the tree of switches, and compute routes; it knows no rates, parallel cables or routes.

    :param report: receiver of problems and notes.
    :param cluster: name of the cluster to ask; None for this machine's.
    :raises SourceError: if the command is not installed, or fails.
    """
    found = with_routes(slurm.read([_asked(SHOW_TOPOLOGY, "switches", cluster)], report), report)
    assert found.routes is not None  # with_routes() computes missing routes
    return found.routes


def _asked(command: Sequence[str], wanted: str, cluster: str | None) -> InputFile:
    chosen = [] if cluster is None else [f"--clusters={cluster}"]
    return printed([command[0], *chosen, *command[1:]], wanted)


class Renewal(Generic[T]):
    """A function that makes a thing anew from a topology source whenever the source has changed, else returns None.

    :param source: the topology source; if it is the address of a service, its generation is asked for every minute.
    :param again: event by which somebody demands the thing anew; it is cleared.
    :param make: function that reads the source and makes the thing.
    """

    def __init__(self, source: str, again: threading.Event, make: Callable[[], T]) -> None:
        self._address = Address.parse(source) if Address.is_named_by(source) else None
        self._again, self._make = again, make
        self._generation, self._due = self._asked_generation(), time.monotonic() + MINUTE

    def __call__(self) -> T | None:
        """Return the thing made anew, or None.

        :raises TopompiError: if the source cannot be read, or the service does not answer.
        """
        generation = self._generation
        if self._address is not None and time.monotonic() >= self._due:
            self._due = time.monotonic() + MINUTE
            generation = self._asked_generation()
        if generation == self._generation and not self._again.is_set():
            return None
        self._again.clear()
        made = self._make()
        self._generation = generation
        return made

    def _asked_generation(self) -> int:
        if self._address is None:
            return 0
        return int(ask(self._address, {"request": "generation"})["generation"])
