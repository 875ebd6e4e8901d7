"""The network on which jobs are simulated side by side, as flows or as packets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ...netsim import FlowSession, Hosts, Program, Session, Tables
from ...netsim.packets import PacketSession, Settings
from ...network import Tables as Network
from ..jobs import Cluster
from ..jobs.isolation import TableRoutes
from .errors import InterferenceError

__all__ = ["MODELS", "SharedNetwork", "components", "shared_network"]

MODELS = ("flow", "packet")


@dataclass(frozen=True, eq=False)
class SharedNetwork:
    """Links, routes and the model by which messages share them.

    :param tables: links and routes between nodes.
    :param model: ``flow`` or ``packet``.
    :param hosts: costs of the hosts.
    :param settings: settings of switches and adapters in the packet model.
    :param circles: whether the packet model takes routes that may deadlock.
    """

    tables: Tables
    model: str = "flow"
    hosts: Hosts = field(default_factory=Hosts)
    settings: Settings = field(default_factory=Settings)
    circles: bool = False

    def __post_init__(self) -> None:
        if self.model not in MODELS:
            raise InterferenceError(f"network: expecting one of {', '.join(MODELS)}, got {self.model!r}")

    def session(self) -> Session:
        """A simulation without programs, at time 0."""
        if self.model == "flow":
            return FlowSession(self.tables, hosts=self.hosts)
        return PacketSession(self.tables, hosts=self.hosts, settings=self.settings, circles=self.circles)

    def seconds(self, program: Program) -> float:
        """The simulated time of a program alone on this network, in seconds.

        :param program: the program, on nodes of this network.
        Cost: a simulation.
        """
        session = self.session()
        handle = session.add(program)
        while session.waiting:
            session.advance()
        return float(session.runs(handle).seconds[0])

    def base_seconds(self, program: Program) -> float:
        """T_base, the simulated time of a program on a crossbar with its nodes' own links, in seconds.

        :param program: the program, on nodes of this network.
        Cost: a simulation.
        """
        nodes, host = np.unique(program.hosts, return_inverse=True)
        return self.crossbar(nodes).seconds(replace(program, hosts=host))

    def crossbar(self, nodes: NDArray[np.int64]) -> SharedNetwork:
        """The network of some nodes on one switch, with the nodes' own links (``xgft 1:N:1``); node i is ``nodes[i]``.

        :param nodes: different nodes, shape (n,).
        """
        out = self.tables.uplink[self.tables.adapters[0][nodes]]
        into = _downlinks(self.tables)[self.tables.adapters[0][nodes]]
        one = Network.one_switch(len(nodes))
        both = np.concatenate((out, into))
        tables = Tables(
            source=one.source,
            target=one.target,
            rate=self.tables.rate[both],
            latency=self.tables.latency[both],
            next_link=one.next_link,
        )
        return replace(self, tables=tables)

    def pairs(self, program: Program) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """Sending node, receiving node and bytes of each pair of nodes that exchange messages in a run of a program.

        :param program: the program, on nodes of this network.
        """
        messages, size = program.messages, self.tables.num_hosts
        key = program.hosts[messages.source] * size + program.hosts[messages.destination]
        pair, which = np.unique(key, return_inverse=True)
        nbytes = np.bincount(which, messages.nbytes, len(pair))
        apart = pair // size != pair % size
        return pair[apart] // size, pair[apart] % size, nbytes[apart]

    def link_bytes(self, programs: Sequence[Program]) -> NDArray[np.float64]:
        """The bytes that a run of each program sends over each link, shape (programs, links).

        :param programs: programs on nodes of this network.
        """
        return np.array([self.tables.loads(*self.pairs(program)) for program in programs])

    def uses(self, program: Program) -> NDArray[np.bool_]:
        """Whether a program uses each link, shape (links,); in the packet model control packets go back, too.

        :param program: the program, on nodes of this network.
        """
        source, destination, _ = self.pairs(program)
        if self.model == "packet":
            source, destination = np.append(source, destination), np.append(destination, source)
        found: NDArray[np.bool_] = self.tables.loads(source, destination, np.ones(len(source))) > 0
        return found

    def link_name(self, link: int) -> str:
        """The name of a link: ``FROM → TO``, as in pictures of fabrics.

        :param link: number of the link.
        """
        return " → ".join(self.tables.name(int(ends[link])) for ends in (self.tables.source, self.tables.target))


def shared_network(cluster: Cluster, rate: float | None = None, latency: float | None = None) -> Tables:
    """The links and routes of a cluster for simulations, whose hosts are the cluster's nodes.

    A node uses its first adapter alone, and the first of alternative routes.

    :param cluster: cluster of a topology source.
    :param rate: rate in bytes/s of links of unknown rate; None to refuse them.
    :param latency: latency in seconds of links of unknown latency; None to refuse them.
    :raises InterferenceError: if the cluster has no routes, or a rate or latency is unknown.
    """
    if not isinstance(cluster.routes, TableRoutes):
        raise InterferenceError(f"{cluster.name}: expecting a topology source with routes, got leaves and pods")
    filled = cluster.routes.network.filled(rate, latency)
    for name, column in (("rate", filled.rate), ("latency", filled.latency)):
        if unknown := int(np.isnan(column).sum()):
            raise InterferenceError(f"{cluster.name}: expecting the {name} of all links, got {unknown} unknown")
    columns = {name: getattr(filled, name) for name in ("source", "target", "rate", "latency", "names")}
    return Tables(**columns, next_link=filled.table, adapters=filled.adapters[:1])


def components(network: SharedNetwork, programs: list[Program]) -> list[list[int]]:
    """Groups of programs that share links, directly or through others; programs of different groups share none.

    Each group can be simulated by itself, because the models know nothing that crosses from link to link without a
    message. Only processors that all ranks share join all programs.

    :param network: the network.
    :param programs: programs on nodes of this network.
    """
    from scipy.sparse import coo_array  # imported here, because the import would delay every command
    from scipy.sparse.csgraph import connected_components

    count = len(programs)
    if network.model == "packet" and network.settings.processors:
        return [list(range(count))]
    used = [np.flatnonzero(network.uses(program)) for program in programs]
    job = np.repeat(np.arange(count), [len(links) for links in used])
    links = np.concatenate([np.empty(0, dtype=np.int64), *used]) + count
    size = count + network.tables.num_links
    graph = coo_array((np.ones(len(job)), (job, links)), shape=(size, size))
    label = connected_components(graph, directed=False)[1][:count]
    return [np.flatnonzero(label == one).tolist() for one in dict.fromkeys(label.tolist())]


def _downlinks(tables: Tables) -> NDArray[np.int64]:
    """The link into each adapter, shape (adapters,); -1 for adapters without one."""
    found = np.full(tables.first_switch, -1, dtype=np.int64)
    into = np.flatnonzero(tables.target < tables.first_switch)
    found[tables.target[into[::-1]]] = into[::-1]  # the first of several
    return found
