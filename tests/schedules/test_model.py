"""The cost model: closed forms where they exist, a plain simulation of clocks elsewhere."""

import json
from collections import Counter
from dataclasses import replace
from math import log2
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import examples
from topompi.schedules import Network, Schedule
from topompi.schedules.analysis.cost import cost
from topompi.schedules.analysis.model import (
    Model,
)
from topompi.topology import TopologyInterface, load
from topompi.views.network import network_of

MODEL = Model((0, 1, 3), (1e-6, 2e-6, 4e-6), (1e-10, 2e-10, 4e-10))
WIDE = "XGFT(2; 8,8; 1,8)"  # full bisection


def host_network(*rank_hosts: int, fabric: str = WIDE) -> Network:
    routes = load(fabric).routes
    return network_of(TopologyInterface.place([routes.fabric.hosts[host] for host in rank_hosts], routes))


def with_capacity(network: Network, capacity: np.ndarray) -> Network:
    return Network(network.rank_host, network.hops, network.links, capacity, network.clusters, network.latency)


def transfers(size: int, *rows: tuple[int, int, int, int]) -> Schedule:
    """A schedule from (step, source, destination, blocks)."""
    full = [(step, source, to, 0, 0, 1, 0, count, 0) for step, source, to, count in rows]
    return Schedule.from_rows("allgather", size, "any", full)


def binomial_bcast(size: int) -> Schedule:
    rounds = (size - 1).bit_length()
    return transfers(size, *((k, r, r + 2**k, 1) for k in range(rounds) for r in range(2**k) if r + 2**k < size))


def binomial_gather(size: int) -> Schedule:
    rounds = (size - 1).bit_length()
    return transfers(
        size,
        *((k, r, r - 2**k, min(2**k, size - r)) for k in range(rounds) for r in range(2**k, size, 2 ** (k + 1))),
    )


@pytest.mark.parametrize("racks", [2, 4, 8])
def test_a_binomial_broadcast_across_switches_meets_the_blind_bound(racks: int) -> None:
    """With one host on each leaf switch every exchange is one between switches: C3 = log2 P."""
    result = cost(binomial_bcast(racks), host_network(*range(0, 8 * racks, 8)), MODEL, 1000)
    assert result.seconds == pytest.approx(log2(racks) * (4e-6 + 1000 * 4e-10))


@pytest.mark.parametrize("racks", [2, 4, 8])
def test_a_binomial_gather_of_leaders_meets_the_topology_aware_bound(racks: int) -> None:
    """``t_s log2 R + M t_w (1 - 1/R)`` (Subramoni 2013, section 3); M is a block of each leader."""
    result = cost(binomial_gather(racks), host_network(*range(0, 8 * racks, 8)), MODEL, 1000)
    assert result.seconds == pytest.approx(log2(racks) * 4e-6 + 1000 * racks * 4e-10 * (1 - 1 / racks))


def test_a_slow_host_takes_longer_for_its_bytes() -> None:
    network = host_network(0, 1, 2)
    slower = network.capacity.copy()
    slower[network.links[1, 0, 0]] /= 4
    times = cost(transfers(3, (0, 1, 0, 1), (1, 2, 0, 1)), with_capacity(network, slower), MODEL, 1000).step_seconds
    assert times == pytest.approx([2e-6 + 4 * 1000 * 2e-10, 2e-6 + 1000 * 2e-10])


@pytest.mark.parametrize("hosts", [(0, 0, 0, 0), (0, 1, 2, 3)])
def test_messages_of_one_rank_in_one_step_take_turns(hosts: tuple[int, ...]) -> None:
    """In one step or one after the other: three messages out of, or into, one rank take the same time."""
    network = host_network(*hosts)
    for pairs in ([(0, 1), (0, 2), (0, 3)], [(1, 0), (2, 0), (3, 0)]):
        at_once = cost(transfers(4, *((0, *pair, 1) for pair in pairs)), network, MODEL, 1000)
        in_turn = cost(transfers(4, *((step, *pair, 1) for step, pair in enumerate(pairs))), network, MODEL, 1000)
        assert at_once.seconds == pytest.approx(in_turn.seconds)


