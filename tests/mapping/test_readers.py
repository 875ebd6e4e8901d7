"""Readers of communication graphs: round trips in every format, and errors with file and line."""

import gzip
import json
import lzma
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.io import mmwrite
from scipy.sparse import coo_array, save_npz

from tests.support import examples, shared_data
from topompi.mapping.evaluate import evaluate
from topompi.mapping.graph import CommunicationGraph
from topompi.mapping.machine import Machine
from topompi.mapping.mapping import Mapping
from topompi.mapping.readers import (
    FORMATS,
    GraphFileError,
    edgelist,
    jsonprofile,
    matrixmarket,
    metis,
    monitoring,
    pairlist,
    read_edges,
    read_graph,
)
from topompi.mapping.readers.jsonprofile import write_graph
from topompi.mapping.readers.text import GraphFile

LARGEST = 2**62
VOLUMES = st.integers(1, LARGEST)


@st.composite
def graphs(draw, volumes=VOLUMES, loops=True):
    """A size and the volume of some directed pairs of ranks."""
    size = draw(st.integers(1, 9))
    rank = st.integers(0, size - 1)
    pairs = draw(st.lists(st.tuples(rank, rank), unique=True, max_size=12))
    return size, {(u, v): draw(volumes) for u, v in pairs if loops or u != v}


@st.composite
def undirected_graphs(draw):
    """A size and the volume of some undirected pairs of ranks, the lower rank first."""
    size, edges = draw(graphs(loops=False))
    return size, {(min(u, v), max(u, v)): volume for (u, v), volume in edges.items()}


def edges_of(graph):
    """Directed pair -> bytes."""
    return {(int(u), int(v)): int(w) for u, v, w in zip(graph.sources, graph.targets, graph.volume, strict=True) if w}


def pairs_of(graph):
    """Undirected pair -> bytes both ways."""
    both = {}
    for (u, v), volume in edges_of(graph).items():
        both[min(u, v), max(u, v)] = both.get((min(u, v), max(u, v)), 0) + volume
    return both


