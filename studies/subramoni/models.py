"""The two network models of the figures: flows, and packets on switches with finite buffers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from osu_like_bench.kernels.orders import RankOrder
from osu_like_bench.simulate import Background, FlowArena
from osu_like_bench.simulate.kernelstudy import KernelStudy
from topompi.machine.interference.kernels.kernel import Kernel
from topompi.topology import TopologyInterface
from topompi.views.network import network_of

from .contest import Timed, gain, micro
from .figure import Table

__all__ = ["Case", "arenas", "of_kernel", "of_schedules", "table_of_models"]

HEADS = tuple(f"{what}, {model}" for model in ("flows", "packets") for what in ("default (us)", "ours (us)", "gain"))


def arenas(
    interface: TopologyInterface, system: str, background: Background | None = None
) -> Iterator[tuple[str, FlowArena]]:
    """Yield the arenas of a job under flows, then under packets, each with the model's name.

    :param interface: topology of the job, with routes.
    :param system: system whose latencies and rates replace unknown ones of the fabric.
    :param background: second job on the same hosts.
    """
    network = network_of(interface)
    for name, routes in (("flows", None), ("packets", interface.routes)):
        with FlowArena(network, system=system, routes=routes, background=background) as arena:
            yield name, arena


@dataclass(frozen=True)
class Case:
    """A job on which a figure's default and its proposal are timed.

    :param label: label of the row.
    :param interface: topology of the job, with routes.
    :param times: function that returns the seconds of both in an arena of the job.
    :param system: system whose latencies and rates replace unknown ones of the fabric.
    :param background: second job on the same hosts.
    """

    label: str
    interface: TopologyInterface
    times: Callable[[FlowArena], tuple[Timed, Timed]]
    system: str = "stampede"
    background: Background | None = None

    @property
    def cells(self) -> tuple[str, ...]:
        """Cells of the table's row, see ``HEADS``."""
        found = [self.label]
        for _, arena in arenas(self.interface, self.system, self.background):
            default, ours = self.times(arena)
            found += [micro(default), micro(ours), gain(default, ours)]
        return tuple(found)


def of_schedules(collective: str, nbytes: int, default: str, ours: str) -> Callable[[FlowArena], tuple[Timed, Timed]]:
    """Return a function that times two schedules of a collective in an arena.

    :param collective: name of the collective.
    :param nbytes: message size in bytes.
    :param default: name of the default algorithm.
    :param ours: name of our algorithm.
    """

    def times(arena: FlowArena) -> tuple[Timed, Timed]:
        cuts = [arena.schedule(collective, name, nbytes) for name in (default, ours)]
        one, other = (arena.time(cut.schedule, cut.block_bytes, cut.slices) for cut in cuts)
        return one, other

    return times


def of_kernel(
    kernel: Kernel, interface: TopologyInterface, sizes: Sequence[int], default: str, ours: str, system: str
) -> Iterator[Case]:
    """Yield cases that compare two variants of a kernel, one case per size.

    A variant is an order of the ranks, or, in kernels with alltoalls in rows and columns, an alltoall algorithm. The
    orders are searched for once, for all sizes.

    :param kernel: the communication kernel.
    :param interface: topology of the job.
    :param sizes: message sizes in bytes.
    :param default: name of the default variant.
    :param ours: name of our variant.
    :param system: system whose latencies and rates replace unknown ones of the fabric.
    """
    orders: dict[str, RankOrder] = {}

    def times(nbytes: int, arena: FlowArena) -> tuple[Timed, Timed]:
        study = KernelStudy(arena, kernel, interface, orders)
        return study.time(default, nbytes), study.time(ours, nbytes)

    for size in sizes:
        yield Case(f"{ours}, {size} bytes", interface, partial(times, size), system)


def table_of_models(what: str, cases: Iterable[Case]) -> Table:
    """Return the table of default and ours under flows and packets.

    Links are those of the figure, and all ranks start together.

    :param what: head of the first column.
    :param cases: cases, one per row.

    Cost: four simulations per row.
    """
    caption = "The default and ours under topompi's own flows and packets:"
    return Table((what, *HEADS), tuple(case.cells for case in cases), caption)
