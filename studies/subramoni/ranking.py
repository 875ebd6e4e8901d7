"""Orders of a kernel's ranks: the share of bytes by distance, and the time of an iteration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import isfinite, prod

from osu_like_bench.kernels import Kernel
from osu_like_bench.kernels.orders import ORDERS, OTHERS, OURS, order_of
from osu_like_bench.simulate import Failure
from osu_like_bench.simulate.kernelstudy import KernelStudy
from osu_like_bench.simulate.table import Findings
from studies.simgrid import Arena
from topompi.mapping import Evaluation, evaluate
from topompi.topology import TopologyInterface
from topompi.views.network import network_of

from .contest import gain
from .figure import Chart, Table

__all__ = ["PROPOSED", "Timed", "best_block", "chart", "evaluations", "hops", "times", "timing", "words"]

PROPOSED, GIVEN = "scheme2", "given"
HEADS = {
    "scheme2": "reference's scheme 2",
    "best": "ours, hop-bytes",
    "busiest": "ours, busiest link",
    "given": "given order",
    "cyclic": "cyclic",
    "cartesian": "blocks of the grid",
}


@dataclass(frozen=True)
class Timed:
    """All orders of one kernel, timed at one size.

    :param label: label of the row.
    :param x: number along a chart's axis.
    :param size: message size in bytes.
    :param found: times of all orders.
    """

    label: str
    x: float
    size: int
    found: Findings

    def seconds(self, order: str) -> float | Failure:
        """Return the simulated seconds of an iteration in an order, or a failure."""
        return self.found.outcomes[order, self.size]

    @property
    def ours(self) -> tuple[str, float]:
        """Name and seconds of the fastest of our orders."""
        return self.found.best(tuple(OURS), self.size) or ("none", float("nan"))

    @property
    def other(self) -> tuple[str, float]:
        """Name and seconds of the fastest of the other orders."""
        return self.found.best(tuple(OTHERS), self.size) or ("none", float("nan"))


def times(
    interface: TopologyInterface, kernel: Kernel, sizes: Sequence[int], system: str, label: str = ""
) -> list[Timed]:
    """Time all orders at some message sizes.

    :param interface: topology of the job.
    :param kernel: the kernel, with as many ranks as the job.
    :param sizes: message sizes in bytes.
    :param system: system whose latencies are filled in, see ``Arena``.
    :param label: label of the rows; by default the sizes.
    """
    with Arena(network_of(interface), system=system, timeout=900) as arena:
        found = KernelStudy(arena, kernel, interface).run(tuple(OURS), tuple(OTHERS), sizes)
    return [Timed(label or f"{size}", kernel.ranks if label else size, size, found) for size in sizes]


def timing(head: str, rows: Sequence[Timed], caption: str) -> Table:
    """Return a table of each order's microseconds, and our fastest order's gain over the given and best other order.

    :param head: head of the first column.
    :param rows: timed kernels, one per line.
    :param caption: sentence above the table.
    """
    heads = (*(f"{HEADS[name]} (us)" for name in ORDERS), "fastest", "/ given order", "/ best other")
    body = tuple(
        (
            row.label,
            *(_micro(row.seconds(name)) for name in ORDERS),
            f"{row.ours[0]} vs {row.other[0]}",
            gain(row.seconds(GIVEN), row.ours[1]),
            gain(row.other[1], row.ours[1]),
        )
        for row in rows
    )
    return Table((head, *heads), body, caption)


def words(rows: Iterable[Timed]) -> str:
    """Compare, in a sentence, our orders with the reference's scheme 2, the best other order, and the given order."""
    rows = list(rows)
    proposed = [_ratio(row.seconds(PROPOSED), row.seconds("best")) for row in rows]
    other = [row.other[1] / row.ours[1] for row in rows]
    usual = [row.other[1] / seconds for row in rows if isinstance(seconds := row.seconds("best"), float)]
    given = [seconds / row.ours[1] for row in rows if isinstance(seconds := row.seconds(GIVEN), float)]
    if not any(map(isfinite, other)):
        return "no order of ours could be simulated, see the shares"
    return (
        f"our default order, by hop-bytes, is {_span(proposed)}x as fast as the reference's scheme 2 and "
        f"{_span(usual)}x as the best of what a user has instead; the fastest of our three is {_span(other)}x as fast "
        f"as that, and {_span(given)}x as the given order"
    )


