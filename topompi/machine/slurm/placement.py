"""The placement of a job's tasks on the nodes of its allocation, by the bytes that the tasks exchange."""

from __future__ import annotations

import os
from collections.abc import Mapping as Table
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import SettingError, TopompiError
from ...inputs.hostlist import ALL
from ...inputs.slurm.environment import HOSTS, NODE, SLOTS, STEP, TASKS, own_address
from ...mapping.comparison import compare, hops_known
from ...mapping.graph import CommunicationGraph
from ...mapping.machine import Machine
from ...mapping.mapping import Mapping
from ...mapping.readers import read_graph
from ...mapping.search import Search, solve
from ...topology import Report, Routes, TopologyInterface
from ...topology.sources import automatic
from ...views.allocation import MOST_ROUTED, Allocation, allocation_of
from ...views.machine import machine_of

__all__ = ["PlacementError", "TaskPlacement", "fitting_graph", "nodes_of_job", "place", "tasks_of_job"]


class PlacementError(TopompiError, ValueError):
    """The tasks cannot be placed, because no allocation is known, or it has fewer slots than tasks."""


@dataclass(frozen=True)
class TaskPlacement:
    """A placement of a job's tasks, and the figures of it and of the given order.

    :param mapping: node and slot of each task.
    :param machine: nodes, slots and distances.
    :param source: source of the distances, in words.
    :param figures: figures of the mappings ``given`` and ``placed``, see `compare`, with ``across_nodes`` and
        ``across_leaves`` (bytes; the latter is None if no leaf switches are known) in each; None without a graph.
    """

    mapping: Mapping
    machine: Machine
    source: str
    figures: dict[str, Any] | None

    @property
    def hosts(self) -> list[str]:
        """The name of each task's node."""
        return [self.mapping.hosts[host] for host in self.mapping.host_of_rank.tolist()]

    def told(self) -> dict[str, object]:
        """The placement and its figures, ready for JSON."""
        return {
            "tasks": self.mapping.size,
            "nodes": list(self.machine.hosts),
            "slots": self.machine.slots.tolist(),
            "hosts": self.hosts,
            "source": self.source,
            "figures": self.figures,
        }

    def words(self) -> str:
        """One line about what the placement gains: bytes across nodes and leaf switches, before and after."""
        head = f"{self.mapping.size:,} tasks on {len(set(self.hosts)):,} of {self.machine.num_hosts:,} nodes"
        if self.figures is None:
            return f"{head}, in the given order"
        before, after = self.figures["maps"].values()
        gained = [f"bytes across nodes {_change(before, after, 'across_nodes')}"]
        if before["across_leaves"] is not None:
            gained.append(f"across leaf switches {_change(before, after, 'across_leaves')}")
        return f"{head}; {', '.join(gained)}; topology: {self.source}"


def nodes_of_job(
    environment: Table[str, str], ranks: int | None, hosts: str | None = None, slots: str | None = None
) -> Allocation:
    """Return the nodes of the Slurm job with their slots; ``hosts`` and ``slots`` replace the job's.

    :param environment: environment of a task, a batch script or the shell of ``salloc``.
    :param ranks: number of tasks, which are distributed evenly if no slots are known; None if it is unknown.
    :param hosts: a host list or a file of hosts; None for those of the job.
    :param slots: slots of each host; None for those of the job.
    :raises PlacementError: if there is no job and no ``hosts``, or no slots are known and no number of tasks.
    :raises SourceError: if the host list is malformed.
    :raises SettingError: if the slots are malformed or do not fit the hosts.
    """
    job = environment if hosts is None else {}
    if hosts is None and not job.get(HOSTS):
        wanted = f"an allocation of Slurm ({HOSTS}, {SLOTS})"
        raise PlacementError(f"expecting {wanted}, got none; --hosts LIST and --slots N replace it")
    if hosts == ALL:
        raise PlacementError(f"--hosts: expecting names of nodes, got {ALL!r}")
    try:
        found = allocation_of(ranks or 0, (), hosts, slots, job)
    except SettingError as error:
        if slots is not None or not job.get(STEP):
            raise
        raise PlacementError(
            f"{error}; a step of srun has its own: place the tasks before it, or give --slots"
        ) from error
    if ranks is None and not any(found.slots):
        raise PlacementError("expecting slots of the nodes or a number of tasks, got neither: give --slots or -n")
    return found


def tasks_of_job(environment: Table[str, str], hosts: str | None = None) -> int | None:
    """Return the number of tasks that the job was submitted with (``-n``); None if Slurm does not tell.

    :param environment: environment of a task, a batch script or the shell of ``salloc``.
    :param hosts: value of ``--hosts``, beside which the job's own number does not count.
    """
    told = environment.get(TASKS, "") if hosts is None else ""
    return int(told) if told.isascii() and told.isdigit() and 0 < len(told) < 10 and int(told) else None


