"""MPICH coordinates files and node maps: the fabric that they describe, and errors in them."""

import tarfile
from collections import defaultdict

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import read_text as read
from tests.support import refusal, shared_data
from topompi.inputs import open_inputs
from topompi.topology.discovery import Report
from topompi.topology.fabric import Fabric
from topompi.topology.hostnames import find_hosts, require_hosts
from topompi.topology.sources import coordinates, nodemap
from topompi.topology.sources.groups import MAX_JOINED

HEADING = "# rank: group id, switch id, port number (this line will be skipped)\n"
Seat = tuple[int, int, int]


def hops(fabric: Fabric, source: str, target: str) -> int:
    """Switches on a shortest path between two hosts of different adapters."""
    return int(networkx.shortest_path_length(fabric.to_networkx(), source, target)) - 1


def write_coordinates(seats: dict[int, Seat]) -> str:
    return HEADING + "".join(f"{rank}: {g} {s} {p}\n" for rank, (g, s, p) in seats.items())


seats_of_jobs = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(-1, 2)), min_size=1, max_size=10)


@given(seats=seats_of_jobs, data=st.data())
def test_ranks_cross_as_many_switches_as_their_coordinates_say(seats: list[Seat], data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(seats))))
    discovery, _ = read(coordinates, write_coordinates({rank: seats[rank] for rank in order}))
    assert discovery.rank_hosts is not None
    graph = discovery.fabric.to_networkx()
    for rank, (group, switch, port) in enumerate(seats):
        for other, (other_group, other_switch, other_port) in enumerate(seats):
            same_seat = (group, switch, port) == (other_group, other_switch, other_port)
            if rank == other or (same_seat and port >= 0):
                expected = 0
            elif group != other_group:
                expected = 4
            else:
                expected = 1 if switch == other_switch else 3
            ends = discovery.rank_hosts[rank], discovery.rank_hosts[other]
            length = networkx.shortest_path_length(graph, *ends)
            assert max(length - 1, 0) == expected


def test_hosts_of_coordinates_are_named_by_port_or_by_rank() -> None:
    discovery, _ = read(coordinates, HEADING + "1: 1 7 3\n 0 : 1 7 -1\n\n2: 1 7 3\r\n")
    assert discovery.rank_hosts == ("rank0", "g1.s7.p3", "g1.s7.p3")
    assert discovery.fabric.switch_ids == ("g1.s7", "g1")


def test_the_first_line_is_skipped_whatever_it_says_unless_it_is_a_rank() -> None:
    skipped, _ = read(coordinates, "coordinates of my job\n0: 0 0 -1\n")
    dumped, _ = read(coordinates, "0: 0 0 -1\n1: 0 0 -1\n")
    assert skipped.rank_hosts == ("rank0",)
    assert dumped.rank_hosts == ("rank0", "rank1")


WANTED = "'RANK: GROUP SWITCH PORT' with numbers of at most 9 digits"
BAD_COORDINATES = {
    "malformed": ("0: 0 0 -1\n1: 0 0\n", f"f:3: expecting {WANTED}, got '1: 0 0'", ("rank0",)),
    "late comment": ("0: 0 0 -1\n# two\n", f"f:3: expecting {WANTED}, got '# two'", ("rank0",)),
    "huge": (
        f"0: 0 0 -1\n{'9' * 10}: 0 0 1\n",
        f"f:3: expecting {WANTED}, got '9999999999: 0 0 1'",
        ("rank0",),
    ),
    "rank twice": ("0: 0 0 -1\n0: 1 0 -1\n", "f:3: rank 0 appears twice, first at f:2", ("rank0",)),
    "rank missing": (
        "0: 0 0 -1\n3: 0 0 -1\n1: 0 0 -1\n",
        "f:3: rank 3 is listed, but rank 2 is missing",
        None,
    ),
    "first rank missing": (
        "999999999: 0 0 -1\n",
        "f:2: rank 999999999 is listed, but rank 0 is missing",
        None,
    ),
    "unknown switch": (
        "0: 0 0 -1\n1: 0 -1 -1\n",
        "f:3: expecting a group and a switch of at least 0 and a port of at least -1, got 0 -1 -1",
        ("rank0",),
    ),
    "negative port": (
        "0: 0 0 -1\n1: 0 0 -2\n",
        "f:3: expecting a group and a switch of at least 0 and a port of at least -1, got 0 0 -2",
        ("rank0",),
    ),
}


