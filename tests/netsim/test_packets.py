"""Packets: closed forms of a lossless network, conserved quantities, deadlock, and refused settings."""

import re
from dataclasses import fields, replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.networks import job, routes
from tests.support import examples
from topompi.netsim import BACKGROUND, COMPUTE, RECEIVE, SEND, UNTIL_ALL_RAN, Hosts, NetsimError, Program
from topompi.netsim import run as flow
from topompi.netsim.packets import PRESETS, Arbitration, Settings, Tables, dependency_cycle, run
from topompi.schedules import make
from topompi.topology import FabricBuilder
from topompi.topology.computed import compute_routes
from topompi.views.program import program_of
from topompi.views.tables import tables_of

pytest.importorskip("topompi.netsim.packets._packets", reason="topompi was installed without a C compiler")

RATE, LATENCY, MTU = 4.096e9, 1e-7, 4096
PACKET = MTU / RATE  # 1 us
EAGER = Hosts(eager=1e12)
FDR = PRESETS["fdr"]


def network(switches, *trunks, rate=RATE):
    """Hosts on switches (so many on each), and trunks (switch, switch, rate)."""
    builder = FabricBuilder("ours")
    for number in range(len(switches)):
        builder.add_switch(f"s{number}")
    for host, number in enumerate(np.repeat(np.arange(len(switches)), switches)):
        builder.add_adapter(f"a{host}", host=f"h{host}")
        builder.add_cable(f"a{host}", f"s{number}", rate=rate[host] if isinstance(rate, list) else rate)
    for first, second, of_trunk in trunks:
        builder.add_cable(f"s{first}", f"s{second}", rate=of_trunk)
    return tables_of(compute_routes(builder.build()), latency=LATENCY)


def program(hosts, *messages, compute=(), **about):
    """Messages (step, source, destination, bytes), and computes (step, rank, seconds); one rank a host."""
    rows = [(source, step, SEND, to, size) for step, source, to, size in messages]
    rows += [(to, step, RECEIVE, source, size) for step, source, to, size in messages]
    rows += [(rank, step, COMPUTE, 0, seconds) for step, rank, seconds in compute]
    return Program(np.arange(hosts), *np.array(rows, dtype=float).reshape(-1, 5).T, **about)


def flows(hosts, *pairs, nbytes=100 * MTU, **about):
    return program(hosts, *((0, source, to, nbytes) for source, to in pairs), **about)


# ---- closed forms ----


@pytest.mark.parametrize("switches", [1, 3])
@pytest.mark.parametrize(("nbytes", "packets"), [(0, 1), (1000, 1), (4096, 1), (4097, 2), (65536, 16)])
@pytest.mark.parametrize("header", [0, 26])
def test_one_flow_takes_its_bytes_over_the_rate_and_its_latencies(switches, nbytes, packets, header):
    tables = network([2]) if switches == 1 else network([1, 0, 1], (0, 1, RATE), (1, 2, RATE))
    links, bytes_on_wire = switches + 1, nbytes + packets * header
    found = run(tables, [flows(2, (0, 1), nbytes=nbytes)], hosts=EAGER, settings=Settings(header=header))
    assert found.rank_seconds == pytest.approx([0, bytes_on_wire / RATE + links * LATENCY], abs=1e-11)
    whole = min(nbytes, MTU) + header if packets == 1 else MTU + header
    slow = Settings(header=header, cut_through=False)
    stored = run(tables, [flows(2, (0, 1), nbytes=nbytes)], hosts=EAGER, settings=slow)
    if nbytes in (0, 1000, 4096, 65536):  # the last packet is not smaller than the others
        assert stored.job_seconds[0] - found.job_seconds[0] == pytest.approx(switches * whole / RATE, abs=1e-11)


@pytest.mark.parametrize("switches", [1, 3])
def test_a_rendezvous_adds_two_words_for_the_receiver_and_a_third_for_the_sender(switches):
    tables = network([2]) if switches == 1 else network([1, 0, 1], (0, 1, RATE), (1, 2, RATE))
    hosts = Hosts(eager=1e3, send_overhead=3e-7, receive_overhead=5e-7)
    word, data = 64 / RATE + (switches + 1) * LATENCY, 65536 / RATE + (switches + 1) * LATENCY
    found = run(tables, [flows(2, (0, 1), nbytes=65536)], hosts=hosts, settings=Settings(control=64))
    assert found.rank_seconds == pytest.approx([8e-7 + 3 * word + data, 8e-7 + 2 * word + data], abs=1e-11)


