"""The running jobs of a Slurm on a fabric: their nodes, their colours, the links that they share, and their picture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ....inputs.hostlist import HostNames
from ....topology import Routes
from ....topology.labels import switch_labels
from ....views.cluster import cluster_of
from ....views.picture.cells import JOB_COLOURS, Cell, MarkedLink, cell_scene
from ....views.picture.names import link_name
from ....views.picture.writers import svg
from ...jobs import Cluster
from ...jobs.isolation import Conflicts
from ...jobs.now import node_names, shared_links
from ..snapshot import SlurmJob, SlurmSnapshot

__all__ = ["Holdings", "Site", "colours_of"]

NEIGHBOURS = 6  # jobs that a tool tip names
WIDE = 1160.0  # pixels; least width of the picture, which fills the page's width


@dataclass(frozen=True, eq=False)
class Site:
    """The machine that a page shows.

    :param routes: the routes over the whole fabric.
    :param name: name of the machine.
    :param note: sentence about the fabric that its readers have to know.
    """

    routes: Routes
    name: str
    note: str = ""

    @cached_property
    def cluster(self) -> Cluster:
        """The machine as the nodes, leaves and links that jobs use."""
        return cluster_of(self.routes)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the nodes."""
        return node_names(self.cluster)

    @cached_property
    def known(self) -> HostNames:
        """The names, to find a node's number."""
        return HostNames(self.names)

    @cached_property
    def labels(self) -> list[str]:
        """Labels of the switches."""
        return switch_labels(self.routes.fabric)

    def numbers(self, hosts: Iterable[str]) -> NDArray[np.int64]:
        """Return the ascending numbers of the nodes among some hosts; hosts of other machines are left out."""
        found = {self.known.find(host) for host in hosts} - {-1}
        return np.array(sorted(found), dtype=np.int64)

    def link(self, number: int) -> str:
        """Return the name of a link."""
        return link_name(self.routes.fabric, number, self.labels)


class Holdings:
    """The jobs that hold nodes of a machine at one moment.

    :param snapshot: Slurm's state.
    :param site: the machine.
    :param before: the holdings at an earlier moment, whose jobs keep their colours; if the jobs are the same, the links
        that they share are not searched again.
    :ivar jobs: the jobs with nodes of this machine, in Slurm's order.
    :ivar nodes: numbers of the nodes of each of these jobs, ascending.
    :ivar outside: jobs with nodes that are not in this machine.
    :ivar colours: colour of each job, by its name.
    :ivar closed: numbers of the nodes that take no further jobs, with those that Slurm does not know.
    :ivar busy: numbers of the nodes that the jobs hold.
    """

    def __init__(self, snapshot: SlurmSnapshot, site: Site, before: Holdings | None = None) -> None:
        self._site = site
        self._states = {site.known.find(name): states for name, states in snapshot.states.items()}
        holding = [job for job in snapshot.jobs if job.holds]
        found = [(job, site.numbers(job.hosts)) for job in holding]
        self.jobs: list[SlurmJob] = [job for job, nodes in found if len(nodes)]
        self.nodes = [nodes for _, nodes in found if len(nodes)]
        self.outside = [job for job, nodes in found if len(nodes) < len(set(job.hosts))]
        self.colours: dict[str, str] = colours_of([job.id for job in self.jobs], before.colours if before else {})
        if before is not None and before.held == self.held:
            self.conflicts = before.conflicts
        unknown = set(range(len(site.names))) - self._states.keys()
        self.closed = frozenset(unknown.union(site.numbers(snapshot.closed).tolist()))
        self.busy = frozenset(node for nodes in self.nodes for node in nodes.tolist())

    @cached_property
    def conflicts(self) -> Conflicts:
        """The pairs of jobs, by their positions in ``jobs``, that share links or nodes."""
        return shared_links(self.nodes, self._site.cluster)

    @property
    def held(self) -> list[tuple[str, tuple[str, ...]]]:
        """Name and hosts of each of the jobs."""
        return [(job.id, job.hosts) for job in self.jobs]

    @property
    def key(self) -> object:
        """Value that changes whenever the picture does."""
        users = [job.user for job in self.jobs]
        return self.held, users, self.colours, tuple((node, self.state_words(node)) for node in sorted(self.closed))

    def state_words(self, node: int) -> str:
        """Return the states of a node in Slurm's words."""
        return ", ".join(sorted(self._states.get(node, {"no node of Slurm"})))

    def partners(self) -> dict[str, list[str]]:
        """Return the names of the jobs with which each job shares links, by its name."""
        found: dict[str, list[str]] = {}
        for one, other in self.conflicts.pairs:
            found.setdefault(self.jobs[one].id, []).append(self.jobs[other].id)
            found.setdefault(self.jobs[other].id, []).append(self.jobs[one].id)
        return found

    def picture(self) -> str:
        """Draw the machine with its jobs as SVG."""
        fabric = self._site.routes.fabric
        number = {name: host for host, name in enumerate(fabric.hosts)}
        cells = [Cell("no adapter")] * fabric.num_hosts
        on_node: dict[int, list[SlurmJob]] = {}
        for job, nodes in zip(self.jobs, self.nodes, strict=True):
            for node in nodes.tolist():
                on_node.setdefault(node, []).append(job)
        for node, name in enumerate(self._site.names):
            cells[number[name]] = self._cell(node, on_node.get(node, []))
        return svg(cell_scene(self._site.routes, "Fabric", cells, self._marked(), WIDE))

    def _cell(self, node: int, jobs: list[SlurmJob]) -> Cell:
        words = [f"job {job.id}, {job.user}" if job.user else f"job {job.id}" for job in jobs[:NEIGHBOURS]]
        words += [f"and {len(jobs) - NEIGHBOURS} more jobs"] if len(jobs) > NEIGHBOURS else []
        is_closed = node in self.closed
        words += [self.state_words(node)] if is_closed else []
        names = tuple(job.id for job in jobs)
        return Cell("; ".join(words) or "free", names, tuple(self.colours[name] for name in names), is_closed)

    def _marked(self) -> dict[int, MarkedLink]:
        pairs = self.conflicts.pairs
        if not pairs:
            return {}
        links = np.concatenate([*pairs.values()]).repeat(2)
        jobs = np.array([*pairs]).repeat([len(of_pair) for of_pair in pairs.values()], axis=0).ravel()
        link, job = np.divmod(np.unique(links * len(self.jobs) + jobs), len(self.jobs))
        numbers, starts = np.unique(link, return_index=True)
        users = [[self.jobs[one].id for one in part] for part in np.split(job, starts[1:])]
        marked = [MarkedLink(f"shared by jobs {_listed(names)}", tuple(names)) for names in users]
        return dict(zip(numbers.tolist(), marked, strict=True))


def _listed(names: list[str]) -> str:
    return ", ".join(names[:NEIGHBOURS]) + (f" and {len(names) - NEIGHBOURS} more" if len(names) > NEIGHBOURS else "")


def colours_of(jobs: Iterable[str], before: Mapping[str, str]) -> dict[str, str]:
    """Return a colour for each job; a job keeps its colour, a new one gets a colour that the fewest others have.

    :param jobs: names of the jobs.
    :param before: colours of the jobs before.
    """
    names = list(dict.fromkeys(jobs))
    found = {name: before[name] for name in names if name in before}
    uses = dict.fromkeys(JOB_COLOURS, 0)
    for colour in found.values():
        uses[colour] += 1
    for name in names:
        if name not in found:
            found[name] = min(JOB_COLOURS, key=uses.__getitem__)
            uses[found[name]] += 1
    return {name: found[name] for name in names}
