"""Figures 6.6 and 6.8: the two alltoalls of a pencil FFT, one inside hosts and one over one rank of each host."""

from __future__ import annotations

import numpy as np

from schedules import Network, Schedule, make
from schedules.alltoall import direct

from ..simulate import Arena, Failure
from .contest import gain
from .figure import Figure, Table
from .jobs import allocation

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


def draw(full: bool) -> Figure:
    """512 and 1,024 processes; in full also 2,048."""
    rows, gains = [], []
    for hosts in (32, 64, 128) if full else (32, 64):
        network = allocation("stampede", hosts, RANKS, among=160)
        ours = make("fft", "columns", network, rows=hosts)
        plain = {name: _all_columns(network, make_one(hosts)) for name, make_one in PLAIN.items()}
        with Arena(network, timeout=900) as arena:
            for size in SIZES:
                mine = arena.time(ours, size)
                theirs = {name: arena.time(schedule, size) for name, schedule in plain.items()}
                timed = {name: time for name, time in theirs.items() if not isinstance(time, Failure)}
                best = min(timed, key=lambda name: timed[name])
                rows.append(
                    (
                        f"{hosts * RANKS:,}",
                        f"{size}",
                        *map(_micro, theirs.values()),
                        _micro(mine),
                        best,
                        gain(timed[best], mine),
                    )
                )
                gains.append(timed[best] / mine if isinstance(mine, float) else float("nan"))
    heads = (
        "processes",
        "bytes",
        *(f"{name} (us)" for name in PLAIN),
        "joint (us)",
        "best plain",
        "joint / best plain",
    )
    return Figure(
        f"against the best of the plain orders {min(gains):.2f} to {max(gains):.2f}x",
        (Table(heads, tuple(rows), "Alltoall of all columns at once, each over one rank of each host:"),),
        notes=(
            "The alltoall inside the hosts is the MPI library's own on both sides and left out.",
            "SimGrid's replay has no collectives on parts of the ranks: the libraries' choices for these sizes are "
            "among the plain orders, and all three of these run.",
        ),
    )


def _all_columns(network: Network, one: Schedule) -> Schedule:
    """The same alltoall over the a-th ranks of all hosts, for every a, at once."""
    grid = np.arange(network.num_ranks).reshape(-1, RANKS).T
    tables = []
    for ranks in grid:
        columns = one.columns()
        columns["source"], columns["destination"] = ranks[columns["source"]], ranks[columns["destination"]]
        tables.append(np.stack(list(columns.values()), axis=1))
    counts = np.zeros((grid.size, grid.size), dtype=np.int64)
    for ranks in grid:
        counts[np.ix_(ranks, ranks)] = 1
    rows = np.concatenate(tables).astype(np.int64)
    given = {"counts": counts, "independent": one.independent, "window": one.window}
    return Schedule.from_rows("alltoall", grid.size, one.algorithm, rows, **given)


def _micro(time: float | Failure) -> str:
    return "failed" if isinstance(time, Failure) else f"{1e6 * time:,.0f}"