@pytest.mark.parametrize("count", [2, 7])
@pytest.mark.parametrize("queueing", ["output", "input"])
def test_flows_into_one_host_share_its_link_equally(count, queueing):
    tables = network([count + 1])
    together = flows(count + 1, *((source, count) for source in range(count)))
    found = run(tables, [together], hosts=EAGER, settings=Settings(queueing=queueing))
    assert found.job_seconds[0] == pytest.approx(count * 100 * PACKET, rel=0.01)
    halfway = [together, program(1, compute=[(0, 0, 50 * count * PACKET)])]
    halfway[0] = replace(together, repeat=BACKGROUND)
    through = run(tables, halfway, hosts=EAGER).link_bytes[tables.source < tables.num_hosts][:count]
    assert through == pytest.approx(np.full(count, 50 * MTU), rel=0.35)  # what has left a host, buffers included


def victim(lane, lanes):
    """Seconds, over those alone, of a flow beside one of four to a busy host; their common link has twice the rate."""
    tables = network([2, 5], (0, 1, 2 * RATE))
    crowd = flows(7, (0, 2), (4, 2), (5, 2), (6, 2), nbytes=4000 * MTU, repeat=BACKGROUND)
    one = flows(7, (1, 3), nbytes=1000 * MTU, lane=lane)
    kept = Settings(lanes=lanes, buffer=65536 * lanes)
    together, alone = (run(tables, jobs, hosts=EAGER, settings=kept) for jobs in ([one, crowd], [one]))
    return together.job_seconds[0] / alone.job_seconds[0]


def test_a_victim_behind_a_blocked_head_takes_four_times_as_long_and_no_longer_on_a_lane_of_its_own():
    assert victim(0, 1) == pytest.approx(4, rel=0.03)
    assert victim(1, 2) == pytest.approx(1, rel=0.01)


@pytest.mark.parametrize("held", [1, 2, 5])
def test_a_small_buffer_bounds_a_long_link_to_what_it_holds_in_a_round_trip(held):
    tables = replace(network([2]), latency=np.full(4, 10 * PACKET))
    found = run(tables, [flows(2, (0, 1))], hosts=EAGER, settings=Settings(buffer=held * MTU))
    # The credit for a packet that goes on at once is back after two latencies and the packet's own time.
    turns, last = divmod(100 - 1, held)
    assert found.job_seconds[0] == pytest.approx((21 * turns + last + 1 + 20) * PACKET, abs=1e-11)
    assert found.lane_waits[tables.uplink[0], 0] == pytest.approx((21 - held) * turns * PACKET, abs=1e-11)


@pytest.mark.parametrize("shift", [1, 4, 7, 15])
@pytest.mark.parametrize("queueing", ["output", "input"])
def test_shift_permutations_meet_no_conflict_where_routes_are_d_mod_k(shift, queueing):
    tables = tables_of(routes("XGFT(2; 4,4; 1,4)"), latency=LATENCY)
    pairs = [(host, (host + shift) % 16) for host in range(16)]
    found = run(tables, [flows(16, *pairs)], hosts=EAGER, settings=Settings(queueing=queueing))
    assert found.job_seconds[0] == pytest.approx(100 * MTU / tables.rate[0] + 4 * LATENCY, rel=1e-3)
    assert not found.lane_waits.any()


@pytest.mark.parametrize("weight", [1, 2, 4, 15])
@pytest.mark.parametrize("unit", ["packets", "64 bytes"])
def test_lanes_share_a_link_by_their_weights(weight, unit):
    tables = network([2, 2], (0, 1, RATE))
    heavy, light = flows(4, (0, 2), nbytes=1000 * MTU), flows(4, (1, 3), nbytes=1000 * MTU, lane=1)
    one = 1 if unit == "packets" else MTU // 64
    low = ((0, min(255, weight * one)), (1, one))
    expected = 1000 * PACKET * (1 + 1 / weight) if weight * one < 256 else 1000 * PACKET * (1 + 1 / 4)
    kept = Settings(lanes=2, buffer=2**18, arbitration=Arbitration(low, unit=unit))
    found = run(tables, [heavy, light], hosts=EAGER, settings=kept)
    assert found.job_seconds == pytest.approx([expected, 2000 * PACKET], rel=0.02)


