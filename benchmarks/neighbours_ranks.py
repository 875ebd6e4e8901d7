"""The program of each rank of ``neighbours``: it times neighbourhood alltoalls in turn; rank 0 prints JSON.

``mpirun ... python -m benchmarks.neighbours_ranks PLAN.json``: the plan has ``graphs`` (names of ``GRAPHS``), ``sides``
(words of ``TOPOMPI_NEIGHBOURS``, ``chosen`` for the default, and ``library``), and ``seconds`` for all sides of a
graph and form.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

import topompi

from .emulated_ranks import measure, warm_links

TURN = 5  # calls of a side in a row, after one that is not counted
TURNS = (3, 200)  # least and most turns of each side
FEWEST = 20  # calls before the timed ones; topompi plans after a new communicator's first calls
Integers = NDArray[np.int64]


def coarse(size: int) -> Integers:
    """Bytes of each pair of ranks on a coarse level of multigrid: all but one pair in ten, 8 to 64 bytes."""
    rng = np.random.default_rng(7)
    wanted = 8 * rng.integers(1, 9, (size, size)) * (rng.random((size, size)) < 0.9)
    return np.where(np.eye(size, dtype=bool), 0, wanted)


def stencil(size: int, face: int, edge: int, corner: int) -> Integers:
    """Bytes of each pair of ranks in a stencil of 27 points on a periodic grid of ranks.

    :param size: number of ranks.
    :param face: bytes for a neighbour in one dimension.
    :param edge: bytes for a neighbour in two dimensions.
    :param corner: bytes for a neighbour in three dimensions.
    """
    dims = MPI.Compute_dims(size, 3)
    place = np.stack(np.unravel_index(np.arange(size), dims), axis=1)
    apart = np.abs(place[:, None] - place[None])
    apart = np.minimum(apart, np.array(dims) - apart)
    kind = np.where((apart <= 1).all(axis=2), (apart == 1).sum(axis=2), 0)
    return np.array([0, face, edge, corner])[kind]


GRAPHS: dict[str, Callable[[int], Integers]] = {
    "coarse level, 8 to 64 B": coarse,
    "27 points, faces of 512 B": lambda size: stencil(size, 512, 64, 8),
    "27 points, faces of 4 KiB": lambda size: stencil(size, 4096, 256, 8),
    "27 points, faces of 64 KiB": lambda size: stencil(size, 65536, 1024, 8),
}


def calls_of(comm: MPI.Intracomm, wanted: Integers) -> dict[str, tuple[Callable[[], object], Any]]:
    """A call of each form, and the communicator with the graph that it belongs to.

    :param comm: the communicator of all ranks.
    :param wanted: bytes of each pair of ranks, shape (ranks, ranks).
    """
    rank = comm.Get_rank()
    out, into = (np.flatnonzero(some) for some in (wanted[rank], wanted[:, rank]))
    graph = comm.Create_dist_graph_adjacent(into.tolist(), out.tolist())
    sent, received = (np.zeros(int(some.sum()), dtype=np.uint8) for some in (wanted[rank], wanted[:, rank]))
    arguments = [sent, wanted[rank, out]], [received, wanted[into, rank]]
    for _ in range(FEWEST):
        graph.Neighbor_alltoallv(*arguments)
    request = graph.Neighbor_alltoallv_init(*arguments)

    def persistent() -> None:
        request.Start()
        request.Wait()

    return {"blocking": (lambda: graph.Neighbor_alltoallv(*arguments), graph), "persistent": (persistent, request)}


def in_turn(native: MPI.Intracomm, sides: list[Callable[[], object]], seconds: float) -> list[list[float]]:
    """Time calls in turns of several: return the slowest rank's seconds of every call of each side. Collective.

    :param native: communicator of all ranks.
    :param sides: a call of each side.
    :param seconds: approximate time for all sides together.
    """
    call = native.bcast(sum(max(measure(native, side, 2)) for side in sides))
    turns = int(np.clip(seconds / call / (TURN + 1), *TURNS))
    times: list[list[float]] = [[] for _ in sides]
    for number in range(turns):
        for side in range(len(sides))[:: -1 if number % 2 else 1]:
            times[side] += measure(native, sides[side], TURN + 1)[1:]
    return times


def main() -> None:
    """Time the graphs of the plan on the sides that it names."""
    plan = json.loads(Path(sys.argv[1]).read_text())
    native = MPI.Intracomm(MPI.COMM_WORLD)
    comms: dict[str, MPI.Intracomm] = {}
    for side in plan["sides"]:
        os.environ["TOPOMPI_NEIGHBOURS"] = "" if side == "chosen" else side
        comms[side] = native if side == "library" else topompi.Intracomm(native.Dup())
    warm_links(native)
    found = []
    for name in plan["graphs"]:
        wanted = GRAPHS[name](native.size)
        calls = {side: calls_of(comm, wanted) for side, comm in comms.items()}
        for form in ("blocking", "persistent"):
            times = in_turn(native, [one[form][0] for one in calls.values()], plan["seconds"])
            found.append({"graph": name, "form": form, "times": dict(zip(calls, times, strict=True))})
        reasons = {
            side: one["blocking"][1]._state.neighbours.explain("Neighbor_alltoallv")
            for side, one in calls.items()
            if side != "library"
        }
        found[-1]["reasons"] = found[-2]["reasons"] = reasons
    if native.rank == 0:
        print(json.dumps({"library": MPI.get_vendor()[0], "cells": found}))


if __name__ == "__main__":
    main()
