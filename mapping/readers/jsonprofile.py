"""Graphs recorded by topompi: columns of edges as versioned JSON."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...inputs import parse_json
from ...inputs.writing import write_text
from .edges import EdgeList
from .text import MAX_RANKS, GraphFile, GraphFileError

if TYPE_CHECKING:
    from ..graph import CommunicationGraph

__all__ = ["FORMAT", "NAME", "VERSION", "read", "recognise", "write_graph"]

NAME = "topompi's graph.json"
FORMAT = "topompi graph"
VERSION = 1
_HEADING = re.compile(rf'\s*\{{.*"format"\s*:\s*"{FORMAT}"', re.DOTALL)
_COLUMNS = ("source", "target", "volume", "messages")


def recognise(file: GraphFile) -> bool:
    """Whether the file is an object with the field ``"format": "topompi graph"``."""
    return bool(_HEADING.match(file.head))


def write_graph(graph: CommunicationGraph, path: str | os.PathLike[str]) -> None:
    """Write a graph as JSON with format, version, size and the columns source, target, volume and messages."""
    columns = (graph.sources, graph.targets, graph.volume, graph.messages)
    held = {name: column.tolist() for name, column in zip(_COLUMNS, columns, strict=True)}
    root = {"format": FORMAT, "version": VERSION, "size": int(graph.size), **held}
    write_text(path, json.dumps(root) + "\n")


def read(file: GraphFile) -> EdgeList:
    """Read a graph that `write_graph` wrote; ``messages`` may be missing.

    :raises GraphFileError: if it is no JSON (the message names file and line) or no graph (file and field).
    """
    root = parse_json(file.data, file.name, GraphFileError)
    if not isinstance(root, dict) or root.get("format") != FORMAT:
        given = repr(root.get("format")) if isinstance(root, dict) else type(root).__name__
        raise GraphFileError(f"{file.name}: expecting the field format to be {FORMAT!r}, got {given:.60}")
    if root.get("version") != VERSION:
        raise GraphFileError(
            f"{file.name}: expecting version {VERSION}, as this topompi reads, got {root.get('version')!r:.60}"
        )
    size = root.get("size")
    if type(size) is not int or not 1 <= size <= MAX_RANKS:
        raise GraphFileError(f"{file.name}: expecting size, the number of ranks, from 1, got {size!r:.60}")
    file.check_ranks(size)
    names = [name for name in _COLUMNS if name != "messages" or root.get(name) is not None]
    columns = [_column(file, root, name, size) for name in names]
    return EdgeList(file.name, size, True, *columns)


def _column(file: GraphFile, root: dict[str, object], name: str, size: int) -> NDArray[np.int64]:
    column = root.get(name)
    source = root.get("source")
    many = len(source) if isinstance(source, list) else 0
    if not isinstance(column, list) or len(column) != many:
        given = f"{len(column)}" if isinstance(column, list) else type(column).__name__
        raise GraphFileError(f"{file.name}: expecting {name} to be a list of {many} numbers, got {given}")
    last = size - 1 if name in ("source", "target") else 2**63 - 1
    wrong = next((at for at, value in enumerate(column) if type(value) is not int or not 0 <= value <= last), None)
    if wrong is not None:
        raise GraphFileError(f"{file.name}: expecting {name}[{wrong}] from 0 to {last}, got {column[wrong]!r:.60}")
    return np.array(column, dtype=np.int64)
