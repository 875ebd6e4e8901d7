"""Emulated networks: what a spec says and refuses, and what is found out about them."""

import os
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from osu_like_bench.emulate import LinkRates, emulated_fabric, emulated_routes
from osu_like_bench.emulate.agent import HEAD, agent_path, write_agent
from osu_like_bench.emulate.launch import Launch, command_line, coordinates, leaf_cyclic, program, rank_hosts
from osu_like_bench.emulate.monitor import Usage
from osu_like_bench.emulate.peers import PEERS
from osu_like_bench.emulate.records import NetworkRecord, states
from osu_like_bench.emulate.spec import parse_rate
from tests.emulation import needs_root, private_state  # noqa: F401 - a fixture
from tests.support import ROOT, examples, text_of
from topompi.errors import BenchmarkError, SourceError
from topompi.topology import FabricBuilder, TopologyInterface, load, load_routes
from topompi.topology.sources import fabricjson

pytestmark = pytest.mark.usefixtures("private_state")
M = 1e6 / 8  # bytes/s of a Mbit/s


def rates_of(fabric):
    """(name of the lower end, of the upper end) -> Mbit/s."""
    names = [*fabric.hosts, *fabric.switch_names]
    ends = zip(fabric.link_source, fabric.link_target, fabric.link_rate, strict=True)
    return {(names[a], names[b]): float(rate) / M for a, b, rate in ends}


# --- specs ---


@given(st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=4), min_size=1, max_size=3))
@examples(40)
def test_uneven_leaves_have_the_hosts_asked_for_and_one_way_between_any_two(groups):
    spec = ";".join(",".join(map(str, sizes)) for sizes in groups)
    fabric = emulated_fabric(spec)
    counts = np.bincount(fabric.adapter_leaf, minlength=fabric.num_switches)
    assert counts[counts > 0].tolist() == [size for sizes in groups for size in sizes]
    assert fabric.num_links == 2 * (fabric.num_hosts + fabric.num_switches - 1)
    assert int(fabric.switch_level.max()) == (2 if len(groups) > 1 else 1)
    again = fabricjson.read([text_of(fabricjson.write(fabric), "f")], None).fabric
    assert rates_of(again) == rates_of(fabric)


@given(st.integers(1, 3), st.integers(1, 4), st.integers(1, 4))
@examples(20)
def test_products_are_the_lists_that_they_stand_for(groups, leaves, hosts):
    listed = ";".join([",".join([str(hosts)] * leaves)] * groups)
    assert rates_of(emulated_fabric(f"{groups}x{leaves}x{hosts}")) == rates_of(emulated_fabric(listed))


def test_a_source_gives_the_same_tree_as_its_shape():
    shape, source = (rates_of(emulated_fabric(spec)) for spec in ("4x4", "XGFT(2; 4,4; 1,1)"))
    assert sorted(shape.values()) == sorted(source.values()) == [100.0] * 40  # slowed from 32 Gbit/s


def test_parallel_cables_are_one_link_of_the_summed_rate():
    fabric = emulated_fabric("XGFT(2; 4,3; 1,1; 1,2)")
    assert sorted(set(rates_of(fabric).values())) == [100.0, 200.0]
    assert fabric.num_links == 2 * (12 + 3)


def test_rates_of_levels_and_hosts_are_those_asked_for():
    rates = LinkRates.parse("80M", "40M,20M", "h0-h2=10M,h[0004-0005]=5M")
    found = rates_of(emulated_fabric("2x2x2", rates))
    assert [found[f"h000{host}", f"L1/{host // 2}"] for host in range(8)] == [10, 10, 10, 80, 5, 5, 80, 80]
    assert found["L1/3", "L2/1"] == found["L2/1", "L1/3"] == 40
    assert found["L2/0", "L3/0"] == found["L3/0", "L2/0"] == 20


def test_a_saved_fabric_is_emulated_as_it_is(tmp_path):
    fabric = emulated_fabric("3,1,2", LinkRates.parse(hosts="h0=5M"))
    (tmp_path / "fabric.json").write_text(fabricjson.write(fabric))
    assert rates_of(emulated_fabric(str(tmp_path / "fabric.json"))) == rates_of(fabric)


@pytest.mark.parametrize("spec", ["torus:5", "torus:3x3", "dragonfly:2,2,1", "kary:2,3", "XGFT(2; 4,3; 1,1; 1,2)"])
def test_fabrics_with_loops_keep_their_routes_also_in_the_file(spec, tmp_path):
    given, routes = load_routes(spec), emulated_routes(spec)
    assert (routes.tables.all_hops() == given.tables.all_hops()).all()
    (tmp_path / "fabric.json").write_text(fabricjson.write(routes.fabric, routes))
    again = emulated_routes(str(tmp_path / "fabric.json"))
    assert (again.next_link == routes.next_link).all()
    assert (again.tables.source == routes.tables.source).all()


