"""A reader of the field ``Topology`` of Slurm's nodes, in ``slurm.conf`` or as ``scontrol show node`` prints it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from ...errors import SourceError
from ..files import InputFile
from ..hostlist import expand
from ..jsontext import parse_json
from .switches import Note, Problem, SwitchRow, counted, no_note
from .topologyblocks import join_blocks
from .topologyconf import logical_lines

__all__ = ["NAME", "read_switches", "recognise"]

NAME = "Topology= of Slurm's nodes (scontrol show node, slurm.conf)"

_NODE = re.compile(r"NodeName\s*=\s*(\S+)", re.IGNORECASE)
_PARTITION = re.compile(r"PartitionName\s*=", re.IGNORECASE)
# A comment that an administrator wrote stands before the field, which therefore is the last one of a line.
_FIELD = re.compile(r"(?:.*\s)?Topology\s*=\s*\"?([^\s\"]*)", re.IGNORECASE)
# Each pair: patterns that both occur in a text, because one pattern for both would search in quadratic time.
_TEXT = (
    re.compile(r"^[ \t]*NodeName[ \t]*=", re.MULTILINE | re.IGNORECASE),
    re.compile(r"(?:^|[ \t])Topology[ \t]*=[ \t]*\"?[^\s:,\"]{1,64}:", re.MULTILINE | re.IGNORECASE),
)
_JSON = (re.compile(r"\"nodes\"\s*:"), re.compile(r"\"topology\"\s*:\s*\"[^\":,]{1,64}:"))

Place = tuple[str, str, str]  # host list, value of Topology, ``file:line``


def recognise(head: str) -> bool:
    """Return whether the text has a node with a field ``Topology``."""
    return all(pattern.search(head) for pattern in (_JSON if head.lstrip()[:1] == "{" else _TEXT))


def read_switches(
    texts: Sequence[InputFile], problem: Problem, note: Note = no_note, name: str | None = None
) -> list[SwitchRow]:
    """Read the switches or the block above each node in one topology: the named one, else the first.

    The field has the form ``TOPOLOGY:SWITCH:...:LEAF`` or ``TOPOLOGY:BLOCK``, several separated by commas. A node that
    is not in the topology is left out.

    :param texts: the files, which are read as one.
    :param problem: function that is called with each error, which names file and line.
    :param note: function that is called with remarks on other topologies and on nodes that are left out.
    :param name: name of the topology to read; None for the first one.
    :raises SourceError: if no node is in the topology, or it consists of coordinates, as rings and tori do.
    """
    paths: dict[str, dict[str, tuple[list[str], str]]] = {}
    bare = []
    for hosts, value, place in (row for text in texts for row in _nodes(text)):
        try:
            names = expand(hosts)
        except SourceError as error:
            problem(SourceError(f"{place}: {error}"))
            continue
        bare += [] if value else names
        for unit in filter(None, value.split(",")):
            topology, *path = unit.split(":")
            if not path or not all(path):
                problem(SourceError(f"{place}: expecting Topology=NAME:SWITCH, got {unit[:60]!r}"))
                continue
            paths.setdefault(topology, {}).update(dict.fromkeys(names, (path, place)))
    at = next(iter(paths), "") if name is None else name
    if at not in paths:
        raise SourceError(
            f"{texts[0].name}: expecting one of the topologies {', '.join(paths) or '(none)'}, got {at!r}"
        )
    if others := [other for other in paths if other != at and name is None]:
        note(f"{texts[0].name}: topology {at} is read; SOURCE#NAME reads another one: {', '.join(others)}")
    if bare:
        some = ", ".join(bare[:5]) + (", ..." if len(bare) > 5 else "")
        note(f"{texts[0].name}: {len(bare):,} nodes without Topology= are left out: {some}")
    return list(counted(_rows(paths[at], at, problem)))


def _rows(found: Mapping[str, tuple[list[str], str]], topology: str, problem: Problem) -> Sequence[SwitchRow]:
    place = next(place for _, place in found.values())
    if len({tuple(path) for path, _ in found.values()}) == len(found) and all(
        len(path) > 1 and path[-1].isdecimal() for path, _ in found.values()
    ):
        got = f"coordinates in a ring or torus ({topology}): give Slurm's topology.yaml"
        raise SourceError(f"{place}: expecting switches or a block above each node, got {got}")
    nodes: dict[str, list[str]] = defaultdict(list)
    below: dict[str, dict[str, None]] = defaultdict(dict)
    where: dict[str, str] = {}
    for host, (path, line) in found.items():
        nodes[path[-1]].append(host)
        for upper, lower in pairwise(path):
            below[upper].setdefault(lower)
        for switch in path:
            where.setdefault(switch, line)
    rows = [SwitchRow(switch, tuple(nodes[switch]), tuple(below[switch]), line) for switch, line in where.items()]
    return rows if any(below.values()) else join_blocks(rows, (), problem)


def _nodes(text: InputFile) -> Iterator[Place]:
    """Yield host list, value of the field (empty if there is none) and place of each node."""
    if text.head().lstrip().startswith("{"):
        yield from _of_json(text)
        return
    default, node, value, place = "", "", "", ""
    for line_place, line in logical_lines(text):
        begins = _NODE.match(line)
        if node and (begins or _PARTITION.match(line)):
            yield node, value, place
            node = ""
        if begins:
            node, value, place = begins[1], default, line_place
        if node and (field := _FIELD.match(line)):
            value = field[1]
        if node.upper() == "DEFAULT":
            default, node = value, ""
    if node:
        yield node, value, place


def _of_json(text: InputFile) -> Iterator[Place]:
    root = parse_json(text.data(), text.name, SourceError)
    nodes = root.get("nodes") if isinstance(root, dict) else None
    for number, node in enumerate(nodes if isinstance(nodes, list) else []):
        place = f"{text.name}: node {number}"
        if not isinstance(node, dict) or not isinstance(node.get("name"), str):
            raise SourceError(f"{place}: expecting a node with a name, got {type(node).__name__}")
        value = node.get("topology")
        yield node["name"], value if isinstance(value, str) else "", place
