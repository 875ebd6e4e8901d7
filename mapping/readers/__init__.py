"""Communication graphs from files: one module a format, found by content.

Each module has NAME, ``recognise(file)`` and ``read(file)``, and makes ``Edges``; no file is recognised by two, for
the first that recognises it reads it.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType

from ...inputs import guarded
from ..graph import CommunicationGraph
from . import edgelist, jsonprofile, matrixmarket, metis, monitoring, npz, pairlist, topoprof
from .edges import Edges
from .text import GraphFile, GraphFileError

__all__ = ["FORMATS", "GraphFileError", "read_edges", "read_graph"]

# METIS before the lists, which its lines of three or four numbers look like.
FORMATS: tuple[ModuleType, ...] = (npz, topoprof, jsonprofile, matrixmarket, monitoring, pairlist, metis, edgelist)


def read_graph(path: str | os.PathLike[str], size: int | None = None) -> CommunicationGraph:
    """Read a communication graph, whatever its format.

    :param path: a file of any known format, packed with xz or gz or not; for Open MPI's monitoring the folder of its
        ``.prof`` files, or any one of them.
    :param size: number of ranks; by default what the file says, else the highest rank in it plus 1. Lists of edges
        may name fewer ranks than there are, formats that say how many there are may not.
    :raises GraphFileError: with file and line, and what should stand there.
    Cost: some microseconds a line, O(edges) memory.
    """
    with guarded(str(path), GraphFileError):
        edges = read_edges(path)
        size = edges.checked_size(size)
        return CommunicationGraph.from_arrays(size, edges.source, edges.target, edges.volume, edges.messages)


def read_edges(path: str | os.PathLike[str]) -> Edges:
    """The directed edges of a file, as `read_graph` finds them."""
    with guarded(str(path), GraphFileError):
        if Path(path).is_dir():
            return monitoring.read_folder(Path(path))
        file = GraphFile.open(path)
        for form in FORMATS:
            if form.recognise(file):
                edges: Edges = form.read(file)
                return edges
    names = ", ".join(form.NAME for form in FORMATS)
    raise GraphFileError(f"{file.name}: expecting one of: {names}; got {file.kind}")
