"""Simulated times against closed forms; cached, refused and reported simulations of an arena."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from osu_like_bench.compare import Series, compare_records
from osu_like_bench.compare import main as compare
from osu_like_bench.record import Record
from osu_like_bench.simulate import Arena, Background, Failure, FlowArena, smpi
from osu_like_bench.simulate.cli import main
from osu_like_bench.simulate.drawing import heights, lines_of
from osu_like_bench.simulate.ground import Starts
from osu_like_bench.simulate.peers import Peer
from osu_like_bench.simulate.platform import complete, equal_shares, write_platform
from osu_like_bench.simulate.table import Findings
from tests.support import ROOT, examples, heed_interrupts
from topompi.errors import BenchmarkError
from topompi.inputs.figures import OTHERS, SERIES, name_ends
from topompi.netsim import packets
from topompi.schedules import Model, Network, Schedule, make
from topompi.topology import TopologyInterface, load
from topompi.topology.computed import compute_routes
from topompi.views.network import network_of
from topompi.views.program import program_of
from topompi.views.tables import tables_of

RATE, LATENCY = 1e9, 1e-6  # of a link
TREE = "XGFT(2;2,2;1,1)"  # two leaf switches of two hosts under one switch, one cable each
ENVELOPE = 16  # bytes that SimGrid adds to each message
LOOPBACK = (6.75e9, 0.19e-6)  # inside a host, as on Stampede
needs_simgrid = pytest.mark.skipif(
    shutil.which("smpirun") is None, reason="smpirun is not here (Debian: libsimgrid-dev): nothing is simulated"
)


def network(source: str = TREE, ppn: int = 1, hosts: list[int] | None = None) -> Network:
    """The network of a job on some hosts of a source, block by block; all links alike."""
    routes = load(source).routes
    names = [routes.fabric.hosts[host] for host in hosts or range(len(routes.fabric.hosts))]
    found = network_of(TopologyInterface.place([name for name in names for _ in range(ppn)], routes, virtual=True))
    links = len(found.capacity)
    return replace(found, capacity=np.full(links, RATE), latency=np.full(links, LATENCY))


def arena(found: Network, **settings_) -> Arena:
    return Arena(found, **{"cache": None, **settings_})


def sends(size: int, *steps: list[tuple[int, int]]) -> Schedule:
    """Messages of one block, (source, destination), in steps; what they mean is of no matter here."""
    rows = [(step, s, d, 0, 0, 1, s, 1, 0) for step, pairs in enumerate(steps) for s, d in pairs]
    return Schedule.from_rows("alltoall", size, "by hand", np.array(rows))


def message(nbytes: int, links: int) -> float:
    return links * LATENCY + (nbytes + ENVELOPE) / RATE


def inside(nbytes: int) -> float:
    return LOOPBACK[1] + (nbytes + ENVELOPE) / LOOPBACK[0]


# Closed forms


@needs_simgrid
@pytest.mark.parametrize("nbytes", [1, 1000, 10**6])
def test_one_message_takes_the_latency_of_its_links_and_its_bytes_over_the_rate(nbytes: int) -> None:
    with arena(network()) as here:
        assert here.time(sends(4, [(0, 1)]), nbytes) == pytest.approx(message(nbytes, 2), abs=2e-9)
        assert here.time(sends(4, [(0, 3)]), nbytes) == pytest.approx(message(nbytes, 4), abs=2e-9)


@needs_simgrid
def test_ranks_without_a_message_do_not_end_the_simulation() -> None:
    with arena(network()) as here:
        assert here.time(sends(4, [(2, 3)]), 1000) == pytest.approx(message(1000, 2), abs=2e-9)


@needs_simgrid
def test_two_messages_that_share_a_link_take_twice_the_bytes() -> None:
    with arena(network()) as here:
        shared = 4 * LATENCY + 2 * (10**6 + ENVELOPE) / RATE
        assert here.time(sends(4, [(0, 2), (1, 3)]), 10**6) == pytest.approx(shared, abs=2e-9)
        # The other direction of a cable is another link.
        assert here.time(sends(4, [(0, 2), (3, 1)]), 10**6) == pytest.approx(message(10**6, 4), abs=2e-9)


@needs_simgrid
def test_a_link_is_shared_equally_by_messages_from_near_and_far() -> None:
    nbytes = 10**6
    # 3 -> 2 is alone for 2 us, then shares the link to 2 with 0 -> 2; only after that 3 -> 1 begins.
    near = 4 * LATENCY + 2 * (nbytes + ENVELOPE - 2 * LATENCY * RATE) / RATE
    with arena(network()) as here:
        found = here.time(sends(4, [(0, 2), (3, 2)], [(3, 1)]), nbytes)
    assert found == pytest.approx(near + message(nbytes, 4), rel=1e-5)


@needs_simgrid
def test_a_chain_takes_its_steps_one_after_the_other() -> None:
    with arena(network()) as here:
        chained = 2 * message(10**5, 2) + message(10**5, 4)
        assert here.time(sends(4, [(0, 1)], [(1, 2)], [(2, 3)]), 10**5) == pytest.approx(chained, abs=5e-9)
        piped = here.time(make("bcast", "chain", here.network, blocks=3), 10**5)
        # Blocks follow one another along the chain: hops + blocks - 1 rounds, in which the longest message counts.
        assert 3 * message(10**5, 2) < piped <= 5 * message(10**5, 4) + 5e-9


@needs_simgrid
def test_ranks_of_a_host_share_its_link_and_talk_inside_it_by_the_loopback() -> None:
    with arena(network(ppn=2)) as here:
        assert here.time(sends(8, [(0, 1)]), 10**6) == pytest.approx(inside(10**6), abs=2e-9)
        both = 2 * message(10**6, 1)
        assert here.time(sends(8, [(0, 2), (1, 3)]), 10**6) == pytest.approx(both, abs=2e-9)


@needs_simgrid
@pytest.mark.parametrize("selector", ["mvapich2", "mpich", "ompi", "impi"])
def test_a_peer_takes_its_messages_and_not_what_sets_up_the_communicator(selector: str) -> None:
    with arena(network(hosts=[0, 1])) as here:
        assert here.peer(selector, "bcast", 1000) == pytest.approx(message(1000, 2), abs=5e-9)
    with arena(network(hosts=[0, 1], ppn=2)) as here:
        # Binomial: to the other host, and then inside both; ompi's sends to both ranks of the other host.
        both = message(1000, 2) + (1000 + ENVELOPE) / RATE * (selector == "ompi")
        assert here.peer(selector, "bcast", 1000) == pytest.approx(both + inside(1000), abs=5e-9)


@needs_simgrid
@pytest.mark.parametrize("collective", ["gather", "scatter", "allgather", "reduce_scatter", "alltoall"])
def test_peers_of_every_collective_move_all_data(collective: str) -> None:
    with arena(network("XGFT(2;3,3;1,2)")) as here:
        least = here.bound(collective, 10**5)
        for selector in ("mvapich2", "ompi"):
            assert least < here.peer(selector, collective, 10**5) < 10 * least


@needs_simgrid
def test_two_level_peers_find_the_communicator_set_up() -> None:
    # SimGrid 3.32 aborts where a gather of two levels is the first collective.
    with arena(network("XGFT(2;4,4;1,4)", ppn=2)) as here:
        assert isinstance(here.peer("impi", "gather", 1024), float)


@needs_simgrid
def test_a_background_takes_half_of_a_link_or_what_it_can() -> None:
    found = network(hosts=[0, 1])
    for nbytes, left in ((10**9, 0.5), (1000, 1 - 1 / 3)):  # alone 1,000 bytes take 2 us and 1 us: a third of the link
        with arena(found, background=Background(nbytes)) as here:
            seconds = here.time(sends(2, [(0, 1)]), 10**6)
            assert seconds == pytest.approx(2 * LATENCY + (10**6 + ENVELOPE) / (left * RATE), rel=1e-5)
            assert here.bound("bcast", 10**6) == pytest.approx(10**6 / (left * RATE))


@needs_simgrid
def test_the_model_of_simgrid_is_slower_by_its_factors() -> None:
    with arena(network(), model="smpi") as here:
        assert 1.05 < here.time(sends(4, [(0, 1)]), 10**6) / message(10**6, 2) < 1.15


@needs_simgrid
def test_small_sends_that_are_eager_do_not_wait() -> None:
    # 0 sends to 1, which first receives from 3; then 0 sends to 2.
    steps = sends(4, [(3, 1)], [(0, 1)], [(0, 2)])
    waiting, eager = (arena(network(), eager=limit) for limit in (0, 1000))
    with waiting, eager:
        assert waiting.time(steps, 100) == pytest.approx(2 * message(100, 4) + message(100, 2), abs=5e-9)
        assert eager.time(steps, 100) < waiting.time(steps, 100) - message(100, 2)


# The platform


def routes_of(path: Path) -> dict[tuple[int, int], list[str]]:
    """Links of each route of a platform's file."""
    routes = ElementTree.parse(path).getroot().iter("route")
    found = {}
    for route in routes:
        ends = int(route.attrib["src"][1:]), int(route.attrib["dst"][1:])
        found[ends] = [link.attrib["id"] for link in route.iter("link_ctn")]
    return found


