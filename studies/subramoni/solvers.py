"""Figures 5.7 and 5.8: Hypre- and MILC-like solvers, share of traffic by hops and time of an iteration."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from osu_like_bench.simulate.kernelstudy import GIVEN
from topompi.machine.interference.kernels.kernel import Burst, Phase
from topompi.machine.interference.kernels.pcg import PCG
from topompi.mapping import CommunicationGraph
from topompi.topology import TopologyInterface

from .figure import Figure, Table
from .jobs import allocated
from .models import of_kernel, table_of_models
from .ranking import Timed, evaluations, hops, times, timing, words

__all__ = ["PAPER", "TITLE", "Multigrid", "draw"]

TITLE = "Figures 5.7, 5.8: Hypre- and MILC-like solvers, Ranger-like, 16 processes a host"
PAPER = (
    "Hypre: share inside hosts 45.00 % to 53.28 %, 10-15 % faster; MILC: 44.12 % to 58.77 % at 2,048 processes, of the "
    "rest over 7 hops 73.10 % to 48.67 %, 15 % faster (10 % at 1,024)"
)
SIZES = (1 << 10, 1 << 16)
LEVELS = 3
FREE = 1024  # number of free hosts from which the scheduler takes the job's hosts


class Multigrid(PCG):
    """PCG with a multigrid preconditioner: each coarser grid has every other process and a quarter of the bytes.

    On grid l, processes that are 2^l apart exchange. The halos of the grids follow one another, and then two sums.
    """

    name = "multigrid"

    def phases(self, nbytes: int) -> tuple[Phase, ...]:
        """Return the halo of each grid, then two sums."""
        halo = [self._coarse(level, max(nbytes >> 2 * level, 1)) for level in range(LEVELS)]
        return (*halo, *super().phases(nbytes)[1:])

    @cached_property
    def graph(self) -> CommunicationGraph:
        """The sum of the grids' halos, marked as a grid for mappers that recognise grids."""
        halos = [one for one in self.phases(1 << 2 * LEVELS) if isinstance(one, Burst)]
        ends = [np.concatenate([getattr(one, name) for one in halos]) for name in ("source", "target", "nbytes")]
        found = CommunicationGraph.from_arrays(self.ranks, *ends)
        columns = (found.offsets, found.targets, found.volume, found.messages)
        return CommunicationGraph(self.ranks, *columns, self.grid, (self.periodic,) * len(self.grid))

    def _coarse(self, level: int, nbytes: int) -> Burst:
        """Return the halo of the processes whose coordinates are multiples of 2^level."""
        stride = 1 << level
        coarse = PCG(tuple(-(-extent // stride) for extent in self.grid), self.periodic)
        place = np.stack(np.unravel_index(np.arange(coarse.ranks), coarse.grid)) * stride
        rank = np.ravel_multi_index(tuple(place), self.grid)
        halo = coarse.halo(nbytes)
        return Burst(rank[halo.source], rank[halo.target], halo.nbytes, halo.tag)


def draw(full: bool) -> Figure:
    """Make the figure from simulations of 1,024 processes; with ``full``, also of MILC's 2,048."""
    jobs = [("Hypre-like", Multigrid((16, 8, 8)), 64), ("MILC-like", PCG((8, 8, 4, 4), periodic=True), 64)]
    jobs += [("MILC-like", PCG((8, 8, 8, 4), periodic=True), 128)] if full else []
    tables: list[Table] = []
    said, rows = [], []
    for name, kernel, hosts in jobs:
        interface = allocated("ranger", hosts, 16, among=FREE)
        more, timed = _solver(name, kernel, interface)
        tables += more
        rows += timed
        said.append(f"{name} at {kernel.ranks:,}: {words(timed)}")
    return Figure("; ".join(said), (*tables, models()))


def models() -> Table:
    """Return a table of MILC-like ranks in given order and in order by hop-bytes, under flows and under packets."""
    interface, kernel = allocated("ranger", 64, 16, among=FREE), PCG((8, 8, 4, 4), periodic=True)
    return table_of_models(
        "MILC-like, 1,024 processes, default: the given order",
        of_kernel(kernel, interface, SIZES, GIVEN, "best", "ranger"),
    )


def _solver(name: str, kernel: PCG, interface: TopologyInterface) -> tuple[list[Table], list[Timed]]:
    caption = f"{name}, {kernel.ranks:,} processes, grid {kernel.shape}{', periodic' if kernel.periodic else ''}:"
    timed = times(interface, kernel, SIZES, "ranger")
    return [
        hops(evaluations(interface, kernel), caption),
        timing("bytes", timed, "An iteration, by bytes of a face:"),
    ], timed
