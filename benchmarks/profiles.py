"""What recording a program costs: microseconds a call, and memory; and what it takes to read and draw large profiles.

Run it as ``python -m benchmarks.profiles`` on one process: the calls do nothing but be counted.
"""

from __future__ import annotations

import json
import tempfile
import time
import tracemalloc
from pathlib import Path

import numpy as np

from topompi.profile import Profile, read_profile, write_profile
from topompi.profile.counting import Counters
from topompi.profile.overhead import call_seconds
from topompi.profile.page import page
from topompi.profile.pictures import draw_heat, draw_histogram
from topompi.profile.summary import summarise
from topompi.profile.tree import tree_of
from topompi.topology import TopologyInterface, load
from topompi.views.picture.writers import write

SIZES = (64, 128, 256, 512, 1024)
RANKS_A_HOST = 16
CALLS, ROUNDS = 20_000, 9


def memory(ranks: int, ranks_a_host: int = 1) -> dict[str, int]:
    """Bytes that rank 0 holds where all ranks send each other messages and make an alltoall, and of a rank's line.

    Held are its counters, the peers of its communicator, and the line of one other rank at a time.
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


def large(ranks: int = 1024, peers: int | None = None) -> dict[str, float]:
    """Seconds to read, to analyse and to draw a profile of so many ranks in which each sends to all, or to some."""
    routes = load("XGFT(2; 8,8; 1,4)").routes
    assert routes is not None
    hosts = np.repeat(routes.fabric.hosts, -(-ranks // routes.fabric.num_hosts))[:ranks].tolist()
    interface = TopologyInterface.place(hosts, routes)
    of_rank = []
    for rank in range(ranks):
        counters = Counters(ranks, np.arange(ranks))
        others = np.delete(np.arange(ranks), rank)[:peers]
        counters.add("E", others, np.full(len(others), 1000))
        of_rank.append(counters.rows(rank, hosts[rank]))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.topoprof"
        profile = Profile(ranks, "by hand", of_rank=of_rank)
        write_profile(profile, path)
        marks = [time.perf_counter()]
        graph = read_profile(path).graph()
        marks.append(time.perf_counter())
        summarise(read_profile(path), interface, hint=False)
        marks.append(time.perf_counter())
        draw_histogram(Path(folder) / "h.svg", graph, interface)
        draw_heat(Path(folder) / "m.svg", graph, interface)
        scene = tree_of(graph, interface, "run")
        assert scene is not None  # the fabric is a tree
        write(scene, Path(folder) / "t.svg")
        marks.append(time.perf_counter())
        (Path(folder) / "page.html").write_text(page({"run": (profile, interface)}))
        marks.append(time.perf_counter())
    return dict(zip(("read", "read and analyse", "draw", "page"), np.diff(marks).round(3).tolist(), strict=True))


def main() -> None:
    """Print all figures as lines of JSON."""
    print(
        json.dumps({"us a call": {name: round(1e6 * value, 3) for name, value in call_seconds(CALLS, ROUNDS).items()}})
    )
    for ranks in SIZES:
        print(json.dumps(memory(ranks)), json.dumps(memory(ranks, RANKS_A_HOST)))
    print(json.dumps({"seconds at 1,024 ranks": large()}))


if __name__ == "__main__":
    main()
