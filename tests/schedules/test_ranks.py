"""Every algorithm is proved, one rank's rows are those of the whole schedule, and costs need no rows of all ranks."""

import pickle

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.networks import job, jobs
from tests.support import examples
from topompi.schedules import ALGORITHMS, Model, Schedule, check, cost, make, rows_of
from topompi.schedules.alltoall.joint import side_by_side
from topompi.schedules.schedule import ROOTED

EVERY = [(collective, algorithm) for collective, names in ALGORITHMS.items() for algorithm in names]
MODEL = Model.preset("stampede")


@st.composite
def calls(draw, collective, algorithm):
    """A network, a root, and parameters of an algorithm, such as an application might have."""
    network = draw(jobs(most_hosts=7))
    size = network.num_ranks
    parameters = {"root": draw(st.integers(0, size - 1)), "blocks": draw(st.sampled_from([None, 1, 2, 3, 7, size]))}
    known = ALGORITHMS[collective][algorithm].parameters
    if "counts" in known and draw(st.booleans()):
        shape = (size, size) if collective == "alltoall" else (size,)
        number = st.lists(st.integers(0, 3), min_size=int(np.prod(shape)), max_size=int(np.prod(shape)))
        parameters["counts"] = np.array(draw(number)).reshape(shape)
    for name, values in (
        ("radix", st.integers(2, 5)),
        ("carriers", st.integers(1, 4)),
        ("exchange", st.sampled_from(["ring", "doubling"])),
        ("limit", st.integers(1, 3)),
        ("near_last", st.booleans()),
        ("ordered", st.booleans()),
    ):
        if name in known and draw(st.booleans()):
            parameters[name] = draw(values)
    return network, parameters


def drawn(data, collective, algorithm):
    """A network, parameters, and the whole schedule."""
    network, parameters = data.draw(calls(collective, algorithm))
    assume(collective != "fft" or network.num_ranks > 3)
    try:
        return network, parameters, make(collective, algorithm, network, **parameters)
    except ValueError as error:
        assume("to keep rank order" not in str(error))  # which not every network allows
        raise


@pytest.mark.parametrize(("collective", "algorithm"), EVERY)
@examples(15)
@given(data=st.data())
def test_each_algorithm_does_what_mpi_defines_and_the_rows_of_all_ranks_are_the_whole(collective, algorithm, data):
    network, parameters, whole = drawn(data, collective, algorithm)
    if collective != "fft":  # a schedule of groups, each proved on its own in test_fft
        check(whole, commutative=not parameters.get("ordered"))
    assert whole.root == (parameters["root"] if collective in ROOTED else None)
    table = whole.rows()
    times = np.zeros(len(table), dtype=int)
    for rank in range(network.num_ranks):
        part = rows_of(collective, algorithm, network, rank, **parameters)
        mine = whole.of_rank(rank)
        np.testing.assert_array_equal(part.rows, table[mine])
        assert (part.rank, part.blocks, part.window) == (rank, whole.blocks, whole.window)
        assert part.independent == whole.independent
        times[mine] += 1
    np.testing.assert_array_equal(times, 1 + (whole.source != whole.destination))


@pytest.mark.parametrize(("collective", "algorithm"), EVERY)
def test_one_ranks_rows_are_made_without_those_of_the_others(collective, algorithm):
    """At 256 ranks, where p x p rows would be 4.5 MiB: whatever is asked for on the way is far less."""
    if collective == "fft" or algorithm in ("joint", "paced"):
        return  # made once, for all
    network = job("XGFT(2; 6,4; 1,3)", range(16), [16] * 16)
    schedule = make(collective, algorithm, network)
    rows = schedule.rows_of(3)
    assert "step" not in schedule.__dict__ or schedule.num_rows <= 32 * 256
    assert len(rows) <= 20 * 256  # a leader of 16 ranks hands on their blocks


def test_a_rank_that_there_is_not_has_no_rows():
    network = job("slurm64", range(3), [2] * 3)
    for algorithm in ("shift", "tacs1"):
        with pytest.raises(ValueError, match="expecting rank in range"):
            make("alltoall", algorithm, network).rows_of(6)


