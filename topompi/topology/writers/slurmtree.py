"""A fabric as a tree of switches, the form in which Slurm takes topologies, and a list of what this form leaves out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count

import numpy as np
from numpy.typing import NDArray

from ...errors import SourceError
from ...inputs.files import read_text
from ...inputs.slurm.switches import SwitchRow
from ..fabric import Fabric
from ..routes import Routes
from ..tree import UNREACHABLE, ClusterTree, cluster_tree

__all__ = ["named_by", "node_names", "slurm_tree"]

Integers = NDArray[np.int64]

_NODE = re.compile(r"[A-Za-z0-9][\w.-]*", re.ASCII)
_UNSAFE = re.compile(r"[^\w/:-]", re.ASCII)  # Slurm joins names by dots and lists them with commas and brackets


def slurm_tree(routes: Routes) -> tuple[list[SwitchRow], list[str]]:
    """Describe a fabric as a tree of switches: leaf switches, and groups of switches joined by increasing distance.

    A group has the name of the lowest switch above all of its hosts. If there are several, which the tree cannot hold,
    it has the first one's name with their number (``spine0-x4``). If there is none, because a group is only near, not
    below one switch, it is called ``group``. A name that is taken gets a number. Hosts of unconnected parts are below
    different roots.

    :param routes: the routes over the fabric; groups are formed by the switches that routes cross.
    :returns: definitions of the switches, leaf switches first, and remarks on what the tree leaves out.
    :raises SourceError: if no host is joined to a switch.

    Cost: (leaf switches)^2, and the routes between one host of each leaf switch.
    """
    fabric = routes.fabric
    leaf, notes = _leaf_of_hosts(fabric)
    leaves, first = np.unique(leaf[leaf >= 0], return_index=True)
    if not len(leaves):
        raise SourceError(f"{fabric.name}: expecting hosts at switches, got none")
    hosts = np.flatnonzero(leaf >= 0)
    tree = cluster_tree(routes.tables.part(hosts[first]).all_hops())
    above = _switches_above(fabric, tree, leaves)
    names = _Names(fabric)
    named = [names.of_switch(int(switch)) for switch in leaves]
    rows = [
        SwitchRow(named[number], tuple(fabric.hosts[host] for host in np.flatnonzero(leaf == switch)), (), "")
        for number, switch in enumerate(leaves.tolist())
    ]
    for node in range(tree.num_hosts, len(tree.parent)):
        if tree.height[node] == UNREACHABLE:
            notes.append(f"{len(tree.children[node]):,} parts without routes between them have roots of their own")
            named.append("")
            continue
        named.append(names.of_group(above[node]))
        rows.append(SwitchRow(named[-1], (), tuple(named[child] for child in tree.children[node]), ""))
    return rows, [*notes, *names.notes, *_lost(fabric, len(rows))]


def _leaf_of_hosts(fabric: Fabric) -> tuple[Integers, list[str]]:
    """The leaf switch of each host's first joined adapter, shape (hosts,), -1 without one; and remarks."""
    leaf = np.full(fabric.num_hosts, -1, dtype=np.int64)
    joined = np.flatnonzero(fabric.adapter_leaf >= 0)[::-1]
    leaf[fabric.adapter_host[joined]] = fabric.adapter_leaf[joined]
    several = np.flatnonzero(np.bincount(fabric.adapter_host[joined], minlength=fabric.num_hosts) > 1)
    notes = []
    if len(several):
        notes.append(f"{len(several):,} hosts have several adapters; the first one's switch counts (see --rails)")
    if alone := [fabric.hosts[host] for host in np.flatnonzero(leaf < 0)]:
        notes.append(
            f"{len(alone):,} hosts at no switch are left out: {', '.join(alone[:3])}{' ...' * (len(alone) > 3)}"
        )
    return leaf, notes


def _switches_above(fabric: Fabric, tree: ClusterTree, leaves: Integers) -> dict[int, list[int]]:
    """The lowest switches from which links down reach all leaf switches of a group, by node of the tree."""
    below = _reach(fabric, leaves)
    members: list[NDArray[np.bool_]] = list(np.eye(tree.num_hosts, dtype=bool))
    found: dict[int, list[int]] = {}
    for node in range(tree.num_hosts, len(tree.parent)):
        members.append(np.any([members[child] for child in tree.children[node]], axis=0))
        every = np.flatnonzero(below[:, members[node]].all(axis=1))
        level = fabric.switch_level[every]
        found[node] = every[level == level.min(initial=fabric.num_switches)].tolist()
    return found