@pytest.mark.parametrize("hosts", [None, [5, 0, 3, 9, 2]])
def test_routes_of_the_platform_are_those_of_the_fabric(tmp_path: Path, hosts: list[int] | None) -> None:
    fabric = load("XGFT(3;2,3,2;1,2,1)").routes
    names = [fabric.fabric.hosts[host] for host in hosts or range(len(fabric.fabric.hosts))]
    interface = TopologyInterface.place(names, fabric)
    found = complete(network_of(interface))
    write_platform(found, tmp_path / "p.xml", LOOPBACK)
    written = routes_of(tmp_path / "p.xml")
    paths = interface.host_routes.paths()
    assert len(written) == len(names) ** 2
    for (source, destination), links in written.items():
        path = [f"l{link}" for link in paths[source, destination] if link >= 0]
        assert [link for link in links if link.startswith("l") and not link.startswith("loop")] == path
        assert (source == destination) == (links == [f"loop{source}"])
        own = [link for link in links if link.startswith("p")]
        assert all(link.startswith(f"p{source}k") for link in own)


@examples(60)
@given(st.integers(0, 10**6), st.integers(2, 5), st.integers(1, 4))
def test_links_of_its_own_make_each_route_weigh_the_same_and_slow_none(seed: int, hosts: int, longest: int) -> None:
    generator = np.random.default_rng(seed)
    links = generator.integers(0, 9, (hosts, hosts, longest))
    length = generator.integers(1, longest + 1, (hosts, hosts))
    np.fill_diagonal(length, 0)
    links[np.arange(longest) >= length[:, :, None]] = -1
    capacity = generator.choice([1e9, 2e9, 5e9, 6.75e9], 9)
    clusters = np.zeros((1, hosts), dtype=np.int64)
    found = Network(np.arange(hosts), (links >= 0).sum(axis=2), links, capacity, clusters, np.zeros(9))
    kind, rate, count = equal_shares(found)
    inverse = np.where(links >= 0, 1 / capacity[links], 0)
    weight, slowest = inverse.sum(axis=2), inverse.max(axis=2)
    assert (rate[kind[kind >= 0]] > 0).all()
    each = np.zeros_like(weight)
    each[kind >= 0] = 1 / rate[kind[kind >= 0]]
    own = each * count[kind]
    apart = length > 0
    assert (weight + own)[apart] == pytest.approx(weight.max(), rel=1e-6)
    assert (each <= slowest * (1 + 1e-6))[apart].all()


