"""The cost of recording a program, in microseconds per call and memory, and of commands on large profiles.

Run it as ``python -m benchmarks.profiles`` on one process: the calls are counted and do nothing else.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path

import numpy as np

from topompi.mapping import CommunicationGraph
from topompi.profile import Profile, write_profile
from topompi.profile.counting import Counters
from topompi.profile.overhead import call_seconds

SIZES = (64, 128, 256, 512, 1024)
RANKS_A_HOST = 16
CALLS, ROUNDS = 20_000, 9
FABRIC = "XGFT(3; 8,8,4; 1,4,2)"  # 256 hosts


def memory(ranks: int, ranks_a_host: int = 1) -> dict[str, int]:
    """Return the bytes that rank 0 holds if all ranks send each other messages and make an alltoall.

    They are its counters, the peers of its communicator, and the line of one other rank; the bytes of that line are
    returned, too.
    """
    from topompi.profile.file import rank_line

    tracemalloc.start()
    peers = np.arange(0, ranks, ranks_a_host)
    counters = Counters(len(peers), peers)
    group = counters.group(0, (np.arange(ranks) // ranks_a_host).astype(np.int32))
    counters.add("E", group[np.arange(1, ranks)], np.full(ranks - 1, 1000))
    group.called("Alltoall", 0, 8 * ranks)
    line = rank_line(counters.rows(0, "host"))
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return {"ranks": ranks, "a host": ranks_a_host, "held": held, "line": len(line)}


def commands(ranks: int = 1024) -> dict[str, float]:
    """Return the elapsed seconds of each command on a profile of a stencil and an alltoall."""
    stencil, everybody = CommunicationGraph.cartesian((ranks // 64, 8, 8), weights=100_000), np.arange(ranks)
    of_rank = []
    for rank in range(ranks):
        counters, others = Counters(ranks, everybody), np.delete(everybody, rank)
        neighbours = stencil.targets[stencil.sources == rank]
        counters.add("E", neighbours, np.full(len(neighbours), 100_000))
        counters.add("I", others, np.full(len(others), 1000))
        of_rank.append(counters.rows(rank, ""))
    seconds = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.topoprof"
        write_profile(Profile(ranks, "by hand", of_rank=of_rank), path)
        for words in (
            ["show"],
            ["export", "-o", folder],
            ["export", "-o", f"{folder}/report.html"],
        ):
            began = time.perf_counter()
            command = [sys.executable, "-m", "topompi", "profile", *words, str(path), "--topology", FABRIC]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            seconds[" ".join(words).replace(folder, "F")] = round(time.perf_counter() - began, 2)
    return seconds


def main() -> None:
    """Print all figures as lines of JSON."""
    print(
        json.dumps({"us a call": {name: round(1e6 * value, 3) for name, value in call_seconds(CALLS, ROUNDS).items()}})
    )
    for ranks in SIZES:
        print(json.dumps(memory(ranks)), json.dumps(memory(ranks, RANKS_A_HOST)))
    print(json.dumps({"seconds at 1,024 ranks": commands()}))


if __name__ == "__main__":
    main()