def written(folder, text, name="graph"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("graphs")


# What was written comes back.


@examples(60)
@given(graphs(), st.sampled_from([" ", "\t", ", ", ","]), st.booleans())
def test_lists_of_directed_edges_come_back_to_the_byte(folder, case, between, with_hops):
    size, edges = case
    rows = [between.join(map(str, (u, v, w, (u + v) % 5) if with_hops else (u, v, w))) for (u, v), w in edges.items()]
    path = written(folder, "\n".join(["# src dst bytes", *rows, ""]))
    if not edges:
        with pytest.raises(GraphFileError, match="expecting one of"):
            read_graph(path, size)
        return
    assert edges_of(read_graph(path, size)) == edges
    hops = read_edges(path, columns=["list"], size=size).hops  # 4 lines of 4 numbers could be a matrix, too
    assert (hops.tolist() if with_hops else hops) == ([(u + v) % 5 for u, v in edges] if with_hops else None)


@examples(60)
@given(undirected_graphs(), st.booleans())
def test_undirected_pairs_keep_their_sum_half_each_way(folder, case, headed):
    size, pairs = case
    if not pairs:
        return
    lines = [f"{v} , {u} = {volume}" for (u, v), volume in pairs.items()]
    if headed:
        lines = ["--- Graph Information---", *lines, "---Graph info end ---", "Average Degree:  5.87"]
    graph = read_graph(written(folder, "\n".join(lines)), size)
    assert pairs_of(graph) == pairs
    ways = edges_of(graph)
    assert all(abs(ways[u, v] - ways.get((v, u), 0)) <= 1 for u, v in ways if (u, v) in pairs)


@examples(60)
@given(undirected_graphs(), st.sampled_from(["", "1", "001", "11", "011", "100", "111 2", "010"]))
def test_metis_graphs_come_back_whatever_weights_their_vertices_have(folder, case, fmt):
    size, pairs = case
    digits = fmt.partition(" ")[0].zfill(3)
    weights = int(digits[1]) * int(fmt.partition(" ")[2] or 1)
    lead = [3] * int(digits[0]) + [7] * weights
    if digits[2] == "0":
        pairs = dict.fromkeys(pairs, 1)
    lines = ["% written by hand", " ".join([str(size), str(len(pairs)), fmt]).strip()]
    for vertex in range(size):
        words = list(lead)
        for (u, v), volume in pairs.items():
            if vertex in (u, v):
                words += [u + v - vertex + 1, volume][: 1 + int(digits[2])]
        lines.append(" ".join(map(str, words)))
    graph = read_graph(written(folder, "\n".join(lines) + "\n", "g.graph"))
    assert graph.size == size
    assert pairs_of(graph) == pairs


@examples(40)
@given(graphs())
def test_matrices_of_scipy_come_back_to_the_byte(folder, case):
    size, edges = case
    row, column = np.array(list(edges), dtype=np.int64).reshape(-1, 2).T
    matrix = coo_array((np.array(list(edges.values()), dtype=np.int64), (row, column)), shape=(size, size))
    mmwrite(folder / "m.mtx", matrix, symmetry="general")
    save_npz(folder / "sparse.npz", matrix.tocsr())
    np.savez(folder / "dense.npz", matrix=matrix.toarray())
    for name in ("m.mtx", "sparse.npz", "dense.npz"):
        graph = read_graph(folder / name)
        assert graph.size == size
        assert edges_of(graph) == edges


@examples(40)
@given(graphs(), st.data())
def test_columns_and_json_keep_bytes_and_messages(folder, case, data):
    size, edges = case
    ends = np.array(list(edges), dtype=np.int64).reshape(-1, 2)
    messages = [data.draw(st.integers(1, LARGEST)) for _ in edges]
    graph = CommunicationGraph.from_arrays(size, *ends.T, list(edges.values()), messages)
    write_graph(graph, folder / "graph.json")
    np.savez(
        folder / "columns.npz",
        source=graph.sources,
        target=graph.targets,
        volume=graph.volume,
        messages=graph.messages,
        size=size,
    )
    for name in ("graph.json", "columns.npz"):
        back = read_graph(folder / name)
        assert back.size == size
        for column in ("offsets", "targets", "volume", "messages"):
            assert (getattr(back, column) == getattr(graph, column)).all()


def test_a_symmetric_matrix_means_both_ways_and_a_pattern_one_byte(tmp_path):
    path = written(tmp_path, "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 3\n")
    assert edges_of(read_graph(path)) == {(0, 1): 1, (1, 0): 1, (2, 2): 1}


@pytest.mark.parametrize("pack", [lzma.compress, gzip.compress])
def test_packed_files_read_as_plain_ones(tmp_path, pack):
    assert edges_of(read_graph(written(tmp_path, pack(b"0 1 5.954e+05\n1 0 7\n")))) == {(0, 1): 595400, (1, 0): 7}


# Real files.


@pytest.mark.parametrize(
    ("name", "size", "pairs", "total"),
    [
        # ranks, lines with " = ", sum of their last column: counted by awk
        ("cloverleaf-1152.graphStats.txt.xz", 1152, 3385, 484124464408),
        ("lulesh-1000.graphStats.txt.xz", 1000, 11468, 7147799385336),
        ("miniamr-1000.graphStats.txt.xz", 1000, 3696, 497669583060),
        ("minife-1024.graphStats.txt.xz", 1024, 11636, 143282383200),
        ("npb-bt-1024.graphStats.txt.xz", 1024, 4089, 271830861012),
    ],
)
def test_graphs_of_applications_are_read_whole(name, size, pairs, total):
    graph = read_graph(shared_data("commgraphs/" + name))
    assert graph.size == size
    assert len(pairs_of(graph)) == pairs
    assert sum(pairs_of(graph).values()) == total


def test_measured_hops_are_kept_beside_the_bytes():
    edges = read_edges(shared_data("commgraphs/miniamr-bgq-1024.hopbyte.txt.xz"))
    assert (edges.size, len(edges.volume)) == (1024, 28512)
    assert round(float(edges.hops @ edges.volume / edges.volume.sum()), 3) == 1.288  # hops per byte, as recorded


PROF = """# POINT TO POINT
E\t{rank}\t1\t3000 bytes\t3 msgs sent\t0,0,1
I\t{rank}\t0\t96 bytes\t2 msgs sent\t
# OSC
S\t{rank}\t1\t100 bytes\t1 msgs sent
R\t{rank}\t1\t50 bytes\t4 msgs sent
# COLLECTIVES
C\t{rank}\t1\t4160 bytes\t12 msgs sent
D\tMPI_COMM_WORLD\tprocs: 0,1
O2A\t{rank}\t0 bytes\t0 msgs sent
"""


def test_monitoring_counts_messages_puts_and_gets_once_each_in_their_direction(tmp_path):
    for rank in range(2):
        written(tmp_path, PROF.format(rank=rank), f"run.{rank}.prof")
    graph = read_graph(tmp_path)
    assert edges_of(graph) == {(0, 1): 3100, (0, 0): 96, (1, 1): 3150, (1, 0): 146}
    assert dict(zip(edges_of(graph), graph.messages.tolist(), strict=True)) == {
        (0, 0): 2,
        (0, 1): 4,
        (1, 0): 6,
        (1, 1): 8,
    }


RUNS = {
    "joined": {"all.prof": [0, 1, 2]},
    "apart": {f"run.{rank}.prof": [rank] for rank in range(3)},
    "phases": {f"phase_{phase}.{rank}.prof": [rank] for phase in (2, 9, 10) for rank in range(3)},
    "joined phases": {f"phase{phase}.prof": [2, 0, 1] for phase in (1, 2)},
}


@pytest.mark.parametrize("headed", [True, False])
@pytest.mark.parametrize("case", RUNS)
def test_a_run_is_one_graph_in_joined_files_and_the_sum_of_its_phases(tmp_path, case, headed):
    body = PROF if headed else "".join(line + "\n" for line in PROF.splitlines() if line[:1] in "EISRCD")
    for name, ranks in RUNS[case].items():
        written(tmp_path, "".join(body.format(rank=rank) for rank in ranks), name)
    phases = sorted(
        {name.partition(".")[0] for name in RUNS[case]}, key=lambda name: int("0" + re.sub(r"\D", "", name))
    )
    notes = []
    graph = read_graph(tmp_path, notes=notes)
    one = {(0, 1): 3100, (0, 0): 96, (1, 0): 146, (1, 1): 3150, (2, 1): 3100, (2, 0): 96, (1, 2): 50}
    times = len(phases)
    assert edges_of(graph) == {pair: volume * times for pair, volume in one.items()}
    told = f"{tmp_path}: the sum of {times} phases, {phases[0]} to {phases[-1]}; {tmp_path / phases[0]} takes one"
    assert notes == [told] * (times > 1)
    assert edges_of(read_graph(tmp_path / phases[0])) == one
    assert edges_of(read_graph(tmp_path / next(iter(RUNS[case])))) == one


# What is wrong is said with file and line.

METIS_HEAD = "3 2 001\n"
MARKET = "%%MatrixMarket matrix coordinate integer general\n"
JSON = {"format": "topompi graph", "version": 1, "size": 2, "source": [0], "target": [1], "volume": [5]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0 1 5\n0 x 5\n", ":2: expecting a rank (a whole number from 0), got 'x'"),
        ("0 1 5\n# fine\n0 -1 5\n", ":3: expecting a rank (a whole number from 0), got '-1'"),
        ("0 1 5\n0 1 -5\n", ":2: expecting bytes from 0 to 2^63 - 1, got '-5'"),
        ("0 1 5\n0 1 9223372036854775808\n", ":2: expecting bytes from 0 to 2^63 - 1, got '9223372036854775808'"),
        ("0 1 5\n0 1 nan\n", ":2: expecting a finite number of bytes, got 'nan'"),
        ("0 1 5\n0 1 many\n", ":2: expecting a number of bytes, got 'many'"),
        ("0 1 5\n0 1\n", ":2: expecting 'src dst bytes' or 'src dst bytes hops', got '0 1'"),
        ("0 1 5 2\n0 1 5\n", ":2: expecting hops on every line or on none, got '0 1 5'"),
        ("0 , 1 = 5\n0 , 1 : 5\n", ":2: expecting 'u , v = bytes', got '0 , 1 : 5'"),
        ("0 , 1 = 5\n0 , one = 5\n", ":2: expecting a rank (a whole number from 0), got 'one'"),
        (METIS_HEAD + "2 7\n1 7 3 8\n", ":3: expecting 3 lines of vertices, as line 1 says, got 2"),
        (METIS_HEAD + "2 7\n1 7 3 8\n2 9\n", ":3: expecting edge 2 3 at both ends with one weight, got 9"),
        (METIS_HEAD + "2 7\n1 7\n2 9\n", ":4: expecting edge 3 2 at both ends with one weight, got 'one end'"),
        (METIS_HEAD + "2 7\n1 7 4 8\n2 9\n", ":3: expecting a neighbour from 1 to 3, got '4'"),
        (METIS_HEAD + "2 7 2 7\n1 7\n\n", ":2: expecting neighbour 2 of vertex 1 once, got 'it twice'"),
        (METIS_HEAD + "2\n1 7\n\n", ":2: expecting neighbours with their weights, got '2'"),
        (METIS_HEAD + "2 7\n1 7\n\n", ":1: expecting 2 edges, as it says, got 1.0"),
        (
            "3 2 011 2\n1\n1 7\n1\n",
            ":2: expecting 2 sizes and weights of the vertex, then neighbours with their weights",
        ),
        (MARKET + "2 2 1\n3 1 5\n", ":3: expecting Matrix Market: Row index out of bounds"),
        (MARKET + "2 2 1\n1 x 5\n", ":3: expecting the numbers of an entry"),
        (MARKET + "2 3 1\n1 1 5\n", ": expecting a square matrix, got 2 x 3"),
        (MARKET + "2 2 1\n1 2 -5\n", ": expecting bytes from 0 to 2^63 - 1, got -5 at entry (1, 2)"),
        (
            MARKET.replace("integer", "complex") + "2 2 1\n1 2 5 1\n",
            ": expecting real numbers of bytes, got complex128",
        ),
        (json.dumps(JSON)[:-1] + ",\n]", ":2: expecting JSON: "),
        (json.dumps({**JSON, "version": 2}), ": expecting version 1, as this topompi reads, got 2"),
        (json.dumps({**JSON, "size": 0}), ": expecting size, the number of ranks, from 1, got 0"),
        (json.dumps({**JSON, "target": [2]}), ": expecting target[0] from 0 to 1, got 2"),
        (json.dumps({**JSON, "volume": [5, 6]}), ": expecting volume to be a list of 1 numbers"),
        (json.dumps({**JSON, "volume": [True]}), ": expecting volume[0] from 0 to 9223372036854775807, got True"),
        (
            "hello\n",
            ": expecting one of: .npz, .npy, topompi's profile (.topoprof), topompi's graph.json, Matrix Market, ",
        ),
        ("", ": expecting a communication graph, got an empty file"),
        (b"\x1f\x8bdamaged", ": cannot be read, it is damaged: "),
        (b"PK\x03\x04damaged", ": expecting scipy's sparse matrix, "),
        (PROF.format(rank=0), ": expecting a name that ends with .RANK.prof, as Open MPI gives"),
    ],
)
def test_what_is_wrong_is_said_with_file_and_line(tmp_path, text, message):
    path = written(tmp_path, text)
    with pytest.raises(GraphFileError) as caught:
        read_graph(path)
    assert str(caught.value).startswith(str(path) + message), caught.value


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"a.0.prof": PROF.format(rank=0), "a.2.prof": ""}, "a: expecting a file for each rank to 2, got none for 1"),
        (
            {"a.0.prof": PROF.format(rank=0), "b.0.prof": ""},
            ": expecting the files NAME.RANK.prof of one run, got those of a, b: give one as ",
        ),
        (
            {
                "a1.0.prof": PROF.format(rank=0),
                "a1.1.prof": PROF.format(rank=1),
                "a2.0.prof": "E 0 0 1 bytes 1 msgs sent",
            },
            ": expecting phases of 2 ranks, as in a1, got 1 in a2",
        ),
        ({"all.prof": PROF.format(rank=0) + PROF.format(rank=3)}, "or the lines of all ranks, got those of 2 of 4"),
        ({"a.txt": "x"}, ": expecting the files NAME.RANK.prof of one run, got none"),
        (
            {"a.0.prof": PROF.format(rank=0), "a.1.prof": PROF.format(rank=0)},
            "a.1.prof:2: expecting rank 1 and a peer below 2, the number of files, got '0 1'",
        ),
        ({"a.0.prof": PROF.format(rank=0).replace("\t1\t", "\t0\t") + "X\n"}, "a.0.prof:11: expecting 'KIND RANK PEER"),
    ],
)
def test_what_is_wrong_with_a_recorded_run_is_said_with_file_and_line(tmp_path, files, message):
    for name, text in files.items():
        written(tmp_path, text, name)
    with pytest.raises(GraphFileError, match=re.escape(message)):
        read_graph(tmp_path)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": np.ones(3)}, "got x"),
        ({"source": np.array([0]), "volume": np.array([1])}, "got none of target"),
        ({"source": np.array([0]), "target": np.array([1]), "volume": np.array([1, 2])}, "volume to hold 1 numbers"),
        ({"source": np.array([-1]), "target": np.array([1]), "volume": np.array([1])}, "source from 0, got -1 at 0"),
        ({"matrix": np.array([[0, np.inf], [1, 0]])}, r"got inf at entry \(1, 2\)"),
        ({"matrix": np.ones((2, 3))}, "expecting a square matrix, got 2 x 3"),
        ({"matrix": np.array([[None]])}, "a.npz:matrix.npy: expecting numbers, got Python objects"),
    ],
)
def test_what_is_wrong_with_an_archive_is_said(tmp_path, arrays, message):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(GraphFileError, match=message):
        read_graph(tmp_path / "a.npz")


