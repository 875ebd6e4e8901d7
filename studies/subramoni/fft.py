"""Figures 6.6 and 6.8: the two alltoalls of a pencil FFT, one inside hosts and one over one rank of each host."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from osu_like_bench.simulate import Failure
from studies.simgrid import Arena
from topompi.schedules import Network, Schedule, lower_bound, make
from topompi.schedules.alltoall import direct
from topompi.topology import load_routes

from .contest import gain
from .figure import Figure, Table
from .jobs import SEED, allocated, allocation, job
from .models import Case, of_schedules, table_of_models

__all__ = ["PAPER", "TITLE", "draw"]

TITLE = "Figures 6.6, 6.8: row and column alltoalls of a 3D FFT, Stampede-like, 16 processes a host"
PAPER = "FFT benchmark about 15 % faster"
SIZES = (1 << 12, 1 << 16, 1 << 20)
RANKS = 16
PLAIN = {
    "pairwise": direct.alltoall_pairwise,
    "shift": direct.alltoall_shift,
    "scatter_destination": direct.alltoall_scatter_destination,
}
# Algorithms of each library on a communicator with a power of two of ranks: largest block in bytes, algorithm. MPICH by
# Thakur, Rabenseifner and Gropp, 2005; Open MPI by the fixed rules of its releases up to 4.0, whose "pairwise" is the
# shift.
LIBRARIES = {
    "MPICH": ((32768, "scatter_destination"), (1 << 62, "pairwise")),
    "Open MPI": ((1 << 62, "shift"),),
}
HEADS = ("processes", "hosts", "bytes", *(f"{name} (us)" for name in PLAIN), "joint (us)", "bound (us)")
GAINS = (*(f"joint / {name}'s" for name in LIBRARIES), "joint / best plain", "joint / bound")
IMPOSSIBLE = Failure("impossible: less than the busiest link needs")


def draw(full: bool) -> Figure:
    """Make the figure from simulations of 512 and 1,024 processes; with ``full``, also of 2,048."""
    rows: list[tuple[str, ...]] = []
    ratios: dict[str, list[float]] = {name: [] for name in (*LIBRARIES, "best")}
    for hosts in (32, 64, 128) if full else (32, 64):
        for words, network in _jobs(hosts):
            with Arena(network, timeout=900) as arena:
                for size in SIZES:
                    rows.append((f"{hosts * RANKS:,}", words, f"{size}", *_cells(arena, size, ratios)))
    return Figure(
        ", ".join(f"{min(some):.2f} to {max(some):.2f}x {_NAMES[name]}" for name, some in ratios.items()),
        (
            Table((*HEADS, *GAINS), tuple(rows), "Alltoall of all columns at once, each over one rank of each host:"),
            models(),
        ),
    )


def models() -> Table:
    """Return a table of pairwise exchange and the joint schedule on 32 of 160 hosts, under flows and under packets."""
    view = allocated("stampede", 32, 1, among=160)
    return table_of_models(
        "512 processes, default pairwise",
        (
            Case(f"joint, {size} bytes", view, of_schedules("alltoall", size * RANKS, "pairwise", "joint"))
            for size in SIZES[:2]
        ),
    )


_NAMES = {"MPICH": "against MPICH's order", "Open MPI": "against Open MPI's", "best": "against the best plain order"}


def _jobs(hosts: int) -> list[tuple[str, Network]]:
    """Return three jobs with one rank per host, as labels and networks.

    The hosts are side by side, or drawn from 160, in ascending or in random order.
    """
    routes = load_routes("stampede")
    drawn = np.random.default_rng(SEED).permutation(160)[:hosts].tolist()
    return [
        ("side by side", job(routes, range(hosts), 1)),
        ("some of 160, ascending", allocation("stampede", hosts, 1, among=160)),
        ("some of 160, any order", job(routes, drawn, 1)),
    ]


def _cells(arena: Arena, size: int, ratios: dict[str, list[float]]) -> Sequence[str]:
    """Return the cells of one row that follow the job's description: times, gains, and ours over the lower bound.

    :param arena: the simulated network of the job.
    :param size: bytes that a process sends to a process of another host; each rank stands for ``RANKS`` of them.
    :param ratios: lists, one per competitor, that receive the competitor's time over ours.
    """
    network, each = arena.network, size * RANKS
    bound = lower_bound(network, "alltoall", block_bytes=each).seconds
    plain = {name: _timed(arena, order(network.num_ranks), each, bound) for name, order in PLAIN.items()}
    mine = _timed(arena, make("alltoall", "joint", network), each, bound)
    theirs = [plain[next(name for most, name in choice if size <= most)] for choice in LIBRARIES.values()]
    theirs.append(min((time for time in plain.values() if isinstance(time, float)), default=IMPOSSIBLE))
    for name, time in zip(ratios, theirs, strict=True):
        if isinstance(time, float) and isinstance(mine, float):
            ratios[name].append(time / mine)
    over = f"{mine / bound:.3f}" if isinstance(mine, float) else "-"
    return (*map(_micro, (*plain.values(), mine, bound)), *(gain(time, mine) for time in theirs), over)


def _timed(arena: Arena, schedule: Schedule, nbytes: int, bound: float) -> float | Failure:
    time = arena.time(schedule, nbytes)
    return IMPOSSIBLE if isinstance(time, float) and time < 0.999 * bound else time


def _micro(time: float | Failure) -> str:
    return "failed" if isinstance(time, Failure) else f"{1e6 * time:,.0f}"