def fitting_graph(
    path: str | os.PathLike[str] | None,
    ranks: int | None,
    size: int | None = None,
    columns: Sequence[str] = (),
    notes: list[str] | None = None,
) -> tuple[CommunicationGraph | None, str]:
    """Read the communication graph; if there is none, or it does not fit, return None and the reason.

    Without a graph all pairs of tasks weigh the same (Subramoni 2013, section 8), and no order of them is better than
    the given one.

    :param path: path of the graph, in any format that `read_graph` reads; None if there is none.
    :param ranks: number of tasks that the graph must have; None to accept every number.
    :param size: number of tasks to which a list that names fewer is filled up; None for those that it names.
    :param columns: names of the columns of a list.
    :param notes: list that receives a line per guess that can be wrong.
    :raises TopompiError: if the graph cannot be read.
    """
    if path is None:
        return None, "no PROFILE"
    try:
        graph = read_graph(path, size, columns, notes)
    except TopompiError as error:
        if size is None:
            raise
        read_graph(path, None, columns)  # raises its own error unless only the number of ranks is wrong
        return None, str(error)
    if ranks is not None and graph.size != ranks:
        return None, f"{path}: expecting {ranks:,} ranks, as the job has tasks, got {graph.size:,}"
    return graph, ""


def place(
    ranks: int,
    nodes: Allocation,
    graph: CommunicationGraph | None,
    search: Search,
    report: Report,
    *,
    environment: Table[str, str],
    routes: Routes | None = None,
    source: str = "",
) -> TaskPlacement:
    """Place tasks on the nodes of a job.

    :param ranks: number of tasks.
    :param nodes: nodes of the job, with their slots.
    :param graph: bytes that the tasks exchange; None to keep the given order.
    :param search: settings of the search.
    :param report: receiver of progress.
    :param environment: environment of a task, a batch script or the shell of ``salloc``.
    :param routes: routes over a fabric that has the nodes; None to find them as the source ``auto`` does, in which case
        nodes that no source knows are equally far from each other.
    :param source: source of ``routes``, in words.
    :raises PlacementError: if there are fewer slots than tasks.
    :raises HostError: if a node is not in the fabric of ``routes``.

    Cost: that of the mapper; with ``auto`` also that of `automatic.find`.
    """
    if ranks > sum(nodes.slots):
        have = f"{sum(nodes.slots):,} on {len(nodes.hosts):,} nodes"
        raise PlacementError(f"expecting a slot for each of {ranks:,} tasks, got {have}")
    if graph is None:  # no distance matters
        interface = TopologyInterface.place(nodes.hosts, None, virtual=True)
    elif routes is None:
        interface = _found(nodes, environment, report)
    else:
        interface = TopologyInterface.place(nodes.hosts, routes, source=source, virtual=True)
    known = interface.routes is not None
    machine = machine_of(interface, nodes.slots, nodes.hosts, routes=known and len(nodes.hosts) <= MOST_ROUTED)
    given = Mapping.identity(machine, ranks)
    if graph is None:
        return TaskPlacement(given, machine, interface.source, None)
    report.step(f"placing {ranks:,} tasks: {search.algorithm}")
    placed = solve(search, graph, machine, report.step)
    figures = compare(graph, machine, {"given": given, "placed": placed}, from_topology=True)
    leaves = known and hops_known(machine, from_topology=True)
    for side in figures["maps"].values():
        within = side["bytes_by_distance"]
        side["across_nodes"] = side["bytes"] - within["host"]
        side["across_leaves"] = side["across_nodes"] - within.get("1", 0) if leaves else None
    return TaskPlacement(placed, machine, interface.source, figures)


def _found(nodes: Allocation, environment: Table[str, str], report: Report) -> TopologyInterface:
    """The nodes on the topology that the source ``auto`` finds; on one flat level if it finds none that has them."""
    own, node = own_address(environment), environment.get(NODE, "")
    found = automatic.find(nodes.hosts, {} if own is None else {node: own}, environment, report)
    routes = None if found.discovery is None else found.discovery.routes
    words = found.words if routes is not None else f"nodes only: {found.words}"
    return TopologyInterface.place(nodes.hosts, routes, source=words, virtual=True, missing="flat")


def _change(before: dict[str, Any], after: dict[str, Any], key: str) -> str:
    return f"{before[key]:,} -> {after[key]:,} ({_percent(before, key)} -> {_percent(after, key)})"


def _percent(side: dict[str, Any], key: str) -> str:
    return f"{100 * side[key] / side['bytes'] if side['bytes'] else 0.0:.1f} %"