def test_lists_may_name_fewer_ranks_than_there_are_but_matrices_say_how_many(tmp_path):
    path = written(tmp_path, "0 1 5\n")
    assert read_graph(path, 7).size == 7
    with pytest.raises(GraphFileError, match="holds at least 2 ranks, but 1 were asked for"):
        read_graph(path, 1)
    path = written(tmp_path, MARKET + "2 2 1\n1 2 5\n")
    with pytest.raises(GraphFileError, match="holds exactly 2 ranks, but 3 were asked for"):
        read_graph(path, 3)


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("0 1 5", edgelist),
        ("3 2 10\n1 2 3", edgelist),
        ("5,4,10", edgelist),
        ("0 1 20000\n", edgelist),
        ("0 1 100\n", edgelist),
        ("0 1 100\n1 2 100\n2 0 7\n", edgelist),
        ("4 3 101 2\n0 2 100 3\n", edgelist),
        ("2 1 100\n7 2\n9 1\n", metis),
        ("3 1 100\n7 2\n9 1\n", metis),  # and what is wrong with it is said
        ("0 , 1 = 5", pairlist),
        (METIS_HEAD, metis),
        ("2 1 1\n2 5\n1 5\n", metis),
        ("2 1\n2\n1\n", metis),
        (MARKET, matrixmarket),
        (json.dumps(JSON), jsonprofile),
        (PROF, monitoring),
    ],
)
def test_the_content_says_which_format_it_is(text, form):
    name = "f.graph" if text.startswith("0 1 20000") else "f"  # a name alone makes no METIS graph
    file = GraphFile(name, text.encode())
    assert next(one for one in FORMATS if one.recognise(file)) is form


UNDIRECTED = {
    "g.graph": "3 2 001\n2 10\n1 10 3 6\n2 6\n",
    "pairs": "0 , 1 = 10\n1 , 2 = 6\n",
    "list": "0 1 4\n1 0 6\n1 2 6\n",
    "g.mtx": "%%MatrixMarket matrix coordinate integer general\n3 3 3\n1 2 10\n2 3 5\n3 2 1\n",
    "half.mtx": "%%MatrixMarket matrix coordinate integer symmetric\n3 3 2\n2 1 5\n3 2 3\n",
}


@pytest.mark.parametrize("name", UNDIRECTED)
def test_hop_bytes_are_half_of_what_is_sent_times_its_distance_in_every_format(tmp_path, name):
    """10 bytes between ranks 0 and 1, both ways together, and 6 between 1 and 2: a METIS weight is such a sum."""
    (tmp_path / name).write_text(UNDIRECTED[name])
    graph, machine = read_graph(tmp_path / name), Machine.hierarchy("1:3", "0:7")
    found = evaluate(Mapping.identity(machine, 3), graph, machine)
    assert (found.total, found.doubled, found.hop_bytes) == (16, 16 * 7, 8 * 7)
