"""Graphs of other programs whose edges have attributes: GraphML, GML, Pajek, and networkx's and other JSON."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from ...inputs import parse_json
from .columns import heading, volume_in
from .edges import EdgeList, counted_from_zero, halved
from .tables import meaning
from .text import MATRIX, GraphFile, GraphFileError

__all__ = ["NAME", "read", "recognise"]

NAME = "GraphML, GML, Pajek, JSON of networkx"
_GML = re.compile(r"\s*(?:(?:Creator|Version|comment|directed)\b[^\n]*\n\s*)*graph\s*\[")
_TOKEN = re.compile(r'"([^"]*)"|([\[\]])|([^\s\[\]"]+)')
_PAJEK = re.compile(r"\s*\*(?:vertices|network)\b", re.I)
_JSON = re.compile(r'\s*(?:\[\s*(?:\{|\[\s*[^\s\[\],]+\s*,)|\{.*"(?:links|edges|adjacency)"\s*:\s*\[)', re.S)


class _Edge(NamedTuple):
    """An edge: place of its text for messages, names of its ends, and its attributes."""

    line: int
    source: str
    target: str
    attributes: dict[str, str]


class _Graph(NamedTuple):
    """A graph: its edges, whether they are directed, and the names of its nodes' ranks, by their identifiers."""

    edges: list[_Edge]
    directed: bool
    labels: dict[str, str]


def recognise(file: GraphFile) -> bool:
    """Whether the file begins as one of these formats does."""
    if file.columns:
        return False
    head = file.head
    return bool("<graphml" in head or _GML.match(head) or _PAJEK.match(head) or _is_json(head))


def _is_json(head: str) -> bool:
    return bool(_JSON.match(head)) and '"R_lite"' not in head


def read(file: GraphFile) -> EdgeList:
    """Read the graph; the nodes' names are ranks, and an edge without a weight counts 1.

    Half of an undirected edge's weight goes in each direction, because the file does not tell who sent it.

    :raises GraphFileError: if the file is malformed or a node is no rank; the message names the file and the place.
    """
    head = file.head
    readers = (
        ("<graphml" in head, _graphml),
        (_GML.match(head), _gml),
        (_PAJEK.match(head), _pajek),
        (True, _json_graph),
    )
    graph = next(reader for fits, reader in readers if fits)(file)
    volumes = [volume_in(edge.attributes) for edge in graph.edges]
    if graph.edges and not any(volumes):
        file.notes.append(f"{file.name}: edges without a weight: each counts 1")

    def rank(edge: _Edge, node: str) -> int:
        return file.rank(edge.line, graph.labels.get(node, node))

    rows = [
        (rank(edge, edge.source), rank(edge, edge.target), file.volume(edge.line, volume) if volume else 1)
        for edge, volume in zip(graph.edges, volumes, strict=True)
    ]
    ranks = [name for name in graph.labels.values() if name.isdecimal() and len(name) < 10]
    size = max(map(int, ranks), default=-1) + 1
    edges = EdgeList.of_rows(file.name, rows if graph.directed else halved(rows))
    return counted_from_zero(file, replace(edges, size=max(edges.size, size)))


def _graphml(file: GraphFile) -> _Graph:
    """Read GraphML; document types are refused, because they can declare entities, which may be huge or external."""
    text = file.data.decode("utf-8")
    if (at := text.find("<!DOCTYPE")) >= 0:
        file.fail(text.count("\n", 0, at) + 1, "GraphML without entities", "a document type")
    graph = _by_networkx(file, "GraphML", lambda networkx: networkx.parse_graphml(text))
    return _Graph(_edges_of(graph), graph.is_directed(), {node: node.removeprefix("n") for node in graph})


def _gml(file: GraphFile) -> _Graph:
    """Read GML: nodes with a number and a label, edges with the numbers of their ends."""
    text = file.data.decode("utf-8")
    graph = _by_networkx(file, "GML", lambda networkx: networkx.parse_gml(text, label="id"))
    labels = {str(node): str(label) for node, label in graph.nodes(data="label")}
    if not all(label.isdecimal() for label in labels.values()):  # labels are names; the numbers are the ranks
        labels = {node: node for node in labels}
    return _Graph(_edges_of(graph), graph.is_directed(), labels)