@pytest.mark.parametrize(("limit", "expected"), [(255, 1), (0, 2), (1, 2), (3, 4 / 3)])
def test_the_high_table_goes_first_up_to_its_limit(limit, expected):
    tables = network([2, 2], (0, 1, RATE))
    jobs = [flows(4, (0, 2), nbytes=1000 * MTU), flows(4, (1, 3), nbytes=1000 * MTU, lane=1)]
    table = Arbitration(low=((1, 1),), high=((0, 1),), limit=limit)
    found = run(tables, jobs, hosts=EAGER, settings=Settings(lanes=2, buffer=2**18, arbitration=table))
    assert found.job_seconds == pytest.approx([1000 * PACKET * expected, 2000 * PACKET], rel=0.01)


@pytest.mark.parametrize(("queueing", "times"), [("output", 1), ("input", 2)])
def test_an_input_with_one_queue_sends_one_packet_at_a_time(queueing, times):
    tables = network([2, 2], (0, 1, 2 * RATE))  # the trunk brings what two hosts take
    found = run(tables, [flows(4, (0, 2), (1, 3))], hosts=EAGER, settings=Settings(queueing=queueing))
    assert found.job_seconds[0] == pytest.approx(times * 100 * PACKET, rel=0.02)


def test_flows_take_the_rate_of_their_slowest_link_and_leave_the_rest_of_the_others():
    tables = network([2, 2], (0, 1, 2 * RATE), rate=[RATE, RATE, RATE, RATE / 2])
    found = run(tables, [flows(4, (0, 2))], hosts=EAGER)
    # A faster link waits until the tail will not be late for it: half a packet's time.
    assert found.job_seconds[0] == pytest.approx(100.5 * PACKET + 3 * LATENCY, abs=1e-11)
    found = run(tables, [flows(4, (0, 2), (1, 3))], hosts=EAGER)
    # The slow flow's packets fill the buffer that both share: each then has a packet in turn, at the slow one's rate.
    assert found.rank_seconds[3] == pytest.approx(200 * PACKET, rel=0.01)
    assert 100 * PACKET < found.rank_seconds[2] < 205 * PACKET
    apart = [flows(4, (0, 2)), flows(4, (1, 3), lane=1)]
    found = run(tables, apart, hosts=EAGER, settings=Settings(lanes=2, buffer=2**17))
    assert found.job_seconds == pytest.approx([100 * PACKET, 200 * PACKET], rel=0.02)


def test_a_grant_behind_data_halves_an_exchange_and_a_read_does_not():
    """The word of the rank that is later goes behind the data that it already sends: one direction after the other."""
    tables = network([2])
    pair = program(2, (1, 0, 1, 256 * MTU), (1, 1, 0, 256 * MTU), compute=[(0, 0, 1e-9), (0, 1, 2e-6)])
    hosts = Hosts(send_overhead=5e-7, receive_overhead=2e-7)
    seconds = {
        way: run(tables, [pair], hosts=hosts, settings=Settings(control=64, rendezvous=way)) for way in ("get", "put")
    }
    assert seconds["get"].job_seconds[0] == pytest.approx(256 * PACKET, rel=0.02)
    assert seconds["put"].job_seconds[0] == pytest.approx(512 * PACKET, rel=0.02)


# ---- hosts ----


def test_an_adapter_begins_so_many_messages_a_second():
    hosts = 9
    found = run(
        network([hosts]),
        [flows(hosts, *((0, to) for to in range(1, hosts)), nbytes=0)],
        hosts=EAGER,
        settings=Settings(message_rate=1e6),
    )
    assert found.rank_seconds[1:] == pytest.approx(1e-6 * np.arange(8) + 2 * LATENCY, abs=1e-11)


def test_queue_pairs_of_a_host_take_turns():
    # The first packet of the first message leaves before the second message is there, and its queue stays in front.
    found = run(network([3]), [program(3, (0, 0, 1, 10 * MTU), (0, 0, 2, 2 * MTU))], hosts=EAGER)
    assert found.rank_seconds[1:] == pytest.approx(np.array([12, 5]) * PACKET + 2 * LATENCY, abs=1e-11)


