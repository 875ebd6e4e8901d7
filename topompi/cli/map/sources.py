"""What ``topompi map`` works on: the job's hosts, their slots, and the machine that these make up."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from ...errors import TopompiError
from ...inputs.hostlist import read_hosts
from ...inputs.slurm.environment import HOSTS as JOB_HOSTS
from ...inputs.slurm.environment import SLOTS as TASKS
from ...inputs.slurm.environment import parse_slots
from ...mapping.machine import Machine
from ...topology import Report, Routes, TopologyInterface, load
from ...views.machine import machine_of
from ..hosts import ALL
from ..terminal import console

__all__ = ["MapCommandError", "Place", "reading"]

MOST_ROUTED = 1024  # hosts; the routes of more take gigabytes


class MapCommandError(TopompiError, ValueError):
    """The command was asked for a map that cannot be made, or of what cannot be read."""


@contextmanager
def reading() -> Iterator[Report]:
    """A report whose progress a terminal shows; errors of mappers and readers become the command line's."""
    with console(to_error=True).status("reading") as status:

        def progress(what: str, done: int, total: int) -> None:
            status.update(f"{what} {done}/{total}" if total else what)

        try:
            yield Report(progress=progress)
        except TopompiError:
            raise
        except ValueError as error:
            raise MapCommandError(str(error)) from error


@dataclass(frozen=True)
class Place:
    """The options that say where ranks can go, each None where it was not given.

    :param topology: a topology source, see `topompi.topology.load`.
    :param lfts: forwarding tables of that source.
    :param hosts: a host list or a file of hosts.
    :param slots: see `parse_slots`.
    :param machine: slots a host, hosts a cluster, clusters a cluster above: ``16:16:8``.
    :param distances: of two ranks that share a host, a cluster, ...: ``1:10:100``.
    :param loaded: the topology's routes once they were read.
    """

    topology: str | None
    lfts: Path | None
    hosts: str | None
    slots: str | None
    machine: str | None
    distances: str | None
    loaded: list[Routes] = field(default_factory=list, repr=False, compare=False)

    def check(self) -> None:
        """Refuse options that contradict each other, before any long work.

        :raises MapCommandError: for no source of distances, for two, or for --slots beside --machine.
        """
        if (self.topology is None) == (self.machine is None):
            raise MapCommandError("expecting either --topology SOURCE or --machine with --distances")
        if (self.machine is None) != (self.distances is None):
            raise MapCommandError("expecting --machine and --distances together, such as 16:16:8 and 1:10:100")
        if self.machine is not None and self.slots is not None:
            raise MapCommandError("expecting no --slots beside --machine, whose first number they are")

    @property
    def source(self) -> str:
        """Where distances come from, in words."""
        return self.topology if self.topology is not None else f"{self.machine}, distances {self.distances}"

    def build(
        self, ranks: int, report: Report, allocation: tuple[Sequence[str], Sequence[int]] | None = None
    ) -> Machine:
        """The machine for so many ranks.

        :param ranks: number of ranks that need a slot.
        :param report: takes the problems and the progress of reading.
        :param allocation: hosts and slots where the options name neither: those of a map's file.
        :raises MapCommandError: where there are fewer slots than ranks.
        """
        self.check()
        machine = self._hierarchy() if self.machine is not None else self._of_topology(ranks, report, allocation)
        if machine.num_slots < ranks:
            raise MapCommandError(
                f"expecting a slot for each of {ranks} ranks, got {machine.num_slots} on {machine.num_hosts} hosts"
            )
        return machine

    def _hierarchy(self) -> Machine:
        machine = Machine.hierarchy(self.machine or "", self.distances or "")
        if self.hosts is None:
            return machine
        names = read_hosts(self.hosts)
        if len(names) != machine.num_hosts:
            raise MapCommandError(f"expecting {machine.num_hosts} --hosts for --machine, got {len(names)}")
        return replace(machine, hosts=tuple(names))

    def _of_topology(
        self, ranks: int, report: Report, allocation: tuple[Sequence[str], Sequence[int]] | None
    ) -> Machine:
        routes = self.routes(report)
        names, slots = self._allocation(ranks, routes.fabric.hosts) if allocation is None else allocation
        report.step("distances")
        interface = TopologyInterface.place(names, routes, source=self.topology or "", virtual=True)
        return machine_of(interface, slots, names, routes=len(names) <= MOST_ROUTED)

    def routes(self, report: Report) -> Routes:
        """The routes of ``topology``, which is read once."""
        if not self.loaded:
            report.step(f"reading {self.topology}")
            routes = load(self.topology or "", self.lfts, report).routes
            assert routes is not None  # load() fills them in
            self.loaded.append(routes)
        return self.loaded[0]

    def _allocation(self, ranks: int, all_hosts: Sequence[str]) -> tuple[list[str], list[int]]:
        """Hosts and slots: as told, else the Slurm job's, else the first hosts that the ranks fill.

        Slots are the ranks evenly in blocks over all hosts where nobody says how many there are.
        """
        in_slurm = os.environ.get(JOB_HOSTS) if self.hosts is None else None
        written = self.hosts or in_slurm
        listed = list(all_hosts) if written in (None, ALL) else read_hosts(str(written))
        names = list(dict.fromkeys(listed))
        slots = self.slots or (os.environ.get(TASKS) if in_slurm else None)
        if slots is not None:
            if len(names) < len(listed):
                raise MapCommandError("expecting each host once beside --slots")
            counts = parse_slots(slots, len(names), MapCommandError, "--slots")
        elif len(names) < len(listed):  # one name a slot
            counts = [listed.count(name) for name in names]
        else:
            counts = (ranks // len(names) + (np.arange(len(names)) < ranks % len(names))).tolist()
        return self._filled(ranks, names, counts) if written is None else (names, counts)

    def _filled(self, ranks: int, names: list[str], counts: list[int]) -> tuple[list[str], list[int]]:
        """The first hosts that the ranks fill; standard error is told where there are more."""
        filled = int(np.searchsorted(np.cumsum(counts), ranks)) + 1
        if filled < len(names):
            job = f"no --hosts and no {JOB_HOSTS}: the map is for the first {filled:,} hosts of {self.topology}"
            print(f"{job}, {names[0]} to {names[filled - 1]}; --hosts {ALL} takes all", file=sys.stderr)
        return names[:filled], counts[:filled]