@pytest.mark.parametrize(("system", "error"), [("stampede", 0.018), ("ranger", 0.07)])
def test_unknown_latencies_are_those_of_the_reference(system: str, error: float) -> None:
    found = network("XGFT(3;2,2,2;1,1,1)")
    found = complete(replace(found, latency=np.full(len(found.latency), np.nan)), system)
    table = dict(zip(Model.preset(system).hops, Model.preset(system).t_s, strict=True))
    for destination, hops in ((1, 1), (2, 3), (7, 5)):
        links = found.links[0, destination]
        assert found.latency[links[links >= 0]].sum() == pytest.approx(table[hops], rel=error)


def test_known_latencies_and_rates_stay() -> None:
    found = network()
    found.latency[3] = np.nan
    whole = complete(found)
    assert (whole.capacity == RATE).all()
    assert (whole.latency[np.arange(len(whole.latency)) != 3] == LATENCY).all()
    assert whole.latency[3] > 0
    unknown = complete(replace(found, capacity=np.ones(len(found.capacity))))
    assert unknown.capacity == pytest.approx(6.75e9)


# What fails, and what is kept

FAKE = """#!/bin/sh
[ "$1" = -version ] && echo "SimGrid version 3.32" && exit 0
{body}
"""


@pytest.fixture
def pretend(tmp_path: Path, monkeypatch):
    """Puts a script in the place of smpirun; what it does is the test's."""

    def script(body: str) -> None:
        (tmp_path / "bin").mkdir(exist_ok=True)
        program = tmp_path / "bin" / "smpirun"
        program.write_text(FAKE.format(body=body))
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
        smpi.version.cache_clear()

    yield script
    smpi.version.cache_clear()


CRASH = 'echo "[0.0] x.cpp:48: [xbt/CRITICAL] Uncaught exception: odd number of ranks"; exit 134'
DONE = 'echo "[0.0] [smpi_replay/INFO] Simulation time 5.0"'


def test_a_crash_is_told_with_its_reason(pretend) -> None:
    pretend(CRASH)
    with arena(network()) as here:
        reason = "crashed: Uncaught exception: odd number of ranks (exit code 134)"
        assert here.peer("ompi", "alltoall", 8) == Failure(reason)
        assert here.time(sends(4, [(0, 1)]), 8) == Failure(reason)
        assert here.best_peer("alltoall", 8) is None


def test_a_peer_faster_than_the_bound_is_a_failure(pretend) -> None:
    ends = "; ".join(f'echo "[h:{r}:(1) 0.5] [smpi_replay/VERBOSE] x"' for r in range(4))
    pretend(f'{ends}; echo "Simulation time 0.501001"')
    with arena(network()) as here:
        assert here.peer("ompi", "alltoall", 10**6).reason.startswith("impossible: 0.00 us, ")


