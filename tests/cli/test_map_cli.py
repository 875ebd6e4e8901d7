"""``topompi map`` as a user runs it: its numbers against sums by hand, its files against their readers."""

import json
import re
from functools import partial
from itertools import product
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import examples
from topompi.cli.map.place import MapCommandError
from topompi.inputs.slurm.environment import parse_slots
from topompi.mapping.drawing import MOST_CELLS, traffic
from topompi.mapping.graph import CommunicationGraph
from topompi.mapping.machine import Machine
from topompi.mapping.mapping import Mapping
from topompi.mapping.rankfiles import read_mapping
from topompi.mapping.readers.jsonprofile import write_graph
from topompi.topology import load

FABRIC = "XGFT(2; 4,4; 1,2)"  # 4 leaf switches of 4 hosts h0 ..., 2 switches above
TREE = ("--topology", "tree=4:2:2@1:10:100")


@pytest.fixture
def topompi(monkeypatch, command):
    """Runs ``topompi map`` in this process."""
    for name in ("SLURM_JOB_NODELIST", "SLURM_TASKS_PER_NODE", "TOPOMPI_MAP_QUALITY"):
        monkeypatch.delenv(name, raising=False)
    return partial(command, "map")


def stencil(path, dims, shuffle=None):
    """A list of what each rank of a grid sends to its neighbours, 1 byte each; no dimension wraps."""
    ranks = np.arange(int(np.prod(dims))).reshape(dims)
    if shuffle is not None:
        ranks = np.random.default_rng(shuffle).permutation(ranks.ravel()).reshape(dims)
    lines = []
    for axis in range(len(dims)):
        low, high = (np.take(ranks, range(*ends), axis).ravel() for ends in ((dims[axis] - 1,), (1, dims[axis])))
        lines += [f"{u} {v} 1\n{v} {u} 1" for u, v in zip(low, high, strict=True)]
    path.write_text("\n".join(lines) + "\n")
    return path


def fabric_hosts():
    return load(FABRIC).fabric.hosts


def test_slots_that_fill_only_some_hosts_of_a_source_are_said_to_be_the_first(topompi, tmp_path, monkeypatch):
    graph = stencil(tmp_path / "g", (4, 4))
    options = (graph, "--topology", FABRIC)
    hosts = fabric_hosts()
    done = topompi(*options, "--slots", 4, "--algorithm", "scheme1", "--seed", 1)
    assert f"the first 4 hosts of {FABRIC}, {hosts[0]} to {hosts[3]}; --hosts all takes all" in done.err
    assert "16 ranks on 4 hosts" in done.out
    everywhere = topompi(*options, "--slots", 4, "--hosts", "all")
    assert (f"16 ranks on {len(hosts)} hosts" in everywhere.out, "the first" in everywhere.err) == (True, False)
    assert "the first" not in topompi(*options, "--slots", 1).err
    monkeypatch.setenv("SLURM_JOB_NODELIST", ",".join(hosts[4:8]))
    assert "the first" not in topompi(*options, "--slots", 4).err


def edges_of(path):
    return [tuple(map(int, line.split())) for line in path.read_text().splitlines()]


def test_the_references_worked_example_is_reached(topompi, tmp_path):
    """2 x 4 x 4 ranks, 4 hosts x 8 slots, the first and the last host on one leaf: 80 / 0 / 48 -> 96 / 8 / 24."""
    graph = stencil(tmp_path / "g", (2, 4, 4))
    hosts = ",".join(fabric_hosts()[at] for at in (0, 4, 8, 1))
    where = (graph, "--topology", FABRIC, "--hosts", hosts, "--slots", 8)
    said = topompi(*where, "--json", "-o", tmp_path / "map.json")
    assert said.code == 0, said.err
    summary = json.loads(said.out)
    before, after = summary["maps"]["given"], summary["maps"]["mapped"]
    assert before["bytes_by_distance"] == {"host": 80, "3": 48}
    assert after["bytes_by_distance"].get("host", 0) >= 96
    assert after["bytes_by_distance"].get("3", 0) <= 24
    assert summary["ratio"] <= (8 * 1 + 24 * 3) / (48 * 3)
    assert (summary["ranks"], summary["hosts"], summary["slots"]) == (32, 4, 32)
    assert after["link_load"] is not None


