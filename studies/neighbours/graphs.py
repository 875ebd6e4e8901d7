"""The graphs of the study: recorded communication of applications, and halos of multigrid levels on a grid of ranks."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from topompi.mapping import read_graph
from topompi.schedules.neighbourhood import Neighbourhood

__all__ = ["HALOS", "QUICK", "RECORDED", "halo", "recorded"]

DATA = Path(os.environ.get("TOPOMPI_SHARED_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
FILES = {
    "CloverLeaf": "cloverleaf-1152.graphStats.txt.xz",
    "LULESH": "lulesh-1000.graphStats.txt.xz",
    "miniAMR": "miniamr-1000.graphStats.txt.xz",
    "miniAMR, Blue Gene": "miniamr-bgq-1024.hopbyte.txt.xz",
    "miniFE": "minife-1024.graphStats.txt.xz",
    "NPB BT": "npb-bt-1024.graphStats.txt.xz",
}
SIZES = {"8 B": 8, "64 B": 64, "512 B": 512, "4 KiB": 4096}  # mean bytes of a block
ITEM = 8  # bytes; blocks are whole numbers of these

Integers = NDArray[np.int64]


def recorded(name: str, mean: int) -> Neighbourhood | None:
    """The alltoall of an application's recorded graph, None if its file is not here.

    A file has the bytes of a whole run, but not how many messages these were: they are scaled. Edges of rank 0 that
    have its most frequent number of bytes come from reductions, and are left out.

    :param name: a key of ``FILES``.
    :param mean: mean bytes of a block, of which each has at least ``ITEM``.
    """
    path = DATA / "commgraphs" / FILES[name]
    if not path.exists():
        return None
    graph = read_graph(path)
    source, target, volume = np.repeat(np.arange(graph.size), np.diff(graph.offsets)), graph.targets, graph.volume
    ends = np.concatenate((np.stack((source, target)), np.stack((target, source))), axis=1)
    volume = np.concatenate((volume, volume)).astype(np.float64)
    at_0 = (ends == 0).any(axis=0)
    values, times = np.unique(volume[at_0], return_counts=True)
    kept = ~(at_0 & (volume == values[times.argmax()])) & (ends[0] != ends[1])
    ends, volume = ends[:, kept], volume[kept]
    size = ITEM * np.maximum(1, np.rint(volume * (mean / volume.mean() / ITEM))).astype(np.int64)
    return _symmetric(graph.size, ends[0], ends[1], size)


def halo(side: int, radius: int, nbytes: int) -> Neighbourhood:
    """The alltoall of a level of multigrid: a cube of ranks, each with all ranks up to a distance as neighbours.

    :param side: ranks on a side of the cube.
    :param radius: distance in ranks along each dimension; 1 for a stencil of 27 points.
    :param nbytes: bytes of a block.
    """
    place = np.stack(np.unravel_index(np.arange(side**3), (side,) * 3), axis=1)
    steps = np.stack(np.meshgrid(*(np.arange(-radius, radius + 1),) * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    there = place[:, None, :] + steps[steps.any(axis=1)]
    inside = ((there >= 0) & (there < side)).all(axis=2)
    source = np.repeat(np.arange(side**3), inside.sum(axis=1))
    destination = np.ravel_multi_index(tuple(there[inside].T), (side,) * 3)
    return _symmetric(side**3, source, destination, np.full(len(source), nbytes))


def _symmetric(ranks: int, source: Integers, destination: Integers, size: Integers) -> Neighbourhood:
    """The alltoall of edges that exist both ways, each rank's in the order of its neighbours."""
    key, first = np.unique(source * ranks + destination, return_index=True)
    return Neighbourhood.from_edges(ranks, *np.divmod(key, ranks), size[first])


RECORDED: Mapping[str, Callable[[], Neighbourhood | None]] = {
    f"{name}, {text}": partial(recorded, name, mean) for name in FILES for text, mean in SIZES.items()
}
HALOS: Mapping[str, Callable[[], Neighbourhood | None]] = {
    f"{(2 * radius + 1) ** 3}-point halo, {nbytes} B": partial(halo, 10, radius, nbytes)
    for radius, sizes in ((1, (8, 512)), (2, (8, 64)), (3, (8, 64)))
    for nbytes in sizes
}
QUICK: Mapping[str, Callable[[], Neighbourhood | None]] = {"125-point halo, 8 B": partial(halo, 4, 2, 8)}
