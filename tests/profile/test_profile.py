"""Profiles: their file, and the targets of messages."""

import gzip
import json
import stat
import sys
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from tests.support import examples
from topompi.cli.app import app
from topompi.mapping import CommunicationGraph, read_graph
from topompi.mpi.execution.specs import CALLS
from topompi.mpi.profile import Profile, ProfileError, read_profile, write_profile
from topompi.mpi.profile.analysis import GRANULARITIES, by_hops, by_level, contract, link_loads, units_of
from topompi.mpi.profile.colours import PALETTES, colours_of
from topompi.mpi.profile.command import kept_command
from topompi.mpi.profile.counting import TrafficCounters, asked
from topompi.mpi.profile.export import EXPORTS, export
from topompi.mpi.profile.file import part_of
from topompi.mpi.profile.monitored import read_monitored
from topompi.mpi.profile.pictures import draw_comparison, heat
from topompi.mpi.profile.recording import KINDS, Call, ProfileView, RankRows
from topompi.mpi.profile.summary import summarise
from topompi.topology import TopologyInterface, load

COUNTS = st.integers(0, 2**40)


@st.composite
def profiles(draw, missing=True):
    """Profiles of some ranks, of which some may have no record."""
    size = draw(st.integers(1, 6))
    ranks = draw(st.sets(st.integers(0, size - 1), min_size=0 if missing else size))
    row = st.tuples(st.integers(0, len(KINDS) - 1), st.integers(0, size - 1), COUNTS, COUNTS)
    of_rank = [
        RankRows.of_rows(rank, sorted(draw(st.lists(row, max_size=8, unique_by=lambda one: one[:2]))))
        for rank in sorted(ranks)
    ]
    hosts = draw(st.sampled_from([(), tuple(f"h{rank}" for rank in range(size))]))
    view = ProfileView(draw(st.sampled_from(["", *GRANULARITIES])), draw(st.sampled_from(["", "bytes", "messages"])))
    return Profile(size, "by hand", draw(st.text(max_size=9)), draw(st.floats(0, 1e6)), hosts, of_rank, view=view)


def table(profile):
    """All that a profile says, to compare."""
    ranks = [
        (one.rank, *(c.tolist() for c in (one.kind, one.peer, one.messages, one.volume))) for one in profile.of_rank
    ]
    return profile.size, profile.method, profile.command, profile.seconds, profile.hosts, ranks, profile.view


def edges(graph):
    """A graph as a dictionary of pairs."""
    rows = zip(
        graph.sources.tolist(), graph.targets.tolist(), graph.volume.tolist(), graph.messages.tolist(), strict=True
    )
    return {(source, target): (volume, messages) for source, target, volume, messages in rows}


@cache
def fat_tree():
    return load("XGFT(2; 4,4; 1,2)").routes


@st.composite
def jobs(draw):
    """Ranks somewhere on a fabric, and what they send."""
    routes = fat_tree()
    hosts = draw(st.lists(st.sampled_from(routes.fabric.hosts), min_size=1, max_size=8))
    size = len(hosts)
    rank = st.integers(0, size - 1)
    rows = draw(st.lists(st.tuples(rank, rank, st.integers(0, 1000), st.integers(0, 9)), max_size=20))
    columns = np.array(rows, dtype=np.int64).reshape(-1, 4).T
    return CommunicationGraph.from_arrays(size, *columns), TopologyInterface.place(hosts, routes)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(profiles())
