"""The program of each rank of ``neighbours``: it times neighbourhood alltoalls in turn; rank 0 prints JSON.

``mpirun ... python -m benchmarks.neighbours_ranks PLAN.json``: the plan has ``graphs`` (names of ``GRAPHS``), ``sides``
(words of ``TOPOMPI_NEIGHBOURS``, ``chosen`` for the default, and ``library``), ``forms`` of calls, ``exchanges`` (bytes
of a payload of sparse exchanges), and ``seconds`` for all sides of a graph and form.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

import topompi
from topompi.communicator.state import state_of

from .emulated_ranks import measure, warm_links

TURN = 5  # calls of a side in a row, after one that is not counted
TURNS = (3, 200)  # least and most turns of each side
OTHERS = 100  # pairs of arrays, or lists of counts; topompi keeps the programs of 64 calls
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


def calls_of(comm: MPI.Intracomm, wanted: Integers) -> tuple[Any, dict[str, Callable[[], object]]]:
    """The communicator with the graph, and a call of each form; "other ..." means other arguments each time.

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

    others = cycle([[[one.copy(), counts] for one, counts in arguments] for _ in range(OTHERS)])
    sizes = cycle([[[one, np.minimum(counts, most)] for one, counts in arguments] for most in range(1, OTHERS)])
    return graph, {
        "blocking": lambda: graph.Neighbor_alltoallv(*arguments),
        "request": persistent,
        "non-blocking": lambda: graph.Ineighbor_alltoallv(*arguments).Wait(),
        "other memory": lambda: graph.Neighbor_alltoallv(*next(others)),
        "other sizes": lambda: graph.Neighbor_alltoallv(*next(sizes)),
    }


def exchanges_of(native: MPI.Intracomm, comm: MPI.Intracomm, nbytes: int) -> dict[str, Callable[[], object]]:
    """A sparse exchange of each rank with six others: by topompi, and by two loops that programs write by hand.

    The loop called ``library`` knows the number of messages that arrive, which programs rarely do; ``by hand`` finds
    the end by the same consensus as topompi.

    :param native: the communicator of the loops by hand.
    :param comm: the communicator of topompi's exchange.
    :param nbytes: bytes of each array.
    """
    far = np.random.default_rng(5).permuted(np.tile(np.arange(1, native.size), (native.size, 1)), axis=1)[:, :6]
    targets = (np.arange(native.size)[:, None] + far) % native.size
    mine, awaited = targets[native.rank].tolist(), int((targets == native.rank).sum())
    payloads = [np.full(nbytes, rank, dtype=np.uint8) for rank in mine]
    status = MPI.Status()

    def arrive(message: MPI.Message) -> Any:
        arrived = np.empty(status.Get_count(MPI.BYTE), dtype=np.uint8)
        message.Recv([arrived, MPI.BYTE])
        return arrived

    def counted() -> list[Any]:
        requests = [native.Isend(payload, rank, 1) for rank, payload in zip(mine, payloads, strict=True)]
        arrived = [arrive(native.Mprobe(MPI.ANY_SOURCE, 1, status)) for _ in range(awaited)]
        MPI.Request.Waitall(requests)
        return arrived

    def consensus() -> list[Any]:
        requests = [native.Issend(payload, rank, 2) for rank, payload in zip(mine, payloads, strict=True)]
        arrived: list[Any] = []
        barrier: MPI.Request | None = None
        while barrier is None or not barrier.Test():
            if (message := native.Improbe(MPI.ANY_SOURCE, 2, status)) is not None:
                arrived.append(arrive(message))
            elif barrier is None and MPI.Request.Testall(requests):
                barrier = native.Ibarrier()
        return arrived

    ours = partial(topompi.exchange, comm, mine, payloads)
    return {"topompi": ours, "by hand": consensus, "library": counted}


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
    del os.environ["TOPOMPI_NEIGHBOURS"]
    warm_links(native)
    found = []
    for name in plan["graphs"]:
        wanted = GRAPHS[name](native.size)
        made = {side: calls_of(comm, wanted) for side, comm in comms.items()}
        reasons = {
            side: state_of(graph).neighbours.explain("Neighbor_alltoallv")
            for side, (graph, _) in made.items()
            if side != "library"
        }
        for form in plan["forms"]:
            times = in_turn(native, [calls[form] for _, calls in made.values()], plan["seconds"])
            found.append(
                {"graph": name, "form": form, "reasons": reasons, "times": dict(zip(made, times, strict=True))}
            )
    for nbytes in plan["exchanges"]:
        sides = exchanges_of(native, topompi.Intracomm(native.Dup()), nbytes)
        times = in_turn(native, list(sides.values()), plan["seconds"])
        about = {"graph": f"exchange of {nbytes} B", "form": "", "reasons": dict.fromkeys(sides, "")}
        found.append({**about, "times": dict(zip(sides, times, strict=True))})
    if native.rank == 0:
        print(json.dumps({"library": MPI.get_vendor()[0], "cells": found}))


if __name__ == "__main__":
    main()