def test_a_rank_does_not_wait_for_others_steps() -> None:
    """Ranks 2 and 3 are quick in step 0 and enter step 1 while 0 and 1 are still busy."""
    result = cost(transfers(4, (0, 0, 1, 100), (0, 2, 3, 1), (1, 2, 3, 1)), host_network(0, 1, 2, 3), MODEL, 1000)
    assert result.rank_seconds[2:] == pytest.approx(2 * (2e-6 + 1000 * 2e-10))
    assert result.seconds == pytest.approx(2e-6 + 100_000 * 2e-10)
    assert result.step_seconds.tolist() == [result.seconds, 0]


@st.composite
def cases(draw: st.DrawFn) -> tuple[Schedule, Network]:
    routes = load(draw(st.sampled_from(("xgft:4,4;1,2", "XGFT(2; 3,5; 1,2)", "torus:3x3")))).routes
    network = network_of(
        TopologyInterface.place(draw(st.lists(st.sampled_from(routes.fabric.hosts), min_size=1, max_size=8)), routes)
    )
    if draw(st.booleans()):
        number = len(network.capacity)
        rates = draw(st.lists(st.sampled_from((1e9, 2e9, 4e9)), min_size=number, max_size=number))
        network = with_capacity(network, np.array(rates))
    rank = st.integers(0, network.num_ranks - 1)
    row = st.tuples(st.integers(0, 4), rank, rank, st.integers(1, 9))
    return transfers(network.num_ranks, *draw(st.lists(row, max_size=25))), network


def clocks_by_hand(schedule: Schedule, network: Network, block_bytes: int, burst: int = 0) -> list[float]:
    """The same rules, message by message."""
    sizes: Counter[tuple[int, int, int]] = Counter()
    for step, a, b, count in zip(
        *(getattr(schedule, c).tolist() for c in ("step", "source", "destination", "count")), strict=True
    ):
        sizes[step, a, b] += count * block_bytes * (a != b)
    routes = {
        (a, b): [link for link in network.links[network.rank_host[a], network.rank_host[b]].tolist() if link >= 0]
        for a in range(schedule.size)
        for b in range(schedule.size)
    }
    fastest = max((network.capacity[route[0]] for route in routes.values() if route), default=0)
    t_s, t_w = MODEL.by_hops(9)
    clock, free = [0.0] * schedule.size, dict.fromkeys(range(len(network.capacity)), 0.0)
    for now in range(schedule.num_steps):
        current = {(a, b): size for (step, a, b), size in sizes.items() if step == now and a != b}
        start = {(a, b): max(clock[a], clock[b]) for a, b in current}
        bytes_of = {
            (a, b): size * t_w[network.hops[network.rank_host[a], network.rank_host[b]]]
            for (a, b), size in current.items()
        }
        after, busy = clock.copy(), free.copy()
        for (a, b), seconds in bytes_of.items():
            port = max(sum(x == a for x, _ in current), sum(y == b for _, y in current))
            hops = network.hops[network.rank_host[a], network.rank_host[b]]
            head = burst * t_w[hops] if hops else 0.0
            end = start[a, b] + (max(seconds - head, 0.0) if routes[a, b] else port * seconds)
            for link in routes[a, b]:
                others = [other for other in current if link in routes[other]]
                begins = max(free[link], min(start[other] for other in others))
                load = sum(bytes_of[other] for other in others)
                share = min(load, len(others) * seconds) * fastest / network.capacity[link]
                end = max(end, max(begins, start[a, b]) + share - head * fastest / network.capacity[link])
                busy[link] = begins + load * fastest / network.capacity[link]
            end += t_s[hops] * port
            after[a], after[b] = max(after[a], end), max(after[b], end)
        clock, free = after, busy
    return clock


