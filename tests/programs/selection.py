"""Selection in a job whose ranks have different environments, files and caches; prints what each rank chose as JSON.

Arguments: a rules file, which rank 0 alone has, and a folder for the ranks' caches.
"""

import json
import os
import sys
from pathlib import Path

import numpy as np
from mpi4py import MPI

import topompi
from topompi.errors import TopompiError
from topompi.mpi.communicator.state import state_of
from topompi.mpi.execution.specs import Needs

METHODS = ("Alltoall", "Bcast", "Gather", "Scatter", "Allgather", "Allreduce", "Reduce", "Gatherv", "Alltoallw")
world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()


def main(rules: str, folder: Path) -> None:
    cache = folder / f"cache{rank}"
    cache.mkdir()
    if rank == 1:
        (cache / "topompi").write_text("no folder")
    os.environ["XDG_CACHE_HOME"] = str(cache)
    found = {
        "rules": run("", rules, str(folder / f"missing{rank}")),
        "trial": run("again", "", rules),
        "remembered": run("", "", rules),
        "once more": run("measure", "", rules),
        "missing": run("", str(folder / "missing"), ""),
    }
    rows = world.gather(found)
    if rows is not None:
        print(json.dumps(rows))


def run(tune: str, rules: str, others_rules: str) -> dict[str, object]:
    """What this rank chose, where rank 0 goes by these and every other rank has something else."""
    os.environ["TOPOMPI_TUNE"] = tune if rank == 0 else ("off", "measure", "no such word")[rank % 3]
    os.environ["TOPOMPI_RULES"] = rules if rank == 0 else others_rules
    try:
        comm = topompi.Intracomm(world.Dup(), topology="xgft:2,2;1,1", hosts="h[0000-0003]")
        selector = state_of(comm).selector
        # More calls of a class than any trial takes.
        right = [call(comm, turn % 255, count) for turn in range(450) for count in (64, 40000)]
        seen = [
            selector.choose(method, nbytes, Needs(nbytes == 100, nbytes == 100), root=0, measurable=False).algorithm
            for method in METHODS
            for nbytes in (0, 100, 100_000)
        ]
    except TopompiError as error:
        return {"error": str(error)}
    final = {f"{method} {number}": choice for (method, number, _), choice in selector.final.items()}
    return {
        "final": {name: choice.algorithm for name, choice in final.items()},
        "reasons": [choice.reason for choice in final.values()],
        "seen": seen,
        "right": all(right),
    }


def call(comm: topompi.Intracomm, turn: int, count: int) -> bool:
    """Whether an alltoall and a broadcast from rotating roots bring what they must."""
    sent = np.full((size, count), rank, np.uint8)
    received = np.zeros_like(sent)
    comm.Alltoall(sent, received)
    message = np.full(count, turn if rank == turn % size else 255, np.uint8)
    comm.Bcast(message, turn % size)
    return bool((received == np.arange(size)[:, None]).all() and (message == turn).all())


main(sys.argv[1], Path(sys.argv[2]))
