"""Mean waits of section V-C's scenarios on drawn loads, and the break-even speed-up: ``python -m studies pollard``.

The logs of Cab are not public, so similar loads are drawn. Real logs are replayed by ``topompi jobs compare LOG
--scenario pollard``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from studies.mixes import capacity_mix
from studies.tables import Table, show_many
from topompi.machine.jobs import Cluster, Workload, simulate
from topompi.machine.jobs.metrics import summarise
from topompi.machine.jobs.study import POLLARD, Interval, break_even, interval
from topompi.machine.jobs.workload.workload import larger

__all__ = ["LOADS", "drawn", "main", "row_of"]

SEEDS = range(8)
CAB, PINOT = Cluster.regular(1296, 18, 18), Cluster.regular(2592, 18, 18)


def drawn(seed: int, of: float, jobs: int = 12_000) -> Workload:
    """Draw a month's load similar to Cab's.

    :param seed: seed of the random numbers.
    :param of: requested node-seconds over the node-seconds of Cab.
    :param jobs: number of jobs.
    """
    return capacity_mix(np.random.default_rng(seed), jobs, CAB.num_nodes, of)


LOADS: dict[str, tuple[Callable[[int], Workload], Cluster]] = {
    "light (0.6), Cab": (lambda seed: drawn(seed, 0.6), CAB),
    "full (0.85), Cab": (lambda seed: drawn(seed, 0.85), CAB),
    "overloaded (1.1), Cab": (lambda seed: drawn(seed, 1.1), CAB),
    "2x of light, Cab": (lambda seed: larger(drawn(seed, 0.6), 2), CAB),
    "2x of light, Pinot": (lambda seed: larger(drawn(seed, 0.6), 2), PINOT),
    "3x of light, Pinot": (lambda seed: larger(drawn(seed, 0.6), 3), PINOT),
}


def row_of(name: str, jobs: Sequence[Workload], cluster: Cluster) -> list[str]:
    """Return the cells of a load: its name, the mean wait of each scenario in hours, and the break-even speed-up.

    :param name: name of the load.
    :param jobs: draws of the load, one per replay.
    :param cluster: the machine.
    """
    waits = []
    for allocator, speed in POLLARD.values():
        each = [
            summarise(simulate(one, cluster, allocator=allocator, speed=speed.format(seed=seed))).mean_wait
            for seed, one in enumerate(jobs)
        ]
        waits.append(_hours(interval(each)))
    pays = interval([break_even(one, cluster) for one in jobs])
    return [name, *waits, f"{pays.mean:.1f} % ({pays.low:.1f} to {pays.high:.1f})"]


def _hours(found: Interval) -> str:
    """Format a mean and half its interval, in hours."""
    return f"{found.mean / 3600:.2f} ± {(found.high - found.mean) / 3600:.2f}"


def _rows(quick: bool) -> Iterator[list[str]]:
    for name, (make, cluster) in LOADS.items():
        yield row_of(name, [make(seed) for seed in SEEDS[: 2 if quick else None]], cluster)


def _tables(quick: bool) -> Iterator[Table]:
    yield "pollard", ("load, machine", *POLLARD, "break-even"), _rows(quick)


def main(arguments: Sequence[str]) -> int:
    """Draw the loads, simulate them and print the table; with ``network``, the study of jobs that share links.

    :param arguments: arguments after the source's name.
    """
    if arguments[:1] == ["network"]:
        from .speedups import main as network  # imported here, because the queue needs no network

        return network(arguments[1:])
    return show_many("pollard", "jobs.md", _tables, arguments)
