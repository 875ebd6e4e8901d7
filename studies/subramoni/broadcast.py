"""Figure 4.3: broadcast on a Ranger-like allocation, by size on 1,024 processes, and by number of processes at 1 MB."""

from __future__ import annotations

from dataclasses import replace

from osu_like_bench.simulate import FlowArena
from osu_like_bench.simulate.flowarena import LIBRARIES

from .contest import Contest, Row, chart, gain, run, table
from .figure import Chart, Figure, Table
from .jobs import allocated
from .models import arenas

__all__ = ["OURS", "PAPER", "TITLE", "draw"]

TITLE = "Figure 4.3: broadcast, Ranger-like, 16 processes a host"
PAPER = "up to 14 % faster at 1,024 processes and 1 MB; small messages unaffected; gain grows with size and processes"
BLIND = "scatter_ring"  # blind to switches, in rank order; MVAPICH runs it for long messages
OURS = ("scatter_allgather", "scatter_allgather_hosts", "reordered", "circulant", "chain", "knomial")
SIZES = (1 << 10, 1 << 14, 1 << 17, 1 << 20)
HOSTS = (8, 16, 32)
RANKS = 16
FREE = 1024  # number of free hosts from which the scheduler takes the job's hosts


def draw(full: bool) -> Figure:
    """Make the figure from simulations of up to 512 processes; with ``full``, of the reference's 1,024."""
    hosts = (*HOSTS, *((2 * HOSTS[-1],) if full else ()))
    tables: list[Table] = []
    charts: list[Chart] = []
    words: list[str] = []
    for model, (over_sizes, over_ranks) in _rows(hosts).items():
        ranks = f"{hosts[-1] * RANKS:,} processes"
        tables.append(table("bytes", over_sizes, f"{ranks}, {model}:"))
        tables.append(table("processes", over_ranks, f"1 MB, {model}:"))
        charts.append(chart(f"figure-4-3-{model}-sizes", f"broadcast, {ranks}, {model}", "bytes", over_sizes))
        name = f"figure-4-3-{model}-processes"
        charts.append(chart(name, f"broadcast of 1M, {model}", "processes", over_ranks))
        last = over_ranks[-1]
        words.append(
            f"under {model} with {ranks} and 1 MB the re-ordered scatter-allgather is "
            f"{gain(last.baseline, last.ours[OURS[0]])}, over hosts {gain(last.baseline, last.ours[OURS[1]])} the "
            f"blind one's speed, and our best {last.best_peer[1] / last.best_ours[1]:.2f}x the best peer's"
        )
    return Figure("; ".join(words), tuple(tables), tuple(charts))


def _rows(hosts: tuple[int, ...]) -> dict[str, tuple[list[Row], list[Row]]]:
    """Return, for each model, the rows of all sizes on the most hosts, and those of 1 MB on each number of hosts."""
    found: dict[str, tuple[list[Row], list[Row]]] = {}
    for count in hosts:
        interface = allocated("ranger", count, RANKS, among=FREE, shuffled=True)
        ranks = count * RANKS
        for model, arena in arenas(interface, "ranger"):
            over_sizes, over_ranks = found.setdefault(model, ([], []))
            most = count == hosts[-1]
            rows = run((f"{n}", n, _contest(arena, n)) for n in (SIZES if most else SIZES[-1:]))
            over_sizes += rows if most else []
            over_ranks.append(replace(rows[-1], label=f"{ranks}", x=ranks))
    return found


def _contest(arena: FlowArena, nbytes: int) -> Contest:
    return Contest(arena, "bcast", nbytes, OURS, BLIND, peers=tuple(LIBRARIES))
