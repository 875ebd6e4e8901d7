"""The options of ``topompi map`` that say where ranks can go, and the machine that they make up."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ...errors import SettingError, TopompiError
from ...inputs.hostlist import ALL, read_hosts
from ...inputs.slurm.environment import HOSTS as JOB_HOSTS
from ...mapping.machine import Machine
from ...topology import Report, Routes, load_routes
from ...views.allocation import allocation_of, machine_on

__all__ = ["MapCommandError", "Place"]


class MapCommandError(TopompiError, ValueError):
    """The command was asked for a map that cannot be made, or of what cannot be read."""


@dataclass(frozen=True)
class Place:
    """The options that say where ranks can go, each None where it was not given.

    :param topology: a topology source, see `topompi.topology.load`.
    :param lfts: forwarding tables of that source.
    :param hosts: a host list or a file of hosts.
    :param slots: slots of each host, see `topompi.inputs.slurm.environment.parse_slots`.
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
        return machine_on(routes, names, slots, source=self.topology or "")

    def _allocation(self, ranks: int, all_hosts: Sequence[str]) -> tuple[Sequence[str], Sequence[int]]:
        """Hosts and slots; standard error is told if they are the first ones of more."""
        try:
            found = allocation_of(ranks, all_hosts, self.hosts, self.slots, os.environ)
        except SettingError as error:
            raise MapCommandError(str(error)) from error
        if found.is_part:
            job = (
                f"no --hosts and no {JOB_HOSTS}: the map is for the first {len(found.hosts):,} hosts of {self.topology}"
            )
            print(f"{job}, {found.hosts[0]} to {found.hosts[-1]}; --hosts {ALL} takes all", file=sys.stderr)
        return found.hosts, found.slots

    def routes(self, report: Report) -> Routes:
        """The routes of ``topology``, which is read once."""
        if not self.loaded:
            report.step(f"reading {self.topology}")
            routes = load_routes(self.topology or "", self.lfts, report)
            self.loaded.append(routes)
        return self.loaded[0]
