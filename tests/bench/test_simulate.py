"""Simulated times against closed forms; refused and reported simulations of an arena."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from osu_like_bench.compare import SideTimes, compare_records
from osu_like_bench.compare import main as compare
from osu_like_bench.record import Record
from osu_like_bench.simulate import Background, Failure, FlowArena
from osu_like_bench.simulate.cli import main
from osu_like_bench.simulate.drawing import heights
from osu_like_bench.simulate.ground import Starts, complete
from osu_like_bench.simulate.table import Findings
from topompi.errors import BenchmarkError
from topompi.netsim import packets
from topompi.schedules import Model, Network, Schedule, make
from topompi.topology import TopologyInterface, load
from topompi.topology.computed import compute_routes
from topompi.views.network import network_of
from topompi.views.program import program_of
from topompi.views.tables import tables_of

RATE, LATENCY = 1e9, 1e-6  # of a link
TREE = "XGFT(2;2,2;1,1)"  # two leaf switches of two hosts under one switch, one cable each


def network(source: str = TREE, ppn: int = 1, hosts: list[int] | None = None) -> Network:
    """The network of a job on some hosts of a source, block by block; all links alike."""
    routes = load(source).routes
    names = [routes.fabric.hosts[host] for host in hosts or range(len(routes.fabric.hosts))]
    found = network_of(TopologyInterface.place([name for name in names for _ in range(ppn)], routes, virtual=True))
    links = len(found.capacity)
    return replace(found, capacity=np.full(links, RATE), latency=np.full(links, LATENCY))


def sends(size: int, *steps: list[tuple[int, int]]) -> Schedule:
    """Messages of one block, (source, destination), in steps; what they mean is of no matter here."""
    rows = [(step, s, d, 0, 0, 1, s, 1, 0) for step, pairs in enumerate(steps) for s, d in pairs]
    return Schedule.from_rows("alltoall", size, "by hand", np.array(rows))


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


def test_too_many_messages_are_left_out() -> None:
    with FlowArena(network(), most_messages=3) as here:
        found = here.time(make("alltoall", "shift", here.network), 8)
    assert found == Failure("left out: 12 transfers, more than 3")


@pytest.fixture
def run(monkeypatch, tmp_path: Path, capsys):
    """Runs the command in a folder of its own; returns exit code, output and errors."""
    monkeypatch.chdir(tmp_path)

    def command(*arguments: str) -> tuple[int, str, str]:
        code = main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return code, said.out, said.err

    return command


def test_what_is_drawn_are_multiples_of_the_bound_with_gaps() -> None:
    outcomes = {("a", 1): 2.0, ("a", 2): Failure("left out: x"), ("a", 4): 6.0}
    found = Findings((1, 2, 4), ("a",), (), outcomes, {1: 1.0, 2: 1.0, 4: 3.0})
    np.testing.assert_array_equal(heights(found, "a"), [2.0, np.nan, 2.0])
    unbounded = replace(found, bounds={1: 1.0, 2: 0.0, 4: 0.0})
    np.testing.assert_array_equal(heights(unbounded, "a"), [2e6, np.nan, 6e6])


def test_two_runs_print_and_write_the_same_and_what_is_said_is_in_the_record(run, tmp_path: Path) -> None:
    arguments = ["alltoall", "--topology", TREE, "--ppn", "2", "-m", "1K,64K", "--place", "random:3"]
    arguments += ["--peers", "openmpi"]
    arguments += ["-a", "shift,bruck", "--background", "alltoall:1M"]
    outs = [(*run(*arguments, "--json", "r.json", "--draw", "r.svg"), Path("r.json").read_bytes()) for _ in range(2)]
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


def test_every_collective_has_a_table(run) -> None:
    for collective, algorithms in (("reduce", "binomial"), ("allreduce", "ring,leaders"), ("fft", "all")):
        arguments = ["--topology", TREE, "--hosts", "4", "-m", "4K:8K", "-a", algorithms, "--peers", "openmpi"]
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
        (["bcast", "--topology", TREE, "--peers", "lam"], 1, "--peers: expecting one of openmpi, "),
        (["bcast", "--topology", TREE, "-m", "0"], 1, "-m: expecting a number of bytes"),
        (["bcast", "--topology", TREE, "-m", "8:4"], 1, "-m: expecting MIN <= MAX"),
        (["bcast", "--topology", TREE, "--hosts", "5"], 1, "--hosts: expecting 1 to 4 hosts"),
        (["bcast", "--topology", TREE, "--hosts", "nohost"], 1, "nohost"),
        (["bcast", "--topology", TREE, "--place", "odd"], 1, "--place: placement: expecting block, cyclic or random"),
        (["bcast", "--topology", TREE, "--root", "4"], 1, "--root: expecting a rank in range(4), got 4"),
        (["bcast", "--topology", TREE, "--background", "bcast:1"], 1, "--background: expecting alltoall:SIZE"),
        (["bcast", "--topology", TREE, "--network", "x"], 1, "--network: expecting one of flow, packet"),
        (["bcast", "--topology", TREE, "--system", "x"], 1, "--system: expecting one of stampede, ranger"),
        (["bcast", "--topology", TREE, "--draw", "x.pdf"], 1, "--draw: expecting a file name in .svg or .png"),
        (["bcast", "--topology", "nothing.txt"], 1, "nothing.txt"),
        (["bcast", "--topology", TREE, "--ppn", "0"], 2, "--ppn"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(run, arguments: list[str], code: int, words: str) -> None:
    found, out, err = run(*arguments)
    assert (found, out) == (code, "")
    (line,) = err.splitlines()
    assert line.startswith("osu_like_bench: simulate: ")
    assert words in line


def flows(capsys, *arguments: str) -> tuple[int, str, str]:
    code = main(["alltoall", "--topology", TREE, "--ppn", "2", "-m", "1K,64K", "-a", "shift,bruck", *arguments])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_flows_have_the_libraries_that_we_know(capsys, tmp_path: Path) -> None:
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


def test_messages_share_links_and_a_background_is_a_job() -> None:
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


# Records


def record(tmp_path: Path, **changes) -> str:
    facts = {
        "mpi": "flows", "versions": {}, "ranks": 2, "nodes": ["a", "b"], "hosts": ["a", "b"], "virtual": True,
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
    assert compare([str(path), str(path), "--side", "shift,near", "--draw", str(drawing)]) == 0
    assert "lower bound" in drawing.read_text()


def test_simulated_and_measured_times_are_not_compared_nor_unlike_backgrounds(tmp_path: Path) -> None:
    first = Record.from_json(record(tmp_path))
    for change, words in (({"arena": "mpirun"}, "arena"), ({"about": {"background": "alltoall:8"}}, "background")):
        second = Record.from_json(record(tmp_path, **change))
        chosen = [SideTimes.choose(name, one, "shift") for name, one in (("A", first), ("B", second))]
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
