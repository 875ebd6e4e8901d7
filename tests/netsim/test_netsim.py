"""Simulated networks: closed forms, max-min fairness, and refused programs."""

import re
import shutil
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from studies.simgrid import Arena
from tests.networks import job
from tests.support import examples
from topompi.netsim import COMPUTE, RECEIVE, SEND, Hosts, NetsimError, Program, Tables, Wiring, run
from topompi.netsim.interpreter import max_min
from topompi.netsim.program import REPEATS
from topompi.schedules import lower_bound, make
from topompi.topology import load
from topompi.views.program import program_of, wiring_of
from topompi.views.tables import tables_of

RATE, LATENCY = 1e9, 1e-6


def one_switch(hosts, latency=LATENCY):
    out, into = np.meshgrid(np.arange(hosts), hosts + np.arange(hosts), indexing="ij")
    routes = np.stack((out, into), axis=2).astype(np.int32)
    routes[np.arange(hosts), np.arange(hosts)] = -1
    return Wiring(np.full(2 * hosts, RATE), np.full(2 * hosts, latency), routes)


def program(hosts, *messages, compute=(), **about):
    """Messages (step, source, destination, bytes), and computes (step, rank, seconds)."""
    rows = [(source, step, SEND, to, size) for step, source, to, size in messages]
    rows += [(to, step, RECEIVE, source, size) for step, source, to, size in messages]
    rows += [(rank, step, COMPUTE, 0, seconds) for step, rank, seconds in compute]
    return Program(np.arange(hosts), *np.array(rows, dtype=float).reshape(-1, 5).T, **about)


@examples(60)
@given(st.integers(0, 2**32 - 1))
def test_every_flow_has_a_full_link_on_which_no_flow_is_faster(seed):
    draw = np.random.default_rng(seed)
    links, flows = int(draw.integers(1, 12)), int(draw.integers(1, 40))
    capacity = draw.uniform(0.5, 8.0, links)
    paths = np.full((flows, 4), -1)
    for path in paths:
        length = int(draw.integers(1, min(4, links) + 1))
        path[:length] = draw.choice(links, length, replace=False)
    rate = max_min(paths, capacity)
    crosses = (paths[:, :, None] == np.arange(links)).any(axis=1)
    load = rate @ crosses
    assert (load <= capacity * (1 + 1e-9)).all()
    fastest = np.where(crosses, rate[:, None], 0).max(axis=0)
    bottleneck = crosses & (load >= capacity * (1 - 1e-9)) & (rate[:, None] >= fastest * (1 - 1e-9))
    assert bottleneck.any(axis=1).all()


def test_a_burst_delays_what_follows_and_an_eager_send_does_not_wait():
    late = program(2, (1, 0, 1, 1e3), compute=[(0, 1, 5e-3)])
    waits, eager = (run(one_switch(2), [late], hosts=Hosts(eager=limit)) for limit in (0, 1e3))
    assert waits.rank_seconds == pytest.approx([5e-3 + 3e-6] * 2)
    assert eager.rank_seconds == pytest.approx([0.0, 5e-3])


def test_overheads_are_paid_one_message_after_the_other():
    hosts = Hosts(send_overhead=1e-3, receive_overhead=2e-3, eager=1e9)
    found = run(one_switch(4, 0.0), [program(4, *((0, 0, to, 0.0) for to in (1, 2, 3)))], hosts=hosts)
    assert found.rank_seconds == pytest.approx([3e-3, 3e-3, 4e-3, 5e-3])


@pytest.mark.parametrize("rate", [1e10, np.inf])
def test_messages_inside_a_host_are_copied_at_a_rate_of_their_own_and_leave_the_links_alone(rate):
    pairs = np.array([(0, 0, SEND, 1, 1e6), (1, 0, RECEIVE, 0, 1e6), (2, 0, SEND, 3, 1e6), (3, 0, RECEIVE, 2, 1e6)])
    found = run(one_switch(2, 0.0), [Program([0, 0, 0, 1], *pairs.T)], hosts=Hosts(copy_rate=rate))
    assert found.rank_seconds == pytest.approx([1e6 / rate] * 2 + [1e-3] * 2)


