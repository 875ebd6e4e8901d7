"""Beyond the reference: alltoalls within 5 % of the lower bound of time, and why conflict-free steps do not suffice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from osu_like_bench.simulate import Failure
from studies.simgrid import PEERS, Arena
from topompi.schedules import Network
from topompi.topology import load_routes

from .figure import Figure, Table
from .jobs import SEED, job

__all__ = ["PAPER", "TITLE", "draw"]

TITLE = "At the bound: alltoall of 256 KiB blocks on 320 hosts, 20 a leaf with 16 up-links"
PAPER = "no counterpart; its schedules are free of conflicts in every step"
HOSTS, BLOCK, RATE, LATENCY = 320, 1 << 18, 6.75e9, 0.25e-6
# Algorithm, and number of steps that a rank may have in flight at once; 0 for all.
TRIALS = (
    ("pairwise", 1),
    ("shift", 1),
    ("shift", 4),
    ("shift", 16),
    ("tacs1", 1),
    ("tacs2", 1),
    ("colouring", 1),
    ("colouring", 4),
    ("even", 4),
    ("even", 8),
    ("at_once", 0),
)
DEFAULT_FACTORS = {("shift", 1), ("shift", 4), ("even", 8), ("at_once", 0)}


def draw(full: bool) -> Figure:
    """Make the figure from simulations on all hosts and on a random half of them; ``full`` has no effect."""
    routes = load_routes("XGFT(2; 20,16; 1,16)")
    part = np.random.default_rng(SEED).choice(HOSTS, HOSTS // 2, replace=False)
    whole, ratios = _trials(_links_of(job(routes, range(HOSTS), 1)), "All 320 hosts:")
    half, of_half = _trials(
        _links_of(job(routes, part.tolist(), 1)), "160 of the hosts, drawn at random, in random order:"
    )
    (ours, theirs), (mine, others) = ratios, of_half
    return Figure(
        f"our best is {ours:.3f} of the bound on all hosts and {mine:.3f} on a random half, the best peer {theirs:.3f} "
        f"and {others:.3f}: on a whole tree a plain shift does almost as well, on parts of one it does not",
        (whole, half),
    )


def _links_of(network: Network) -> Network:
    links = len(network.capacity)
    return replace(network, capacity=np.full(links, RATE), latency=np.full(links, LATENCY))


def _trials(network: Network, caption: str) -> tuple[Table, tuple[float, float]]:
    """Return the table of all algorithms, and our and the peers' best time, each divided by the lower bound of time."""
    rows: list[tuple[str, ...]] = []
    ours, theirs = [], []
    with Arena(network, model="flow", timeout=240) as flow, Arena(network, model="smpi", timeout=240) as smpi:
        bound = flow.bound("alltoall", BLOCK)
        for name, window in TRIALS:
            schedule = replace(flow.schedule("alltoall", name, BLOCK).schedule, window=window)
            found = flow.time(schedule, BLOCK)
            whole = network.num_hosts == HOSTS and (name, window) in DEFAULT_FACTORS
            other = smpi.time(schedule, BLOCK) if whole else None
            rows.append((name, str(window or "all"), *_cells(found, bound), *_cells(other, bound)))
            ours += [found] if isinstance(found, float) else []
        for peer in PEERS:
            found = flow.peer(peer, "alltoall", BLOCK)
            rows.append((f"{peer}'s choice", "", *_cells(found, bound), "", ""))
            theirs += [found] if isinstance(found, float) else []
    heads = ("algorithm", "steps in flight", "ms", "over bound", "ms, SimGrid's factors", "over bound")
    caption = f"{caption} 6.75 GB/s and 0.25 us a link, bound {1e3 * bound:.2f} ms"
    return Table(heads, tuple(rows), caption), (min(ours) / bound, min(theirs) / bound)


def _cells(time: float | Failure | None, bound: float) -> tuple[str, str]:
    if time is None:
        return "", ""
    return ("failed", str(time)) if isinstance(time, Failure) else (f"{1e3 * time:.2f}", f"{time / bound:.3f}")
