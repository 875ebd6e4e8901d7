"""Figure 6.7: alltoall of several sizes on a Stampede-like allocation, whose leaves have 5 hosts per 4 up-links."""

from __future__ import annotations

from studies.simgrid import Arena

from .contest import Contest, Row, chart, run, table
from .figure import Figure, Table
from .jobs import allocated, allocation
from .models import Case, of_schedules, table_of_models

__all__ = ["PAPER", "TITLE", "draw"]

TITLE = "Figure 6.7: alltoall, Stampede-like, 5:4 over-subscribed leaves"
PAPER = "up to 15 % faster at 1,024 and 2,048 processes"
OURS = ("tacs1", "tacs2", "even", "at_once", "colouring")
SIZES = (1 << 10, 1 << 14, 1 << 18)


def draw(full: bool) -> Figure:
    """Make the figure from simulations of 128 and 256 processes, two per host.

    With ``full``, there are 1,024 and 2,048 processes, sixteen per host.
    """
    ranks = 16 if full else 2
    rows: list[tuple[int, list[Row]]] = []
    for hosts in (64, 128):
        with Arena(allocation("stampede", hosts, ranks, among=hosts), timeout=1800 if full else 120) as arena:
            given = [(f"{n}", n, Contest(arena, "alltoall", n, OURS, "pairwise")) for n in SIZES]
            rows.append((hosts, run(given)))
    last = [row for _, several in rows for row in several]
    against = [row.best_peer[1] / row.best_ours[1] for row in last]
    default = [row.baseline / row.best_ours[1] for row in last if isinstance(row.baseline, float)]
    return Figure(
        f"against the best peer {min(against):.2f} to {max(against):.2f}x; against pairwise exchange, the reference's "
        f"default for large messages, {min(default):.2f} to {max(default):.2f}x",
        (
            *(table("bytes", several, f"{hosts * ranks:,} processes on {hosts} hosts:") for hosts, several in rows),
            models(),
        ),
        tuple(
            chart(f"figure-6-7-{hosts}", f"alltoall, {hosts * ranks:,} processes, {hosts} hosts", "bytes", several)
            for hosts, several in rows
        ),
    )


def models() -> Table:
    """Return a table of the smaller job's alltoall by three algorithms, under flows and under packets."""
    view = allocated("stampede", 64, 2, among=64)
    return table_of_models(
        "128 processes, default pairwise",
        (
            Case(f"{name}, {size} bytes", view, of_schedules("alltoall", size, "pairwise", name))
            for name in ("tacs1", "even", "at_once")
            for size in SIZES
        ),
    )