@pytest.mark.parametrize("algorithm", [name for name, one in ALGORITHMS["alltoall"].items() if one.costly])
def test_what_is_costly_to_generate_can_be_sent(algorithm):
    """In far less than the rows of all ranks take: nine numbers each."""
    network = job("XGFT(2; 5,4; 1,4)", range(12), [4] * 12)
    sent = pickle.dumps(make("alltoall", algorithm, network))
    assert len(sent) < 48 * 48 * 9
    received = pickle.loads(sent)
    whole = make("alltoall", algorithm, network)
    for rank in (0, 17, 47):
        np.testing.assert_array_equal(received.rows_of(rank), whole.rows_of(rank))


def plain(schedule):
    """The same schedule as mere columns, all steps of which are looked at."""
    return Schedule.from_rows(
        schedule.collective,
        schedule.size,
        schedule.algorithm,
        schedule.rows(),
        root=schedule.root,
        blocks=schedule.blocks,
        counts=schedule.counts,
        independent=schedule.independent,
        window=schedule.window,
    )


@pytest.mark.parametrize(("collective", "algorithm"), EVERY)
@examples(6)
@given(data=st.data())
def test_costs_of_few_messages_are_those_of_all_rows(collective, algorithm, data):
    network, _, schedule = drawn(data, collective, algorithm)
    one, other = cost(schedule, network, MODEL, 1000), cost(plain(schedule), network, MODEL, 1000)
    assert "step" in schedule.__dict__  # by ``plain``, not by ``cost``
    assert one.seconds == pytest.approx(other.seconds)
    assert one.link_seconds == pytest.approx(other.link_seconds)
    steps = len(other.finish)
    np.testing.assert_allclose(one.finish[:steps], other.finish)
    np.testing.assert_allclose(one.rank_seconds, other.rank_seconds)


@examples(40)
@given(jobs(most_hosts=9), st.sampled_from(["allgather", "reduce_scatter", "allreduce"]), st.integers(1, 40))
def test_a_few_steps_of_a_ring_cost_what_all_do(network, collective, most):
    schedule = make(collective, "ring", network)
    some, every = cost(schedule, network, MODEL, 1000, most=most), cost(plain(schedule), network, MODEL, 1000)
    assert some.seconds == pytest.approx(every.seconds)
    assert some.link_seconds == pytest.approx(every.link_seconds)
    assert some.finish.shape == (schedule.num_steps,)


@examples(40)
@given(
    jobs(most_hosts=9),
    st.sampled_from(["shift", "pairwise", "scatter_destination", "tacs1", "even", "colouring"]),
    st.integers(1, 200),
)
def test_some_steps_of_an_alltoall_load_the_links_as_all_do(network, algorithm, most):
    schedule = make("alltoall", algorithm, network)
    some, every = cost(schedule, network, MODEL, 1000, most=most), cost(plain(schedule), network, MODEL, 1000)
    assert some.link_seconds == pytest.approx(every.link_seconds)
    assert some.seconds >= some.link_seconds
    assert (np.diff(some.finish) >= 0).all()
    assert some.finish.shape == every.finish.shape


@pytest.mark.parametrize("algorithm", ["shift", "pairwise", "even", "tacs1"])
@pytest.mark.parametrize("ranks", [[4] * 20, [1, 2, 3, 4, 5] * 4])
def test_an_eighth_of_the_steps_of_an_alltoall_shows_within_a_fifth_what_all_cost(algorithm, ranks):
    network = job("XGFT(2; 6,4; 1,3)", range(20), ranks)
    schedule = make("alltoall", algorithm, network)
    most = schedule.num_steps * schedule.size // 8
    some, every = cost(schedule, network, MODEL, 10**5, most=most), cost(plain(schedule), network, MODEL, 10**5)
    assert some.seconds == pytest.approx(every.seconds, rel=0.2)


def test_groups_side_by_side_have_the_rows_of_each():
    groups = (np.array([0, 3, 4]), np.array([5, 1, 2]))
    network = job("slurm64", range(3), [1] * 3)
    parts = [make("alltoall", name, network) for name in ("bruck", "shift")]
    whole = side_by_side(groups, parts, "both")
    for rank in range(6):
        np.testing.assert_array_equal(whole.rows_of(rank), plain(whole).rows_of(rank))
