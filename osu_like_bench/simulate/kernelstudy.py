"""Simulations that compare alternatives for a kernel: orders of its ranks, or alltoalls of its rows and columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed

from topompi.mapping import evaluate
from topompi.topology import TopologyInterface

from ..kernels import KERNELS, Kernel
from ..kernels.orders import OTHERS, OURS, RankOrder, order_of
from ..kernels.replaying import JOINT, PLAIN, Replay
from .ground import Ground
from .table import Findings, Timing

__all__ = ["KernelStudy", "others_of", "ours_of"]

Progress = Callable[[str, int, int], None]
GIVEN, REMAPPED = "given", "remapped"


def ours_of(name: str) -> tuple[str, ...]:
    """Return the names of topompi's sides (alternatives to compare) of a kernel.

    For a stencil or conjugate gradients they are orders of ranks; for a transform, joint alltoalls in the given order
    and in topompi's order.
    """
    return tuple(OURS) if KERNELS[name].stencil else (JOINT, REMAPPED)


def others_of(name: str) -> tuple[str, ...]:
    """Return the names of a kernel's sides without topompi.

    For a stencil or conjugate gradients they are orders of ranks; for a transform, libraries' alltoalls in the given
    order.
    """
    return tuple(OTHERS) if KERNELS[name].stencil else tuple(PLAIN)


class KernelStudy:
    """The sides of one kernel, timed on an arena.

    :param arena: the simulated network.
    :param kernel: the kernel, with as many ranks as the arena.
    :param interface: topology of the job from which the arena's network was made.
    :param orders: orders already found for this kernel and job, by name; the study adds those that it finds.
    """

    def __init__(
        self,
        arena: Ground,
        kernel: Kernel,
        interface: TopologyInterface,
        orders: dict[str, RankOrder] | None = None,
    ) -> None:
        self.arena, self.kernel, self.interface = arena, kernel, interface
        self.orders: dict[str, RankOrder] = {} if orders is None else orders

    def run(
        self,
        ours: Sequence[str],
        others: Sequence[str],
        sizes: Sequence[int],
        *,
        jobs: int = 2,
        progress: Progress = lambda what, done, total: None,
    ) -> Findings:
        """Time all sides at all sizes.

        :param ours: names of topompi's sides.
        :param others: names of the other sides.
        :param sizes: message sizes in bytes.
        :param jobs: number of simultaneous simulations.
        :param progress: function that shows the latest simulation's name, the number of finished simulations, and the
            number of all.
        """
        sides = (*ours, *others)
        for number, side in enumerate(sides):
            progress(f"order of ranks: {side}", number, len(sides))
            self._replay(side)
        pool, found = ThreadPoolExecutor(jobs), dict[tuple[str, int], Timing]()
        try:
            tasks: dict[Future[Timing], tuple[str, int]] = {
                pool.submit(self.time, side, size): (side, size) for side in sides for size in sizes
            }
            for done, task in enumerate(as_completed(tasks), 1):
                found[tasks[task]] = task.result()
                progress(f"{tasks[task][0]} {tasks[task][1]}", done, len(tasks))
        except BaseException:  # also on an interrupt, so that running simulations are ended and not waited for
            pool.shutdown(wait=False, cancel_futures=True)
            self.arena.close()
            raise
        pool.shutdown()
        outcomes = {(side, size): found[side, size] for side in sides for size in sizes}
        return Findings(tuple(sizes), tuple(ours), tuple(others), outcomes, {size: self.bound(size) for size in sizes})

    def time(self, side: str, size: int) -> Timing:
        """Return the simulated seconds of a side at a message size, or a failure."""
        return self._replay(side).time(size, side if side in PLAIN else JOINT)

    def bound(self, size: int) -> float:
        """Return a lower bound of a transform's seconds in the given order; 0 for a stencil, which has no bound."""
        return 0.0 if self.kernel.stencil else self._replay(GIVEN).bound(size)

    def share(self, side: str) -> float:
        """Return the share of the kernel's bytes that stays within hosts in a side's order of ranks."""
        order = self._order(side)
        return evaluate(order.mapping, self.kernel.graph, order.machine).intra_share

    def about(self) -> dict[str, object]:
        """Return facts for the record: the kernel, and for each order of ranks the share of bytes inside hosts."""
        shares = {name: round(self.share(name), 4) for name in self.orders}
        return {"kernel": self.kernel.describe(), "inside hosts": shares}

    def _replay(self, side: str) -> Replay:
        return Replay(self.arena, self.kernel, self._order(side).process)

    def _order(self, side: str) -> RankOrder:
        name = side if self.kernel.stencil else "best" if side == REMAPPED else GIVEN
        name = "best" if side == "best" else name
        if name not in self.orders:
            self.orders[name] = order_of(name, self.kernel, self.interface)
        return self.orders[name]
