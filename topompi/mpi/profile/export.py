"""Export of communication graphs to files of other programs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ...inputs.writing import open_output, write_text
from ...mapping.graph import CommunicationGraph
from ...mapping.readers.jsonprofile import write_graph
from .errors import ProfileError

__all__ = ["EXPORTS", "export"]


def export(graph: CommunicationGraph, path: Path) -> None:
    """Write a graph in the format that the file name's ending denotes.

    :param graph: the communication graph.
    :param path: path of the file.
    :raises ProfileError: if the ending is not one of ``EXPORTS``.

    Cost: O(edges).
    """
    write = EXPORTS.get(path.suffix.removeprefix("."))
    if write is None:
        raise ProfileError(f"expecting a file that ends with .{', .'.join(EXPORTS)}, got {path.name}")
    write(graph, path)


def _metis(graph: CommunicationGraph, path: Path) -> None:
    """Write METIS's format (manual of 5.1, section 4.1): a pair of ranks is one edge with both directions' bytes."""
    edges = graph.undirected()
    lines = [f"{graph.size} {len(edges.targets) // 2} 001"]
    for rank in range(graph.size):
        here = slice(edges.offsets[rank], edges.offsets[rank + 1])
        ends = zip((edges.targets[here] + 1).tolist(), edges.weight[here].astype(np.int64).tolist(), strict=True)
        lines.append(" ".join(f"{target} {weight}" for target, weight in ends))
    write_text(path, "\n".join(lines) + "\n")


def _npz(graph: CommunicationGraph, path: Path) -> None:
    columns: dict[str, Any] = {
        "source": graph.sources,
        "target": graph.targets,
        "volume": graph.volume,
        "messages": graph.messages,
    }
    with open_output(path, "wb") as stream:
        np.savez_compressed(stream, size=graph.size, **columns)


def _matrix_market(graph: CommunicationGraph, path: Path) -> None:
    lines = ["%%MatrixMarket matrix coordinate integer general", f"{graph.size} {graph.size} {graph.num_edges}"]
    rows = zip((graph.sources + 1).tolist(), (graph.targets + 1).tolist(), graph.volume.tolist(), strict=True)
    write_text(path, "\n".join([*lines, *(f"{row} {column} {value}" for row, column, value in rows)]) + "\n")


def _matlab(graph: CommunicationGraph, path: Path) -> None:
    from scipy.io import savemat
    from scipy.sparse import csc_array

    ends, shape = (graph.sources, graph.targets), (graph.size, graph.size)
    sparse = {
        name: csc_array((values.astype(np.float64), ends), shape=shape)
        for name, values in (("bytes", graph.volume), ("messages", graph.messages))
    }
    with open_output(path, "wb") as file:
        stream: Any = file  # savemat's type hints know only names
        savemat(stream, sparse)


EXPORTS: dict[str, Callable[[CommunicationGraph, Path], None]] = {
    "graph": _metis,
    "mtx": _matrix_market,
    "npz": _npz,
    "mat": _matlab,
    "json": write_graph,
}
