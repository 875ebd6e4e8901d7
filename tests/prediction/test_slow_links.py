"""Predictions where a host is slow or a link has failed."""

from dataclasses import replace
from math import inf

import numpy as np

from tests.networks import routes
from topompi.mpi.prediction.predictor import Predictor
from topompi.mpi.prediction.untuned import UNREACHABLE, candidates, predict
from topompi.mpi.selection.advisor import Advisor
from topompi.schedules import ALGORITHMS
from topompi.topology import TopologyInterface
from topompi.views.jobshape import JobShape

SPEC = "XGFT(2; 6,4; 1,3)"


def placed(rates):
    """One rank on each of the first 12 hosts, whose own links have these parts of their rate."""
    made = routes(SPEC)
    fabric = made.fabric
    rate = fabric.link_rate.copy()
    for host, part in rates.items():
        rate[(fabric.link_source == host) | (fabric.link_target == host)] *= part
    return TopologyInterface.place(fabric.hosts[:12], replace(made, fabric=replace(fabric, link_rate=rate)))


def every(name):
    return True


def test_algorithms_for_slow_hosts_take_part_in_choices_where_a_host_is_slow(monkeypatch):
    monkeypatch.setitem(ALGORITHMS["allreduce"], "aside", replace(ALGORITHMS["allreduce"]["aside"], default=0))
    slow, even = Predictor(placed({3: 0.5})), Predictor(placed({}))
    names = candidates(slow, "Allreduce", 16 << 20, every)
    assert {"aside", "aside/1024K", "ring"} <= set(names)
    assert not any(name.startswith("aside") for name in candidates(even, "Allreduce", 16 << 20, every))
    chosen = predict(slow, "Allreduce", 16 << 20, 0, every)
    assert chosen.algorithm.startswith("aside")
    assert chosen.seconds < 0.75 * slow.seconds("Allreduce", "ring", 16 << 20, 0)
    key = ("Allreduce", 24, candidates.__class__)
    for rates, wanted in (({3: 0.5}, True), ({}, False)):
        advisor = Advisor(JobShape(placed(rates), "", ""), {})
        rivals = advisor.rivals(key, 16 << 20, 0, every)
        assert any(name.startswith("aside") for name in rivals) == wanted


def test_what_needs_a_missing_route_takes_for_ever_and_the_library_is_left_with_it():
    view = placed({})  # its links have numbers of their own
    rate = view.routes.fabric.link_rate.copy()
    rate[Predictor(view).network.links[0, 6, 1]] = 0  # hosts 0 and 6 are on different leaf switches
    fabric = replace(view.routes.fabric, link_rate=rate)
    some = Predictor(replace(view, routes=replace(view.routes, fabric=fabric)))
    assert (some.network.hops[0, 6], some.network.hops[0, 1]) == (-1, 1)
    assert some.seconds("Allreduce", "ring", 1 << 20, 0) < inf
    assert some.seconds("Alltoall", "shift", 1 << 20, 0) == inf
    assert some.seconds("Allreduce", "lanes_halving", 1 << 20, 0) == inf
    assert predict(some, "Alltoall", 1 << 20, 0, every).reason.endswith(UNREACHABLE)
    alone = Predictor(placed({0: 0.0}))
    assert (alone.network.hops[0, 1:] == np.full(11, -1)).all()
    assert predict(alone, "Allreduce", 1 << 20, 0, every).algorithm == "native"
