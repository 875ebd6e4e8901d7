"""Readers of communication graphs from files, one module per format; the format is found from the content.

Each module has NAME, ``recognise(file)`` and ``read(file)``, which returns ``EdgeList``. If several modules recognise a
file, the first in ``FORMATS`` reads it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

from ...inputs import foreign, guarded
from ..graph import CommunicationGraph
from .edges import EdgeList
from .text import HEAD_BYTES, WANTED, GraphFile, GraphFileError

__all__ = ["GraphFileError", "read_edges", "read_graph"]

# Matrices and adjacency lists come before METIS, because no other format has their form, and METIS before the lists,
# whose lines of three or four numbers look like a METIS header.
_FORMATS = ["npz", "topoprof", "jsonprofile", "matrixmarket", "monitoring", "attributed", "pairlist", "dense"]
_FORMATS += ["adjacency", "metis", "edgelist"]
_LOOSE = ("pairlist", "dense", "adjacency", "metis", "edgelist")  # have no mark of their own: numbers or pairs of words


@cache
def _formats() -> tuple[ModuleType, ...]:
    """Return the modules, which are imported only now, because most commands read no graph."""
    return tuple(import_module(f".{name}", __name__) for name in _FORMATS)


def __getattr__(name: str) -> tuple[ModuleType, ...]:
    if name == "FORMATS":
        return _formats()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def read_graph(
    path: str | os.PathLike[str],
    size: int | None = None,
    columns: Sequence[str] = (),
    notes: list[str] | None = None,
) -> CommunicationGraph:
    """Read a communication graph in any known format.

    :param path: path of a file, plain or compressed with xz or gz; for Open MPI's monitoring the folder of its
        ``.prof`` files, any one of these files, or ``FOLDER/NAME`` for one phase of several.
    :param size: number of ranks; by default the file's own number, else its highest rank plus 1. A larger number is
        allowed for lists of edges, which may omit ranks, but not for formats that state the number of ranks.
    :param columns: names of the columns of a list of edges, for example ``src``, ``dst``, ``count``, ``bytes``; empty
        if a heading or the content tells them.
    :param notes: list that receives a line per guess that can be wrong.
    :raises GraphFileError: if the content is wrong; the message names file, line and the expected content.
    Cost: some microseconds per line, O(edges) memory.
    """
    with guarded(str(path), GraphFileError):
        edges = read_edges(path, columns, notes, size)
        size = edges.checked_size(size)
        return CommunicationGraph.from_arrays(size, edges.source, edges.target, edges.volume, edges.messages)


def read_edges(
    path: str | os.PathLike[str],
    columns: Sequence[str] = (),
    notes: list[str] | None = None,
    size: int | None = None,
) -> EdgeList:
    """Read the directed edges of a file in any known format, as `read_graph` does.

    :param path: path of a file, of a folder of ``.prof`` files, or ``FOLDER/NAME`` for those of one phase.
    :param columns: names of the columns of a list of edges.
    :param notes: list that receives a line per guess that can be wrong.
    :param size: number of ranks that the caller expects, which tells whether a list counts them from 1.
    """
    with guarded(str(path), GraphFileError):
        from . import monitoring  # imported here, because most commands read no graph

        if monitoring.is_run(Path(path)):
            return monitoring.read_run(Path(path), [] if notes is None else notes)
        file = GraphFile.open(path, columns, size)
        for name, form in zip(_FORMATS, _formats(), strict=True):
            if form.recognise(file):
                kind = foreign(file.data[:HEAD_BYTES], ("GraphFileError",), WANTED) if name in _LOOSE else ""
                if kind:
                    raise GraphFileError(f"{file.name}: expecting {WANTED}, got {kind}")
                edges: EdgeList = form.read(file)
                if notes is not None:
                    notes += file.notes
                return edges
    names = ", ".join(form.NAME for form in _formats())
    raise GraphFileError(f"{file.name}: expecting one of: {names}; got {file.kind}")