def test_an_adapter_without_queue_pairs_sends_one_message_after_the_other():
    messages = program(3, (0, 0, 1, 10 * MTU), (0, 0, 2, 2 * MTU))
    found = run(network([3]), [messages], hosts=EAGER, settings=Settings(adapter="in order"))
    assert found.rank_seconds[1:] == pytest.approx(np.array([10, 12]) * PACKET + 2 * LATENCY, abs=1e-11)


def test_a_rank_copies_messages_of_its_own_host_one_after_the_other():
    rows = [(0, 0, SEND, 2, 1e6), (1, 0, SEND, 2, 1e6), (2, 0, RECEIVE, 0, 1e6), (2, 0, RECEIVE, 1, 1e6)]
    for latency in (0.0, 1e-4):
        hosts = Hosts(copy_rate=1e9, copy_latency=latency)
        found = run(network([2]), [Program([0, 0, 0], *np.array(rows).T)], hosts=hosts)
        assert found.rank_seconds == pytest.approx(np.array([1, 2, 2]) * (1e-3 + latency))
        assert not found.link_bytes.any()


def test_a_job_starts_at_its_time_and_bursts_delay_what_follows():
    tables = network([2])
    late = program(2, (1, 0, 1, MTU), compute=[(0, 1, 5e-6), (0, 0, 1e-6)], start=1e-3)
    found = run(tables, [late], hosts=EAGER)
    assert found.rank_seconds == pytest.approx([1e-6, 5e-6], abs=1e-11)


def test_messages_after_bursts_of_any_length_wait_for_the_later_rank():
    seconds = 10.0 ** np.random.default_rng(5).uniform(-9, 1, 200)
    messages = [(1, rank, 100 + rank, MTU) for rank in range(100)]
    found = run(
        network([200]), [program(200, *messages, compute=[(0, *one) for one in enumerate(seconds)])], hosts=EAGER
    )
    arrived = seconds[:100] + PACKET + 2 * LATENCY
    assert found.rank_seconds == pytest.approx(np.append(seconds[:100], np.maximum(arrived, seconds[100:])), abs=1e-11)


