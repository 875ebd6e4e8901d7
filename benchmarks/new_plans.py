"""New plans after a link has slowed down or failed: milliseconds from the new routes to a rank's rows and a proof.

python -m benchmarks.new_plans                  # the table of docs/lab/slow.md, half a minute
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from statistics import median
from typing import TypeVar

import numpy as np

from topompi.schedules import Network, check, make
from topompi.schedules.orders import with_order
from topompi.schedules.ringsearch import RingLoads
from topompi.topology import TopologyInterface
from topompi.views.network import network_of

from .orders import CASES, Case, hosts_of, tables_of
from .schedules import facts

Value = TypeVar("Value")
NAMES = ("torus 8x8x4, random", "Janus, minhop, 256 random", "Janus, nue, 256 random")
LINKS = 5  # links of the ring that change, one at a time


def timed(work: Callable[[], Value]) -> tuple[Value, float]:
    """Return the result of a function, and the milliseconds that it took."""
    began = time.perf_counter()
    return work(), 1e3 * (time.perf_counter() - began)


def changed(view: TopologyInterface, link: int, rate: float) -> Network:
    """Return the network of a job, made from its view, in which a link has a part of its rate."""
    assert view.routes is not None
    rates = view.routes.fabric.link_rate.copy()
    rates[link] *= rate
    fabric = replace(view.routes.fabric, link_rate=rates)
    network = network_of(replace(view, routes=replace(view.routes, fabric=fabric)))
    assert network.hops.shape[:2] == network.links.shape[:2]  # the routes are followed when they are first read
    return network


def rows(case: Case) -> list[str]:
    """Return the rows of a case: a link at half rate, and a link that has failed."""
    view = TopologyInterface.place(*case.job)
    network = with_order(case.network())
    hosts, tables = hosts_of(network), tables_of(network)
    crossed = np.unique(network.links[hosts, np.roll(hosts, -1)])
    between = crossed[(tables.source[crossed] >= tables.first_switch) & (tables.target[crossed] >= tables.first_switch)]
    lines = []
    for words, rate in (("half rate", 0.5), ("failed", 0.0)):
        table, worst = [], 0.0
        for link in np.random.default_rng(1).choice(between[between >= 0], LINKS, replace=False):
            now, routes = timed(partial(changed, view, int(link), rate))
            cold = timed(partial(with_order, replace(now)))[1]
            routed, warm = timed(partial(with_order, now, network.order))
            schedule, making = timed(partial(make, "allreduce", "ring", routed))
            own = timed(partial(schedule.rows_of, 7))[1]
            proof = timed(partial(check, schedule))[1]
            assert (now.capacity[link] != network.capacity[link]) == (rate > 0)
            worst = max(worst, float(RingLoads(now).judge(hosts_of(routed)[None])[0][0]))
            table.append((routes, cold, warm, making + own, proof))
        cells = "".join(f"{median(column):9.1f}" for column in zip(*table, strict=True))
        lines.append(f"{case.name:26} {words:10}{cells}{worst:9.2f}")
    return lines


def main() -> None:
    """Print the table."""
    print(facts())
    heads = "".join(f"{head:>9}" for head in ("routes", "cold", "former", "rows", "proof", "busiest"))
    print(f"{'median ms of 5 links':26} {'one link':10}{heads}")
    for case in CASES:
        if case.name in NAMES:
            print("\n".join([f"{case.name:26} no shared data"] if case.missing else rows(case)), flush=True)


if __name__ == "__main__":
    main()