def _reach(fabric: Fabric, leaves: Integers) -> NDArray[np.bool_]:
    """Whether links that lead down join each switch to each leaf switch, shape (switches, leaf switches)."""
    below = np.zeros((fabric.num_switches, len(leaves)), dtype=bool)
    below[leaves, np.arange(len(leaves))] = True
    upper, lower = (
        ends[fabric.switch_links] - fabric.num_adapters for ends in (fabric.link_source, fabric.link_target)
    )
    level = fabric.switch_level
    down = level[upper] > level[lower]
    upper, lower = upper[down], lower[down]
    for height in np.unique(level[upper]):
        at = level[upper] == height
        np.logical_or.at(below, upper[at], below[lower[at]])
    return below


class _Names:
    """A generator of switch names that Slurm accepts; it returns no name twice.

    :ivar notes: remarks on names that were changed.
    """

    def __init__(self, fabric: Fabric) -> None:
        plain = [_UNSAFE.sub("-", name) for name in fabric.switch_names]
        times = Counter(plain)
        self._switch = [
            name if times[name] == 1 else f"{name}-{_UNSAFE.sub('-', identity)}"
            for name, identity in zip(plain, fabric.switch_ids, strict=True)
        ]
        self._given: set[str] = set()
        changed = sum(one != other for one, other in zip(self._switch, fabric.switch_names, strict=True))
        self.notes = [f"names of {changed:,} switches are changed to letters that Slurm takes"] if changed else []

    def of_switch(self, switch: int) -> str:
        return self._once(self._switch[switch])

    def of_group(self, above: list[int]) -> str:
        if not above:
            return self._once("group")
        return self._once(self._switch[above[0]] + (f"-x{len(above)}" if len(above) > 1 else ""))

    def _once(self, name: str) -> str:
        found = next(
            one for number in count(1) if (one := f"{name}-{number}" if number > 1 else name) not in self._given
        )
        self._given.add(found)
        return found


def _lost(fabric: Fabric, written: int) -> Iterator[str]:
    """Yield remarks on the properties of a fabric that Slurm's formats cannot express."""
    if fabric.num_switches > written:
        yield f"{fabric.num_switches:,} switches are {written:,} here: a tree has one switch above each group"
    if fabric.cabled:
        yield "parallel cables, rates and routes are left out"


def named_by(rows: Sequence[SwitchRow], node_of: Callable[[str], str]) -> list[SwitchRow]:
    """Replace the names of hosts by Slurm's names of the nodes.

    :param rows: definitions of the switches.
    :param node_of: function from a host's name to the node's.
    :raises SourceError: if two hosts get one name, or Slurm takes no such name.
    """
    given: dict[str, str] = {}
    for host in (host for row in rows for host in row.nodes):
        node = node_of(host)
        if not _NODE.fullmatch(node):
            wanted = "node names of letters, digits, '.', '_' and '-'"
            raise SourceError(f"expecting {wanted}, got {node!r}: rename it with --nodes, or leave it out with --rails")
        if node in given:
            raise SourceError(f"expecting a node of its own for each host, got {node} for {given[node]} and {host}")
        given[node] = host
    of_host = {host: node for node, host in given.items()}
    return [replace(row, nodes=tuple(of_host[host] for host in row.nodes)) for row in rows]


def node_names(spec: str) -> Callable[[str], str]:
    """The function from a host's name to Slurm's name of the node, from a file or a rule.

    :param spec: ``s/REGEX/TEXT/`` as sed takes it, with any separator, or a file with a host and a node per line.
    :raises SourceError: if the rule or a line of the file is malformed, or a host is not in the file.
    """
    if rule := re.fullmatch(r"s(?P<separator>[^\w\s\\])(.*)(?P=separator)(.*)(?P=separator)(g?)", spec):
        try:
            pattern = re.compile(rule[2])
            pattern.sub(rule[3], "")
        except (re.error, IndexError) as error:
            raise SourceError(f"--nodes {spec}: {error}") from error
        return lambda host: pattern.sub(rule[3], host, count=0 if rule[4] else 1)
    table: dict[str, str] = {}
    for number, line in enumerate(read_text(spec, SourceError, "a list of hosts and nodes").splitlines(), 1):
        words = line.partition("#")[0].split()
        if words and len(words) != 2:
            raise SourceError(f"{spec}:{number}: expecting a host and a node, got {len(words)} words")
        if words:
            table[words[0]] = words[1]
    return lambda host: _node_in(table, host, spec)


def _node_in(table: Mapping[str, str], host: str, spec: str) -> str:
    if host not in table:
        raise SourceError(f"{spec}: expecting a line for host {host}, got none")
    return table[host]
