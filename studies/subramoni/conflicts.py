"""Figure 6.5: conflicts and time of each step of an alltoall with a barrier before each step."""

from __future__ import annotations

import numpy as np

from topompi.schedules import Network, analyse, make

from .figure import Chart, Figure, Table
from .jobs import allocation

__all__ = ["PAPER", "TITLE", "draw"]

TITLE = "Figure 6.5: alltoall step by step, Stampede-like 5:4, 1,024 and 2,048 processes"
PAPER = "time of a step follows the over-subscribed links in it; congestion counter 35 % lower with the schedule"
ALGORITHMS = ("pairwise", "shift", "tacs1", "colouring", "even")
BLOCK = 1 << 16
FREE = 160  # number of hosts from which the job's hosts are drawn


def draw(full: bool) -> Figure:
    """Make the figure for 64 hosts of 16 processes; with ``full``, also for 128 hosts, which takes some minutes."""
    tables, charts, fewer = [], [], ""
    for hosts in (64, 128) if full else (64,):
        network = allocation("stampede", hosts, 16, among=FREE)
        found = {name: _steps(network, name) for name in ALGORITHMS}
        base = found["pairwise"][0].sum()
        fewer = f"{1 - found['tacs1'][0].sum() / base:.0%}" if base else "no"
        rows = tuple(
            (
                name,
                f"{len(seconds):,}",
                f"{int(over.sum()):,}",
                f"{1 - over.sum() / base:.0%}" if base else "-",
                f"{1e3 * seconds.sum():,.1f}",
                f"{np.corrcoef(over, seconds)[0, 1]:.2f}" if over.std() and seconds.std() else "-",
            )
            for name, (over, seconds) in found.items()
        )
        heads = ("algorithm", "steps", "conflicts", "fewer than pairwise", "sum of steps (ms)", "correlation")
        tables.append(Table(heads, rows, f"{hosts * 16:,} processes, {hosts} hosts of {FREE}, 64 KiB blocks:"))
        lines = {name: list(enumerate(np.cumsum(1e3 * seconds).tolist())) for name, (_, seconds) in found.items()}
        title = f"alltoall of {hosts * 16:,} processes, barrier before each step"
        charts.append(Chart(f"figure-6-5-{hosts}", title, "step", "time until the step's end (ms)", lines, (), False))
    return Figure(
        f"the congestion counter is {fewer} lower with the reference's schedule; this counts links, it is no run",
        tuple(tables),
        tuple(charts),
    )


def _steps(network: Network, algorithm: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of conflicts and the seconds of each step of an algorithm."""
    found = analyse(make("alltoall", algorithm, network), network)
    over = np.bincount(found.step, weights=found.conflicts, minlength=found.num_steps)
    busy = np.zeros(found.num_steps)
    np.maximum.at(busy, found.step, found.transfers * BLOCK / network.capacity[found.link])
    return over, busy