def test_tables_of_a_source_lead_over_the_same_switches_when_parallel_cables_are_one(tmp_path):
    routes = load_routes("XGFT(2; 3,3; 1,2; 1,2)")
    named = replace(routes, engine="tables", table=routes.next_link)
    (tmp_path / "fabric.json").write_text(fabricjson.write(named.fabric, named))
    merged = emulated_routes(str(tmp_path / "fabric.json"))
    ends = [(one.tables, one.tables.all_paths()) for one in (named, merged)]
    (before, there), (after, here) = ends
    assert merged.fabric.num_links < named.fabric.num_links
    assert (before.target[there[there >= 0]] == after.target[here[here >= 0]]).all()


def test_hosts_without_a_route_are_named(tmp_path):
    parts = FabricBuilder("two parts")
    for switch in ("a", "b"):
        parts.add_switch(switch)
        parts.add_adapter(f"{switch}0", f"{switch}0")
        parts.add_cable(f"{switch}0", switch)
    (tmp_path / "fabric.json").write_text(fabricjson.write(parts.build()))
    with pytest.raises(SourceError, match=r"two parts: expecting routes .* got none from a0 to b0"):
        emulated_routes(str(tmp_path / "fabric.json"))


@pytest.mark.parametrize(
    ("spec", "word"),
    [
        ("0x4", "at least one"),
        ("4,0", "at least one"),
        ("2x2x2x2", "LEAVESxHOSTS"),
        ("300x1", "at most 254"),
        ("stampede", "at most 254"),
        ("nonsense", "nonsense"),
    ],
)
def test_what_cannot_be_read_or_is_too_large_is_refused(spec, word):
    with pytest.raises(SourceError, match=word):
        emulated_fabric(spec)


@pytest.mark.parametrize("text", ["", "fast", "1", "10G", "-5M", "5MB", "nan"])
def test_rates_that_cannot_be_are_refused(text):
    with pytest.raises(SourceError, match="--host-rate"):
        parse_rate(text, "--host-rate")


@pytest.mark.parametrize("text", ["h0", "h0-h9=10M", "x3=10M", "h0=", "=1M", "h1=1M,,"])
def test_rates_of_hosts_that_cannot_be_are_refused(text):
    with pytest.raises(SourceError, match="--host-rates"):
        emulated_fabric("2x2", LinkRates.parse(hosts=text))


# --- placement and command lines ---


@given(st.integers(1, 3), st.integers(1, 30), st.sampled_from(["block", "cyclic", "leaf-cyclic", "random:3"]))
@examples(60)
def test_orders_put_no_more_ranks_on_a_host_than_asked(ppn, ranks, order):
    fabric = emulated_fabric("3,4,1,2")
    if ranks > 10 * ppn:
        with pytest.raises(BenchmarkError, match="ranks"):
            rank_hosts(fabric, ranks, ppn, order)
        return
    hosts = rank_hosts(fabric, ranks, ppn, order)
    assert len(hosts) == ranks
    assert max(hosts.count(host) for host in set(hosts)) <= ppn


def test_leaf_cyclic_takes_a_host_of_every_leaf_in_turn():
    fabric = emulated_fabric("3,1,2")
    assert leaf_cyclic(fabric, fabric.hosts) == ["h0000", "h0003", "h0004", "h0001", "h0005", "h0002"]


def test_ranks_fill_all_hosts_by_default():
    fabric = emulated_fabric("2x2")
    assert rank_hosts(fabric) == list(fabric.hosts)
    assert rank_hosts(fabric, ranks=8) == [host for host in fabric.hosts for _ in range(2)]
    with pytest.raises(BenchmarkError, match="--order"):
        rank_hosts(fabric, order="sideways")


def test_hosts_with_different_numbers_of_ranks_take_them_by_turns():
    fabric = emulated_fabric("3x2")
    assert rank_hosts(fabric, ppn="3/1") == [h for h, n in zip(fabric.hosts, [3, 1] * 3, strict=True) for _ in range(n)]
    assert Counter(rank_hosts(fabric, ppn="3/1", order="random:1")) == dict(zip(fabric.hosts, [3, 1] * 3, strict=True))
    assert rank_hosts(fabric, ppn="2") == rank_hosts(fabric, ppn=2)


@pytest.mark.parametrize(
    ("ppn", "ranks", "order", "message"),
    [
        ("3/0", None, "block", "--ppn"),
        ("3/", None, "block", "--ppn"),
        ("0", None, "block", "--ppn"),
        ("3/1", None, "cyclic", "--order"),
        ("3/1", 11, "block", "-n"),
    ],
)
def test_wrong_numbers_of_ranks_per_host_are_named(ppn, ranks, order, message):
    with pytest.raises(BenchmarkError, match=message):
        rank_hosts(emulated_fabric("3x2"), ranks, ppn, order)


