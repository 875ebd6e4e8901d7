"""Reader of the topology graph that NetQ's REST interface returns: hosts and switches by tier, and their links."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from ...errors import FabricError, SourceError
from ...inputs import InputFile, parse_json
from ..builder import FabricBuilder
from ..discovery import Discovery, Report
from ..fabric import Fabric

__all__ = ["NAME", "read", "recognise"]

NAME = "NetQ topology graph"
HOST_TIER = -1
BETWEEN = "-*-"  # separator of the two ends in a link's id

_FIELD = re.compile(r'"compounded_nodes"\s*:|"id"\s*:\s*"[^"]*-\*-')


def recognise(head: str) -> bool:
    """Whether a text begins as JSON from NetQ, with a field ``compounded_nodes`` or the id of a link."""
    return head.lstrip()[:1] in ("[", "{") and _FIELD.search(head) is not None


def read(texts: Sequence[InputFile], report: Report) -> Discovery:
    """Read the fabric of NetQ's answer to ``telemetry/v1/object/topologygraph/fetch-topology``.

    Nodes of tier -1 are hosts, with an adapter for each switch that they are linked to; all others are switches. One
    link stands for all cables between two nodes, so the number of cables and their rates are unknown.

    :param texts: the answer; exactly one.
    :param report: receiver of problems.
    :raises SourceError: if the text is no JSON, or a field is missing or of another type, with file and field.
    :raises FabricError: if a node is repeated, a link leads to a node that is not listed, or a host has no links.
    """
    if len(texts) > 1:
        raise SourceError(f"expecting one {NAME}, got {', '.join(text.name for text in texts)}")
    name = texts[0].name
    root = parse_json(texts[0].data(), name, SourceError)
    if isinstance(root, list):
        if len(root) != 1:
            raise SourceError(f"{name}: expecting one graph, got {len(root)}")
        root = root[0]
    groups = _field(root, "nodes", list, name)
    nodes = [node for group in groups for node in _field(group, "compounded_nodes", list, name)]
    links = [_field(link, "id", str, name) for link in _field(root, "links", list, name)]
    return Discovery(_fabric(name, nodes, list(dict.fromkeys(links)), report))


def _fabric(name: str, nodes: list[object], links: list[str], report: Report) -> Fabric:
    builder, host_of, linked = FabricBuilder(name, cabled=False), dict[str, str](), set[str]()
    for node in nodes:
        identity, called = _field(node, "id", str, name), _field(node, "name", str, name)
        if identity in host_of or builder.has(identity):
            report.problem(FabricError(f"{name}: node {identity} appears twice"))
        elif _field(node, "tier", int, name) == HOST_TIER:
            host_of[identity] = called
        else:
            builder.add_switch(identity, called)
    for ends in _ends(name, links, report):
        hosts = [node for node in ends if node in host_of]
        known = [node for node in ends if node in host_of or builder.has(node)]
        if len(known) < 2 or len(hosts) == 2:
            words = "two nodes of the list, one a switch at least"
            report.problem(FabricError(f"{name}: expecting {words}, got the link {BETWEEN.join(ends)}"))
            continue
        linked.update(hosts)
        one, other = ends
        builder.add_cable(_vertex(builder, host_of, one, other), _vertex(builder, host_of, other, one))
    for host in host_of.keys() - linked:
        report.problem(FabricError(f"{name}: expecting links of host {host_of[host]}, got none"))
    return builder.build()


def _ends(name: str, links: list[str], report: Report) -> Iterator[tuple[str, str]]:
    """Yield the two nodes of each link; each pair of nodes occurs once."""
    seen = set()
    for link in links:
        ends = link.split(BETWEEN)
        if len(ends) != 2:
            report.problem(SourceError(f"{name}: field links.id: expecting NODE{BETWEEN}NODE, got {link[:80]!r}"))
        elif frozenset(ends) not in seen:
            seen.add(frozenset(ends))
            yield ends[0], ends[1]


def _vertex(builder: FabricBuilder, host_of: dict[str, str], node: str, other: str) -> str:
    """Return the id of the vertex at a link's end: a switch, or a new adapter that is added for a host.

    :param builder: builder of the fabric.
    :param host_of: node id -> host name.
    :param node: node at this end of the link.
    :param other: node at the other end.
    """
    if node not in host_of:
        return node
    adapter = f"{node} to {other}"
    builder.add_adapter(adapter, host_of[node])
    return adapter


def _field(record: Any, key: str, kind: type, name: str) -> Any:
    value = record.get(key) if isinstance(record, dict) else None
    if not isinstance(value, kind) or isinstance(value, bool):
        _refuse(name, f"field {key}", {list: "a list", str: "a text", int: "a whole number"}[kind], value)
    return value


def _refuse(name: str, where: str, wanted: str, value: object) -> NoReturn:
    got = {list: "a list", dict: "an object", type(None): "none"}.get(type(value), repr(value)[:60])
    raise SourceError(f"{name}: {where}: expecting {wanted}, got {got}")
