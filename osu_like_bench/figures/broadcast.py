"""Figure 4.3: broadcast on a Ranger-like allocation, over sizes at 1,024 processes and over processes at 1 MB."""

from __future__ import annotations

from ..simulate import Arena
from .contest import Contest, Row, chart, run, table
from .figure import Figure
from .jobs import allocation

__all__ = ["OURS", "PAPER", "TITLE", "draw"]

TITLE = "Figure 4.3: broadcast, Ranger-like, 16 processes a host"
PAPER = "up to 14 % faster at 1,024 processes and 1 MB; small messages unaffected; gain grows with size and processes"
OURS = ("reordered", "leaders", "scatter_allgather", "circulant", "chain", "wave", "binomial", "knomial")
SIZES = (1 << 10, 1 << 14, 1 << 17, 1 << 20)
HOSTS = (8, 16, 32)
RANKS = 16
FREE = 1024  # hosts among which the scheduler found the job's


def draw(full: bool) -> Figure:
    """Up to 512 processes; in full to the reference's 1,024."""
    over_sizes: list[Row] = []
    over_ranks: list[Row] = []
    most = 2 * HOSTS[-1] if full else HOSTS[-1]
    for hosts in (*HOSTS, *((most,) if full else ())):
        with Arena(allocation("ranger", hosts, RANKS, among=FREE), system="ranger") as arena:
            ranks = hosts * RANKS
            at = [(f"{ranks}", ranks, Contest(arena, "bcast", 1 << 20, OURS, "knomial"))]
            over_ranks += run(at)
            if hosts == most:
                over_sizes = run((f"{n}", n, Contest(arena, "bcast", n, OURS, "knomial")) for n in SIZES)
    last = over_ranks[-1]
    baseline, proposed = last.baseline, last.ours["reordered"]
    ranks = f"{most * RANKS:,} processes"
    words = f"best peer: ours is {last.best_peer[1] / last.best_ours[1]:.2f}x its speed at {ranks} and 1 MB"
    if isinstance(baseline, float) and isinstance(proposed, float):
        words += (
            f"; the re-ordered tree is {baseline / proposed:.2f}x, our best {baseline / last.best_ours[1]:.2f}x the "
            "default tree's speed there"
        )
    return Figure(
        words,
        (
            table("bytes", over_sizes, f"{ranks}:"),
            table("processes", over_ranks, "1 MB:"),
        ),
        (
            chart("figure-4-3-sizes", f"broadcast, {ranks}, Ranger-like", "bytes", over_sizes),
            chart("figure-4-3-processes", "broadcast of 1 MB, Ranger-like", "processes", over_ranks),
        ),
        (
            f"The hosts are drawn at random from {FREE:,}, in ascending order, filled in blocks.",
            "The default is the 4-nomial tree in rank order.",
        ),
    )
