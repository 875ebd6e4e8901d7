"""Figures 3.1 and 3.2: gather and scatter of 296 processes on switches A, B and C, alone and during an alltoall."""

from __future__ import annotations

from osu_like_bench.simulate import Background
from studies.simgrid import Arena

from .contest import Contest, Row, chart, run, table
from .figure import Chart, Figure, Table
from .jobs import three_switches, view_of_three_switches
from .models import Case, of_schedules, table_of_models

__all__ = ["PAPER", "TITLE", "draw"]

TITLE = "Figures 3.1, 3.2: gather and scatter, 296 processes on switches A, B, C"
PAPER = (
    "a 1 MB background costs the default gather 21 %, 4 MB about 10 % more; topology-aware gather up to 50-54 % "
    "faster; scatter 23 % faster on a quiet network"
)
SIZES = (1 << 10, 1 << 12, 1 << 14, 1 << 16)
BACKGROUNDS = (None, Background(1 << 20))
OURS = ("leaders", "linear", "at_once", "binomial", "knomial")


def draw(full: bool) -> Figure:
    """Make the figure from simulations at the reference's scale; ``full`` has no effect."""
    network = three_switches()
    tables: list[Table] = []
    charts: list[Chart] = []
    quiet: dict[str, list[Row]] = {}
    for collective in ("gather", "scatter"):
        for background in BACKGROUNDS:
            with Arena(network, background=background) as arena:
                given = [(f"{n}", n, Contest(arena, collective, n, OURS, "binomial")) for n in SIZES]
                rows = run(given)
            load = "quiet" if background is None else f"beside an alltoall of {background.nbytes >> 20} MiB"
            tables.append(table("bytes", rows, f"{collective}, {load}:"))
            if background is None:
                quiet[collective] = rows
                name = f"figure-3-{collective}"
                charts.append(chart(name, f"{collective}, 296 processes, quiet", "bytes of a process", rows))
    return Figure(_verdict(quiet), (*tables, models()), tuple(charts))


def models() -> Table:
    """Return a table of 16 KiB gather and scatter over leaders, under flows and under packets."""
    view, size = view_of_three_switches(), 1 << 14
    jobs = [("gather", name, background) for background in BACKGROUNDS for name in ("leaders", "nodes")]
    jobs += [("scatter", "leaders", None)]
    return table_of_models(
        "16 KiB, default binomial",
        (
            Case(
                f"{collective}, {name}, {'quiet' if background is None else 'beside 1 MiB'}",
                view,
                of_schedules(collective, size, "binomial", name),
                background=background,
            )
            for collective, name, background in jobs
        ),
    )


def _verdict(quiet: dict[str, list[Row]]) -> str:
    words = []
    for collective, rows in quiet.items():
        against = [row.best_peer[1] / row.best_ours[1] for row in rows]
        baseline = [row.baseline / row.best_ours[1] for row in rows if isinstance(row.baseline, float)]
        words.append(
            f"{collective}: {min(against):.2f} to {max(against):.2f}x the best peer's speed, "
            f"{min(baseline):.2f} to {max(baseline):.2f}x the default's"
        )
    return "; ".join(words)