def test_a_result_is_found_again_without_the_simulator_and_a_crash_is_not_kept(pretend, tmp_path: Path) -> None:
    pretend(DONE)
    schedule = sends(4, [(0, 1)])
    with arena(network(), cache=tmp_path / "kept") as here:
        assert here.time(schedule, 8) == 5e-3
    pretend(CRASH)
    with arena(network(), cache=tmp_path / "kept") as here:
        assert here.time(schedule, 8) == 5e-3
        for other in (here.time(schedule, 9), here.time(sends(4, [(1, 0)]), 8), here.peer("ompi", "bcast", 8)):
            assert other.reason.startswith("crashed")
    pretend(DONE)
    with arena(network(), cache=tmp_path / "kept") as here:
        assert here.time(schedule, 9) == 5e-3
    pretend(CRASH)
    for changed in ({"background": Background(9)}, {"eager": 5}, {"model": "smpi"}):
        with arena(network(), cache=tmp_path / "kept", **changed) as here:
            assert isinstance(here.time(schedule, 8), Failure)
    slower = replace(network(), latency=np.full(len(network().latency), 2e-6))
    with arena(slower, cache=tmp_path / "kept") as here:
        assert isinstance(here.time(schedule, 8), Failure)
    pretend("exit 1")
    with arena(network(), cache=tmp_path / "kept") as here:
        assert here.time(schedule, 9) == 5e-3


def test_a_torn_file_of_the_cache_is_no_result(pretend, tmp_path: Path) -> None:
    pretend(DONE)
    with arena(network(), cache=tmp_path / "kept") as here:
        here.time(sends(4, [(0, 1)]), 8)
        (kept,) = (tmp_path / "kept").iterdir()
        kept.write_text("{")
        assert here.time(sends(4, [(0, 1)]), 8) == 5e-3


def outlives(marker: str) -> bool:
    """Whether a process with these words in its command line stays: the kernel takes a while to remove a killed one."""
    until = time.monotonic() + 20
    while running(marker) and time.monotonic() < until:
        time.sleep(0.01)
    return running(marker)


def running(marker: str) -> bool:
    """Whether there is a process with these words in its command line."""
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if marker.encode() in process.read_bytes():
                return True
        except OSError:
            continue
    return False


def test_a_time_limit_ends_the_simulator_and_what_it_started(pretend, tmp_path: Path) -> None:
    pretend("sleep 61.7531 & wait")
    with arena(network(), timeout=0.5, cache=tmp_path / "kept") as here:
        assert here.time(sends(4, [(0, 1)]), 8) == Failure("time limit of 0.5 s")
        assert not outlives("61.7531")
    pretend(DONE)
    with arena(network(), cache=tmp_path / "kept") as here:
        assert here.time(sends(4, [(0, 1)]), 8) == 5e-3


def test_too_many_messages_are_left_out() -> None:
    with arena(network(), most_messages=3) as here:
        found = here.time(make("alltoall", "shift", here.network), 8)
    assert found == Failure("left out: 12 transfers, more than 3")


@pytest.mark.parametrize(("collective", "nbytes"), [("fft", 8), ("alltoall", 0), ("bcast", 2**31)])
def test_what_no_peer_can_do_is_refused(collective: str, nbytes: int) -> None:
    with pytest.raises(BenchmarkError, match="simulate: expecting"):
        Peer(collective, 4, nbytes, 0)


# The command


