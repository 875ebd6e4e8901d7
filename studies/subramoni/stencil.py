"""Figure 5.5: halo exchange of a 3D stencil, by size on 512 processes, and by number of processes at 64 KiB."""

from __future__ import annotations

from osu_like_bench.simulate.kernelstudy import GIVEN
from topompi.machine.interference.kernels.halo import Stencil3D
from topompi.machine.interference.kernels.registry import balanced

from .figure import Figure, Table
from .jobs import allocated
from .models import of_kernel, table_of_models
from .ranking import chart, times, timing, words

__all__ = ["PAPER", "TITLE", "draw"]

TITLE = "Figure 5.5: 3D stencil, Ranger-like, 16 processes a host"
PAPER = "mapped ranks up to 40 % faster at 512 processes"
SIZES = (1 << 10, 1 << 16, 1 << 20)
RANKS, FREE = 16, 1024  # ranks per host; free hosts from which the scheduler takes the job's hosts
SIZE = 1 << 16


def draw(full: bool) -> Figure:
    """Make the figure from simulations of up to 512 processes; with ``full``, of up to 2,048."""
    over_ranks, over_sizes = [], []
    for hosts in (4, 8, 16, 32, *((64, 128) if full else ())):
        interface = allocated("ranger", hosts, RANKS, among=FREE)
        kernel = Stencil3D(balanced(hosts * RANKS, 3))
        over_ranks += times(interface, kernel, (SIZE,), "ranger", f"{kernel.ranks:,} ({kernel.shape})")
        if kernel.ranks == 512:
            over_sizes = times(interface, kernel, SIZES, "ranger")
    return Figure(
        words([*over_sizes, *over_ranks]),
        (
            timing("bytes", over_sizes, "512 processes, 8 x 8 x 8, bytes of a face:"),
            timing("processes", over_ranks, "Faces of 64 KiB:"),
            models(),
        ),
        (
            chart("figure-5-5-sizes", "3D stencil, 512 processes, Ranger-like", "bytes of a face", over_sizes),
            chart("figure-5-5-processes", "3D stencil, faces of 64K, Ranger-like", "processes", over_ranks),
        ),
    )


def models() -> Table:
    """Return a table of 512 ranks in given order and in order by hop-bytes, under flows and under packets."""
    interface, kernel = allocated("ranger", 32, RANKS, among=FREE), Stencil3D(balanced(32 * RANKS, 3))
    return table_of_models(
        "512 processes, default: the given order",
        of_kernel(kernel, interface, SIZES, GIVEN, "best", "ranger"),
    )
