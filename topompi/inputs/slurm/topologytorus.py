"""Tori in Slurm's ``topology.yaml`` (``torus3d``): which node is at which coordinates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...errors import SourceError
from ..hostlist import expand
from ..limits import current_limits
from .switches import Problem

if TYPE_CHECKING:
    from ..yamlvalues import Entry

__all__ = ["SlurmTorus", "read_tori"]

AXES = ("x", "y", "z")


@dataclass(frozen=True, eq=False)
class SlurmTorus:
    """A torus of three dimensions with a node at each coordinate, or at some.

    :param name: name of the torus.
    :param dims: number of coordinates along x, y and z.
    :param nodes: names of the nodes.
    :param cells: coordinates of each node, shape (nodes, 3).
    :param place: ``file:line`` of the definition.
    """

    name: str
    dims: tuple[int, ...]
    nodes: tuple[str, ...]
    cells: NDArray[np.int64]
    place: str


def read_tori(entry: Entry, problem: Problem) -> list[SlurmTorus]:
    """Read the tori of a topology; their placements, which limit jobs, are ignored.

    Nodes fill a torus, or a region of it, with x fastest and z slowest.

    :param entry: value of ``torus3d``.
    :param problem: function that is called with each error.
    :raises SourceError: if there is no torus, or the list is malformed, with file and line.
    """
    given = entry.fields(["toruses"], problem).get("toruses")
    tori = [torus for item in (given.items() if given else []) for torus in _torus(item, problem)]
    if not tori:
        raise SourceError(f"{entry.place}: expecting a list of toruses, got none")
    return tori


def _torus(item: Entry, problem: Problem) -> Iterator[SlurmTorus]:
    fields = item.fields(["name", "dims", "nodes", "regions", "placements"], problem)
    if "name" not in fields or "dims" not in fields:
        problem(SourceError(f"{item.place}: expecting name and dims of a torus, got {', '.join(fields) or 'none'}"))
        return
    if "nodes" in fields and "regions" in fields:
        problem(SourceError(f"{item.place}: expecting nodes or regions, got both"))
    dims = _triple(fields["dims"], 1, problem)
    current_limits().check("hosts", prod(dims.tolist()), item.place, SourceError)
    regions = fields["regions"].items() if "regions" in fields else [item] if "nodes" in fields else []
    parts = [part for region in regions for part in _region(region, dims, problem, whole=region is item)]
    nodes = [node for names, _ in parts for node in names]
    cells = np.concatenate([np.empty((0, 3), dtype=np.int64), *(cells for _, cells in parts)])
    _, first, counts = np.unique(cells, axis=0, return_index=True, return_counts=True)
    if (counts > 1).any():
        cell = ",".join(map(str, cells[first[counts > 1][0]]))
        problem(SourceError(f"{item.place}: expecting one node at each coordinate, got several at {cell}"))
    yield SlurmTorus(fields["name"].text(), tuple(dims.tolist()), tuple(nodes), cells, item.place)


def _region(
    item: Entry, torus: NDArray[np.int64], problem: Problem, whole: bool
) -> Iterator[tuple[list[str], NDArray[np.int64]]]:
    """Yield the nodes of a region, or of a whole torus, and their coordinates; nothing if they do not fit.

    :param item: the region or the torus.
    :param torus: dimensions of the torus.
    :param problem: function that is called with the error.
    :param whole: whether ``item`` is the torus.
    """
    fields = item.fields(None if whole else ["anchor", "dims", "nodes"], problem)
    if "dims" not in fields or "nodes" not in fields:
        problem(SourceError(f"{item.place}: expecting dims and nodes of a region, got {', '.join(fields) or 'none'}"))
        return
    anchor = _triple(fields["anchor"], 0, problem) if "anchor" in fields and not whole else np.zeros(3, dtype=np.int64)
    dims, nodes = _triple(fields["dims"], 1, problem), expand(fields["nodes"].text())
    if (anchor + dims > torus).any():
        problem(SourceError(f"{item.place}: expecting a region within the torus, got one that ends beyond it"))
    elif len(nodes) != prod(dims.tolist()):
        problem(SourceError(f"{item.place}: expecting {prod(dims.tolist()):,} nodes, as dims says, got {len(nodes):,}"))
    else:
        steps = np.unravel_index(np.arange(len(nodes)), tuple(dims.tolist()), order="F")
        yield nodes, anchor + np.stack(steps, axis=1)


def _triple(entry: Entry, least: int, problem: Problem) -> NDArray[np.int64]:
    """Return the numbers of a mapping with x, y and z, shape (3,)."""
    fields = entry.fields(AXES, problem)
    texts = [fields[axis].text() if axis in fields else "none" for axis in AXES]
    for axis, text in zip(AXES, texts, strict=True):
        if not (text.isascii() and text.isdecimal() and len(text) < 6 and int(text) >= least):
            raise SourceError(f"{entry.place}: expecting {axis} from {least} to 99999, got {text}")
    return np.array(list(map(int, texts)), dtype=np.int64)