@pytest.fixture
def run(monkeypatch, tmp_path: Path, capsys):
    """Runs the command with a cache of its own, on SimGrid; returns exit code, output and errors."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.chdir(tmp_path)

    def command(*arguments: str) -> tuple[int, str, str]:
        code = main(["--network", "simgrid", *(str(argument) for argument in arguments)])
        said = capsys.readouterr()
        return code, said.out, said.err

    return command


def test_the_table_has_all_sides_and_names_who_crashed(pretend, run, tmp_path: Path) -> None:
    listed = '"$(sed -n 1p "$(eval echo $11)")"'  # the first trace of the list
    pretend(f'case "$*" in *selector:ompi*) {CRASH};; *selector*) exit 7;; esac; test -s {listed}; {DONE}')
    code, out, err = run("alltoall", "--topology", TREE, "-m", "1K,64K", "--algorithm", "shift,pairwise", "--json", "a")
    assert (code, err) == (0, "")
    head, *rows = [line for line in out.splitlines() if not line.startswith("# ") or line.startswith("# Size")]
    assert head.split()[2:8] == ["shift", "pairwise", "mvapich2", "mpich", "ompi", "impi"]
    assert [row.split()[:7] for row in rows] == [
        [size, "5000.00", "5000.00", *["crashed"] * 4] for size in ("1024", "65536")
    ]
    assert all(row.split()[-3:] == ["-", "-", "-"] for row in rows), "there is no best peer"
    assert "# ompi at 1024 bytes: crashed: Uncaught exception: odd number of ranks (exit code 134)" in out
    record = Record.from_json((tmp_path / "a").read_text())
    assert record.facts.arena == "simulate"
    assert len(record.facts.about["failures"]) == 8
    assert {result.side for result in record.results} == {"shift", "pairwise", "bound"}


def test_a_simulator_that_only_crashes_is_an_error_and_nothing_is_drawn(pretend, run, tmp_path: Path) -> None:
    pretend(CRASH)
    arguments = ["alltoall", "--topology", TREE, "-m", "1K", "-a", "shift", "--plot", "x.svg"]
    code, out, err = run(*arguments)
    assert code == 1
    assert "# shift at 1024 bytes: crashed" in out
    assert err.startswith("osu_like_bench: simulate: expecting a time of every simulation, got crashes")
    assert not (tmp_path / "x.svg").exists()
    pretend(f'case "$*" in *selector*) {CRASH};; esac; {DONE}')
    assert run(*arguments)[0] == 0, "a peer's crash is the peer's"
    assert (tmp_path / "x.svg").exists()


def test_what_is_drawn_are_multiples_of_the_bound_with_gaps() -> None:
    outcomes = {("a", 1): 2.0, ("a", 2): Failure("crashed: x"), ("a", 4): 6.0}
    found = Findings((1, 2, 4), ("a",), (), outcomes, {1: 1.0, 2: 1.0, 4: 3.0})
    np.testing.assert_array_equal(heights(found, "a"), [2.0, np.nan, 2.0])
    unbounded = replace(found, bounds={1: 1.0, 2: 0.0, 4: 0.0})
    np.testing.assert_array_equal(heights(unbounded, "a"), [2e6, np.nan, 6e6])


def test_six_lines_have_colours_further_ones_are_grey_and_equal_ones_are_one() -> None:
    sides = tuple(f"a{at}" for at in range(9))
    outcomes = {(side, size): size * (1.0 + min(at, 7)) for at, side in enumerate(sides) for size in (1, 2)}
    outcomes |= {("peer", size): 1.0 * size for size in (1, 2)}
    lines = lines_of(Findings((1, 2), sides, ("peer",), outcomes, {1: 1.0, 2: 2.0}))
    looks = {names[0]: look["color"] for names, _, look in lines}
    assert [looks[f"a{at}"] for at in range(6)] == list(SERIES)
    assert looks["a6"] == looks["a7"] == OTHERS
    assert ["a7", "a8"] in [names for names, _, _ in lines]
    assert looks["peer"] == "black"


def test_names_at_the_ends_of_lines_do_not_overlap() -> None:
    figure = pytest.importorskip("matplotlib.figure").Figure()
    axes = figure.subplots()
    axes.set(xlim=(0, 1), ylim=(0, 1))
    name_ends(axes, [(1, 0.5 + at / 1000, f"n{at}", "black") for at in range(20)])
    places = sorted(text.xyann[1] for text in axes.texts)
    assert min(np.diff(places)) > 0.033
    assert places[-1] <= 1


@needs_simgrid
def test_two_runs_print_and_write_the_same_and_what_is_said_is_in_the_record(run, tmp_path: Path) -> None:
    arguments = ["alltoall", "--topology", TREE, "--ppn", "2", "-m", "1K,64K", "--place", "random:3", "--no-cache"]
    arguments += ["--peers", "ompi"]
    arguments += ["-a", "shift,bruck", "--background", "alltoall:1M"]
    outs = [(*run(*arguments, "--json", "r.json", "--plot", "r.svg"), Path("r.json").read_bytes()) for _ in range(2)]
    assert outs[0] == outs[1]
    code, out, _, content = outs[0]
    assert code == 0
    assert "background: alltoall:1M" in out
    record = Record.from_json(content.decode())
    assert record.facts.about["background"] == "alltoall:1M"
    assert {len(result.samples) for result in record.results} == {1}
    shift = {result.size: result.average for result in record.results if result.side == "shift"}
    rows = [line.split() for line in out.splitlines() if line[:1].isdigit()]
    assert [row[:2] for row in rows] == [[str(size), f"{seconds * 1e6:.2f}"] for size, seconds in shift.items()]
    assert Path("r.svg").read_text().count("lower bound") == 1


@needs_simgrid
def test_every_collective_has_a_table(run) -> None:
    for collective, algorithms in (("reduce", "binomial"), ("allreduce", "ring,leaders"), ("fft", "all")):
        arguments = ["--topology", TREE, "--hosts", "4", "-m", "4K:8K", "-a", algorithms, "--peers", "ompi"]
        code, out, err = run(collective, *arguments)
        assert (code, err) == (0, ""), collective
        rows = [line.split() for line in out.splitlines() if line[:1].isdigit()]
        assert [row[0] for row in rows] == ["4096", "8192"]
        assert not re.search(r"\bnan\b|inf", out)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["alltoall"], 2, "--topology"),
        (["fly", "--topology", TREE], 1, "COLLECTIVE: expecting one of bcast, "),
        (["bcast", "--topology", TREE, "-a", "shift"], 1, "--algorithm: expecting an algorithm for bcast of "),
        (["bcast", "--topology", TREE, "--peers", "lam"], 1, "--peers: expecting one of mvapich2, mpich, ompi, impi"),
        (["bcast", "--topology", TREE, "-m", "0"], 1, "-m: expecting a number of bytes"),
        (["bcast", "--topology", TREE, "-m", "8:4"], 1, "-m: expecting MIN <= MAX"),
        (["bcast", "--topology", TREE, "--hosts", "5"], 1, "--hosts: expecting 1 to 4 hosts"),
        (["bcast", "--topology", TREE, "--hosts", "nohost"], 1, "nohost"),
        (["bcast", "--topology", TREE, "--place", "odd"], 1, "--place: placement: expecting block, cyclic or random"),
        (["bcast", "--topology", TREE, "--root", "4"], 1, "--root: expecting a rank in range(4), got 4"),
        (["bcast", "--topology", TREE, "--background", "bcast:1"], 1, "--background: expecting alltoall:SIZE"),
        (["bcast", "--topology", TREE, "--model", "x"], 1, "--model: expecting one of flow, smpi"),
        (["bcast", "--topology", TREE, "--system", "x"], 1, "--system: expecting one of stampede, ranger"),
        (["bcast", "--topology", TREE, "--plot", "x.pdf"], 1, "--plot: expecting a file name in .svg or .png"),
        (["bcast", "--topology", "nothing.txt"], 1, "nothing.txt"),
        (["bcast", "--topology", TREE, "--ppn", "0"], 2, "--ppn"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(pretend, run, arguments: list[str], code: int, words: str) -> None:
    pretend(CRASH)
    found, out, err = run(*arguments)
    assert (found, out) == (code, "")
    (line,) = err.splitlines()
    assert line.startswith("osu_like_bench: simulate: ")
    assert words in line


def test_without_simgrid_the_package_is_named(run, monkeypatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    smpi.version.cache_clear()
    code, out, err = run("bcast", "--topology", TREE)
    smpi.version.cache_clear()
    assert (code, out) == (1, "")
    assert "Debian has it in libsimgrid-dev" in err


# On flows of our own


def flows(capsys, *arguments: str) -> tuple[int, str, str]:
    code = main(["alltoall", "--topology", TREE, "--ppn", "2", "-m", "1K,64K", "-a", "shift,bruck", *arguments])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_flows_need_no_simgrid_and_have_the_libraries_that_we_know(monkeypatch, capsys, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    code, out, err = flows(capsys, "--json", str(tmp_path / "r.json"), "--seeds", "3")
    assert (code, err) == (0, "")
    head, *rows = [line.split() for line in out.splitlines() if line.startswith("# Size") or line[:1].isdigit()]
    assert head[2:6] == ["shift", "bruck", "openmpi", "mpich"]
    assert all(float(cell) > 0 for row in rows for cell in row[1:6])
    record = Record.from_json((tmp_path / "r.json").read_text())
    assert record.facts.mpi.endswith("flows")
    starts = {(one.side, one.size): one.samples for one in record.results if one.side != "bound"}
    assert {len(samples) for samples in starts.values()} == {3}
    least, most = (end(starts["shift", 1024]) * 1e6 for end in (min, max))
    assert least < most
    assert f"# shift at 1024 bytes: {least:.2f} to {most:.2f} over 3 starts" in out
    assert flows(capsys, "--seeds", "3")[1] == out
    code, out, err = flows(capsys, "--model", "smpi")
    assert (code, out) == (1, "")
    assert "--model: expecting --network simgrid with it, got flow" in err


@pytest.mark.parametrize(
    ("collective", "names", "messages"),
    [("bcast", ["chain", "chain/8K", "chain/1K"], 3 * 64), ("alltoall", ["shift", "shift/64K", "shift/1K"], 64 * 12)],
)
def test_a_name_may_say_how_long_messages_are(capsys, collective: str, names: list[str], messages: int) -> None:
    """A chain divides 64 KiB into 8 blocks by itself, and an alltoall leaves blocks whole."""
    words = [collective, "--topology", TREE, "-m", "64K", "--peers", "none", "-a", ",".join(names)]
    assert main(words) == 0
    head, times = (line.split() for line in capsys.readouterr().out.splitlines()[-2:])
    assert head[2:5] == names
    assert times[1] == times[2]
    for most, left in ((messages - 1, True), (messages, False)):
        assert main([*words, "--most-messages", str(most)]) == 0
        said = f"{names[-1]} at 65536 bytes: left out: {messages} transfers, more than {most}"
        assert (said in capsys.readouterr().out) == left


def test_traces_have_no_parts_of_transfers() -> None:
    found = arena(network()).time(make("alltoall", "shift", network()), 1 << 16, 8)
    assert found == Failure("left out: traces have no transfers whose parts travel by themselves")


def test_flows_take_a_message_as_simgrid_does_and_a_background_is_a_job() -> None:
    steps, nbytes = sends(4, [(0, 2), (1, 3)]), 10**6
    with FlowArena(network()) as alone, FlowArena(network(), background=Background(10**8)) as beside:
        assert alone.time(steps, nbytes) == pytest.approx(4 * LATENCY + 2 * nbytes / RATE)
        assert alone.bound("bcast", nbytes) == beside.bound("bcast", nbytes) == pytest.approx(nbytes / RATE)
        # The other job begins with 0 -> 1, 1 -> 2, 2 -> 3, 3 -> 0: on the cable up there are three flows.
        assert beside.time(steps, nbytes) == pytest.approx(4 * LATENCY + 3 * nbytes / RATE, rel=5e-3)


def test_packets_take_what_flows_do_without_contention_and_more_behind_a_blocked_message(capsys) -> None:
    source = "XGFT(2;5,2;1,1)"  # five hosts at each of two switches, one cable between these
    job, routes, nbytes = network(source), load(source).routes, 10**7
    job.capacity[job.links[0, 5][1:3]] = 5 * RATE  # so that host 5 is what is slow
    with FlowArena(job) as flows_, FlowArena(job, routes=routes) as packets_:
        alone, shared = sends(10, [(0, 5)]), sends(10, [(0, 5), (1, 5)])
        assert packets_.time(alone, nbytes) == pytest.approx(flows_.time(alone, nbytes), rel=0.01)
        assert packets_.time(shared, nbytes) == pytest.approx(flows_.time(shared, nbytes), rel=0.01)
        # Four send to host 5, and one sends four times as much to host 6, over the same cable.
        victim = sends(10, [(0, 5), (1, 5), (2, 5), (3, 5), (4, 6)], *[[(4, 6)]] * 3)
        assert flows_.time(victim, nbytes) == pytest.approx(4 * nbytes / RATE, rel=0.01)
        assert packets_.time(victim, nbytes) > 1.5 * flows_.time(victim, nbytes)
        assert packets_.bound("alltoall", nbytes) == flows_.bound("alltoall", nbytes)
    code, out, err = flows(capsys, "--network", "packet", "--seeds", "1", "--background", "alltoall:4K")
    assert (code, err) == (0, "")
    assert "packets as on FDR switches, median of 1 starts" in out
    rows = [line.split() for line in out.splitlines() if line[:1].isdigit()]
    assert all(float(cell) > 0 for row in rows for cell in row[1:6])


def test_packets_of_the_command_take_the_times_of_the_preset() -> None:
    """The wires' latency is the preset's: the hosts' part of a message's latency is their processors'."""
    fabric = compute_routes(load("XGFT(2; 20,16; 1,16)@rate=4xFDR").fabric)
    interface = TopologyInterface.place(list(fabric.fabric.hosts[:64]), fabric)
    job = network_of(interface)
    pairwise, fdr = make("alltoall", "pairwise", job), packets.PRESETS["fdr"]
    with FlowArena(job, routes=interface.routes, seeds=1) as arena:
        found, bound = arena.time(pairwise, 65536), arena.bound("alltoall", 65536)
        assert "latencies as on FDR wires, packets as on FDR switches" in arena.describe()
    program = program_of(pairwise, job, 65536)
    tables = tables_of(interface.routes, latency=fdr.latency)
    assert found == packets.run(tables, [program], hosts=fdr.hosts, settings=fdr.settings).job_seconds[0]
    assert found / bound == pytest.approx(1.44, abs=0.05)  # docs/lab/checks.md; each seed has its own time