def test_window_bounds_the_steps_in_flight():
    messages = [(step, 0, 1 + step, 1e6) for step in range(3)]
    times = [run(one_switch(4), [program(4, *messages, window=window)]).job_seconds[0] for window in (0, 1)]
    assert times == pytest.approx([3e-3 + 2e-6, 3e-3 + 6e-6])


def fat_tree():
    network = job("XGFT(2; 5,4; 1,2)", range(20), [1] * 20)
    return replace(network, capacity=np.full(len(network.capacity), RATE), latency=np.full(len(network.capacity), 1e-7))


@pytest.mark.parametrize("algorithm", ["shift", "scatter_destination", "bruck"])
def test_an_alltoall_is_not_below_its_bound_and_a_tolerance_changes_it_by_no_more_than_itself(algorithm):
    network = fat_tree()
    wiring, one = wiring_of(network), program_of(make("alltoall", algorithm, network), network, 10_000)
    exact, batched = (run(wiring, [one], tolerance=part).job_seconds[0] for part in (0.0, 0.02))
    assert lower_bound(network, "alltoall", block_bytes=10_000).seconds <= exact * (1 + 1e-9)
    assert exact * 0.98 <= batched <= exact * 1.02


def random_wiring(draw):
    hosts, links = int(draw.integers(2, 7)), int(draw.integers(2, 10))
    longest = int(draw.integers(1, min(4, links) + 1))
    routes = np.full((hosts, hosts, longest), -1, dtype=np.int32)
    for pair in zip(*np.nonzero(~np.eye(hosts, dtype=bool)), strict=True):
        length = int(draw.integers(1, longest + 1))
        routes[pair][:length] = draw.choice(links, length, replace=False)
    return Wiring(draw.choice([1e9, 2e9, 3.3e9], links), draw.choice([0, 1e-6, 2e-6], links), routes)


def random_program(draw, hosts, repeat):
    size, rows = int(draw.integers(2, 8)), []
    for step in range(int(draw.integers(1, 5))):
        for _ in range(int(draw.integers(1, 2 * size))):
            source, to = draw.choice(size, 2, replace=False)
            nbytes = float(draw.choice([0, 1e3, 1e4, 1e5]))
            rows += [(source, step, SEND, to, nbytes), (to, step, RECEIVE, source, nbytes)]
        rows.append((draw.integers(size), step, COMPUTE, 0, draw.choice([0, 1e-5])))
    window, start = int(draw.integers(0, 3)), float(draw.choice([0, 1e-5]))
    return Program(draw.integers(0, hosts, size), *np.array(rows).T, window=window, start=start, repeat=repeat)


@examples(80)
@given(st.integers(0, 2**32 - 1))
def test_c_and_numpy_give_the_same_times_and_loads(seed):
    draw = np.random.default_rng(seed)
    wiring = random_wiring(draw)
    repeats = ["once", *draw.choice(REPEATS, int(draw.integers(0, 3)))]
    programs = [random_program(draw, wiring.num_hosts, repeat) for repeat in repeats]
    names, values = (
        ("send_overhead", "receive_overhead", "copy_rate", "eager", "skew"),
        ([0, 3e-7], [0, 5e-7], [1e9, np.inf], [0, 5e3], [0, 2e-6]),
    )
    hosts = Hosts(**{name: float(draw.choice(of)) for name, of in zip(names, values, strict=True)})
    try:
        slow = run(wiring, programs, hosts=hosts, seed=seed, compiled=False)
    except NetsimError as error:
        with pytest.raises(NetsimError, match=re.escape(str(error))):
            run(wiring, programs, hosts=hosts, seed=seed)
        return
    fast = run(wiring, programs, hosts=hosts, seed=seed)
    assert fast.rank_seconds == pytest.approx(slow.rank_seconds, rel=1e-9, nan_ok=True)
    assert fast.link_bytes == pytest.approx(slow.link_bytes)