def test_what_is_written_is_read(tmp_path, profile):
    write_profile(profile, tmp_path / "a.topoprof")
    assert table(read_profile(tmp_path / "a.topoprof")) == table(profile)
    assert [path.name for path in tmp_path.iterdir()] == ["a.topoprof"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(profiles(), st.data())
def test_a_file_that_ends_too_early_has_the_ranks_written_before(tmp_path, profile, data):
    path = tmp_path / "a.topoprof"
    write_profile(profile, path)
    whole = path.read_bytes()
    head = len(whole) - sum(len(part) for part in _members(whole)[1:])
    cut = data.draw(st.integers(head, len(whole)))
    path.write_bytes(whole[:cut])
    ends = np.cumsum([len(part) for part in _members(whole)])
    found, wanted = table(read_profile(path)), table(profile)
    assert (found[:5], found[6]) == (wanted[:5], wanted[6])
    # A member whose text is whole but whose checksum is cut may count already, or not.
    assert found[5] == wanted[5][: len(found[5])]
    assert (ends[1:] <= cut).sum() <= len(found[5]) <= (ends[:-1] < cut).sum()


def _members(packed):
    """The gzip members of a file."""
    starts = [at for at in range(len(packed)) if packed.startswith(b"\x1f\x8b\x08\x00\x00\x00\x00\x00", at)]
    return [packed[first:last] for first, last in zip(starts, [*starts[1:], len(packed)], strict=True)]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(profiles(missing=False))
def test_map_reads_what_moved(tmp_path, profile):
    write_profile(profile, tmp_path / "a.topoprof")
    assert edges(read_graph(tmp_path / "a.topoprof")) == edges(profile.graph("EISR"))


def test_a_graph_of_a_profile_with_a_missing_rank_is_refused(tmp_path):
    write_profile(Profile(2, "by hand", of_rank=[RankRows.of_rows(1, [])]), tmp_path / "a.topoprof")
    assert read_profile(tmp_path / "a.topoprof").missing == (0,)
    with pytest.raises(ValueError, match="expecting a line for each of 2 ranks, got none for 0"):
        read_graph(tmp_path / "a.topoprof")


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        ("x", "expecting a profile"),
        ('{"topompi":"profile","version":2,"ranks":1}', ":1: expecting a profile of version 1"),
        ('{"topompi":"profile","version":1,"ranks":0}', ":1: expecting ranks"),
        ('{"topompi":"profile","version":1,"ranks":2,"hosts":["a"]}', ":1: expecting hosts to be a list of 2 names"),
        ('{"topompi":"profile","version":1,"ranks":1,"view":{"count":"x"}}', ":1: expecting view to have"),
        ('{"topompi":"profile","version":1,"ranks":2}\n{"rank":2}', ":2: expecting rank to be one of 2, got 2"),
        ('{"topompi":"profile","version":1,"ranks":2}\n{"rank":0,"E":[[1],[1]]}', ":2: expecting E to be three lists"),
        ('{"topompi":"profile","version":1,"ranks":2}\n{"rank":0,"E":[[2],[1],[1]]}', "peers below 2"),
        ('{"topompi":"profile","version":1,"ranks":2}\n{"rank":0,"E":[[1],[1],[1.5]]}', "whole numbers"),
    ],
)
def test_what_is_wrong_is_said_with_file_and_line(tmp_path, lines, wanted):
    path = tmp_path / "a.topoprof"
    path.write_bytes(gzip.compress((lines + "\n").encode()))
    with pytest.raises(ProfileError, match=wanted):
        read_profile(path)


@given(jobs())
def test_classes_are_those_of_a_pair_by_pair_count(job):
    graph, interface = job
    wanted = {0: [0, 0]}
    for (source, target), (volume, messages) in edges(graph).items():
        hops = int(interface.hop_matrix[interface.rank_host[source], interface.rank_host[target]])
        found = wanted.setdefault(hops, [0, 0])
        found[0] += messages
        found[1] += volume
    assert {one.hops: [one.messages, one.volume] for one in by_hops(graph, interface)} == wanted
    levels = by_level(graph, interface)
    assert sum(one.volume for one in levels) == graph.volume.sum()
    assert sum(one.messages for one in levels) == graph.messages.sum()


@given(jobs())
def test_links_carry_what_their_paths_say(job):
    graph, interface = job
    paths, loads = interface.get_network_path_matrix(), np.zeros(interface.routes.fabric.num_links)
    for (source, target), (volume, _) in edges(graph).items():
        path = paths[interface.rank_host[source], interface.rank_host[target]]
        loads[path[path >= 0]] += volume
    assert link_loads(graph, interface).tolist() == loads.tolist()


@given(jobs(), st.sampled_from(["process", "host", "switch"]))
def test_units_keep_the_sums(job, granularity):
    graph, interface = job
    names, unit = units_of(interface, granularity)
    between = contract(graph, unit, len(names))
    assert (between.volume.sum(), between.messages.sum()) == (graph.volume.sum(), graph.messages.sum())
    assert len(names) == len(set(names)) == unit.max(initial=-1) + 1