def busiest_link_by_hand(schedule: Schedule, network: Network, block_bytes: int) -> float:
    busy: Counter[int] = Counter()
    first = network.links[:, :, :1]
    fastest = network.capacity[first[first >= 0]].max(initial=0)
    t_w = MODEL.by_hops(9)[1]
    for a, b, count in zip(*(getattr(schedule, c) for c in ("source", "destination", "count")), strict=True):
        x, y = network.rank_host[a], network.rank_host[b]
        for link in network.links[x, y]:
            if link >= 0:
                busy[link] += count * block_bytes * t_w[network.hops[x, y]] * fastest / network.capacity[link]
    return max(busy.values(), default=0.0)


@examples(60)
@given(cases(), st.integers(1, 10_000), st.integers(0, 50_000))
def test_a_burst_spares_each_message_its_first_bytes(
    case: tuple[Schedule, Network], block_bytes: int, burst: int
) -> None:
    schedule, network = case
    result = cost(schedule, network, replace(MODEL, burst=burst), block_bytes)
    assert result.rank_seconds == pytest.approx(clocks_by_hand(schedule, network, block_bytes, burst))
    plain = cost(schedule, network, MODEL, block_bytes)
    assert (result.rank_seconds <= plain.rank_seconds + 1e-12).all()
    assert result.seconds >= result.link_seconds


def test_a_link_earns_its_burst_again_only_while_it_idles() -> None:
    """Of three messages in a row the burst spares one its bytes; after a rest it spares the next one as well."""
    network, shaped = host_network(0, 1, 2), replace(MODEL, burst=1000)
    alone, byte = cost(transfers(3, (0, 0, 1, 1)), network, shaped, 1000), 1000 * 2e-10
    assert alone.seconds == pytest.approx(2e-6)
    busy = transfers(3, *((0, 0, 1, 3),))
    assert cost(busy, network, shaped, 1000).seconds == pytest.approx(2e-6 + 2 * byte)
    rested = transfers(3, (0, 0, 1, 1), (1, 1, 2, 50), (2, 2, 0, 1), (3, 0, 1, 1))
    found = cost(rested, network, shaped, 1000)
    assert found.step_seconds == pytest.approx([2e-6, 2e-6 + 49 * byte, 2e-6, 2e-6])


@examples(120)
@given(cases(), st.integers(1, 10_000))
def test_the_clocks_are_those_of_a_simulation_by_hand(case: tuple[Schedule, Network], block_bytes: int) -> None:
    schedule, network = case
    result = cost(schedule, network, MODEL, block_bytes)
    assert result.rank_seconds == pytest.approx(clocks_by_hand(schedule, network, block_bytes))
    assert result.rank_seconds.max() == pytest.approx(result.step_seconds.sum())
    assert result.link_seconds == pytest.approx(busiest_link_by_hand(schedule, network, block_bytes))
    assert result.seconds == max(result.rank_seconds.max(), result.link_seconds)


def test_a_schedule_without_messages_costs_nothing() -> None:
    assert cost(transfers(1, (0, 0, 0, 1)), host_network(0), MODEL).seconds == 0
    assert cost(transfers(2), host_network(0, 1), MODEL).seconds == 0


def test_a_network_of_other_size_is_refused() -> None:
    with pytest.raises(ValueError, match="expecting a network of 3 ranks, got 2"):
        cost(transfers(3, (0, 0, 1, 1)), host_network(0, 1), MODEL)


def test_presets_are_those_of_the_sources_table() -> None:
    ranger, stampede = Model.preset("ranger"), Model.preset("stampede")
    assert np.allclose(ranger.by_hops(5)[0][[0, 1, 3, 5]] * 1e6, [0.46, 1.57, 2.45, 2.85])
    assert np.allclose(stampede.by_hops(5)[0][[0, 1, 3, 5]] * 1e6, [0.19, 1.07, 1.76, 2.54])
    assert np.allclose(1 / ranger.by_hops(7)[1], 1e9)
    assert np.allclose(1 / stampede.by_hops(7)[1], 6.75e9)
    with pytest.raises(ValueError, match="expecting one of ranger, stampede, got 'abacus'"):
        Model.preset("abacus")