def test_figures_are_sums_over_the_edges(topompi, tmp_path):
    graph = stencil(tmp_path / "g", (4, 4), shuffle=1)
    summary = json.loads(topompi(graph, *TREE, "--json").out)
    slot = summary["slot_of_rank"]
    assert sorted(slot) == list(range(16))

    def distance(a, b):
        return 1 if a // 4 == b // 4 else 10 if a // 8 == b // 8 else 100

    for side, place in ((summary["maps"]["given"], range(16)), (summary["maps"]["mapped"], slot)):
        assert side["doubled"] == sum(distance(place[u], place[v]) * w for u, v, w in edges_of(graph))
        assert side["hop_bytes"] == side["doubled"] / 2
        inside = sum(w for u, v, w in edges_of(graph) if place[u] // 4 == place[v] // 4)
        assert side["intra_host_share"] == inside / 48
        assert side["link_load"] is None
    assert summary["maps"]["mapped"]["doubled"] < summary["maps"]["given"]["doubled"]
    hosts = [at // 4 for at in slot]
    assert summary["moved"] == sum(host != rank // 4 for rank, host in enumerate(hosts))


def test_a_plane_is_written_where_the_map_is_one(topompi, tmp_path):
    graph = stencil(tmp_path / "g", (4, 4))
    said = topompi(graph, *TREE, "--algorithm", "cyclic", "--format", "plane")
    assert said.out.splitlines()[-1] == "--nodes=4 --distribution=plane=1 --ntasks=16"
    said = topompi(stencil(tmp_path / "g", (4, 4), shuffle=3), *TREE, "--format", "plane")
    assert (said.code, said.out) == (1, "")
    assert "blocks of equal size" in said.err


def test_the_map_goes_to_standard_output_and_what_is_said_beside_it(topompi, tmp_path):
    graph = stencil(tmp_path / "g", (4, 4), shuffle=4)
    said = topompi(graph, *TREE)
    assert said.out.startswith("# topompi mapping: 16 ranks on 4 hosts")
    assert said.out.count("\nrank ") == 16
    assert said.err.startswith("hop-bytes 0.")
    assert said.err.count("\n") == 1
    said = topompi(graph, *TREE, "-o", tmp_path / "map", "--report")
    assert (tmp_path / "map").read_text().count("\nrank ") == 16
    for word in ("hop-bytes", "within hosts", "distance 10", "distance 100", "ranks change host"):
        assert word in said.out
    assert said.err == ""


def test_one_seed_makes_one_map_and_quality_stops_the_search(topompi, tmp_path, monkeypatch):
    graph = stencil(tmp_path / "g", (4, 4), shuffle=5)
    first, again = (topompi(graph, *TREE, "--seed", 7).out for _ in range(2))
    assert first == again
    monkeypatch.setenv("TOPOMPI_MAP_QUALITY", "1")
    said = topompi(graph, *TREE)
    assert said.err.startswith("the given order stays")
    monkeypatch.setenv("TOPOMPI_MAP_QUALITY", "good")
    assert topompi(graph, *TREE).err.startswith("topompi: TOPOMPI_MAP_QUALITY: expecting a part")


def test_a_map_that_is_worse_says_so_first(topompi, tmp_path):
    said = topompi(stencil(tmp_path / "g", (16,)), *TREE, "--algorithm", "cyclic")
    assert said.err.startswith("worse than the given order: hop-bytes ")


def test_the_busiest_link_can_be_the_objective(topompi, tmp_path):
    graph = stencil(tmp_path / "g", (4, 4), shuffle=6)
    summary = json.loads(topompi(graph, "--topology", FABRIC, "--slots", 1, "--objective", "link", "--json").out)
    sides = summary["maps"]
    said = topompi(graph, *TREE, "--objective", "link", "--report", "-o", tmp_path / "map")
    assert said.out.splitlines()[-1].startswith(("busiest link ", "the given order stays"))
    assert "busiest link, bytes" in said.out
    assert "seconds" not in said.out  # of a link whose rate nobody said
    assert sides["mapped"]["link_seconds"] <= sides["given"]["link_seconds"]
    assert summary["objective"] == "link"


# Where ranks can go.


@pytest.mark.parametrize(
    ("written", "slots"), [("8", [8, 8, 8]), ("4,2,1", [4, 2, 1]), ("16(x2),8", [16, 16, 8]), ("3(x3)", [3, 3, 3])]
)
def test_slots_are_one_number_or_one_a_host(written, slots):
    assert parse_slots(written, 3) == slots


@examples(60)
@given(st.lists(st.integers(0, 99), min_size=2, max_size=9))
def test_slots_as_slurm_writes_them_come_back(slots):
    assert parse_slots(",".join(f"{count}(x1)" for count in slots), len(slots)) == slots


@pytest.mark.parametrize("written", ["", "x", "4,4", "4(x4)", "-1", "4(x2),", "4(x99999999)"])
def test_other_words_for_slots_are_refused(written):
    with pytest.raises(MapCommandError, match=r"expecting --slots .*3 hosts"):
        parse_slots(written, 3, MapCommandError, "--slots")


def test_a_hierarchy_takes_the_names_of_hosts(topompi, tmp_path):
    graph = stencil(tmp_path / "g", (4, 4))
    said = topompi(graph, *TREE, "--hosts", "n[07-10]", "--format", "slurm")
    assert {line for line in said.out.splitlines() if line[0] != "#"} == {"n07", "n08", "n09", "n10"}


# Comparing.


def test_two_maps_are_compared_whatever_their_formats(topompi, tmp_path):
    graph = stencil(tmp_path / "g", (4, 4), shuffle=8)
    best, worse = tmp_path / "best.json", tmp_path / "cyclic.rank"
    topompi(graph, *TREE, "-o", best)
    assert json.loads(best.read_text())["format"] == "topompi mapping"
    topompi(graph, *TREE, "-o", worse, "--algorithm", "cyclic", "--format", "mpich")
    summary = json.loads(topompi(graph, worse, best, *TREE, "--json").out)
    (name_a, side_a), (name_b, side_b) = summary["maps"].items()
    assert (name_a, name_b) == (f"A: {worse}", f"B: {best}")
    assert summary["ratio"] == side_b["doubled"] / side_a["doubled"] < 1
    said = topompi(graph, "given", best, *TREE)
    assert "B's hop-bytes are 0." in said.out
    said = topompi(graph, best, best, *TREE)
    assert "hop-bytes are equal; 0 ranks are on another host" in said.out


def test_a_map_of_another_number_of_ranks_is_refused(topompi, tmp_path):
    small, large = stencil(tmp_path / "small", (3, 3)), stencil(tmp_path / "large", (4, 4))
    topompi(small, *TREE, "-o", tmp_path / "map")
    said = topompi(large, "given", tmp_path / "map", *TREE)
    assert said.err == f"topompi: {tmp_path}/map: expecting 16 ranks, as the graph has, got 9\n"


def test_a_comparison_takes_hosts_and_slots_from_the_file(topompi, tmp_path):
    graph, path = stencil(tmp_path / "g", (3, 3)), tmp_path / "map"
    hosts = fabric_hosts()
    topompi(graph, "--topology", FABRIC, "--hosts", f"{hosts[9]},{hosts[2]}", "--slots", "4,5", "-o", path)
    summary = json.loads(topompi(graph, path, "given", "--topology", FABRIC, "--json").out)
    assert (summary["hosts"], summary["slots"], summary["distance"]) == (2, 9, "hops")
    said = topompi(graph, path, "given", "--topology", FABRIC, "--slots", 3)
    assert (said.code, said.out) == (1, "")
    assert "is for allocation" in said.err


# Pictures.


def test_the_picture_shows_both_maps_and_every_class(topompi, tmp_path):
    pytest.importorskip("matplotlib")
    graph = stencil(tmp_path / "g", (4, 4))
    for name in ("a.svg", "b.svg", "c.png"):
        assert topompi(graph, *TREE, "-a", "cartesian", "--draw", f"bytes={tmp_path / name}").code == 0
    svg = (tmp_path / "a.svg").read_text()
    ElementTree.fromstring(svg)
    for words in ("given", "mapped", "within hosts", "distance 10", "receiving host"):
        assert f"<!-- {words} -->" in svg
    assert svg == (tmp_path / "b.svg").read_text()
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")


@examples(40)
@given(st.data())
def test_the_heat_map_holds_every_byte_between_ranks(data):
    size = data.draw(st.integers(1, 12))
    rank = st.integers(0, size - 1)
    rows = data.draw(st.lists(st.tuples(rank, rank, st.integers(0, 1000)), min_size=1, max_size=20))
    graph = CommunicationGraph.from_arrays(size, *np.array(rows).T)
    hosts = data.draw(st.integers(1, 6))
    machine = Machine.hierarchy([12, hosts], [0, 7])
    mapping = Mapping.on_hosts([data.draw(st.integers(0, hosts - 1)) for _ in range(size)], machine)
    volume, distance = traffic(graph, machine, mapping)
    wanted = np.zeros((hosts, hosts))
    for u, v, w in rows:
        wanted[mapping.host_of_rank[u], mapping.host_of_rank[v]] += w * (u != v)
    assert (volume == wanted).all()
    for a, b in product(range(hosts), repeat=2):
        assert not wanted[a, b] or distance[a, b] == (-1 if a == b else 7)


def test_many_hosts_share_cells_of_the_heat_map():
    machine = Machine.hierarchy([1, 1000], [0, 1])
    graph = CommunicationGraph.from_arrays(1000, np.arange(999), np.arange(1, 1000), np.full(999, 5))
    volume, _ = traffic(graph, machine, Mapping.identity(machine, 1000))
    assert volume.shape == (MOST_CELLS, MOST_CELLS)
    assert volume.sum() == 5 * 999


# What is wrong is one line.


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((), "expecting PROFILE"),
        (("{}",), "expecting --topology SOURCE or --topology tree=16:16:8@1:10:100, got none"),
        (("{}", "--topology", "tree=4:4"), "expecting tree=16:16:8@1:10:100"),
        (("{}", "--topology", "tree=4:4@1"), "machine: expecting as many distances as levels"),
        (("{}", "--topology", "tree=4:x@1:2"), "machine: expecting whole numbers like 16:16:8"),
        (("{}", *TREE, "--slots", "4"), "expecting no --slots beside tree="),
        (("{}", *TREE, "--hosts", "n[1-3]"), "expecting 4 --hosts for tree=, got 3"),
        (("{}", *TREE, "--ranks", "17"), "expecting a slot for each of 17 ranks, got 16 on 4 hosts"),
        (("{}", *TREE, "--algorithm", "magic"), "algorithm: expecting a mapper of best, "),
        (("{}", *TREE, "--objective", "x"), "objective: expecting one of hop-bytes, link, got 'x'"),
        (("{}", *TREE, "-a", "single-step", "--set", "effort=2"), "algorithm: expecting best beside"),
        (("{}", *TREE, "--format", "lsf"), "expecting --format rankfile, "),
        (("{}", *TREE, "--draw", "bytes=f.pdf"), "plot: expecting a file name in .svg or .png"),
        (("{}.no", *TREE), "cannot be read: No such file or directory"),
        (("{}", "--topology", FABRIC, "--hosts", "nobody"), "but 1 of 1 are not: nobody"),
        (("{}", "--topology", "nowhere"), "nowhere: expecting a file"),
        (("{}", "{}.no", "given", *TREE), "cannot be read: No such file or directory"),
    ],
)
def test_what_is_wrong_is_one_line_on_standard_error(topompi, tmp_path, args, message):
    graph = stencil(tmp_path / "g", (4, 4))
    said = topompi(*(arg.replace("{}", str(graph)) for arg in args))
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith("topompi: ")
    assert said.err.count("\n") == 1
    assert message in said.err


def test_maps_that_do_not_differ_are_drawn_once_and_said_to(topompi, tmp_path):
    pytest.importorskip("matplotlib")
    graph = stencil(tmp_path / "program.txt", (4, 4), shuffle=1)
    for algorithm, panels in (("given", 2), ("best", 3)):
        plot = tmp_path / f"{algorithm}.svg"
        done = topompi(graph, "--topology", FABRIC, "-a", algorithm, "--draw", f"bytes={plot}", "-o", tmp_path / "m")
        assert done.code == 0, done.err
        text = plot.read_text()
        assert len(re.findall(r'id="axes_\d+"', text)) == panels
        said = " ".join(re.findall("<!-- (.*?) -->", text))
        assert "program: 16 ranks on 16 hosts" in said
        assert ("no rank moves" in said) == (algorithm == "given")
        assert "within hosts" not in said  # one rank a host: no bytes stay in one


def test_a_map_is_drawn_on_its_fabric(topompi, tmp_path):
    graph = stencil(tmp_path / "g", (4, 4), shuffle=1)
    done = topompi(graph, "--topology", FABRIC, "--draw", tmp_path / "m.svg", "-o", tmp_path / "m.txt")
    assert done.code == 0, done.err
    drawn = "".join(ElementTree.parse(tmp_path / "m.svg").getroot().itertext())
    hosts = read_mapping(tmp_path / "m.txt")
    for rank, host in enumerate(hosts.host_of_rank.tolist()):
        assert f"{hosts.hosts[host]}: {rank}" in drawn
    assert "busiest links" in drawn
    assert f"g: 16 ranks on {FABRIC}, mapped by best" in drawn


def test_without_a_fabric_there_is_nothing_to_draw(topompi, tmp_path):
    done = topompi(stencil(tmp_path / "g", (4, 4)), *TREE, "--draw", tmp_path / "m.svg")
    assert done.code == 1
    assert "--draw: expecting a topology source" in done.err


def test_the_weight_of_cuts_is_what_it_says(topompi, tmp_path):
    """Rank 0 sends rank 1 few large messages, and rank 2 many small ones."""
    path = tmp_path / "g.json"
    write_graph(CommunicationGraph.from_arrays(4, [0, 0, 1, 2], [1, 2, 3, 3], [90, 10, 10, 90], [1, 9, 9, 1]), path)
    machine = ("--topology", "tree=2:2@0:1", "--algorithm", "scheme1", "--json")
    for weight, together in (("bytes", 1), ("messages", 2)):
        slot = json.loads(topompi(path, *machine, "--set", f"weight={weight}").out)["slot_of_rank"]
        assert slot[0] // 2 == slot[together] // 2


def test_wrong_partitioners_weights_and_graphs_are_refused(topompi, tmp_path):
    graph = stencil(tmp_path / "g", (4, 4))
    for more, words in (
        (["--set", "weight=hops"], "weight: expecting one of bytes, messages, log, got 'hops'"),
        (["--set", "partitioner=jostle"], "partitioner: expecting one of metis, kahip"),
        (["-a", "refine", "--set", "weight=log"], "beside a partitioner or a weight, got refine"),
    ):
        assert words in topompi(*GRAPHLESS, *more).err
    fewer = topompi(graph, *TREE, "--ranks", 8)
    assert (fewer.code, "holds at least 16 ranks, but 8 were asked for" in fewer.err) == (1, True)
    assert topompi(*TREE).err.startswith("topompi: expecting PROFILE")


GRAPHLESS = ("g", *TREE)
