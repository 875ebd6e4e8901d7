"""Packets on networks that Linux shapes: token buckets, ranks that share processors, sockets, and a record."""

import numpy as np
import pytest

from tests.netsim.test_packets import EAGER, LATENCY, MTU, RATE, flows, network, program
from tests.support import ROOT
from topompi.netsim import Hosts, NetsimError, link_bytes_at
from topompi.netsim import run as flow
from topompi.netsim.packets import PRESETS, Settings, run

RECORD = ROOT / "tests" / "records" / "emulated.json"


@pytest.mark.parametrize("switches", [1, 3])
@pytest.mark.parametrize(("packets", "burst"), [(1, 1), (1, 3), (5, 2), (20, 2), (20, 7)])
def test_a_token_bucket_passes_what_it_holds_at_once_and_the_rest_at_its_rate(switches, packets, burst):
    tables = network([2]) if switches == 1 else network([1, 0, 1], (0, 1, RATE), (1, 2, RATE))
    shaped = Settings(burst=burst * MTU, buffer=1 << 24)
    found = run(tables, [flows(2, (0, 1), nbytes=packets * MTU)], hosts=EAGER, settings=shaped)
    rest = max(0, packets - burst) * MTU / RATE
    assert found.job_seconds[0] == pytest.approx(rest + (switches + 1) * LATENCY, abs=1e-11)


def test_a_bucket_is_full_again_after_a_rest_and_what_it_holds_grows_with_rate_and_lateness():
    shaped, pause = Settings(burst=MTU, lateness=3 * MTU / RATE, buffer=1 << 24), 1e-3
    twice = program(2, (0, 0, 1, 4 * MTU), (1, 0, 1, 4 * MTU), compute=[(1, 0, pause)])
    found = run(network([2]), [twice], hosts=EAGER, settings=shaped)
    assert found.job_seconds[0] == pytest.approx(pause + 2 * LATENCY, abs=1e-11)


def test_a_short_packet_waits_for_as_many_tokens_as_it_has_bytes():
    shaped, short = Settings(burst=MTU, buffer=1 << 24), 64
    found = run(network([2]), [program(2, (0, 0, 1, MTU), (0, 0, 1, short))], hosts=EAGER, settings=shaped)
    assert found.job_seconds[0] == pytest.approx(short / RATE + 2 * LATENCY, abs=1e-11)


def test_a_burst_that_holds_no_packet_is_refused():
    with pytest.raises(NetsimError, match="burst: expecting 0 or 4122 bytes of a packet, got 4000"):
        Settings(header=26, burst=4000)


@pytest.mark.parametrize(("processors", "milliseconds"), [(0, 1), (1, 6), (2, 3), (4, 2), (6, 1)])
def test_ranks_that_share_processors_take_turns(processors, milliseconds):
    bursts = program(6, compute=[(0, rank, 1e-3) for rank in range(6)])
    found = run(network([6]), [bursts], settings=Settings(processors=processors))
    assert found.job_seconds[0] == pytest.approx(milliseconds * 1e-3)


def test_a_rank_does_all_that_it_has_to_do_before_another_has_its_turn():
    sends = program(4, *((0, rank, 3, 0.0) for rank in (0, 0, 0, 1)))
    slow = Hosts(eager=1e12, send_overhead=1e-3)
    found = run(network([4]), [sends], hosts=slow, settings=Settings(processors=1))
    assert found.rank_seconds[:2] == pytest.approx([3e-3, 4e-3])


def test_a_rank_looks_for_more_before_it_gives_its_processor_away_and_notices_late():
    bursts = program(3, compute=[(0, rank, 1e-3) for rank in range(3)])
    found = run(network([3]), [bursts], settings=Settings(processors=1, poll=1e-4))
    notices = (3 - 1) / 2 * 1e-4
    assert found.rank_seconds == pytest.approx(notices + np.array([1, 2.1, 3.2]) * 1e-3)


def test_a_rank_that_shares_processors_reads_what_it_granted_in_its_turn():
    slow, shared = Hosts(receive_overhead=1e-3), Settings(rendezvous="put", processors=1, send_buffer=1 << 20)
    found = run(network([2]), [flows(2, (0, 1), nbytes=MTU)], hosts=slow, settings=shared)
    assert found.rank_seconds[1] == pytest.approx(2e-3 + MTU / RATE + 6 * LATENCY, abs=1e-11)


def test_an_exchange_that_begins_apart_sends_one_way_after_the_other_in_each_step():
    """Who is ahead has granted before it says that it is ready, and is granted behind the data of the other."""
    emulated = PRESETS["emulated"]
    both = [(step, *pair, 1 << 18) for step in range(8) for pair in ((0, 1), (1, 0))]
    together, apart = (
        run(
            network([16], rate=emulated.rate),
            [program(16, *both, compute=late)],
            hosts=emulated.hosts,
            settings=emulated.settings,
        ).job_seconds[0]
        for late in ([], [(0, 1, 1e-3)])
    )
    assert apart > 1.8 * together