def test_distances_beyond_the_table_follow_its_last_slope() -> None:
    t_s, _ = Model.preset("ranger").by_hops(9)
    assert t_s[7] * 1e6 == pytest.approx(2.85 + 0.40)
    assert t_s[9] * 1e6 == pytest.approx(2.85 + 0.80)
    assert t_s[2] * 1e6 == pytest.approx((1.57 + 2.45) / 2)


def test_cost_never_falls_beyond_the_last_level() -> None:
    t_s, t_w = Model((1, 3), (5e-6, 4e-6), (1e-9, 1e-9)).by_hops(7)
    assert t_s[3:].tolist() == [4e-6] * 5
    assert t_s[0] == 5e-6
    assert t_w.tolist() == [1e-9] * 8


LEVELS = st.lists(st.integers(0, 9), min_size=1, max_size=5, unique=True).map(sorted)


@examples(50)
@given(LEVELS, st.data())
def test_a_fit_of_exact_samples_gives_the_model_back(hops: list[int], data: st.DataObject) -> None:
    number = len(hops)
    t_s = data.draw(st.lists(st.floats(1e-7, 1e-4), min_size=number, max_size=number))
    t_w = data.draw(st.lists(st.floats(1e-11, 1e-8), min_size=number, max_size=number))
    sizes = (1, 64, 4096, 1 << 18, 1 << 22)
    samples = [(h, b, s + w * b) for h, s, w in zip(hops, t_s, t_w, strict=True) for b in sizes]
    fitted = Model.fit(samples[::-1])
    assert fitted.hops == tuple(hops)
    assert fitted.t_s == pytest.approx(t_s, rel=1e-4)
    assert fitted.t_w == pytest.approx(t_w, rel=1e-4)


def test_a_fit_has_no_negative_cost() -> None:
    """Times that fall with the size ask for a negative cost of bytes."""
    fitted = Model.fit([(1, 1, 3e-6), (1, 1000, 2e-6), (1, 2000, 1e-6)])
    assert fitted.t_w == (0.0,)
    assert fitted.t_s[0] > 0


@pytest.mark.parametrize("samples", [[], [(1, 8, 0.0)], [(1, 8, float("nan"))]])
def test_a_fit_without_usable_samples_is_refused(samples: list[tuple[int, float, float]]) -> None:
    with pytest.raises(ValueError, match="expecting samples of hops, bytes and seconds above 0"):
        Model.fit(samples)


def test_a_measured_model_is_read_from_a_file_or_a_mapping(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_text(json.dumps(MODEL.as_dict()))
    assert Model.from_measured(path) == Model.from_measured(str(path)) == Model.from_measured(MODEL.as_dict()) == MODEL


def test_levels_are_sorted_by_number_not_by_spelling() -> None:
    level = {"t_s": 1, "t_w": 1}
    assert Model.from_measured({"levels": {"11": level, "3": level}}).hops == (3, 11)


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "{}",
        '{"levels": {"near": {}}}',
        '{"levels": {"1": {"t_s": 1}}}',
        '{"levels": {"1": 3}}',
        '{"levels": 1}',
    ],
)
def test_a_measured_model_of_another_form_is_refused_with_the_files_name(text: str, tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"model\.json: expecting \{.levels"):
        Model.from_measured(path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((), (), ()), "at least one level"),
        (((1, 3), (1.0,), (1.0, 1.0)), "expecting t_s and t_w of each level"),
        (((3, 1), (1.0, 1.0), (1.0, 1.0)), "ascending hops"),
        (((1,), (-1.0,), (1.0,)), "at least 0 seconds"),
        (((1,), (1.0,), (float("nan"),)), "at least 0 seconds"),
    ],
)
def test_a_model_that_makes_no_sense_is_refused(arguments: tuple[tuple[float, ...], ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Model(*arguments)