def test_packets_bracket_their_times_with_other_switches(capsys, tmp_path: Path) -> None:
    source = "XGFT(2;4,4;1,2)"
    job = network(source)
    with FlowArena(job, routes=load(source).routes, bracket=True) as arena:
        found = arena.time(make("alltoall", "at_once", job), 65536)
    assert isinstance(found, Starts)
    assert set(found.bracket) == {"16 KiB a port", "one queue an input"}
    assert found.bracket["one queue an input"] > 1.05 * found  # what stands behind a blocked head waits with it
    code, out, err = flows(capsys, "--network", "packet", "--bracket", "--json", str(tmp_path / "r.json"))
    assert (code, err) == (0, "")
    bracket = Record.from_json((tmp_path / "r.json").read_text()).facts.about["bracket"]["shift 1024"]
    times = ", ".join(f"{seconds * 1e6:.2f} with {switches}" for switches, seconds in bracket.items())
    assert f"# shift at 1024 bytes: {times}" in out
    assert "--bracket: expecting --network packet" in flows(capsys, "--bracket")[2]


@pytest.mark.parametrize("collective", ["bcast", "gather", "scatter", "allgather", "reduce_scatter", "allreduce"])
def test_libraries_on_flows_move_all_data(collective: str) -> None:
    with FlowArena(network("XGFT(2;3,3;1,2)")) as here:
        least = here.bound(collective, 10**5)
        for library in ("openmpi", "mpich"):
            assert least <= here.peer(library, collective, 10**5) < 10 * least