def test_one_seed_is_one_run_and_another_is_another():
    tables = network([4])
    hosts = Hosts(eager=1e12, skew=1e-6)
    one = flows(4, (0, 1), (1, 2), (2, 3), (3, 0))
    first, again, other = (run(tables, [one], hosts=hosts, seed=seed).rank_seconds for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()


@pytest.mark.parametrize(
    ("lanes", "last", "ends", "waits", "events"),
    [(1, 24.770985, 21816.299943, 0.0, 147300), (8, 31.545421, 27059.291879, 6487.752784, 253649)],
)
def test_a_network_whose_state_fits_no_near_cache_takes_the_times_of_the_order_of_events(
    lanes, last, ends, waits, events
):
    """Prefetching and the reading of several buckets at once change nothing: the numbers are from before them."""
    tables = tables_of(routes("XGFT(2; 32,32; 1,32)"), latency=FDR.latency)
    tables = replace(tables, rate=np.full(tables.num_links, FDR.rate), latency=np.full(tables.num_links, FDR.latency))
    jobs = []
    for lane in range(lanes):
        hosts = np.arange(lane, 1024, lanes)
        rank, step = (axis.ravel() for axis in np.indices((len(hosts), 4)))
        away = np.array([1, 3, 40, 101])[step]
        peer = np.concatenate((rank + away, rank - away)) % len(hosts)
        kind, amount = np.repeat([SEND, RECEIVE], len(rank)), np.full(2 * len(rank), 20000.0)
        jobs.append(Program(hosts, np.tile(rank, 2), np.tile(step, 2), kind, peer, amount, window=2, lane=lane))
    done = run(tables, jobs, hosts=FDR.hosts, settings=replace(FDR.settings, lanes=lanes), seed=3)
    found = [done.job_seconds.max() * 1e6, done.rank_seconds.sum() * 1e6, done.lane_waits.sum() * 1e6]
    assert found == pytest.approx([last, ends, waits], abs=1e-6)
    assert done.counts["events"] == events


def test_a_background_job_runs_until_the_others_have_ended_and_only_first_runs_are_timed():
    tables = network([4])
    short, long = flows(2, (0, 1), nbytes=10 * MTU), flows(4, (2, 3), nbytes=100 * MTU)
    for repeat in (UNTIL_ALL_RAN, BACKGROUND):
        found = run(tables, [replace(short, repeat=repeat), long], hosts=EAGER)
        assert found.job_seconds == pytest.approx([10 * PACKET + 2 * LATENCY, 100 * PACKET + 2 * LATENCY])
        assert found.rank_seconds[:2] == pytest.approx([0, 10 * PACKET + 2 * LATENCY])
        assert found.link_bytes[tables.uplink[0]] == 99 * MTU  # nine runs, and the tenth until then
    endless = replace(long, repeat=BACKGROUND)
    found = run(tables, [short, endless], hosts=EAGER)
    assert np.isnan(found.job_seconds[1])
    found = run(tables, [replace(short, repeat=UNTIL_ALL_RAN), replace(long, repeat=UNTIL_ALL_RAN)], hosts=EAGER)
    assert found.job_seconds[1] == pytest.approx(100 * PACKET + 2 * LATENCY)


# ---- what is conserved, and other models ----


@examples(60)
@given(st.integers(0, 2**32 - 1))
def test_packets_and_credits_are_conserved_and_links_carry_what_routes_say(seed):
    draw = np.random.default_rng(seed)
    spec = ("XGFT(2; 5,4; 1,2)", "XGFT(3; 3,3,2; 1,2,2)", "XGFT(2; 5,4; 1,2; 1,2)")[seed % 3]
    network = job(spec, draw.permutation(18)[:8], draw.integers(1, 4, 8))
    tables = tables_of(routes(spec), latency=float(draw.choice([0, 1e-7])), rate=RATE)
    hosts = np.array(draw.permutation(tables.num_hosts)[: network.num_hosts])[network.rank_host]
    size, count = network.num_ranks, int(draw.integers(1, 60))
    pairs = np.stack((draw.integers(0, size, count), draw.integers(1, size, count)))
    pairs[1] = (pairs[0] + pairs[1]) % size
    nbytes = draw.choice([0, 1, 4096, 10_000, 100_000], count)
    step = draw.integers(0, 4, count)
    rows = [(a, s, SEND, b, n) for a, b, s, n in zip(*pairs, step, nbytes, strict=True)]
    rows += [(b, s, RECEIVE, a, n) for a, b, s, n in zip(*pairs, step, nbytes, strict=True)]
    order = np.lexsort((step, pairs[1], pairs[0]))  # messages of a pair meet in the order of their steps
    pairs, nbytes = pairs[:, order], nbytes[order]
    lanes = int(draw.integers(1, 4))
    kept = Settings(
        mtu=int(draw.choice([256, 2048, 4096])),
        header=26,
        control=int(draw.choice([0, 64])),
        buffer=lanes * int(draw.choice([4224, 16384, 65536])),
        lanes=lanes,
        queueing=str(draw.choice(["output", "input"])),
        cut_through=bool(draw.integers(0, 2)),
        rendezvous=str(draw.choice(["get", "put"])),
        adapter=str(draw.choice(["queue pairs", "in order"])),
        message_rate=float(draw.choice([1e6, np.inf])),
    )
    adds = Hosts(eager=float(draw.choice([0, 5000, 1e9])), skew=1e-6, send_overhead=2e-7, receive_overhead=1e-7)
    jobs = [Program(hosts, *np.array(rows, dtype=float).T, window=0, lane=lane) for lane in range(lanes)]
    found = run(tables, jobs, hosts=adds, settings=kept, seed=seed)
    assert found.counts["lost_room"] == found.counts["in_buffers"] == 0
    assert found.counts["sent"] == found.counts["delivered"]
    expected = np.zeros(len(tables.rate))
    for (source, to), size in zip(hosts[pairs].T, nbytes, strict=True):
        for link in tables.paths(np.array([source]), np.array([to]))[0]:
            expected[link] += size if link >= 0 else 0
    assert (found.lane_bytes == expected[:, None]).all()


CONTENTION_FREE = [
    ("alltoall", "shift"),
    ("alltoall", "bruck"),
    ("alltoall", "scatter_destination"),
    ("allgather", "ring"),
    ("allgather", "bruck"),
    ("bcast", "knomial"),
]


@pytest.mark.parametrize(("collective", "algorithm"), CONTENTION_FREE)
@pytest.mark.parametrize("spec", ["XGFT(2; 4,4; 1,4)", "XGFT(1; 16; 1)"])
def test_schedules_without_contention_take_what_flows_say(collective, algorithm, spec):
    network = job(spec, range(16), [1] * 16)
    tables = tables_of(routes(spec), latency=LATENCY / 10)  # a rendezvous takes that of three words more
    root = {"root": 0} if collective == "bcast" else {}
    one = program_of(make(collective, algorithm, network, **root), network, 2**20)
    theirs = flow(tables.wiring(), [one]).job_seconds[0]
    assert run(tables, [one], settings=Settings(control=0)).job_seconds[0] == pytest.approx(theirs, rel=0.01)


def random_up_links(tables, level, seed):
    """The same tables with a random link up wherever there is a choice."""
    draw, table = np.random.default_rng(seed), tables.table[0].copy()
    first = tables.num_hosts
    for switch in range(len(table)):
        out = np.flatnonzero(tables.source == first + switch)
        up = out[np.append(np.full(first, -1), level)[tables.target[out]] > level[switch]]
        there = np.flatnonzero(np.isin(table[switch], up))
        table[switch, there] = draw.choice(up, len(there)) if len(up) else table[switch, there]
    return replace(tables, next_link=table)


def test_random_pairs_on_random_static_routes_have_two_fifths_of_the_bandwidth():
    """P. Geoffray and T. Hoefler, Hot Interconnects 2008, have 0.38 on 512 hosts with one queue an input."""
    of_tree = routes("XGFT(3; 8,8,8; 1,8,8)")
    tables, shares = tables_of(of_tree, latency=LATENCY), []
    clock = program(1, compute=[(0, 0, 1e-3)])
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(512)
        pairs = flows(512, *zip(order, np.roll(order, 1), strict=True), nbytes=2**23, repeat=BACKGROUND)
        once = random_up_links(tables, of_tree.fabric.switch_level, seed)
        found = run(once, [clock, pairs], hosts=EAGER, settings=Settings(queueing="input"))
        shares.append(found.link_bytes[once.target < 512].sum() / (512 * once.rate[0] * 1e-3))
    assert 0.38 < np.mean(shares) < 0.41


# ---- deadlock ----


def ring(size=4):
    """Switches in a ring with a host each, and routes that go round one way."""
    switches, hosts = np.arange(size) + size, np.arange(size)
    source = np.concatenate((hosts, switches, switches))
    target = np.concatenate((switches, hosts, np.roll(switches, -1)))
    table = np.where(np.eye(size, dtype=bool), size + hosts[:, None], 2 * size + hosts[:, None])
    return Tables(source, target, [RATE] * 3 * size, [LATENCY] * 3 * size, table)


def test_routes_that_may_deadlock_are_refused_with_the_circle():
    round_trip = flows(4, *((host, (host + 2) % 4) for host in range(4)))
    with pytest.raises(NetsimError, match=r"expecting routes without a circle .*switch 0 -> switch 1"):
        run(ring(), [round_trip], hosts=EAGER)


def test_a_deadlock_is_found_and_named():
    round_trip = flows(4, *((host, (host + 2) % 4) for host in range(4)))
    with pytest.raises(NetsimError, match=r"expecting no deadlock, got one of .*switch 0 -> switch 1") as caught:
        run(ring(), [round_trip], hosts=EAGER, settings=Settings(buffer=MTU), circles=True)
    named = re.findall(r"switch (\d) -> switch (\d)", str(caught.value))
    assert len(named) == 4
    assert all(first[1] == then[0] for first, then in pairwise([*named, named[0]]))


def test_short_messages_pass_where_long_ones_deadlock():
    one = flows(4, *((host, (host + 2) % 4) for host in range(4)), nbytes=MTU)
    assert run(ring(), [one], hosts=EAGER, circles=True).job_seconds[0] == pytest.approx(PACKET + 4 * LATENCY, rel=1)


def test_trees_have_no_circle_and_rings_one_of_all_their_links():
    first, second = (axis.ravel() for axis in np.indices((18, 18)))
    assert dependency_cycle(tables_of(routes("XGFT(3; 3,3,2; 1,2,2)"), latency=LATENCY), first, second) == []
    first, second = (axis.ravel() for axis in np.indices((4, 4)))
    assert sorted(dependency_cycle(ring(), first, second)) == [8, 9, 10, 11]


# ---- what is refused ----


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ({"mtu": 0}, "packets: mtu: expecting at least 1, got 0"),
        ({"grain": 48}, "packets: grain: expecting a power of two, got 48"),
        ({"lanes": 16}, "packets: lanes: expecting at most 15, got 16"),
        ({"queueing": "both"}, "packets: queueing: expecting one of output, input, got 'both'"),
        ({"rendezvous": "send"}, "packets: rendezvous: expecting one of get, put, got 'send'"),
        ({"message_rate": 0}, "packets: message_rate: expecting more than 0 messages/s, got 0"),
        ({"buffer": 4096, "header": 26}, "packets: buffer: expecting 4160 bytes for a packet a lane, got 4096"),
        ({"arbitration": Arbitration(unit="bits")}, "unit: expecting one of packets, 64 bytes, got 'bits'"),
        ({"arbitration": Arbitration(limit=256)}, "limit: expecting 0 to 255, got 256"),
        ({"arbitration": Arbitration(((1, 1),))}, "arbitration: expecting a lane in range(1), got 1"),
        ({"arbitration": Arbitration(((0, 0),))}, "lane 0: expecting a weight of 1 to 255, got 0"),
        ({"lanes": 2, "arbitration": Arbitration(((0, 1),))}, "expecting all lanes in its tables, got none for 1"),
    ],
)
def test_wrong_settings_are_refused(about, message):
    with pytest.raises(NetsimError, match=re.escape(message)):
        Settings(**about)


