"""Open MPI's own algorithms, chosen by the cost model for the files that it reads."""

from dataclasses import replace

import numpy as np
import pytest

from osu_like_bench.emulate.launch import rank_hosts
from osu_like_bench.emulate.network import burst_of
from osu_like_bench.emulate.spec import LinkRates, emulated_routes
from topompi.mpi.execution.specs import CALLS
from topompi.mpi.prediction.libraries import CallShape
from topompi.mpi.prediction.libraries.openmpi import OpenMPI
from topompi.mpi.prediction.libraries.openmpi.fixed import fixed_decision
from topompi.mpi.prediction.libraries.openmpi.forced import NUMBERS, forced
from topompi.mpi.prediction.libraries.openmpi.tuned import tuned
from topompi.mpi.prediction.librarychoices import METHODS, SIZES, choices, left_to_han, mean_gain
from topompi.mpi.prediction.predictor import Predictor
from topompi.schedules.analysis.model import Model
from topompi.topology import TopologyInterface, load_routes


def predictor(ppn=1):
    routes = load_routes("xgft:4,3;1,2")
    return Predictor(
        TopologyInterface.place([h for h in routes.fabric.hosts for _ in range(ppn)], routes), OpenMPI((5, 0), "5.0")
    )


@pytest.mark.parametrize("ppn", [1, 2])
@pytest.mark.parametrize("method", ["Bcast", "Allreduce", "Alltoall", "Reduce_scatter_block"])
def test_no_other_algorithm_is_predicted_to_be_clearly_faster_than_the_choice(method, ppn):
    one = predictor(ppn)
    for found in choices(one, method, (65536, 1 << 20)):
        question = CallShape(method, found.nbytes, np.asarray(one.interface.rank_host))
        rivals = [one.decided(forced(question, number), found.nbytes, 0) for number in NUMBERS[method]]
        rivals.append(one.decided(tuned(question), found.nbytes, 0))
        assert found.seconds <= 1.1 * min(rivals) + 1e-12
        if ppn == 1:
            assert found.gain >= 1
        assert (found.number == 0) == (found.seconds == rivals[-1] and found.segment == 0) or found.seconds < rivals[-1]


def test_short_calls_are_left_to_the_component():
    assert {one.number for one in choices(predictor(), "Bcast", (4096, 16383))} == {0}
    assert {one.number for one in choices(predictor(), "Allgather", (16, 1024))} == {0}
    assert {one.number for one in choices(predictor(), "Scatter", (2048, 8192))} == {0}  # messages of one block


@pytest.mark.parametrize(
    ("method", "number", "parts"),
    [("Allreduce", 2, ("Reduce", "Bcast")), ("Reduce_scatter_block", 1, ("Reduce", "Scatter"))],
)
def test_an_algorithm_of_two_calls_runs_by_their_rules(method, number, parts):
    """At 4 : 1 a pipeline up and one down is faster than a ring, and by default there is none."""
    routes = emulated_routes("4x4", LinkRates.parse("100M", "100M"))
    one = Predictor(TopologyInterface.place(list(routes.fabric.hosts), routes), OpenMPI((5, 0), "5.0"))
    (found,) = choices(one, method, (1 << 20,))
    sizes = [1 << 20 if part != "Scatter" else 1 << 16 for part in parts]
    inner = [choices(one, part, (nbytes,))[0] for part, nbytes in zip(parts, sizes, strict=True)]
    assert inner[0].number == 3
    by_two = sum(part.seconds for part in inner)
    assert found.number == number
    assert found.seconds == pytest.approx(by_two)
    assert one.decided(forced(CallShape(method, 1 << 20, np.arange(16)), number), 1 << 20, 0) > 1.5 * by_two


def test_a_call_inside_another_stays_with_han_if_it_has_no_rule():
    routes = emulated_routes("2x4", LinkRates.parse("100M", "200M"))
    hosts, rate = rank_hosts(routes.fabric, ppn=2, order="random:1"), 100e6 / 8
    model = replace(Model.of_rate(rate), burst=burst_of(rate))
    one = Predictor(TopologyInterface.place(hosts, routes), OpenMPI((5, 0), "5.0"), model=model)
    assert left_to_han(one, choices(one, "Reduce"), ["Reduce"]) == ["Reduce"]
    found = [call for call in choices(one, "Allreduce", (16384, 262144)) if call.number == 2]
    assert found
    for call in found:
        (broadcast,) = choices(one, "Bcast", (call.nbytes,))
        assert call.seconds == pytest.approx(one.native("Reduce", call.nbytes, 0).seconds + broadcast.seconds)


def test_what_the_component_chooses_can_be_forced():
    """A forced algorithm has the schedule of the same algorithm when the component chooses it by itself."""
    host = np.arange(16)
    seen = 0
    for method in METHODS:
        for nbytes in SIZES:
            question, of_block = CallShape(method, nbytes, host), method == "Reduce_scatter_block"
            word = fixed_decision(method, 16, nbytes // 16 if of_block else nbytes)
            number = next((number for number, name in NUMBERS[method].items() if name == word), None)
            if number is not None:
                own, same = tuned(question), forced(question, number)
                assert (own.collective, own.algorithm) == (same.collective, same.algorithm)
                assert CALLS[method].collective == same.collective
                seen += 1
    assert seen > 60


def test_several_ranks_a_host_are_compared_with_the_component_over_hosts():
    found = choices(predictor(2), "Allreduce", (1 << 20,))
    assert mean_gain(found) == pytest.approx(found[0].native / found[0].seconds)
    assert predictor(2).native("Allreduce", 1 << 20, 0).says.startswith("han")


@pytest.mark.parametrize("method", ["Bcast", "Reduce"])
def test_segments_pass_the_ranks_in_their_order_whatever_their_hosts(method):
    routes = load_routes("xgft:4,2;1,2")
    hosts = [routes.fabric.hosts[at] for at in (0, 5, 3, 0, 5, 3)]
    one = Predictor(TopologyInterface.place(hosts, routes), OpenMPI((5, 0), "5.0"))
    question = CallShape(method, 65536, np.asarray(one.interface.rank_host))
    rows = forced(question, 3, 8192).schedule(one.blind_network).rows()
    ends = {(int(source), int(target)) for source, target in rows[:, 1:3] if source != target}
    chain = {(rank, rank + 1) for rank in range(5)}
    assert ends == (chain if method == "Bcast" else {(target, source) for source, target in chain})
