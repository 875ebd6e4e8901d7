"""Advice from profiles: the gains of a mapping and of schedules, and the commands that apply it."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from tests.support import examples
from topompi.cli.app import app
from topompi.mapping import CommunicationGraph
from topompi.profile import Profile, ProfileError, read_profile, write_profile
from topompi.profile.advice import advise
from topompi.profile.analysis import link_loads
from topompi.profile.recording import Call, Exchanges, RankRows
from topompi.profile.seconds import message_seconds
from topompi.schedules import Model, Rendezvous
from topompi.topology import TopologyInterface, load
from topompi.topology.computed import compute_routes

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
    assert CliRunner().invoke(app, [*command[1:]]).exit_code == 0
    assert (tmp_path / "ranks.txt").exists()
    shown = CliRunner().invoke(app, ["profile", "advise", *where])
    assert advice["run"][0] in shown.stdout.splitlines()


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


def all_neighbours(ranks, nbytes, times=10, carried=0):
    """A profile of calls in which all ranks are neighbours of all."""
    of_rank = []
    for rank in range(ranks):
        peers = tuple(peer for peer in range(ranks) if peer != rank)
        calls = Exchanges("Neighbor_alltoall", 0, ranks, 0, times, carried, peers, (nbytes * times,) * len(peers))
        rows = RankRows.of_rows(rank, [(4, peer, times, nbytes * times) for peer in peers])
        of_rank.append(replace(rows, exchanges=(calls,), calls=(Call("Neighbor_alltoall", ranks, nbytes, times),)))
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
    large = advise(all_neighbours(32, 1 << 20), on_four_hosts())["neighbourhoods"][0]
    assert large["algorithm"] == "native"


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
