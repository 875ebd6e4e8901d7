"""Readers of communication graphs from files, one module per format; the format is found from the content.

Each module has NAME, ``recognise(file)`` and ``read(file)``, which returns ``Edges``. If several modules recognise a
file, the first in ``FORMATS`` reads it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from ...inputs import guarded
from ..graph import CommunicationGraph
from . import dense, edgelist, jsonprofile, matrixmarket, metis, monitoring, npz, pairlist, topoprof
from .edges import Edges
from .text import GraphFile, GraphFileError

__all__ = ["FORMATS", "GraphFileError", "read_edges", "read_graph"]

# Matrices come before METIS, because no other format has n lines of n numbers, and METIS comes before lists of edges,
# because its header of two to four numbers also looks like a line of such a list.
FORMATS: tuple[ModuleType, ...] = (
    npz,
    topoprof,
    jsonprofile,
    matrixmarket,
    monitoring,
    pairlist,
    dense,
    metis,
    edgelist,
)


def read_graph(
    path: str | os.PathLike[str],
    size: int | None = None,
    columns: Sequence[str] = (),
    notes: list[str] | None = None,
) -> CommunicationGraph:
    """Read a communication graph in any known format.

    :param path: path of a file, plain or compressed with xz or gz; for Open MPI's monitoring the folder of its
        ``.prof`` files, or any one of these files.
    :param size: number of ranks; by default the file's own number, else its highest rank plus 1. A larger number is
        allowed for lists of edges, which may omit ranks, but not for formats that state the number of ranks.
    :param columns: names of the columns of a list of edges, for example ``src``, ``dst``, ``count``, ``bytes``; empty
        if a heading or the content tells them.
    :param notes: list that receives a line per guess that can be wrong.
    :raises GraphFileError: if the content is wrong; the message names file, line and the expected content.
    Cost: some microseconds per line, O(edges) memory.
    """
    with guarded(str(path), GraphFileError):
        edges = read_edges(path, columns, notes)
        size = edges.checked_size(size)
        return CommunicationGraph.from_arrays(size, edges.source, edges.target, edges.volume, edges.messages)


def read_edges(path: str | os.PathLike[str], columns: Sequence[str] = (), notes: list[str] | None = None) -> Edges:
    """Read the directed edges of a file in any known format, as `read_graph` does.

    :param path: path of a file or of a folder of ``.prof`` files.
    :param columns: names of the columns of a list of edges.
    :param notes: list that receives a line per guess that can be wrong.
    """
    with guarded(str(path), GraphFileError):
        if Path(path).is_dir():
            return monitoring.read_folder(Path(path))
        file = GraphFile.open(path, columns)
        for form in FORMATS:
            if form.recognise(file):
                edges: Edges = form.read(file)
                if notes is not None:
                    notes += file.notes
                return edges
    names = ", ".join(form.NAME for form in FORMATS)
    raise GraphFileError(f"{file.name}: expecting one of: {names}; got {file.kind}")