@pytest.mark.parametrize(("held", "left"), [(0, None), (4 * MTU, 12), (16 * MTU, 0)])
def test_a_socket_ends_a_send_when_it_holds_the_rest_of_it(held, left):
    rendezvous = Settings(rendezvous="put", adapter="in order", send_buffer=held)
    found = run(network([2]), [flows(2, (0, 1), nbytes=16 * MTU)], settings=rendezvous)
    granted, arrived = 4 * LATENCY, 4 * LATENCY + 16 * MTU / RATE + 2 * LATENCY
    assert found.rank_seconds[1] == pytest.approx(arrived)
    after = arrived + 2 * LATENCY if left is None else granted + max(0, left - 1) * MTU / RATE
    assert found.rank_seconds[0] == pytest.approx(after, abs=1e-11)


@pytest.mark.parametrize("parts", [1, 2, 5])
def test_a_program_whose_messages_are_cut_moves_as_many_bytes_and_ends_no_later_than_by_a_step(parts):
    whole = program(3, (0, 0, 1, 6e6), (1, 1, 2, 6e6), compute=[(1, 0, 1e-3)], window=1)
    cut = whole.cut(parts)
    tables = network([3])
    assert cut.window == parts
    assert len(cut.messages.nbytes) == 2 * parts
    assert flow(tables, [cut]).link_bytes == pytest.approx(flow(tables, [whole]).link_bytes)
    with pytest.raises(NetsimError, match="expecting at least 1 part of a message, got 0"):
        whole.cut(0)


@pytest.mark.parametrize("model", ["flows", "numpy", "packets"])
def test_bytes_of_links_over_time_are_what_two_messages_on_one_link_have_moved(model):
    tables, nbytes = network([3]), 1000 * MTU
    both = program(3, (0, 0, 2, nbytes), (0, 1, 2, nbytes / 2))

    def timed(jobs):
        if model == "packets":
            return run(tables, jobs, hosts=EAGER)
        return flow(tables, jobs, hosts=EAGER, compiled=model == "flows")

    ends = np.array([0.2, 0.5, 1.0, 1.5, 2.0]) * nbytes / RATE
    found = link_bytes_at(timed, [both], ends)
    from_0, into_2 = int(tables.uplink[0]), int(np.flatnonzero(tables.target == 2)[0])
    assert found[:, into_2] / nbytes == pytest.approx([0.2, 0.5, 1.0, 1.5, 1.5], abs=0.01)
    assert found[:, from_0] / nbytes == pytest.approx([0.1, 0.25, 0.5, 1.0, 1.0], abs=0.06)


@pytest.mark.parametrize("model", ["flows", "numpy"])
def test_a_job_that_ran_once_is_not_repeated_while_another_one_runs(model):
    tables, nbytes = network([4]), 1000 * MTU
    short, long = program(4, (0, 0, 1, nbytes)), program(4, (0, 2, 3, 4 * nbytes))

    def timed(jobs):
        return flow(tables, jobs, hosts=EAGER, compiled=model == "flows")

    found = link_bytes_at(timed, [short, long], np.array([0.5, 2.0, 3.0, 5.0]) * nbytes / RATE)
    into_1, into_3 = (int(np.flatnonzero(tables.target == host)[0]) for host in (1, 3))
    assert found[:, into_1] / nbytes == pytest.approx([0.5, 1.0, 1.0, 1.0], abs=0.01)
    assert found[:, into_3] / nbytes == pytest.approx([0.5, 2.0, 3.0, 4.0], abs=0.01)


def test_times_that_do_not_ascend_are_refused():
    tables = network([3])
    jobs = [program(3, (0, 0, 2, MTU))]
    with pytest.raises(NetsimError, match="expecting times above 0 that ascend"):
        link_bytes_at(lambda some: flow(tables, some, hosts=EAGER), jobs, [1e-3, 1e-3])


@pytest.mark.long
def test_times_on_the_emulated_network_and_their_order_are_predicted_for_cells_that_nothing_was_fitted_to():
    from benchmarks.packets_emulated import Case, Score, preset_of
    from benchmarks.predictions import cells_in

    cells = [cell for cell in cells_in(RECORD) if cell.method in ("Alltoall", "Allgather", "Bcast")]
    known = [cell for cell in cells if cell.nbytes >= 65536 and cell.ppn == 1][1::2]
    found = Score.of((case.predicted(preset_of(case.cell)), case.seconds) for case in map(Case.of, known))
    assert np.median(found.correlations) >= 0.9
    assert found.near >= 0.85


@pytest.mark.long
def test_alltoalls_that_were_measured_last_are_predicted_in_their_order():
    """Nothing was fitted to them."""
    from benchmarks.packets_emulated import Case, Score, preset_of
    from benchmarks.predictions import cells_in

    known = [cell for cell in cells_in(RECORD.with_name("packets.json")) if cell.method == "Alltoall"]
    found = Score.of((case.predicted(preset_of(case.cell)), case.seconds) for case in map(Case.of, known))
    assert len(known) == 4
    assert found.correlations.min() >= 0.9
    assert found.near == 1
