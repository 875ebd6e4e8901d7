"""Choices without measurements, against measurements of all algorithms on emulated networks."""

from dataclasses import replace
from math import inf

import numpy as np
import pytest

from benchmarks.predictions import cells_in, emulated_model, read
from osu_like_bench.emulate import LinkRates, emulated_routes
from tests.networks import routes
from tests.support import ROOT
from topompi.mpi.execution.specs import NATIVE
from topompi.mpi.prediction.neighbours import GAIN, GroupPlace, Prices, of_all
from topompi.mpi.prediction.predictor import Predictor
from topompi.mpi.prediction.untuned import UNREACHABLE, candidates, predict
from topompi.mpi.selection.advisor import Advisor
from topompi.schedules import ALGORITHMS
from topompi.schedules.neighbourhood import Neighbourhood
from topompi.schedules.sparse.schedules import exchanges
from topompi.topology import TopologyInterface
from topompi.views.jobshape import JobShape

RECORDS = ROOT / "tests" / "records"
LONG = 64 << 10  # bytes: below, start-ups decide, which no rate tells
FITTED = "4x4", "100M", "random:1", 1, "Open MPI 5.0.11"


@pytest.fixture(scope="module")
def scores():
    return read(RECORDS / "emulated.json")


@pytest.fixture(scope="module")
def told():
    """The same cells by a model that is told what an emulated link passes at once after a rest."""
    return read(RECORDS / "emulated.json", emulated_model())


def test_no_choice_lost_against_native_where_it_was_measured(scores):
    assert len(scores) > 100
    lost = [(one.cell.job, one.cell.method, one.chosen, one.gain) for one in scores if one.gain < 0.97]
    assert lost == []


@pytest.mark.parametrize("fitted", [True, False], ids=["the job that start-ups were fitted to", "other jobs"])
def test_a_model_that_knows_the_machine_chooses_the_fastest(told, fitted):
    """The burst is read from the emulator's settings; start-ups were fitted to the first half, without it."""
    regrets = [one.regret for one in told if one.cell.nbytes >= LONG and (one.cell.job == FITTED) == fitted]
    assert len(regrets) >= 16
    assert np.median(regrets) < 1.05
    assert np.quantile(regrets, 0.9) < 1.2


def test_the_chosen_algorithm_is_mostly_the_fastest_one(scores):
    """Not told the burst, the model takes chains of 64 KiB for slower than they are on these networks."""
    regrets = [one.regret for one in scores if one.cell.nbytes >= LONG]
    assert np.median(regrets) < 1.02
    assert np.quantile(regrets, 0.9) < 1.4


def test_short_calls_are_slow_for_want_of_candidates_not_of_predictions(scores):
    """Below 64 KiB the default set is small, because calls by other schedules lost in some jobs."""
    short = [one for one in scores if one.cell.nbytes < LONG]
    assert np.quantile([one.regret / one.least_regret for one in short], 0.9) < 1.1
    assert np.quantile([one.least_regret for one in short], 0.9) > 1.2


def test_with_several_ranks_a_host_no_choice_lost_and_most_are_the_fastest():
    """16 ranks on 4 or 8 hosts, Open MPI and MPICH; what is left below 64 KiB is left to the library."""
    found = read(RECORDS / "hosts.json")
    assert len(found) == 70
    assert min(one.gain for one in found) >= 0.97
    long = [one for one in found if one.cell.nbytes >= LONG]
    assert np.exp(np.mean(np.log([one.gain for one in long]))) > 2.5
    assert np.median([one.regret for one in long]) < 1.05
    assert np.quantile([one.regret for one in long], 0.9) < 1.25
    assert {one.chosen.partition("_")[0] for one in long} >= {"lanes", "chain/8K", "ring"}


def test_on_rings_dragonflies_one_switch_and_uneven_leaves_no_choice_lost():
    """7 to 16 hosts, most no power of two, Open MPI and MPICH; the geometric mean was 1.40 before."""
    found = read(RECORDS / "uneven.json")
    assert len(found) > 150
    assert min(one.gain for one in found) >= 0.97
    assert np.exp(np.mean(np.log([one.gain for one in found]))) > 1.8
    assert np.exp(np.mean(np.log([one.regret for one in found]))) < 1.1
    assert {one.chosen for one in found} >= {"grouped", "swing", "circulant/4K", "chain/8K", "ring", "halving"}


