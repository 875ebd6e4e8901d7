"""Figure 4.4: broadcast over hosts with SDR and with DDR adapters, 256 processes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from studies.simgrid import Arena
from topompi.topology import load_routes

from .contest import Contest, chart, run, table
from .figure import Figure, Table
from .jobs import SEED, job, view
from .models import Case, of_schedules, table_of_models

__all__ = ["PAPER", "TITLE", "draw"]

TITLE = "Figure 4.4: broadcast, SDR and DDR hosts mixed, 256 processes on Glenn-like trees"
PAPER = "70-100 % faster than the blind tree; equal to an all-DDR allocation for small and medium messages"
OURS = (
    "dft_rate",
    "bft_rate",
    "leaders",
    "scatter_allgather",
    "circulant",
    "chain",
    "binomial",
    "knomial",
    "reordered",
)
SIZES = tuple(1 << power for power in range(10, 21, 2))
SDR, DDR = 877, 650  # number of hosts of the two trees, in this order
HOSTS, RANKS = 32, 8


def draw(full: bool) -> Figure:
    """Make the figure from simulations at the reference's scale; ``full`` has no effect."""
    routes = load_routes("glenn")
    mixed, fast = _hosts()
    with Arena(job(routes, mixed.tolist(), RANKS), system="ranger") as arena:
        rows = run((f"{n}", n, Contest(arena, "bcast", n, OURS, "knomial")) for n in SIZES)
    with Arena(job(routes, np.sort(fast).tolist(), RANKS), system="ranger") as arena:
        pure = run((f"{n}", n, Contest(arena, "bcast", n, OURS, "knomial")) for n in SIZES)
    times = [(row.baseline, row.ours["dft_rate"]) for row in rows]
    gains = [blind / ordered for blind, ordered in times if isinstance(blind, float) and isinstance(ordered, float)]
    best = [row.best_peer[1] / row.best_ours[1] for row in rows]
    comparison = Table(
        ("bytes", "mixed, dft_rate / all DDR, dft_rate", "mixed, our best / all DDR, best peer"),
        tuple(
            (
                row.label,
                _ratio(row.ours["dft_rate"], other.ours["dft_rate"]),
                _ratio(row.best_ours[1], other.best_peer[1]),
            )
            for row, other in zip(rows, pure, strict=True)
        ),
        "Time on the mixed allocation over time on 32 DDR hosts:",
    )
    return Figure(
        f"against the best peer {min(best):.2f} to {max(best):.2f}x; the tree ordered by rates is {min(gains):.2f} to "
        f"{max(gains):.2f}x as fast as the blind tree",
        (
            table("bytes", rows, "16 SDR and 16 DDR hosts in random order:"),
            table("bytes", pure, "32 DDR hosts:"),
            comparison,
            models(),
        ),
        (chart("figure-4-4", "broadcast, 256 processes, SDR and DDR mixed", "bytes", rows),),
    )


def _hosts() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return mixed SDR and DDR hosts in random order, and an equal number of DDR hosts."""
    random = np.random.default_rng(SEED)
    slow, fast = random.choice(SDR, HOSTS // 2, replace=False), SDR + random.choice(DDR, HOSTS, replace=False)
    return random.permutation(np.concatenate((slow, fast[: HOSTS // 2]))), fast


def models() -> Table:
    """Return a table of the tree blind to rates and the tree ordered by rates, under flows and under packets."""
    mixed = view(load_routes("glenn"), _hosts()[0].tolist(), RANKS)
    return table_of_models(
        "bytes", (Case(f"{n}", mixed, of_schedules("bcast", n, "knomial", "dft_rate"), "ranger") for n in SIZES)
    )


def _ratio(one: object, other: object) -> str:
    return f"{one / other:.2f}" if isinstance(one, float) and isinstance(other, float) else "-"