WITHOUT_MPI = """
import runpy, sys
sys.modules["mpi4py"] = None
runpy.run_module("osu_like_bench", run_name="__main__")
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_the_simulators_and_no_mpi_is_needed(pretend, tmp_path: Path, number: int) -> None:
    marker = f"62.{number}{os.getpid()}"
    pretend(f"sleep {marker} & wait")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(tmp_path)}
    command = [sys.executable, "-c", WITHOUT_MPI, "simulate", "bcast", "--topology", TREE]
    command += ["--network", "simgrid"]
    with subprocess.Popen(
        command, env=environment, stderr=subprocess.PIPE, text=True, preexec_fn=heed_interrupts
    ) as job:
        deadline = time.monotonic() + 30
        while not running(f"sleep\0{marker}") and time.monotonic() < deadline:
            time.sleep(0.05)
        job.send_signal(number)
        try:
            _, err = job.communicate(timeout=30)
        finally:
            job.kill()
    assert job.returncode == 128 + number
    assert "Traceback" not in err
    assert not outlives(f"sleep\0{marker}")


# Records


def record(tmp_path: Path, **changes) -> str:
    facts = {
        "mpi": "SimGrid 3.32", "versions": {}, "ranks": 2, "nodes": ["a", "b"], "hosts": ["a", "b"], "virtual": True,
        "topology": TREE, "description": "", "affinity": [], "cpu": "", "cpus": 0, "load": [], "oversubscribed": False,
        "date": "", "arena": "simulate", "about": {"background": "none"},
    }  # fmt: skip
    times = {"shift": 1e-3, "mvapich2": 1.2e-3, "bound": 0.9e-3, "near": 1.001e-3}
    results = [
        {"size": 8, "side": side, "average": s, "minimum": s, "maximum": s, "valid": None, "samples": [s]}
        for side, s in times.items()
    ]
    head = {"format": "osu_like_bench record", "version": 1, "options": {"benchmark": "alltoall"}}
    return json.dumps({**head, "facts": {**facts, **changes}, "results": results})


def test_sides_of_a_simulated_record_are_compared_exactly(tmp_path: Path, capsys) -> None:
    path = tmp_path / "a.json"
    path.write_text(record(tmp_path))
    for sides, verdict in (
        ("shift,mvapich2", "1.20x faster"),
        ("mvapich2,shift", "1.20x slower"),
        ("shift,near", "alike"),
    ):
        assert compare([str(path), str(path), "--side", sides]) == 0
        out = capsys.readouterr().out
        assert out.splitlines()[-1].endswith(verdict), out
        assert "Few" not in out
    assert compare([str(path), str(path)]) == 1
    assert "expecting a side in ['bound', 'mvapich2', 'near', 'shift'], got 'topompi'" in capsys.readouterr().err
    drawing = tmp_path / "x.svg"
    assert compare([str(path), str(path), "--side", "shift,near", "--plot", str(drawing)]) == 0
    assert "lower bound" in drawing.read_text()


def test_simulated_and_measured_times_are_not_compared_nor_unlike_backgrounds(tmp_path: Path) -> None:
    first = Record.from_json(record(tmp_path))
    for change, words in (({"arena": "mpirun"}, "arena"), ({"about": {"background": "alltoall:8"}}, "background")):
        second = Record.from_json(record(tmp_path, **change))
        chosen = [Series.choose(name, one, "shift") for name, one in (("A", first), ("B", second))]
        with pytest.raises(BenchmarkError, match=words):
            compare_records(*chosen)


def test_a_record_from_before_there_were_arenas_is_read(tmp_path: Path) -> None:
    old = json.loads(record(tmp_path))
    del old["facts"]["arena"], old["facts"]["about"]
    found = Record.from_json(json.dumps(old))
    assert (found.facts.arena, found.facts.about) == ("mpirun", {})
    del old["facts"]["mpi"]
    with pytest.raises(BenchmarkError, match="record: facts: expecting the fields"):
        Record.from_json(json.dumps(old))