@pytest.mark.parametrize("case", BAD_COORDINATES)
def test_bad_coordinates_are_named_with_their_line(case: str) -> None:
    content, message, rank_hosts = BAD_COORDINATES[case]
    assert refusal(read, coordinates, HEADING + content) == message
    discovery, problems = read(coordinates, HEADING + content, partial=True)
    assert problems == [message]
    assert discovery.rank_hosts == rank_hosts


def test_a_coordinates_file_without_ranks_is_refused() -> None:
    assert refusal(read, coordinates, HEADING, True) == f"f: expecting {WANTED}, got none"


@pytest.mark.parametrize("groups", [1, 2, MAX_JOINED, MAX_JOINED + 1, 2500])
def test_links_stay_linear_in_the_number_of_groups(groups: int) -> None:
    discovery, _ = read(coordinates, write_coordinates({g: (g, g, 0) for g in range(groups)}))
    fabric = discovery.fabric
    pairs = groups * (groups - 1) // 2
    joined = groups <= MAX_JOINED
    assert fabric.num_links == 2 * (2 * groups + (pairs if joined else groups))
    assert set(fabric.switch_component.tolist()) == {0}
    if groups > 1:
        assert hops(fabric, "g0.s0.p0", "g1.s1.p0") == (4 if joined else 5)


Node = tuple[int, int]


@given(
    leaves=st.lists(st.integers(0, 3), min_size=1, max_size=6),
    members=st.lists(st.integers(0, 5), min_size=1, max_size=12),
    data=st.data(),
)
def test_nodes_cross_as_many_switches_as_their_map_says(
    leaves: list[int], members: list[int], data: st.DataObject
) -> None:
    """``leaves``: cell of each leaf switch; ``members``: leaf switch of each node."""
    leaf_of = [member % len(leaves) for member in members]
    lines = []
    for node, leaf in enumerate(leaf_of):
        pairs = [("node", f"{node:04d}"), ("Switch", str(leaf)), ("CELL", str(leaves[leaf])), ("row", "7")]
        lines.append("  ".join(f"{key} {value}" for key, value in data.draw(st.permutations(pairs))))
    fabric = read(nodemap, "\n".join(lines))[0].fabric
    assert fabric.hosts == tuple(f"{node:04d}" for node in range(len(members)))
    for node, leaf in enumerate(leaf_of[1:], 1):
        across = leaves[leaf] != leaves[leaf_of[0]]
        expected = 1 if leaf == leaf_of[0] else 4 if across else 3
        assert hops(fabric, "0000", f"{node:04d}") == expected


def test_racks_are_the_groups_where_no_cell_is_given_and_neither_leaves_switches_apart() -> None:
    racks = read(nodemap, "NODE a SWITCH 1 RACK 4\nNODE b SWITCH 2 RACK 4\n")[0].fabric
    assert racks.switch_ids == ("switch1", "switch2", "rack4")
    apart = read(nodemap, "# map\nNODE a SWITCH 1\n\nNODE b SWITCH 2\n")[0].fabric
    assert apart.switch_ids == ("switch1", "switch2")
    assert sorted(apart.switch_component.tolist()) == [0, 1]


BAD_MAPS = {
    "odd words": ("NODE a SWITCH 1\nNODE b SWITCH\n", "f:2: expecting pairs of key and value, got 3 words"),
    "no switch": ("NODE a SWITCH 1\nNODE b CELL 1\n", "f:2: expecting SWITCH, got 'NODE b CELL 1'"),
    "nothing known": ("NODE a SWITCH 1\nCELL 1\n", "f:2: expecting NODE and SWITCH, got 'CELL 1'"),
    "key twice": (
        "NODE a SWITCH 1\nNODE b node c SWITCH 1\n",
        "f:2: expecting each key once, got 'NODE b node c SWITCH 1'",
    ),
    "host twice": ("NODE a SWITCH 1\nNODE a SWITCH 2\n", "f:2: host a appears twice"),
    "leaf in two cells": (
        "NODE a SWITCH 1 CELL 1\nNODE b SWITCH 1 CELL 2\n",
        "f:2: switch1 is in cell2, but in cell1 before",
    ),
    "leaf in a cell and in none": (
        "NODE a SWITCH 1\nNODE b SWITCH 1 CELL 2\n",
        "f:2: switch1 is in cell2, but in no cell before",
    ),
}


