"""Advice from profiles: the gains of a mapping and of schedules, and the commands that apply it."""

import itertools
import json
import shlex
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from typer.testing import CliRunner

from tests.support import examples
from topompi.cli.app import app
from topompi.cli.profile.advice import commands, hint_of, where
from topompi.mapping import CommunicationGraph, Mapping
from topompi.mapping.evaluate import evaluate
from topompi.mapping.search import Search, solve
from topompi.mpi.profile import Profile, ProfileError, read_profile, write_profile
from topompi.mpi.profile.advice import advise
from topompi.mpi.profile.analysis import link_loads
from topompi.mpi.profile.recording import Call, Exchanges, RankRows
from topompi.mpi.profile.seconds import message_seconds
from topompi.mpi.profile.summary import saving
from topompi.schedules import Model, Rendezvous
from topompi.topology import TopologyInterface, load
from topompi.topology.computed import compute_routes
from topompi.views.allocation import machine_on
from topompi.views.reordering import Aim, search

SOURCE = "XGFT(2; 4,4; 1,2)"
FREE = Model((0,), (0.0,), (0.0,))  # messages that start at once
CALLS = (Call("Alltoall", 32, 1 << 20, 10), Call("Alltoallv", 32, 100, 1), Call("Bcast", 4, 100, 2))


def profile_of(graph, calls=()):
    rows = {rank: [] for rank in range(graph.size)}
    columns = (graph.sources, graph.targets, graph.messages, graph.volume)
    for source, target, messages, volume in zip(*(column.tolist() for column in columns), strict=True):
        rows[source].append((0, target, messages, volume))
    of_rank = [replace(RankRows.of_rows(*one), calls=calls) for one in rows.items()]
    return Profile(graph.size, "by hand", of_rank=of_rank, moves="ESRC")