def chart(name: str, title: str, xlabel: str, rows: Sequence[Timed]) -> Chart:
    """Return a chart with a line for each order.

    :param name: name of the file, without suffix.
    :param title: title above the chart.
    :param xlabel: label of the horizontal axis.
    :param rows: timed kernels, one per point of each line.
    """
    series = {
        HEADS[order]: [(row.x, 1e6 * s) for row in rows if isinstance(s := row.seconds(order), float)]
        for order in ORDERS
    }
    return Chart(name, title, xlabel, "simulated time of an iteration (us)", series)


def evaluations(
    interface: TopologyInterface, kernel: Kernel, names: Iterable[str] = tuple(ORDERS)
) -> dict[str, Evaluation]:
    """Return the mapping's costs of each order of a kernel's ranks.

    :param interface: topology of the job.
    :param kernel: the kernel, with as many ranks as the job.
    :param names: names of the orders.
    """
    found = {}
    for name in names:
        order = order_of(name, kernel, interface)
        found[name] = evaluate(order.mapping, kernel.graph, order.machine)
    return found


def hops(found: dict[str, Evaluation], caption: str) -> Table:
    """Return a table of the share of bytes by number of hops, for each order."""
    distances = sorted({int(far) for one in found.values() for far in one.bytes_by_distance if far != "host"})
    heads = (
        "order",
        "inside hosts",
        *(f"{far} hop{'s' * (far > 1)}" for far in distances),
        "mean hops",
        "busiest link",
    )
    least = min((one.link_seconds or 0.0) for one in found.values())
    rows = tuple((HEADS[name], *_shares(one, distances), _over(one.link_seconds, least)) for name, one in found.items())
    return Table(heads, rows, caption)


def best_block(kernel: Kernel, slots: int) -> tuple[tuple[int, ...], float]:
    """Return the shape of a block of ``slots`` ranks with the most of a stencil's bytes inside, and their share.

    All shapes that divide the grid are enumerated. A dimension of extent g that is cut into lengths b keeps g - g / b
    of its g - 1 links; on a ring, it keeps a share of 1 - 1 / b of its g links.
    """
    faces = kernel.faces or (1,) * len(kernel.grid)
    total = sum(face * _kept(extent, extent, kernel.periodic) for face, extent in zip(faces, kernel.grid, strict=True))
    shapes = [shape for shape in product(*map(_divisors, kernel.grid)) if prod(shape) == slots]
    covered = {
        shape: sum(
            face * _kept(extent, length, kernel.periodic)
            for face, extent, length in zip(faces, kernel.grid, shape, strict=True)
        )
        / total
        for shape in shapes
    }
    best = max(covered, key=lambda shape: covered[shape])
    return best, covered[best]


def _kept(extent: int, length: int, periodic: bool) -> float:
    """Return how many of a rank's two messages along a dimension stay in its block, on average, but leave the rank."""
    if periodic and length == extent:
        return 2.0 if extent > 1 else 0.0
    return 2 * (length - 1) / length if periodic else 2 * (extent - extent / length) / extent


def _divisors(number: int) -> Iterator[int]:
    return (one for one in range(1, number + 1) if number % one == 0)


def _shares(one: Evaluation, distances: Sequence[int]) -> tuple[str, ...]:
    far = [one.bytes_by_distance.get(str(distance), 0) / max(one.total, 1) for distance in distances]
    return (f"{one.intra_share:.1%}", *(f"{share:.1%}" for share in far), f"{one.dilation:.2f}")


def _over(seconds: float | None, least: float) -> str:
    return f"{seconds / least:.2f}x" if seconds is not None and least else "-"


def _micro(time: float | Failure) -> str:
    return "failed" if isinstance(time, Failure) else f"{1e6 * time:,.4g}" if time < 1e-2 else f"{1e6 * time:,.0f}"


def _ratio(before: float | Failure, after: float | Failure) -> float:
    return before / after if isinstance(before, float) and isinstance(after, float) else float("nan")


def _span(values: Sequence[float]) -> str:
    values = [one for one in values if isfinite(one)]
    low, high = f"{min(values):.2f}", f"{max(values):.2f}"
    return low if low == high else f"{low} to {high}"