@pytest.mark.parametrize(("content", "message"), BAD_MAPS.values(), ids=BAD_MAPS)
def test_bad_node_maps_are_named_with_their_line_and_partial_reading_keeps_the_rest(content: str, message: str) -> None:
    assert refusal(read, nodemap, content) == message
    discovery, problems = read(nodemap, content, partial=True)
    assert problems == [message]
    assert discovery.fabric.hosts == ("a",)


def test_a_node_map_without_nodes_is_refused() -> None:
    assert refusal(read, nodemap, "# NODE a SWITCH 1\n", True) == "f: expecting lines with NODE and SWITCH, got none"


def test_a_node_with_the_name_of_a_switch_is_refused() -> None:
    assert refusal(read, nodemap, "NODE switch1 SWITCH 1\n") == "f: host switch1 appears twice"


def test_each_format_is_recognised_and_no_other() -> None:
    heads = [
        "# any heading\n0: 1 7 -1\n",
        "0: 1 7 -1\n",
        "NODE 0001 RACK 1 CELL 1 SWITCH 10100\nNODE 0002 RA",
        "# map\nswitch 1 node a\n",
        'SwitchName=s0 Nodes=a\nSwitch\t36 "S-0002"\t# node 3\n',
        "0x0001 001 : (Switch portguid 0x1: 'x')\n",
        "# x\n0x0000 : 00 : 0\n",
        "Switch  : 0x1 ports 36 base port 0 lid 1 node x\n",
    ]
    assert [coordinates.recognise(head) for head in heads] == [True, True] + [False] * 6
    assert [nodemap.recognise(head) for head in heads] == [False, False, True, True] + [False] * 4


@pytest.fixture(scope="module")
def leonardo() -> Fabric:
    [text] = open_inputs(shared_data("fabrics/leonardo-nodemap.txt.xz"))
    assert nodemap.recognise(text.head())
    return nodemap.read([text], Report()).fabric


def test_leonardo_has_the_nodes_leaves_and_cells_of_its_map(leonardo: Fabric) -> None:
    leaves = np.unique(leonardo.adapter_leaf)
    assert (leonardo.num_hosts, len(leaves), leonardo.num_switches - len(leaves)) == (4992, 392, 22)
    assert leonardo.num_links == 2 * (4992 + 392 + 22 * 21 // 2)
    cells = defaultdict(set)
    text = open_inputs(shared_data("fabrics/leonardo-nodemap.txt.xz"))[0].text()
    for line in text.splitlines():
        words = line.split()
        cells[words[5]].add(words[1])
    first, second = sorted(cells["1"])[0], sorted(cells["2"])[0]
    assert hops(leonardo, first, second) == 4
    assert hops(leonardo, first, sorted(cells["1"])[-1]) == 3


def test_names_of_real_jobs_resolve_to_the_nodes_of_the_map(leonardo: Fabric) -> None:
    with tarfile.open(shared_data("fabrics/leonardo-job-nodelists.tar.gz")) as archive:
        members = [archive.extractfile(member) for member in archive if member.isfile()]
        names = {name for member in members if member is not None for name in member.read().decode().split()}
    nodes = sorted(name for name in names if name.startswith("lrdn"))
    assert len(nodes) == 4424
    assert [f"lrdn{leonardo.hosts[host]}" for host in require_hosts(leonardo, nodes)] == nodes
    others = sorted(names - set(nodes))
    assert len(others) == 14  # visualisation nodes, which the map does not hold
    assert (find_hosts(leonardo, others) == -1).all()


def test_names_resolve_by_number_only_where_all_hosts_are_numbers() -> None:
    numbers = read(nodemap, "NODE 0001 SWITCH 1\nNODE 0002 SWITCH 1\n")[0].fabric
    assert find_hosts(numbers, ["0002", "n0001", "n0001.site4", "n0001"]).tolist() == [1, 0, 0, 0]
    assert find_hosts(numbers, ["n1", "n00001", "n0003", "login"]).tolist() == [-1, -1, -1, -1]
    words = read(nodemap, "NODE 0001 SWITCH 1\nNODE n2 SWITCH 1\n")[0].fabric
    assert find_hosts(words, ["n0001"]).tolist() == [-1]
