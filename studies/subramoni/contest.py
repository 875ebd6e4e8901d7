"""A comparison of our algorithms with the reference's default and the choices of other libraries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from math import isnan

from osu_like_bench.simulate import Failure, FlowArena
from studies.simgrid import PEERS, Arena

from .figure import Chart, Table

__all__ = ["Contest", "Row", "Timed", "gain", "micro", "run"]

Timed = float | Failure
JOBS = 2  # number of simulations that run at the same time


@dataclass(frozen=True)
class Contest:
    """A collective of one size on one network.

    :param arena: the simulated network.
    :param collective: name of the collective.
    :param nbytes: message size in bytes.
    :param ours: our algorithms, beginning with the one that the reference proposes.
    :param default: algorithm that stands for the default of the reference's library, the baseline.
    :param root: root of a rooted collective.
    :param peers: names of other libraries.
    """

    arena: Arena | FlowArena
    collective: str
    nbytes: int
    ours: tuple[str, ...]
    default: str
    root: int = 0
    peers: tuple[str, ...] = PEERS

    def time(self, algorithm: str) -> Timed:
        """Return the seconds of one of our algorithms."""
        cut = self.arena.schedule(self.collective, algorithm, self.nbytes, self.root)
        return self.arena.time(cut.schedule, cut.block_bytes, cut.slices)

    def peer(self, name: str) -> Timed:
        """Return the seconds of a library's own choice."""
        return self.arena.peer(name, self.collective, self.nbytes, self.root)

    @property
    def bound(self) -> float:
        """Lower bound of the seconds of any schedule on these routes, in which start-ups cost nothing."""
        return self.arena.bound(self.collective, self.nbytes, self.root)


@dataclass(frozen=True)
class Row:
    """The outcome of a contest; times are in seconds, or failures with their reason.

    :param label: size or number of processes, as text.
    :param x: size or number of processes, as a number, for a chart.
    :param proposed: name of the algorithm that the reference proposes.
    :param baseline: time of the reference's default.
    :param ours: times of our algorithms by name.
    :param peers: times of other libraries by name.
    :param bound: seconds that no schedule can beat; 0 if unknown.
    :param failures: a line for each missing time.
    """

    label: str
    x: float
    proposed: str
    baseline: Timed
    ours: Mapping[str, Timed]
    peers: Mapping[str, Timed]
    bound: float
    failures: tuple[str, ...] = field(default=())

    @property
    def best_ours(self) -> tuple[str, float]:
        """Name and seconds of our fastest algorithm."""
        return _fastest(self.ours)

    @property
    def best_peer(self) -> tuple[str, float]:
        """Name and seconds of the fastest peer; the reference's default counts as a peer."""
        return _fastest({**self.peers, "default": self.baseline})

    @property
    def cells(self) -> tuple[str, ...]:
        """Cells of the table's row, see ``HEADS``."""
        (mine, best), (peer, theirs) = self.best_ours, self.best_peer
        proposed = self.ours[self.proposed]
        return (
            self.label,
            micro(self.baseline),
            f"{self.proposed} {micro(proposed)}",
            f"{mine} {micro(best)}",
            f"{peer} {micro(theirs)}",
            micro(self.bound),
            gain(self.baseline, proposed),
            gain(self.baseline, best),
            gain(theirs, best),
            f"{best / self.bound:.3f}" if self.bound else "-",
        )


HEADS = (
    "reference's default (us)",
    "reference's proposal (us)",
    "our best (us)",
    "best peer (us)",
    "bound (us)",
    "proposal / default",
    "our best / default",
    "our best / best peer",
    "our best / bound",
)


def run(contests: Iterable[tuple[str, float, Contest]]) -> list[Row]:
    """Run all contests, two simulations at a time.

    :param contests: label, number along the chart's axis, and contest of each row.
    """
    rows, given = [], list(contests)
    with ThreadPoolExecutor(JOBS) as pool:
        started = [
            (
                label,
                x,
                contest,
                {name: pool.submit(contest.time, name) for name in dict.fromkeys((contest.default, *contest.ours))},
                {name: pool.submit(contest.peer, name) for name in contest.peers},
            )
            for label, x, contest in given
        ]
        for label, x, contest, ours, peers in started:
            times = {name: future.result() for name, future in ours.items()}
            theirs = {name: future.result() for name, future in peers.items()}
            said = [f"{label}: {name}: {one}" for name, one in {**times, **theirs}.items() if isinstance(one, Failure)]
            mine = {name: times[name] for name in contest.ours}
            bound = contest.bound
            rows.append(Row(label, x, contest.ours[0], times[contest.default], mine, theirs, bound, tuple(said)))
    return rows


def table(head: str, rows: Sequence[Row], caption: str = "") -> Table:
    """Return the table of some rows, whose first column is ``head``."""
    return Table((head, *HEADS), tuple(row.cells for row in rows), caption)


def chart(name: str, title: str, xlabel: str, rows: Sequence[Row]) -> Chart:
    """Return the chart of some rows: lines for default, proposal, our best, best peer, and bound."""
    lines: dict[str, list[tuple[float, float]]] = {
        "reference's default": [(row.x, row.baseline) for row in rows if isinstance(row.baseline, float)],
        "reference's proposal": [(row.x, _number(row.ours[row.proposed])) for row in rows],
        "our best": [(row.x, row.best_ours[1]) for row in rows],
        "best peer": [(row.x, row.best_peer[1]) for row in rows],
        "bound": [(row.x, row.bound) for row in rows],
    }
    in_micro = {name: [(x, 1e6 * y) for x, y in points] for name, points in lines.items()}
    return Chart(name, title, xlabel, "simulated time (us)", in_micro, ("bound",))


def gain(before: Timed, after: Timed) -> str:
    """Format the ratio of two times as ``1.23x``, above 1 if ``after`` is faster; ``-`` if either failed."""
    if isinstance(before, Failure) or isinstance(after, Failure) or not after or isnan(before) or isnan(after):
        return "-"
    return f"{before / after:.2f}x"


def _fastest(times: Mapping[str, Timed]) -> tuple[str, float]:
    found = [(seconds, name) for name, seconds in times.items() if not isinstance(seconds, Failure)]
    seconds, name = min(found) if found else (float("nan"), "none")
    return name, seconds


def micro(time: Timed) -> str:
    """Format a time in microseconds, or ``failed``."""
    return "failed" if isinstance(time, Failure) else f"{1e6 * time:,.4g}" if time < 1e-2 else f"{1e6 * time:,.0f}"


def _number(time: Timed) -> float:
    return float("nan") if isinstance(time, Failure) else time
