"""The program of each rank of ``transposes``: it times all sides of each cell in turn; rank 0 prints the seconds.

``mpirun ... python -m benchmarks.transposes_ranks PLAN.json``: the plan has ``rows`` of the process grids, ``sizes`` in
bytes, and ``seconds`` for one side of a cell.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

import topompi
from topompi.execution.timing import timed

from .decisions import algorithm_of, is_undecided
from .sides import orders
from .transposes import SIDES

FEWEST, MOST = 7, 900  # calls of a side of a cell, least and most


def measure(plan: dict[str, Any]) -> list[dict[str, Any]]:
    """Time all cells of a plan on every rank, the sides in turn; collective over COMM_WORLD."""
    world, comm = MPI.COMM_WORLD, topompi.Intracomm(MPI.COMM_WORLD)
    world.Alltoall(np.zeros(world.size, "b"), np.zeros(world.size, "b"))  # connects every pair of ranks
    found = []
    for rows in plan["rows"]:
        row, column = divmod(world.rank, world.size // rows)
        for way, child in (("rows", comm.Split(row, column)), ("columns", comm.Split(column, row))):
            for size in plan["sizes"]:
                sent = np.full((child.size, size // 8), float(world.rank))
                native, into = MPI.Intracomm(child), [np.empty_like(sent) for _ in SIDES]
                decide(world, partial(child.Alltoall, sent, into[1]), child)
                calls = [partial(one.Alltoall, sent, to) for one, to in zip((native, child, native), into, strict=True)]
                times = in_turn(world, calls, plan["seconds"])
                all_chosen = sorted(set(world.allgather(algorithm_of(child, "Alltoall", size))))
                right = world.allreduce(bool((into[0] == into[1]).all()), MPI.LAND)
                cell = {"rows": rows, "way": way, "size": size, "ran": all_chosen, "right": right}
                found.append(cell | dict(zip(SIDES, times, strict=True)))
            child.Free()
    return found


def decide(world: MPI.Intracomm, call: Callable[[], object], child: MPI.Comm) -> None:
    """Repeat a call until every rank's communicator has decided how to run it.

    :param world: communicator of all ranks.
    :param call: a collective call on ``child``.
    :param child: communicator of this rank's row or column.
    """
    undecided = True
    while undecided:
        call()
        undecided = world.allreduce(is_undecided(child), MPI.LOR)


def in_turn(world: MPI.Intracomm, calls: Sequence[Callable[[], object]], seconds: float) -> list[list[float]]:
    """Time calls in turn: return the slowest rank's seconds of each call, round by round.

    :param world: communicator of all ranks, which wait for each other before each call.
    :param calls: calls that this rank runs.
    :param seconds: approximate time for each call.
    """
    times: list[list[float]] = [[] for _ in calls]
    rounds = FEWEST
    for order in orders(len(calls)):
        for side in order:
            times[side].append(world.allreduce(timed(world.Barrier, calls[side]), MPI.MAX))
        if len(times[0]) == 1:
            rounds = int(np.clip(seconds / max(times[0][0], 1e-6), FEWEST, MOST))
        if len(times[0]) >= rounds:
            break
    return times


def main() -> None:
    """Time all cells of the plan that the command line names, and print them on rank 0."""
    found = measure(json.loads(Path(sys.argv[1]).read_text()))
    if MPI.COMM_WORLD.rank == 0:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
