"""Lists and matrices of text: columns by their names, by a guess that is said, or by the caller's word."""

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.support import command_line, damaged, examples, shared_data
from topompi.errors import TopompiError
from topompi.mapping.readers import GraphFileError, read_edges, read_graph

STENCIL = {(u, (u + step) % 8): volume for u in range(8) for step, volume in ((1, 10), (4, 900))}


def edges_of(graph):
    return {(int(u), int(v)): int(w) for u, v, w in zip(graph.sources, graph.targets, graph.volume, strict=True) if w}


def read(folder, text, **how):
    (folder / "f").write_text(text)
    notes = []
    return read_edges(folder / "f", notes=notes, **how), notes


@pytest.mark.parametrize("name", ["dense.csv", "dense.mat", "dense_header.csv", "list.csv", "list4.csv", "semi.csv"])
def test_one_graph_in_every_form_is_one_graph(name):
    notes = []
    assert edges_of(read_graph(shared_data(f"cases/B03-matrix/{name}"), notes=notes)) == STENCIL
    assert notes == []


def test_a_third_column_of_counts_is_no_volume_and_the_guess_is_said():
    path, notes = shared_data("cases/B03-matrix/count_bytes.txt"), []
    graph = read_graph(path, notes=notes)
    assert (edges_of(graph)[0, 4], edges_of(graph)[0, 1]) == (90_000_000, 8000)
    assert int(graph.messages.sum()) == 6 * 1000 + 8
    assert len(notes) == 1
    assert "taken as src,dst,count,bytes; else --columns src,dst,bytes,hops" in notes[0]
    asked = read_edges(path, columns=("src", "dst", "bytes", "hops"), notes=notes)
    assert (asked.volume[0], asked.hops[0], len(notes)) == (1000, 8000, 1)


def test_pairs_of_ranks_are_no_metis_graph_unless_they_fit():
    path, notes = shared_data("cases/B03-matrix/unw.txt"), []
    assert edges_of(read_graph(path, notes=notes)) == {(0, 1): 1, (1, 2): 1, (2, 3): 1, (3, 0): 1}
    assert "a list without bytes: each line counts 1" in notes[0]


def test_a_metis_graph_whose_lines_are_all_pairs_is_said_to_be_one(tmp_path):
    text = "4 4\n2 4\n1 3\n2 4\n1 3\n"
    edges, notes = read(tmp_path, text)
    assert (edges.size, len(edges.volume)) == (4, 8)
    assert "taken as a METIS graph; else --columns src,dst" in notes[0]
    edges, notes = read(tmp_path, text, columns=("src", "dst"))
    assert (edges.size, len(edges.volume), notes) == (5, 5, [])


@examples(60)
@given(
    matrix=st.integers(2, 7).flatmap(
        lambda size: st.lists(
            st.lists(st.integers(0, 2**40), min_size=size, max_size=size), min_size=size, max_size=size
        )
    ),
    mark=st.sampled_from([" ", "\t", ",", ";", ", "]),
    named=st.booleans(),
)
def test_a_matrix_of_text_comes_back_and_a_small_one_is_said(tmp_path_factory, matrix, mark, named):
    array = np.array(matrix)
    np.fill_diagonal(array, 0)
    assume(array.any())
    rows = [[*([str(rank)] * named), *map(str, row)] for rank, row in enumerate(array.tolist())]
    head = [["", *map(str, range(len(array)))]] * named
    edges, notes = read(tmp_path_factory.getbasetemp(), "\n".join(mark.join(row) for row in head + rows))
    found = np.zeros_like(array)
    np.add.at(found, (edges.source, edges.target), edges.volume)
    assert (found == array).all()
    assert bool(notes) == (len(array) <= 4 and not named)


@given(
    order=st.permutations(["src", "dst", "count", "bytes", "hops", "comm"]), mark=st.sampled_from([",", " ", ";", "\t"])
)
def test_headings_and_options_name_columns_in_any_order(tmp_path_factory, order, mark):
    rows = [{"src": 0, "dst": 1, "count": 3, "bytes": 500, "hops": 2, "comm": 7}, dict.fromkeys(order, 1)]
    body = "".join(mark.join(str(row[name]) for name in order) + "\n" for row in rows)
    folder = tmp_path_factory.getbasetemp()
    told = [
        read(folder, f"{mark.join(order)}\n{body}"),
        read(folder, f"# {mark.join(order)}\n{body}"),
        read(folder, body, columns=order),
    ]
    for edges, notes in told:
        columns = (edges.source, edges.target, edges.messages, edges.volume, edges.hops)
        assert [column.tolist() for column in columns] == [[0, 1], [1, 1], [3, 1], [500, 1], [2, 1]]
        assert notes == []


@pytest.mark.parametrize(
    "names", ["sender,receiver,bytes", "Source,Target,Weight", "from,to,volume", "rank,peer,total_bytes"]
)
def test_columns_have_the_names_that_tools_give(tmp_path, names):
    edges, notes = read(tmp_path, f"{names}\n0,1,5\n1,0,7\n")
    assert (edges.source.tolist(), edges.volume.tolist(), notes) == ([0, 1], [5, 7], [])


def test_edges_of_networkx_have_their_weight(tmp_path):
    assert read(tmp_path, "0 1 {'weight': 5.0}\n1 2 {'colour': 'red', 'weight': 7}\n")[0].volume.tolist() == [5, 7]
    assert read(tmp_path, "0 1 {}\n1 2 {}\n")[0].volume.tolist() == [1, 1]


def test_columns_that_name_no_ranks_are_refused(tmp_path):
    with pytest.raises(GraphFileError, match="expecting columns such as src,dst,count,bytes, got 'a,b'"):
        read(tmp_path, "0 1 5\n", columns=("a", "b"))
    with pytest.raises(GraphFileError, match="f:2: expecting 'src dst bytes', got '0 1'"):
        read(tmp_path, "src dst bytes\n0 1\n0 1 5\n")


def test_the_command_says_its_guess_and_takes_the_columns(tmp_path):
    (tmp_path / "g").write_text("0 1 1000 8000\n1 0 1 90000000\n")
    words = ("map", "--graph", tmp_path / "g", "--machine", "1:2", "--distances", "1:10")
    assert "taken as src,dst,count,bytes" in command_line(*words).stderr
    assert "taken as" not in command_line(*words, "--columns", "src,dst,-,bytes").stderr


@pytest.mark.parametrize(
    "text",
    [
        "src;dst;count;bytes\n0;1;2;3,5\n1;0;2;3\n",
        "0 5 7\n5 0 1\n1 2 0\n",
        ",0,1\n0,0,5\n1,5,0\n",
        "0 1 {'weight': 5}\n",
    ],
)
def test_damaged_lists_raise_only_our_errors(tmp_path, text):
    for data in damaged(text, 3, 200, b"019.,; -e\n{}':#\xb2\xff"):
        (tmp_path / "f").write_bytes(data)
        with suppress(TopompiError):
            read_graph(tmp_path / "f")