def _by_networkx(file: GraphFile, form: str, parse: Callable[[Any], Any]) -> Any:
    """Parse a text with networkx, whose errors on damaged texts become ours."""
    import networkx  # imported here, because most graphs are lists or matrices

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of attributes that are not read
            return parse(networkx)
    except (networkx.NetworkXException, SyntaxError, LookupError, ValueError, TypeError, AttributeError) as problem:
        said = " ".join(str(problem).split())[:200]
        raise GraphFileError(f"{file.name}: expecting {form}, got: {said}") from problem


def _edges_of(graph: Any) -> list[_Edge]:
    return [_Edge(1, str(source), str(target), _texts(data)) for source, target, data in graph.edges(data=True)]


def _pajek(file: GraphFile) -> _Graph:
    """Read Pajek's vertices, and its arcs, which are directed, or its edges."""
    arcs, pairs, labels, section = list[_Edge](), list[_Edge](), dict[str, str](), ""
    for number, line in file.lines("%"):
        words = [quoted or bare for quoted, _, bare in _TOKEN.findall(line)]
        if line.startswith("*"):
            section = words[0].lower()
        elif words and section == "*vertices":
            labels[words[0]] = words[1] if len(words) > 1 else words[0]
        elif len(words) > 1 and section in ("*arcs", "*edges"):
            weight = {"weight": words[2]} if len(words) > 2 else {}
            (arcs if section == "*arcs" else pairs).append(_Edge(number, words[0], words[1], weight))
    if not all(label.isdecimal() for label in labels.values()):
        labels = {node: str(at) for at, node in enumerate(labels)}
    if arcs and pairs:
        raise GraphFileError(f"{file.name}: expecting either *Arcs or *Edges of Pajek, got both")
    return _Graph(arcs or pairs, not pairs, labels)


def _json_graph(file: GraphFile) -> _Graph:
    content = parse_json(file.data, file.name, GraphFileError)
    try:
        if isinstance(content, list):
            return _Graph(list(_of_list(file, content)), True, {})
        nodes = [str(node["id"]) for node in content.get("nodes", []) if isinstance(node, dict)]
        return _Graph(
            list(_of_object(content, nodes)), content.get("directed") is not False, dict(zip(nodes, nodes, strict=True))
        )
    except (KeyError, TypeError, AttributeError, ValueError, IndexError) as problem:
        wanted = "a graph as networkx writes it in JSON, or lists or objects with src and dst"
        raise GraphFileError(f"{file.name}: expecting {wanted}, got {file.kind}") from problem


def _of_object(content: dict[str, Any], nodes: list[str]) -> Iterator[_Edge]:
    """Yield the edges of networkx's node-link or adjacency data."""
    if "adjacency" in content:
        for node, others in zip(nodes, content["adjacency"], strict=True):
            yield from (_Edge(1, node, str(other["id"]), _texts(other)) for other in others)
        return
    for edge in content["links" if "links" in content else "edges"]:
        yield _Edge(1, str(edge["source"]), str(edge["target"]), _texts(edge))


def _texts(edge: dict[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in edge.items() if isinstance(value, int | float | str)}


def _of_list(file: GraphFile, content: list[Any]) -> Iterator[_Edge]:
    """Yield the edges of a list: rows of a matrix, triples, or objects whose names are those of a list's columns."""
    if isinstance(content[0], dict):
        names = list(content[0])
        columns = heading(names)
        at = {kind: names[place] for place, kind in enumerate(columns.kinds)}
        if not columns:
            raise KeyError("src and dst")
        for edge in content:
            yield _Edge(1, str(edge[at["src"]]), str(edge[at["dst"]]), _texts(edge))
        return
    rows = [["" if value is None else json.dumps(value) for value in row] for row in content]
    if len(rows) > 1 and all(len(row) == len(rows) for row in rows) and meaning(file, rows) == MATRIX:
        for u, row in enumerate(rows):
            yield from (_Edge(1, str(u), str(v), {"weight": word or "0"}) for v, word in enumerate(row))
        return
    for source, target, *weight in rows:
        yield _Edge(1, source, target, {"weight": weight[0]} if weight else {})
