"""Figure 6.7: alltoall on a Stampede-like 5:4 allocation, over sizes."""

from __future__ import annotations

from ..simulate import Arena
from .contest import Contest, Row, chart, run, table
from .figure import Figure
from .jobs import allocation

__all__ = ["PAPER", "TITLE", "draw"]

TITLE = "Figure 6.7: alltoall, Stampede-like, 5:4 over-subscribed leaves"
PAPER = "up to 15 % faster at 1,024 and 2,048 processes"
OURS = ("tacs1", "tacs2", "even", "at_once", "colouring")
SIZES = (1 << 10, 1 << 14, 1 << 18)


def draw(full: bool) -> Figure:
    """128 and 256 processes, two a host; in full 1,024 and 2,048, sixteen a host."""
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
        tuple(table("bytes", several, f"{hosts * ranks:,} processes on {hosts} hosts:") for hosts, several in rows),
        tuple(
            chart(f"figure-6-7-{hosts}", f"alltoall, {hosts * ranks:,} processes, {hosts} hosts", "bytes", several)
            for hosts, several in rows
        ),
        tuple(failure for row in last for failure in row.failures)
        + (() if full else ("1,024 and 2,048 processes, sixteen a host, are simulated with --full.",)),
    )
