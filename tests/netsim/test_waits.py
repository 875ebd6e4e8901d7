"""Operations that wait for one earlier step of their rank, and messages with tags, in all network models."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.netsim.test_netsim import RATE, one_switch, random_program, random_wiring
from tests.netsim.test_packets import network
from tests.support import examples
from topompi.netsim import COMPUTE, RECEIVE, SEND, Hosts, NetsimError, Program, packets, run

MTU = 4096
MODELS = {
    "flows in C": lambda *programs: run(one_switch(4, 0.0), programs),
    "flows in Python": lambda *programs: run(one_switch(4, 0.0), programs, compiled=False),
    "packets": lambda *programs: packets.run(network([4], rate=RATE), programs),
}
models = pytest.mark.parametrize("simulate", MODELS.values(), ids=list(MODELS))
NBYTES = 1024.0 * MTU
SECONDS = NBYTES / RATE  # of a message alone
CLOSE = 0.01  # relative; packets have headers of routes and latencies, which are small beside 1,024 packets


def trace(*rows, ranks=2, **about):
    """Rows (rank, step, kind, peer, amount, tag, after), without a limit of steps in flight."""
    rank, step, kind, peer, amount, tag, after = np.array(rows, dtype=float).T
    whole = [column.astype(int) for column in (rank, step, kind, peer)]
    columns = dict(zip(("rank", "step", "kind", "peer"), whole, strict=True))
    return Program(np.arange(ranks), **columns, amount=amount, tag=tag, after=after, window=0, **about)


@models
def test_a_burst_overlaps_a_message_until_the_rank_waits_for_it(simulate):
    long = 3 * SECONDS
    overlapped = trace(
        *[(0, 0, SEND, 1, NBYTES, 0, -1), (0, 1, COMPUTE, 0, long, 0, -1), (0, 2, COMPUTE, 0, SECONDS, 0, 0)],
        (1, 0, RECEIVE, 0, NBYTES, 0, -1),
    )
    assert simulate(overlapped).rank_seconds == pytest.approx([4 * SECONDS, SECONDS], rel=CLOSE)
    waited = trace(
        *[(0, 0, SEND, 1, NBYTES, 0, -1), (0, 1, COMPUTE, 0, long, 0, 0)],
        (1, 0, RECEIVE, 0, NBYTES, 0, -1),
    )
    assert simulate(waited).rank_seconds == pytest.approx([4 * SECONDS, SECONDS], rel=CLOSE)
    short = trace(
        *[(0, 0, SEND, 1, NBYTES, 0, -1), (0, 1, COMPUTE, 0, SECONDS / 2, 0, -1), (0, 2, COMPUTE, 0, SECONDS, 0, 0)],
        (1, 0, RECEIVE, 0, NBYTES, 0, -1),
    )
    assert simulate(short).rank_seconds == pytest.approx([2 * SECONDS, SECONDS], rel=CLOSE)


@models
def test_a_wait_for_a_later_step_leaves_an_earlier_one_in_flight(simulate):
    # Rank 0 posts a receive first, but waits for the second; rank 1 sends the first only after rank 0's answer.
    found = simulate(
        trace(
            *[(0, 0, RECEIVE, 1, NBYTES, 1, -1), (0, 1, RECEIVE, 1, NBYTES, 2, -1), (0, 2, SEND, 1, NBYTES, 3, 1)],
            *[(1, 0, SEND, 0, NBYTES, 2, -1), (1, 1, RECEIVE, 0, NBYTES, 3, 0), (1, 2, SEND, 0, NBYTES, 1, 1)],
        )
    )
    assert found.job_seconds == pytest.approx([3 * SECONDS], rel=CLOSE)


@models
def test_messages_match_by_their_tags_in_whatever_order_they_are_received(simulate):
    jobs = trace(
        *[(0, 0, SEND, 1, NBYTES, 7, -1), (0, 1, SEND, 1, 2 * NBYTES, 9, 0)],
        *[(1, 0, RECEIVE, 0, 2 * NBYTES, 9, -1), (1, 1, RECEIVE, 0, NBYTES, 7, -1)],
    )
    assert jobs.messages.nbytes.tolist() == [NBYTES, 2 * NBYTES]
    assert simulate(jobs).rank_seconds == pytest.approx([3 * SECONDS] * 2, rel=CLOSE)


@models
def test_a_cut_program_still_waits_for_all_parts_of_a_step(simulate):
    one = trace(
        *[(0, 0, COMPUTE, 0, SECONDS, 0, -1), (0, 3, SEND, 1, NBYTES, 0, 0), (0, 7, COMPUTE, 0, SECONDS, 0, 3)],
        (1, 5, RECEIVE, 0, NBYTES, 0, -1),
    )
    assert simulate(one.cut(4)).rank_seconds == pytest.approx([3 * SECONDS, 2 * SECONDS], rel=CLOSE)


@models
def test_waits_hold_in_every_run_of_a_program_that_repeats(simulate):
    rows = [(0, 0, SEND, 1, NBYTES, 0, -1), (0, 1, COMPUTE, 0, SECONDS, 0, 0), (1, 0, RECEIVE, 0, NBYTES, 0, -1)]
    clock = Program(np.array([2]), *([0], [0], [COMPUTE], [0], [10 * SECONDS]), name="clock")
    found = simulate(trace(*rows, repeat="background"), clock)
    assert found.link_bytes.max() == pytest.approx(5 * NBYTES, rel=CLOSE)


@pytest.mark.parametrize(("after", "step"), [(1, 1), (2, 1), (0, 1), (5, 9)])
def test_a_wait_names_an_earlier_step_of_its_own_rank(after, step):
    with pytest.raises(NetsimError, match="after: expecting an earlier step of the rank, or -1, got"):
        trace((0, step, COMPUTE, 0, 1.0, 0, after), (1, 0, COMPUTE, 0, 1.0, 0, -1))


@examples(60)
@given(st.integers(0, 2**32 - 1))
def test_c_and_numpy_agree_on_programs_that_wait(seed):
    draw = np.random.default_rng(seed)
    wiring, programs = random_wiring(draw), []
    for repeat in ["once", *draw.choice(["once", "until_all_ran"], 2)]:
        one = random_program(draw, wiring.num_hosts, repeat)
        after = [
            draw.choice([-1, *one.step[(one.rank == rank) & (one.step < step)]])
            for rank, step in zip(one.rank, one.step, strict=True)
        ]
        columns = {name: getattr(one, name) for name in ("rank", "step", "kind", "peer", "amount")}
        programs.append(Program(one.hosts, **columns, after=after, window=0, repeat=repeat))
    hosts = Hosts(skew=1e-6, eager=float(draw.choice([0, 5e3])))
    try:
        slow = run(wiring, programs, hosts=hosts, seed=seed, compiled=False)
    except NetsimError as error:  # a random program may wait for ever, or take no time
        with pytest.raises(NetsimError, match=re.escape(str(error))):
            run(wiring, programs, hosts=hosts, seed=seed)
        return
    fast = run(wiring, programs, hosts=hosts, seed=seed)
    assert fast.rank_seconds == pytest.approx(slow.rank_seconds, rel=1e-9, nan_ok=True)