def test_algorithms_rank_as_they_were_measured(scores, told):
    for some in (scores, told):
        assert np.median([one.correlation for one in some if one.cell.nbytes >= LONG]) > 0.9
        assert np.median([one.correlation for one in some if one.cell.nbytes < LONG]) > 0.6


def test_long_alltoalls_run_what_was_fastest_in_jobs_of_their_own():
    """Measured after the rest; an algorithm that was not measured in a job is no evidence there."""
    gains, regrets = [], []
    for cell in cells_in(RECORDS / "alltoalls.json"):
        chosen = predict(cell.predictor(), cell.method, cell.nbytes, 0, lambda name: True).algorithm
        assert cell.nbytes < 4 * LONG or chosen in ("shift/32K", "pairwise/32K")
        if chosen in cell.seconds:
            gains.append(cell.seconds[NATIVE] / cell.seconds[chosen])
            regrets.append(cell.seconds[chosen] / min(cell.seconds.values()))
    assert len(gains) >= 8
    assert min(gains) > 1.05
    assert max(regrets) < 1.05


def test_the_librarys_own_time_is_known_within_a_third(scores):
    known = [one.native_ratio for one in scores if one.cell.nbytes >= LONG and "ignores switches" not in one.native]
    assert len(known) > 50
    assert np.mean(np.abs(np.log(known)) < np.log(4 / 3)) > 0.9


def test_what_is_left_to_the_library_is_so_for_lack_of_a_prediction_not_of_candidates(scores):
    gains = {one.cell.method: 0.0 for one in scores}
    for one in scores:
        gains[one.cell.method] = max(gains[one.cell.method], one.gain if one.chosen != NATIVE else 1.0)
    assert {method for method, gain in gains.items() if gain > 1.1} >= set(gains) - {"Scatter"}


# --- The choice of carriers for neighbourhood collectives, on the cells measured for docs/lab/neighbours.md.


def coarse():
    """Bytes of each pair of ranks on a coarse level of multigrid, as ``benchmarks.neighbours_ranks`` has them."""
    rng = np.random.default_rng(7)
    wanted = 8 * rng.integers(1, 9, (16, 16)) * (rng.random((16, 16)) < 0.9)
    return np.where(np.eye(16, dtype=bool), 0, wanted)


def stencil(face, edge, corner):
    """Bytes of each pair of ranks in a stencil of 27 points on a periodic grid of 4 x 2 x 2 ranks."""
    dims = np.array((4, 2, 2))
    place = np.stack(np.unravel_index(np.arange(16), dims), axis=1)
    apart = np.abs(place[:, None] - place[None])
    apart = np.minimum(apart, dims - apart)
    return np.array([0, face, edge, corner])[np.where((apart <= 1).all(axis=2), (apart == 1).sum(axis=2), 0)]


@pytest.mark.parametrize("uplinks", ["100M", "50M"])
@pytest.mark.parametrize(
    ("wanted", "gains"),  # whether carriers were measured to gain in both forms of calls
    [
        (coarse(), True),
        (stencil(512, 64, 8), True),
        (stencil(4096, 256, 8), False),
        (stencil(65536, 1024, 8), False),
    ],
    ids=["coarse level", "512 B", "4 KiB", "64 KiB"],
)
def test_calls_are_carried_if_that_was_measured_to_gain(wanted, gains, uplinks):
    routes = emulated_routes("4x2", LinkRates.parse("100M", uplinks))
    interface = TopologyInterface.place([routes.fabric.hosts[rank // 2] for rank in range(16)], routes)
    host = interface.rank_host.astype(np.int64)
    place, prices = GroupPlace(host, host), Prices.of(Predictor(interface))
    source, destination = np.nonzero(wanted)
    graph = Neighbourhood.from_edges(16, source, destination, wanted[source, destination])
    library, carried = of_all(exchanges(graph, host, prices.terms(place)), place, prices)
    assert (library >= GAIN * carried) == gains


# --- Predictions where a host is slow or a link has failed.


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