def test_the_command_that_is_named_gives_the_order_that_is_promised(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    graph = CommunicationGraph.cartesian((4, 8), weights=1_000_000)
    write_profile(profile_of(graph, CALLS), tmp_path / "run.topoprof")
    where = ["run.topoprof", "--topology", SOURCE, "--place", "random:3"]
    done = CliRunner().invoke(app, ["profile", "advise", *where, "--json"])
    assert done.exit_code == 0, done.output
    advice = json.loads(done.stdout)
    mapping = advice["mapping"]
    assert mapping["after"]["hop_bytes"] < 0.6 * mapping["before"]["hop_bytes"]
    assert mapping["after"]["message_seconds"] < mapping["before"]["message_seconds"]
    assert 0 < mapping["after"]["busiest_link_seconds"] < mapping["before"]["busiest_link_seconds"]
    assert mapping["after"]["seconds"] == mapping["after"]["message_seconds"]  # not all calls have a prediction
    assert sum(row["share"] for row in advice["traffic"]) == pytest.approx(1)
    assert [(one["call"], one["calls"]) for one in advice["collectives"]] == [("Alltoall", 10)]
    assert any("2 collective calls on parts" in why for why in advice["out_of_reach"])
    assert any("unlike sizes" in why for why in advice["out_of_reach"])
    assert advice["operations"] == [
        {"operation": "messages", "seconds": mapping["before"]["seconds"], "share": 1.0}  # see above
    ]
    assert advice["run"][1] == "mpirun --map-by rankfile:file=ranks.txt -n 32 python app.py"
    command = shlex.split(advice["run"][0])
    told = json.loads(CliRunner().invoke(app, [*command[1:], "--json"]).stdout)["maps"]
    assert told["given"]["hop_bytes"] == mapping["before"]["hop_bytes"]
    assert told["mapped"]["hop_bytes"] == mapping["after"]["hop_bytes"]
    assert (tmp_path / "ranks.txt").exists()
    shown = CliRunner().invoke(app, ["profile", "advise", *where])
    assert advice["run"][0] in shown.stdout.splitlines()


def random_job(seed):
    """A graph of 8 ranks, in any order on four hosts with unlike numbers of ranks."""
    random, routes = np.random.default_rng(seed), load(SOURCE).routes
    hosts = random.permutation(16)[:4]
    ranks = random.permutation(np.concatenate((hosts, random.choice(hosts, 4))))
    interface = TopologyInterface.place([routes.fabric.hosts[host] for host in ranks], routes)
    ends, volume = random.integers(0, 8, (2, 12)), random.integers(1, 10, 12) * 10 ** random.integers(2, 6, 12)
    return CommunicationGraph.from_arrays(8, *ends, volume, random.integers(1, 20, 12)), interface


@examples(8)
@given(st.integers(0, 2**32))
@example(51)  # fewer hop-bytes in as many seconds
def test_show_advise_map_and_remap_find_one_order(seed):
    graph, interface = random_job(seed)
    profile, shown = profile_of(graph), saving(graph, interface)
    advice, found = advise(profile, interface), search(graph, interface, Aim())
    advised = advice["mapping"]
    if shown is None:
        assert advised is None
        return
    with tempfile.TemporaryDirectory() as folder:
        write_profile(profile, Path(folder) / "p.topoprof")
        options = where(interface, Path(folder) / "p.topoprof", SOURCE, None)
        told = json.loads(CliRunner().invoke(app, ["map", *shlex.split(options), "--json"]).stdout)
        lines = commands(advice, profile, SOURCE, options)
    pairs = {
        (shown["hop_bytes_before"], shown["hop_bytes_after"]),
        (advised["before"]["hop_bytes"], advised["after"]["hop_bytes"]),
        (told["maps"]["given"]["hop_bytes"], told["maps"]["mapped"]["hop_bytes"]),
        (float(found.before.hop_bytes), float(found.after.hop_bytes)),
    }
    assert len(pairs) == 1
    assert told["slot_of_rank"] == found.best.slot_of_rank.tolist()
    assert shown["cut"] == advised["cut"] == told["cut"] == found.cut == ""
    assert shown["pays"] == found.taken == (shown["ratio"] <= 0.97)
    falls = advised["after"]["seconds"] < advised["before"]["seconds"]
    assert advised["pays"] == (found.taken and falls)
    assert advised["slower"] == (found.taken and not falls)
    assert len(lines) == 2 * advised["pays"]


def test_show_and_advise_search_as_map_does_also_if_seeds_would_differ():
    random, routes = np.random.default_rng(0), load(SOURCE).routes
    hosts = [routes.fabric.hosts[host] for host in random.permutation(np.arange(32) % 13)]
    interface = TopologyInterface.place(hosts, routes)
    ends, volume = random.integers(0, 32, (2, 128)), random.integers(1, 1000, 128) * 100
    graph = CommunicationGraph.from_arrays(32, *ends, volume)
    found, other = (search(graph, interface, Aim(seed=seed)).after for seed in (0, 1))
    assert found.doubled < other.doubled
    machine = machine_on(routes, list(dict.fromkeys(hosts)), [hosts.count(host) for host in dict.fromkeys(hosts)])
    given = Mapping.on_hosts(interface.rank_host, machine)
    mapped = evaluate(solve(Search(), graph, machine, given=given), graph, machine)
    shown, advised = saving(graph, interface), advise(profile_of(graph), interface)["mapping"]
    after = (shown["hop_bytes_after"], advised["after"]["hop_bytes"], float(mapped.hop_bytes))
    assert after == (float(found.hop_bytes),) * 3


def test_a_clock_that_jumps_changes_no_answer(monkeypatch):
    graph, interface = random_job(1)
    profile = profile_of(graph, (Call("Allreduce", 8, 1 << 20, 1),))
    calm = saving(graph, interface), advise(profile, interface)
    ticks = itertools.count(step=10**6)
    for name in ("time", "monotonic", "perf_counter", "process_time"):
        monkeypatch.setattr(time, name, lambda: float(next(ticks)))
    assert (saving(graph, interface), advise(profile, interface)) == calm


def test_a_search_that_was_cut_says_so_and_finds_the_same_again(monkeypatch):
    graph, interface = random_job(1)
    found = [search(graph, interface, Aim(work=2500)) for _ in range(2)]
    assert found[0].cut == "the search was cut after 2 steps, because its work is limited, unlike that of topompi map"
    assert np.array_equal(found[0].best.slot_of_rank, found[1].best.slot_of_rank)
    monkeypatch.setattr("topompi.mpi.profile.summary.FIGURES", 0)
    told = saving(graph, interface)
    assert "cut after 1 steps, because its work is limited, unlike that of topompi map" in hint_of(told, "-g")
    monkeypatch.setenv("TOPOMPI_MAP_QUALITY", "1")
    told = saving(graph, interface)
    assert "no order of the ranks" in hint_of(told, "-g")
    assert "cut after 0 steps, because the order is good enough" in hint_of(told, "-g")


@pytest.mark.parametrize(
    ("name", "helps"), [("Allreduce", True), ("Iallreduce", False), ("allreduce", False), ("Ibcast", False)]
)
def test_the_launcher_is_recommended_for_calls_that_it_speeds_up_alone(name, helps):
    routes = load(SOURCE).routes
    interface = TopologyInterface.place(routes.fabric.hosts, routes)
    profile = profile_of(CommunicationGraph.cartesian((16,), weights=8), (Call(name, 16, 1 << 20, 5),))
    advice = advise(profile, interface)
    launched = [line for line in commands(advice, profile, SOURCE, "") if "-m topompi" in line]
    assert len(launched) == helps
    assert (advice["launcher"]["seconds"] < advice["launcher"]["native_seconds"]) == helps
    assert any("leaves to the MPI library" in why for why in advice["out_of_reach"]) != helps


@examples(25)
@given(st.integers(1, 16), st.data())
def test_flows_take_at_least_the_busiest_links_time_and_one_flow_exactly_that(size, data):
    routes = load(SOURCE).routes
    interface = TopologyInterface.place(routes.fabric.hosts[:size], routes)
    rank, volume = st.integers(0, size - 1), st.integers(1, 10**9)
    rows = data.draw(st.lists(st.tuples(rank, rank, volume), max_size=20))
    source, target, sent = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    graph = CommunicationGraph.from_arrays(size, source, target, sent, np.ones_like(sent))
    fabric = interface.routes.fabric  # the job's part
    least = (link_loads(graph, interface) / fabric.link_rate).max()
    found = message_seconds(graph, interface, interface.rank_host.astype(np.int64), FREE)
    assert found >= least * (1 - 1e-6)
    if len(rows) == 1:
        latency = np.nansum(fabric.link_latency)
        assert found <= least * (1 + 1e-6) + latency


def of_two_hosts(*rows, model):
    """Seconds for rows of source, target, messages, bytes, in units of a byte on a link, on two hosts of a leaf."""
    routes = load(SOURCE).routes
    interface = TopologyInterface.place(routes.fabric.hosts[:2], routes)
    source, target, messages, volume = np.array(rows).T
    graph = CommunicationGraph.from_arrays(2, source, target, volume, messages)
    unit = interface.routes.fabric.link_rate[0]
    return message_seconds(graph, interface, np.arange(2), model) * unit


def test_start_ups_contain_the_latencies_of_links_whether_or_not_the_fabric_has_them():
    fabric = load(SOURCE).fabric
    graph = CommunicationGraph.from_arrays(2, [0], [1], [1000], [1])
    model, found = Model((1,), (3e-6,), (0.0,)), []
    for latency in (np.nan, 1e-6):
        routes = compute_routes(replace(fabric, link_latency=np.full(fabric.num_links, latency)))
        interface = TopologyInterface.place(fabric.hosts[:2], routes)
        found.append(message_seconds(graph, interface, np.arange(2), model))
    assert found == pytest.approx([3e-6 + 1000 / fabric.link_rate[0]] * 2)


def test_a_round_starts_once_and_further_messages_of_a_rank_come_after_each_other():
    rate = load(SOURCE).routes.fabric.link_rate[0]
    model = Model((1,), (500 / rate,), (0.0,), t_o=20 / rate)
    assert of_two_hosts((0, 1, 10, 1000), model=model) == pytest.approx(10 * 500 + 1000)
    assert of_two_hosts((0, 1, 10, 1000), (1, 0, 4, 80), model=model) == pytest.approx(10 * 500 + 1000)
    routes = load(SOURCE).routes
    interface = TopologyInterface.place(routes.fabric.hosts[:3], routes)
    graph = CommunicationGraph.from_arrays(3, [0, 0], [1, 2], [1000, 1000], [10, 10])
    found = message_seconds(graph, interface, np.arange(3), model) * rate
    assert found == pytest.approx(10 * (500 + 20) + 2000)


def test_long_messages_both_ways_take_turns_where_words_wait_but_for_the_bytes_of_the_question():
    waits = replace(FREE, rendezvous=Rendezvous(100, 0.8, 0.4))
    both = (0, 1, 1, 1000), (1, 0, 1, 700)
    assert of_two_hosts(*both, model=waits) == pytest.approx(100 + 900 + 600)
    assert of_two_hosts(*both, model=FREE) == pytest.approx(1000)
    assert of_two_hosts(both[0], model=waits) == pytest.approx(1000)
    assert of_two_hosts((0, 1, 10, 1000), (1, 0, 10, 700), model=waits) == pytest.approx(1000)


def on_two_leaves():
    routes = load(SOURCE).routes
    return TopologyInterface.place([routes.fabric.hosts[host] for host in (0, 1, 4, 5)], routes)


def schedules_said(profile):
    return [why for why in advise(profile, on_two_leaves())["out_of_reach"] if "calls" in why]


def test_sizes_lack_where_collectives_were_seen_and_no_calls_recorded_and_nowhere_else():
    graph = CommunicationGraph.cartesian((4,), weights=8)
    below = Profile(4, "monitoring", of_rank=[RankRows.of_rows(rank, [(1, 3 - rank, 2, 8)]) for rank in range(4)])
    assert "sizes of calls were not recorded" in schedules_said(below)[0]
    without = [RankRows.of_rows(rank, [(0, 3 - rank, 2, 8)]) for rank in range(4)]
    for moves in ("EISR", "EISRC"):  # the program made no collective calls, whatever recorded it
        assert schedules_said(Profile(4, "any", of_rank=without, moves=moves)) == []
    assert schedules_said(profile_of(graph, (Call("Barrier", 4, 0, 3),))) == []
    neighbours = profile_of(graph, (Call("Neighbor_alltoall", 4, 8, 3),))
    assert schedules_said(neighbours) == ["3 collective calls among neighbours: their edges were not recorded"]


def test_sizes_are_those_of_the_rank_that_knows_them():
    graph = CommunicationGraph.cartesian((4,), weights=8)
    unknown, known = (Call("Bcast", 4, 0, 5),), (Call("Bcast", 4, 70, 5),)  # objects, from rank 2
    of_rank = [replace(one, calls=known if one.rank == 2 else unknown) for one in profile_of(graph).of_rank]
    found = advise(Profile(4, "by hand", of_rank=of_rank, moves="ESRC"), on_two_leaves())
    assert [(one["call"], one["bytes"], one["calls"]) for one in found["collectives"]] == [("Bcast", 70, 5)]


def test_what_cannot_be_known_is_said():
    graph = CommunicationGraph.cartesian((4,), weights=8)
    interface = TopologyInterface.place(["a", "a", "b", "b"], None)
    advice = advise(profile_of(graph), interface)
    assert advice["mapping"]["before"]["seconds"] is None
    assert any("does not give the rates" in why for why in advice["out_of_reach"])
    with pytest.raises(ProfileError, match="expecting a profile by process"):
        advise(replace(profile_of(graph), granularity="host"), interface)


def all_neighbours(ranks, nbytes, times=10, carried=0, name="Neighbor_alltoall"):
    """A profile of calls in which all ranks are neighbours of all."""
    of_rank = []
    for rank in range(ranks):
        peers = tuple(peer for peer in range(ranks) if peer != rank)
        calls = Exchanges(name, 0, ranks, 0, times, carried, peers, (nbytes * times,) * len(peers))
        rows = RankRows.of_rows(rank, [(4, peer, times, nbytes * times) for peer in peers])
        of_rank.append(replace(rows, exchanges=(calls,), calls=(Call(name, ranks, nbytes, times),)))
    return Profile(ranks, "by hand", of_rank=of_rank, moves="EISRC")


def test_calls_among_neighbours_have_gains_and_a_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_profile(all_neighbours(32, 8, carried=3), tmp_path / "run.topoprof")
    where = ["run.topoprof", "--topology", SOURCE, "--hosts", "h[0000-0003]"]
    done = CliRunner().invoke(app, ["profile", "advise", *where, "--json"])
    assert done.exit_code == 0, done.output
    advice = json.loads(done.stdout)
    (row,) = advice["neighbourhoods"]
    assert [row[key] for key in ("call", "calls", "carried", "edges", "bytes")] == [
        *("Neighbor_alltoall", 10, 3, 32 * 31, 8 * 32 * 31)
    ]
    assert row["algorithm"] == "hosts"
    assert row["reordered_seconds"] <= row["carried_seconds"] < row["edge_seconds"] / 1.1
    assert not any("among neighbours" in why for why in advice["out_of_reach"])
    assert any(line.startswith("TOPOMPI_TOPOLOGY=") for line in advice["run"])
    for command in ("advise", "show"):
        said = CliRunner().invoke(app, ["profile", command, *where])
        assert said.exit_code == 0, said.output
        assert "among neighbours" in said.output
    for nbytes, name in ((1 << 20, "Neighbor_alltoall"), (8, "Ineighbor_alltoall"), (8, "neighbor_alltoall")):
        advice = advise(all_neighbours(32, nbytes, name=name), on_four_hosts())
        assert advice["neighbourhoods"][0]["algorithm"] == "native"
        assert advice["launcher"]["seconds"] == advice["launcher"]["native_seconds"]


def on_four_hosts():
    routes = load(SOURCE).routes
    return TopologyInterface.place([routes.fabric.hosts[rank // 8] for rank in range(32)], routes)


def test_calls_among_neighbours_are_read_as_written(tmp_path):
    profile = all_neighbours(4, 100)
    write_profile(profile, tmp_path / "run.topoprof")
    found = read_profile(tmp_path / "run.topoprof")
    assert [one.exchanges for one in found.of_rank] == [one.exchanges for one in profile.of_rank]
    wrong = replace(profile.of_rank[2], exchanges=(profile.of_rank[2].exchanges[0]._replace(peers=(0, 1, 9)),))
    write_profile(replace(profile, of_rank=[*profile.of_rank[:2], wrong]), tmp_path / "run.topoprof")
    with pytest.raises(ProfileError, match=r"run\.topoprof:4: expecting neighbours to name ranks below 4"):
        read_profile(tmp_path / "run.topoprof")