def test_the_worked_example_of_the_reference():
    """A 2 x 4 x 4 grid in blocks on four hosts, the first and the last on one leaf: 80 / 0 / 48 messages."""
    graph = CommunicationGraph.cartesian((2, 4, 4))
    h = fat_tree().fabric.hosts
    interface = TopologyInterface.place(np.repeat([h[0], h[4], h[8], h[1]], 8).tolist(), fat_tree())
    found = {one.hops: one.messages for one in by_hops(graph, interface)}
    assert (found[0], found.get(1, 0), found[3]) == (80, 0, 48)


def test_a_job_of_another_size_is_refused():
    interface = TopologyInterface.place(fat_tree().fabric.hosts[:3], fat_tree())
    with pytest.raises(ProfileError, match="expecting a job of 4 ranks as the profile has, got 3"):
        by_hops(CommunicationGraph.cartesian((4,)), interface)


@examples(20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(jobs())
@pytest.mark.parametrize("ending", [one for one in EXPORTS if one != "mat"])
def test_exports_are_read_back(tmp_path, ending, job):
    graph, _ = job
    export(graph, tmp_path / f"g.{ending}")
    found = read_graph(tmp_path / f"g.{ending}", graph.size)
    if ending == "graph":
        assert edges_both_ways(found) == edges_both_ways(graph)
    else:
        volume = {pair: volume for pair, (volume, _) in edges(graph).items() if volume}
        assert {pair: bytes_ for pair, (bytes_, _) in edges(found).items() if bytes_} == volume


def edges_both_ways(graph):
    """Bytes of each pair of unlike ranks, both directions together."""
    sums = {}
    for (source, target), (volume, _) in edges(graph).items():
        if source != target and volume:
            pair = min(source, target), max(source, target)
            sums[pair] = sums.get(pair, 0) + volume
    return sums


def test_matlab_has_both_matrices(tmp_path):
    from scipy.io import loadmat

    graph = CommunicationGraph.cartesian((2, 3), weights=7)
    export(graph, tmp_path / "g.mat")
    found = loadmat(tmp_path / "g.mat")
    assert (found["bytes"].toarray() == 7 * (found["messages"].toarray() > 0)).all()
    assert found["bytes"].sum() == graph.volume.sum()


def test_records_of_open_mpi_keep_kinds_and_missing_ranks(tmp_path):
    heading = "# POINT TO POINT\n"
    lines = "E\t2\t0\t10 bytes\t1 msgs sent\t0,1\nI\t2\t1\t20 bytes\t2 msgs sent\nC\t2\t0\t30 bytes\t3 msgs sent\n"
    (tmp_path / "run.2.prof").write_text(heading + lines)
    (tmp_path / "run.0.prof").write_text(heading + "R\t0\t2\t5 bytes\t1 msgs sent\n")
    found = read_monitored(tmp_path)
    assert (found.size, found.missing) == (3, (1,))
    assert edges(found.graph()) == {(2, 0): (15, 2), (2, 1): (20, 2)}
    assert found.total("C") == (3, 30)
    assert found.coverage == pytest.approx(2 / 3)


def test_show_says_classes_and_the_next_command(tmp_path):
    graph = CommunicationGraph.cartesian((4, 4), weights=1000)
    rows = {rank: [] for rank in range(16)}
    for (source, target), (volume, messages) in edges(graph).items():
        rows[source].append((0, target, messages, volume))
    path = tmp_path / "run.topoprof"
    write_profile(Profile(16, "by hand", "app", 1.0, (), [RankRows.of_rows(*one) for one in rows.items()]), path)
    options = ["--topology", "XGFT(2; 4,4; 1,2)", "--place", "random:3"]
    done = CliRunner().invoke(app, ["profile", "show", str(path), *options, "--json"])
    assert done.exit_code == 0, done.output
    summary = json.loads(done.stdout)
    assert sum(row["bytes"] for row in summary["hops"]) == graph.volume.sum()
    assert summary["saving"]["ratio"] < 1
    done = CliRunner().invoke(app, ["profile", "show", str(path), *options])
    assert "within hosts" in done.stdout
    assert "topompi map " in done.stdout


@pytest.mark.parametrize(("moves", "timed"), [("EISR", "ran for 1.5 s"), ("EISRC", "recorded for 1.5 s")])
def test_the_seconds_of_a_command_and_those_of_a_recording_have_different_names(tmp_path, moves, timed):
    path, page = tmp_path / "run.topoprof", tmp_path / "page.html"
    rows = [RankRows.of_rows(0, [(0, 1, 1, 8)]), RankRows.of_rows(1, [])]
    write_profile(Profile(2, "by hand", "app", 1.5, ("h0000", "h0001"), rows, moves=moves), path)
    shown = CliRunner().invoke(app, ["profile", "show", str(path), "--topology", "XGFT(1; 2; 1)"])
    assert f"app: {timed}; method: by hand" in shown.stdout.splitlines()
    CliRunner().invoke(app, ["profile", "export", str(path), "--topology", "XGFT(1; 2; 1)", "-o", str(page)])
    assert json.dumps(timed.split(" for ")[0] + " for") in page.read_text()


def test_a_profile_is_shown_as_was_asked_for_when_it_was_recorded_unless_another_way_is_named(tmp_path):
    path, options = tmp_path / "run.topoprof", ["--topology", "XGFT(2; 2,2; 1,1)"]
    rows = [RankRows.of_rows(rank, [(0, rank ^ 2, 3, 100)]) for rank in range(4)]
    write_profile(Profile(4, "by hand", of_rank=rows, view=ProfileView("switch", "messages")), path)

    def shown(*more):
        done = CliRunner().invoke(app, ["profile", "show", str(path), *options, "--json", *more])
        found = json.loads(done.stdout)
        return found["granularity"], found["count"], [row["sent"] for row in found["units"]]

    assert shown() == ("switch", "messages", [6, 6])
    assert shown("--by", "process,bytes") == ("process", "bytes", [100] * 4)
    CliRunner().invoke(app, ["profile", "export", str(path), *options, "-o", str(tmp_path / "r.html")])
    assert '"view":{"granularity":"switch","count":"messages"}' in (tmp_path / "r.html").read_text()


def test_a_profile_by_host_is_shown_by_host_and_processes_of_it_are_refused():
    by_host = Profile(2, "by hand", granularity="host")
    assert (by_host.view_of(), by_host.view_of("switch")) == (
        ProfileView("host", "bytes"),
        ProfileView("switch", "bytes"),
    )
    with pytest.raises(ProfileError, match="expecting a granularity of host, switch, got 'process'"):
        by_host.view_of("process")


def test_a_profile_by_host_is_not_exported_as_one_by_rank(tmp_path):
    write_profile(Profile(2, "by hand", granularity="host"), tmp_path / "a.topoprof")
    done = CliRunner().invoke(app, ["profile", "export", str(tmp_path / "a.topoprof"), "-o", str(tmp_path / "a.mtx")])
    assert "expecting one profile by process, got 1 by host" in str(done.exception)


def test_a_wrong_granularity_is_refused_before_the_program_runs(tmp_path):
    program = [sys.executable, "-c", f"open({str(tmp_path / 'ran')!r}, 'w')"]
    done = CliRunner().invoke(app, ["profile", "--by", "core", "--", *program])
    assert "expecting one of process, host, switch" in str(done.exception)
    assert not list(tmp_path.iterdir())


def test_a_crash_without_records_names_a_likely_cause(tmp_path):
    words = ["profile", "-o", str(tmp_path / "a.topoprof"), "--", sys.executable, "-c", "raise SystemExit(139)"]
    done = CliRunner().invoke(app, words)
    assert "(exit code 139); Open MPI 5 crashes here" in str(done.exception)
    assert "--mca coll_han_priority 0" in str(done.exception)


def test_another_mpi_is_said_to_have_recorded_nothing(tmp_path):
    done = CliRunner().invoke(app, ["profile", "-o", str(tmp_path / "a.topoprof"), "--", sys.executable, "-c", "1"])
    assert isinstance(done.exception, ProfileError)
    assert "expecting a program of Open MPI that reaches MPI_Finalize" in str(done.exception)
    assert not list(tmp_path.iterdir())


@given(jobs(), st.sampled_from(["process", "host", "switch"]), st.sampled_from(["bytes", "messages"]))
def test_the_heat_map_has_every_message_in_its_cell(job, granularity, count):
    graph, interface = job
    names, unit = units_of(interface, granularity)
    amount, hops = heat(graph, interface, granularity, count)
    wanted, classes = np.zeros((len(names), len(names))), {}
    for (source, target), pair in edges(graph).items():
        cell = unit[source], unit[target]
        weight = pair[count == "messages"]
        wanted[cell] += weight
        hop = int(interface.hop_matrix[interface.rank_host[source], interface.rank_host[target]])
        found = classes.setdefault(cell, {})
        found[hop] = found.get(hop, 0) + weight
    assert amount.tolist() == wanted.tolist()
    assert all(found[int(hops[cell])] == max(found.values()) for cell, found in classes.items() if wanted[cell])


@pytest.mark.parametrize("palette", PALETTES)
def test_every_class_has_a_colour_of_its_own(palette):
    colours = colours_of([0, 1, 2, 3, 4, 5, 6, 7], palette)
    assert list(colours) == [0, 1, 2, 3, 4, 5, 6, 7]
    assert len(set(colours.values())) == 8


def test_a_comparison_names_only_the_distances_that_have_bytes(tmp_path):
    pytest.importorskip("matplotlib")
    routes = load("XGFT(2; 4,4; 1,2)").routes
    interface = TopologyInterface.place(routes.fabric.hosts[:4], routes, virtual=True)  # one rank a host, one switch
    matrix = np.full((4, 4), 1000) - np.diag([1000] * 4)
    runs = {"near": (CommunicationGraph.from_matrix(matrix), interface)}
    draw_comparison(tmp_path / "x.svg", runs)
    text = (tmp_path / "x.svg").read_text()
    assert "<!-- 1 hop -->" in text
    assert "within hosts" not in text
    with pytest.raises(ProfileError, match="expecting a count of bytes, messages, got 'hops'"):
        draw_comparison(tmp_path / "x.svg", runs, "hops")


def test_pictures_of_two_runs_are_drawn_and_do_not_change(tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "one.topoprof"
    rows = [RankRows.of_rows(rank, [(0, (rank + 1) % 4, 2, 100)]) for rank in range(4)]
    write_profile(Profile(4, "by hand", of_rank=rows), path)
    path.with_name("two.topoprof").write_bytes(path.read_bytes())
    drawn = []
    for folder in ("a", "b"):
        options = ["--topology", "XGFT(2; 2,2; 1,1)", "-o", str(tmp_path / folder)]
        done = CliRunner().invoke(app, ["profile", "export", str(path), str(path.with_name("two.topoprof")), *options])
        assert done.exit_code == 0, done.output
        drawn.append({one.name: one.read_bytes() for one in (tmp_path / folder).iterdir()})
    assert drawn[0] == drawn[1]
    names = {f"{run}-{kind}.svg" for run in ("one", "two") for kind in ("heat", "histogram", "links")}
    assert set(drawn[0]) == {*names, "comparison.svg"}


# --- Counting of messages: its bounds, its memory, and the parts of a file.


@given(st.sampled_from(list(CALLS.values())), st.integers(1, 9), st.data(), st.integers(0, 10**6))
def test_what_a_call_is_asked_to_move_stays_within_its_ranks_and_what_mpi_defines(spec, size, data, nbytes):
    root = data.draw(st.integers(0, size - 1))
    sent, got = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    for rank in range(size):
        peers, volume = asked(spec, size, rank, root, nbytes)
        assert rank not in peers
        assert len(set(peers.tolist())) == len(peers)
        sent[rank] = volume.sum()
        np.add.at(got, peers, volume)
    if spec.collective == "bcast":
        assert got.tolist() == [0 if rank == root else nbytes for rank in range(size)]
    if spec.collective == "allreduce":
        assert (sent <= 2 * nbytes).all()
    if spec.collective == "barrier":
        assert not sent.any()


def test_counters_take_memory_for_the_peers_and_kinds_that_occur():
    counters = TrafficCounters(1024, np.arange(1024))
    assert not counters.tables
    for nbytes in range(2000):  # more distinct calls than a group keeps
        counters.group(0, np.arange(1024, dtype=np.int32)).called("Bcast", 0, nbytes)
    record = counters.rows(0, "")
    assert sum(column.itemsize * len(column) for table in counters.tables.values() for column in table) == 16 * 1024
    assert record.messages.sum() == 2000 * 1023
    assert record.volume.sum() == sum(range(2000)) * 1023
    assert sum(call.times for call in record.calls) == 2000
    assert len(record.calls) < 600


def test_what_counting_took_is_in_the_file_and_is_said(tmp_path):
    calls = (Call("Bcast", 2, 8, 100), Call("Barrier", 2, 0, 50))
    rows = [replace(RankRows.of_rows(0, [(0, 1, 50, 400)]), calls=calls), RankRows.of_rows(1, [])]
    write_profile(Profile(2, "by hand", of_rank=rows, moves="EISRC", counting=5e-7), tmp_path / "run.topoprof")
    interface = TopologyInterface.place(["a", "b"], None)
    says = summarise(read_profile(tmp_path / "run.topoprof"), interface, hint=False)["says"]
    assert says == ["counting took about 0.50 us a call, 0.0001 s on the rank with most calls"]


def test_parts_of_several_runs_are_refused(tmp_path):
    path = tmp_path / "run.topoprof"
    write_profile(Profile(2, "by hand"), part_of(path, 0))
    write_profile(Profile(3, "by hand"), part_of(path, 1))
    with pytest.raises(ProfileError, match="expecting parts of one run"):
        read_profile(path)
    assert sys.modules["topompi.mpi.profile"]


# --- Secrets in profiles: the arguments of a command line that a profile keeps, and its readers.


@pytest.mark.parametrize(
    "words",
    [
        ["--password=SECRET"],
        ["--password=a,SECRET=c"],
        ["--password", "SECRET"],
        ["-token", "SECRET"],
        ["--api-key=SECRET"],
        ["--apiKey", "SECRET"],
        ["-x", "DB_PASSWD=SECRET"],
        ["-genv", "MY_TOKEN", "SECRET"],
        ["--export=ALL,PGPASSWORD=SECRET"],
        ["AWS_SECRET_ACCESS_KEY=SECRET"],
        ["--url=https://user:SECRET@host/x"],
        ["postgres://user:SE/SECRET@host"],
        ["--header", "Authorization: Bearer SECRET"],
        ["sh", "-c", "export CREDENTIALS=SECRET; ./app"],
        ["--key", "SECRET", "--steps", "10"],
    ],
    ids=" ".join,
)
def test_arguments_that_look_like_secrets_are_left_out(words, monkeypatch):
    kept = kept_command(["./app", *words, "end"])
    assert "SECRET" not in kept.replace("AWS_SECRET_ACCESS_KEY", "")
    assert "***" in kept
    assert (kept.startswith("./app "), kept.endswith(" end")) == (True, True)
    monkeypatch.setenv("TOPOMPI_PROFILE_COMMAND", "whole")
    assert "SECRET" in kept_command(words)


@pytest.mark.parametrize(
    "words",
    [
        ["mpirun", "-n", "4", "./app", "--steps=10", "--keyframes", "3"],
        ["--monkey=1", "--compass", "n", "http://host:80/x", "C:/x", "a=b"],
        ["--output", "tokens.txt", "h[0-3]:2"],
    ],
    ids=" ".join,
)
def test_other_arguments_are_kept(words):
    assert "***" not in kept_command(words)


def test_a_value_of_the_variable_that_is_none_is_refused(monkeypatch):
    monkeypatch.setenv("TOPOMPI_PROFILE_COMMAND", "all")
    with pytest.raises(ValueError, match="TOPOMPI_PROFILE_COMMAND: expecting one of masked, whole"):
        kept_command(["x"])


def test_a_profile_is_for_its_owner_even_where_an_older_one_was_for_all(tmp_path):
    path = tmp_path / "f.topoprof"
    path.touch(0o644)
    write_profile(Profile(1, "by hand", of_rank=[RankRows.of_rows(0, [])]), path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