@pytest.mark.parametrize("compiled", [True, False])
def test_a_background_runs_until_all_others_have_and_its_bytes_are_counted(compiled):
    short, long = program(2, (0, 0, 1, 1e6), repeat="background"), program(3, (0, 2, 1, 4e6))
    found = run(one_switch(3, 0.0), [short, long], compiled=compiled)
    # They share the link into host 1, and 4 MB have crossed it beside the 4 MB of the other.
    assert found.job_seconds == pytest.approx([2e-3, 8e-3])
    assert 7e6 <= found.link_bytes[4] <= 8e6 + 1
    with pytest.raises(NetsimError, match="expecting programs that repeat to take time"):
        run(one_switch(3, 0.0), [program(2, (0, 0, 1, 0.0), repeat="background"), long], compiled=compiled)
    with pytest.raises(NetsimError, match="expecting a program that is not background, got none of 1"):
        run(one_switch(3, 0.0), [short], compiled=compiled)


def test_tables_lead_where_spelt_out_routes_do():
    network = job("XGFT(3; 3,2,2; 1,2,2)", range(12), [1] * 12)
    tables = tables_of(load("XGFT(3; 3,2,2; 1,2,2)").routes, latency=LATENCY)
    source, to = (axis.ravel() for axis in np.indices((12, 12)))
    walked = tables.paths(source, to)
    assert (walked == network.links[source, to][:, : walked.shape[1]]).all()
    jobs = [random_program(np.random.default_rng(seed), 12, "once") for seed in range(4)]
    short, long = (run(one, jobs, hosts=Hosts(copy_rate=1e9)) for one in (tables, tables.wiring()))
    assert (short.rank_seconds == long.rank_seconds).all()
    assert (short.link_bytes == long.link_bytes).all()


@pytest.mark.parametrize("ends", [[2, 3, 3, 2], [2, 3, 0, 0]], ids=["in a circle", "at another host"])
def test_tables_that_do_not_lead_to_a_host_are_refused(ends):
    wrong = Tables([0, 1, 2, 3], ends, [RATE] * 4, [0.0] * 4, [[2, 2], [3, 3]])
    with pytest.raises(NetsimError, match="expecting a route from host 0 to host 1, got none"):
        run(wrong, [program(2, (0, 0, 1, 1e6))])


@pytest.mark.skipif(shutil.which("smpirun") is None, reason="SimGrid is not installed")
@pytest.mark.parametrize(
    ("collective", "algorithm"), [("alltoall", "shift"), ("allgather", "ring"), ("bcast", "knomial")]
)
def test_simgrid_agrees(collective, algorithm):
    network = fat_tree()
    with Arena(network) as arena:
        schedule = make(collective, algorithm, arena.network, **({"root": 0} if collective == "bcast" else {}))
        theirs = arena.time(schedule, 100_000)
    ours = run(wiring_of(network), [program_of(schedule, network, 100_000)]).job_seconds[0]
    assert ours == pytest.approx(theirs, rel=2e-3)  # it adds 16 bytes to each message


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([(0, 0, SEND, 1, 8)], "rank 0 to rank 1: expecting 1 receives, got 0"),
        ([(0, 0, SEND, 1, 8), (1, 0, RECEIVE, 0, 9)], "rank 1, step 0: amount: expecting 8 bytes, got 9"),
        ([(0, 0, SEND, 2, 8)], "rank 0, step 0: peer: expecting a rank in range(2), got 2"),
        ([(0, 0, SEND, 0, 8)], "rank 0, step 0: peer: expecting another rank, got 0"),
        ([(0, 0, 7, 1, 8)], "rank 0, step 0: kind: expecting one of compute, receive, send, got 7"),
    ],
)
def test_wrong_programs_are_refused_with_rank_and_step(rows, message):
    with pytest.raises(NetsimError, match=re.escape(message)):
        run(one_switch(2), [Program([0, 1], *np.array(rows).T)])


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ({"lane": -1}, "job: expecting a lane of at least 0, got -1"),
        ({"repeat": "twice"}, "job: repeat: expecting one of once, until_all_ran, background, got 'twice'"),
    ],
)
def test_wrong_lanes_and_repetitions_are_refused(about, message):
    with pytest.raises(NetsimError, match=re.escape(message)):
        program(2, (0, 0, 1, 8), **about)