@pytest.mark.parametrize("spec", ["2x3", "3,4,1", "2x2x2"])
def test_coordinates_say_who_shares_a_leaf(spec, tmp_path):
    routes = emulated_routes(spec)
    hosts = rank_hosts(routes.fabric, ppn=2, order="random:5")
    path = tmp_path / "coordinates"
    path.write_text(coordinates(routes, hosts))
    read = load(path)
    theirs = TopologyInterface.place(list(read.rank_hosts), read.routes)
    ours = TopologyInterface.place(hosts, routes)

    def near(view, hops):
        return view.hop_matrix[np.ix_(view.rank_host, view.rank_host)] <= hops

    for hops in (0, 1):
        assert (near(theirs, hops) == near(ours, hops)).all()
    if spec.count("x") == 2:
        assert (near(theirs, 3) == near(ours, 3)).all()


def test_command_lines_name_agent_hosts_and_interfaces():
    state = NetworkRecord.make("lines", "1x2", ("h0000", "h0001"), owned=False)
    for name, peer in PEERS.items():
        words = command_line(Launch(["prog", "a b"], name, "/bin/mpirun", ["h0001", "h0000", "h0001"]), state)
        assert words[1:3] == [HEAD, "/bin/mpirun"]
        assert words[-4:] == ["-n", "3", "prog", "a b"]
        assert str(agent_path(state)) in words
        listed = words[words.index("--hostfile" if peer.vendor == "Open MPI" else "-f") + 1]
        assert Path(listed).read_text().split() == ["h0001", "h0000", "h0001"]
        assert "ctl0" in words
        assert "eth0" in words or peer.environment["UCX_NET_DEVICES"] == "eth0"
    assert PEERS["mpich"].environment["UCX_TLS"] == "tcp,self"
    state.forget()


def test_programs_are_told_from_modules(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: f"/elsewhere/{name}")
    assert program(["-m", "this"], "py") == ["py", "-m", "this"]
    assert program(["a/b.py", "x"], "py") == ["py", "a/b.py", "x"]
    assert program(["osu_like_bench", "bcast"], "py") == ["py", "-m", "osu_like_bench", "bcast"]
    assert program(["ls", "-l"], "py") == ["ls", "-l"]
    with pytest.raises(BenchmarkError, match="program"):
        program([], "py")


def test_the_agent_reads_its_words_as_ssh_does():
    state = NetworkRecord.make("agent", "1x1", ("h0000",), owned=False)
    write_agent(state, ["10.78.0.1"])
    (state.path / "enter").write_text('#!/bin/sh\necho "at $1"\nshift\nexec "$@"\n')  # without the host
    command = [str(agent_path(state)), "-x", "-T", "h0000", "A='one two';", 'echo "$A"', "|", "tr o 0"]
    said = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout
    assert said == "at h0000\n0ne tw0\n"
    state.forget()


# --- what is written down ---


def test_a_network_is_in_use_as_long_as_its_process_lives(tmp_path):
    NetworkRecord.make("mine", "1x1", ("h",), owned=True)
    NetworkRecord.make("lasting", "1x1", ("h",), owned=False)
    code = "from osu_like_bench.emulate.records import NetworkRecord; NetworkRecord.make('theirs', '1x1', ('h',), True)"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=60)
    assert {state.name: state.in_use for state in states()} == {"lasting": False, "mine": True, "theirs": False}
    with pytest.raises(BenchmarkError, match="mine"):
        NetworkRecord.make("mine", "1x1", ("h",), owned=False)
    for state in list(states()):
        state.forget()
    assert not list(states())


@pytest.mark.parametrize("name", ["", "a/b", ".hidden", "../x", "a b"])
def test_names_that_are_no_directory_are_refused(name):
    with pytest.raises(BenchmarkError, match="--name"):
        NetworkRecord.make(name, "1x1", ("h",), owned=False)


def test_no_two_networks_share_a_namespace():
    names = [NetworkRecord.make(f"n{number}", "1x2", ("a", "b"), owned=False).namespaces for number in range(20)]
    assert len(set().union(*names)) == 20 * 4
    for state in list(states()):
        state.forget()


def test_without_rights_or_programs_the_message_says_so(monkeypatch, capfd):
    from osu_like_bench.emulate.cli import main

    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert main(["up", "2x2"]) == 1
    assert "expecting root" in capfd.readouterr().err or shutil.which("tc") is None
    monkeypatch.setenv("PATH", "/nowhere")
    assert main(["up", "2x2"]) == 1
    assert "iproute2" in capfd.readouterr().err
    assert not list(states())


def test_wrong_usage_is_exit_code_2_and_one_line(capfd):
    from osu_like_bench.emulate.cli import main

    assert main(["run"]) == 2
    assert main(["sideways"]) == 2
    assert capfd.readouterr().err.count("\n") == 2


def test_the_closing_line_names_the_bottleneck():
    assert "is the bottleneck" in str(Usage(0.4, 0.9, 100))
    assert "may not be" in str(Usage(0.01, 0.3, 100))
    assert "no data" in str(Usage(None, 0.0, 0))