def test_wrong_jobs_are_refused():
    tables = network([2])
    with pytest.raises(NetsimError, match=r"job: expecting hosts in range\(2\), got 2"):
        run(tables, [flows(3, (0, 2))])
    with pytest.raises(NetsimError, match=r"job: expecting a lane in range\(1\), got 3"):
        run(tables, [flows(2, (0, 1), lane=3)])
    with pytest.raises(NetsimError, match=r"job: expecting at most 1e\+06 s of a burst or a start, got 2e\+06"):
        run(tables, [program(1, compute=[(0, 0, 2e6)])])
    with pytest.raises(NetsimError, match="expecting a program that is not background, got none of 1"):
        run(tables, [flows(2, (0, 1), repeat=BACKGROUND)])
    with pytest.raises(NetsimError, match="expecting programs that repeat to take time"):
        run(tables, [flows(2, (0, 1)), Program([0], [], [], [], [], [], repeat=BACKGROUND)])


def test_hosts_without_a_route_are_named():
    with pytest.raises(NetsimError, match="expecting a route from h0 to h1, got none"):
        run(network([1, 1]), [flows(2, (0, 1))])


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ({"rate": [RATE, 0.0]}, "expecting finite rates above 0"),
        ({"latency": [0.0, np.nan]}, "expecting finite latencies of at least 0"),
        ({"target": [1, 7]}, "target: expecting range(0, 2), got 1..7"),
        ({"source": [0]}, "expecting four columns of one length"),
    ],
)
def test_wrong_tables_are_refused(about, message):
    right = {
        "source": [0, 1],
        "target": [1, 0],
        "rate": [RATE] * 2,
        "latency": [0.0] * 2,
        "next_link": np.empty((0, 2)),
    }
    with pytest.raises(NetsimError, match=re.escape(message)):
        Tables(**{**right, **about})


@pytest.mark.parametrize("name", PRESETS)
def test_each_number_of_a_preset_has_a_source(name):
    one = PRESETS[name]
    numbers = {field.name for part in (one.hosts, one.settings) for field in fields(part)}
    assert set(one.sources) == numbers | {"rate", "latency"}


def test_without_the_extension_the_error_says_what_is_missing(monkeypatch):
    monkeypatch.setattr("topompi.netsim.packets.running.Engine", None)
    with pytest.raises(NetsimError, match="expecting the C extension, got none"):
        run(network([2]), [flows(2, (0, 1))])
