"""Figures 6.9 and 8.7: the transposes of a P3DFFT-like program."""

from __future__ import annotations

from collections.abc import Sequence

from osu_like_bench.kernels.replaying import JOINT, PLAIN
from osu_like_bench.simulate import Failure
from osu_like_bench.simulate.kernelstudy import KernelStudy
from studies.simgrid import Arena
from topompi.machine.interference.kernels.transposes import P3DFFT
from topompi.views.network import network_of

from .contest import gain
from .figure import Figure, Table
from .jobs import allocated
from .models import of_kernel, table_of_models

__all__ = ["PAPER", "TITLE", "draw"]

TITLE = "Figures 6.9, 8.7: P3DFFT-like transposes, four alltoalls an iteration"
PAPER = "FFT time up to 13 %, communication up to 12 % lower at 4,096 processes; Slurm cluster: communication 9 % lower"
SIZES = (1 << 16, 1 << 20)
JOBS = (("stampede", 64, 16, 160), ("slurm64", 64, 8, 64))
LARGE = (("stampede", 128, 16, 320), ("stampede", 256, 16, 640))


def draw(full: bool) -> Figure:
    """Make the figure from simulations of 512 and 1,024 processes; with ``full``, of up to 4,096."""
    rows: list[tuple[str, ...]] = []
    gains: list[float] = []
    firsts: list[float] = []
    for system, hosts, ranks, among in (*JOBS, *(LARGE if full else ())):
        interface, kernel = allocated(system, hosts, ranks, among=among), P3DFFT((hosts, ranks))
        with Arena(network_of(interface), timeout=3600 if full else 900) as arena:
            found = KernelStudy(arena, kernel, interface).run((JOINT,), tuple(PLAIN), SIZES)
        for size in SIZES:
            times = {side: found.outcomes[side, size] for side in (*PLAIN, JOINT)}
            best = found.best(tuple(PLAIN), size) or ("none", float("nan"))
            ours = times[JOINT]
            rows.append(_row(f"{kernel.ranks:,} on {system}", size, times, best, found.bounds[size]))
            if isinstance(ours, float):
                gains.append(best[1] / ours)
                firsts += [one / ours for one in (times["pairwise"],) if isinstance(one, float)]
    heads = ("processes", "bytes of a pencil", *(f"{name} (us)" for name in (*PLAIN, JOINT)), "bound (us)")
    heads += ("best plain", "joint / best plain", "joint / pairwise")
    return Figure(
        f"against the best of the plain orders the joint schedule is {_span(gains)}x as fast; against pairwise "
        f"exchange, the reference's default for large messages, {_span(firsts)}x",
        (
            Table(heads, tuple(rows), "Rows inside hosts, columns over one rank of each host, all columns at once:"),
            models(),
        ),
    )


def models() -> Table:
    """Return a table of the smaller job's transposes by two algorithms, under flows and under packets."""
    system, hosts, ranks, among = JOBS[1]
    interface, kernel = allocated(system, hosts, ranks, among=among), P3DFFT((hosts, ranks))
    return table_of_models(
        f"{kernel.ranks:,} on {system}, default pairwise",
        of_kernel(kernel, interface, SIZES, "pairwise", JOINT, "stampede"),
    )


def _row(
    label: str, size: int, times: dict[str, float | Failure], best: tuple[str, float], bound: float
) -> tuple[str, ...]:
    return (
        label,
        f"{size}",
        *(_micro(one) for one in times.values()),
        _micro(bound),
        best[0],
        gain(best[1], times[JOINT]),
        gain(times["pairwise"], times[JOINT]),
    )


def _micro(time: float | Failure) -> str:
    return "failed" if isinstance(time, Failure) else f"{1e6 * time:,.0f}"


def _span(values: Sequence[float]) -> str:
    return f"{min(values):.2f} to {max(values):.2f}"
