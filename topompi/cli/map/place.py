"""The options of ``topompi map`` that define hosts, slots and distances, and the machine made of these."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated

import numpy as np
import typer

from ...errors import SettingError, TopompiError
from ...inputs.hostlist import ALL, read_hosts
from ...inputs.slurm.environment import HOSTS as JOB_HOSTS
from ...mapping.machine import Machine
from ...mapping.mapping import Mapping
from ...topology import Report, Routes
from ...topology.hostnames import hosts_apart
from ...views.allocation import allocation_of, machine_on
from ...views.picture.names import listed
from ..inputs import Adapters, Lfts, topology

__all__ = ["MapCommandError", "PlaceOptions"]


TREE = "tree="  # begins a regular tree in the place of a topology source
_TOPOLOGY = f"A topology source, or a regular tree with its distances, lowest level first: {TREE}16:16:8@1:10:100."


class MapCommandError(TopompiError, ValueError):
    """The requested map cannot be made, or an input cannot be read."""


@dataclass(frozen=True)
class PlaceOptions(Adapters):
    """The options of ``topompi map`` that define hosts, slots and distances; an option that was not given is None.

    Distances are those of a topology, or of a regular tree.

    :param topology: topology source, see `topompi.topology.load`, or a regular tree ``tree=16:16:8@1:10:100``: slots
        per host, hosts per cluster, clusters per larger cluster; and the distance of two ranks whose smallest common
        part is a host, a cluster, a larger cluster.
    :param lfts: path of the forwarding tables of the source.
    :param hosts: a host list, the path of a file of hosts, or ``all``; hosts named once per rank are the given order.
    :param slots: number of slots of each host, see `topompi.inputs.slurm.environment.parse_slots`.
    :ivar loaded: list with the topology's routes after they were read, before that empty.
    """

    topology: Annotated[str | None, topology(_TOPOLOGY)] = None
    lfts: Lfts = None
    hosts: Annotated[
        str | None, typer.Option("--hosts", help="List, file or all; else $SLURM_JOB_NODELIST, else the first filled.")
    ] = None
    slots: Annotated[str | None, typer.Option("--slots", help="Of each host: 16, or 16,16,8, or 16(x2),8.")] = None
    loaded: list[Routes] = field(default_factory=list, init=False, repr=False, compare=False)

    def check(self) -> None:
        """Refuse options that contradict each other, before any long work.

        :raises MapCommandError: if there is no topology, or options that a regular tree has not.
        """
        if self.topology is None:
            raise MapCommandError(f"expecting --topology SOURCE or --topology {TREE}16:16:8@1:10:100, got none")
        if self.tree and "@" not in self.tree:
            raise MapCommandError(f"--topology: expecting {TREE}16:16:8@1:10:100, got {self.topology!r:.60}")
        if self.tree and self.slots is not None:
            raise MapCommandError(f"expecting no --slots beside {TREE}, whose first number they are")
        if self.tree and (self.rails or self.names or self.rule):
            raise MapCommandError(f"expecting a source beside --rails, --names and --name-rule, got {self.topology}")

    @property
    def tree(self) -> str:
        """The regular tree without its first word; empty if the topology is a source."""
        found = self.topology or ""
        return found.removeprefix(TREE) if found.startswith(TREE) else ""

    @property
    def source(self) -> str:
        """The topology source, or the regular tree and its distances in words, for headings."""
        return self.tree.replace("@", ", distances ") if self.tree else self.topology or ""

    def build(
        self, ranks: int, report: Report, allocation: tuple[Sequence[str], Sequence[int]] | None = None
    ) -> Machine:
        """Return the machine (hosts, slots and distances) to which ranks are mapped.

        :param ranks: number of ranks, each of which needs a slot.
        :param report: object that collects problems and shows progress.
        :param allocation: names of the hosts and number of slots of each, used in place of the options; None if the
            options or the Slurm job determine hosts and slots.
        :raises MapCommandError: if there are fewer slots than ranks.
        """
        self.check()
        machine = self._hierarchy() if self.tree else self._of_topology(ranks, report, allocation)
        if machine.num_slots < ranks:
            raise MapCommandError(
                f"expecting a slot for each of {ranks} ranks, got {machine.num_slots} on {machine.num_hosts} hosts"
            )
        return machine

    def given(self, machine: Machine, ranks: int) -> Mapping:
        """Return the given order: of the hosts that --hosts names once per rank, else rank r on slot r.

        :param machine: the result of ``build``.
        :param ranks: number of ranks.
        """
        listed = self.hosts not in (None, ALL) and self.slots is None and not self.tree
        names = read_hosts(self.hosts or "") if listed else []
        if len(names) != ranks:
            return Mapping.identity(machine, ranks)
        number = {name: at for at, name in enumerate(machine.hosts)}
        return Mapping.on_hosts(np.array([number[name] for name in names]), machine)

    def _hierarchy(self) -> Machine:
        machine = Machine.hierarchy(*self.tree.split("@", 1))
        if self.hosts is None:
            return machine
        names = read_hosts(self.hosts)
        if len(names) != machine.num_hosts:
            raise MapCommandError(f"expecting {machine.num_hosts} --hosts for {TREE}, got {len(names)}")
        return replace(machine, hosts=tuple(names))

    def _of_topology(
        self, ranks: int, report: Report, allocation: tuple[Sequence[str], Sequence[int]] | None
    ) -> Machine:
        routes = self.routes(report)
        names, slots = self._allocation(ranks, routes.fabric.hosts) if allocation is None else allocation
        if apart := hosts_apart(routes.fabric, names):
            report.note(
                f"{self.topology}: no links join {listed(apart)} to the other hosts; they count as farthest away"
            )
        report.step("distances")
        return machine_on(routes, names, slots, source=self.topology or "")

    def _allocation(self, ranks: int, all_hosts: Sequence[str]) -> tuple[Sequence[str], Sequence[int]]:
        """Return the job's hosts and the number of slots of each, from options, Slurm job or the fabric's first hosts.

        If they are the fabric's first hosts, a note on standard error says so.

        :param ranks: number of ranks that need a slot.
        :param all_hosts: names of the fabric's hosts.
        """
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
        """Return the routes of ``topology``, which is read only once."""
        if not self.loaded:
            report.step(f"reading {self.topology}")
            self.loaded.append(self.read(self.topology or "", self.lfts, report))
        return self.loaded[0]
