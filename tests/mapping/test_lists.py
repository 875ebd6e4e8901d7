"""Lists and matrices of text: columns by their names, by a guess that is said, or by the caller's word."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.support import examples, shared_data
from topompi.mapping.readers import GraphFileError, read_edges, read_graph


def edges_of(graph):
    return {(int(u), int(v)): int(w) for u, v, w in zip(graph.sources, graph.targets, graph.volume, strict=True) if w}


def read(folder, text, **how):
    (folder / "f").write_text(text)
    notes = []
    return read_edges(folder / "f", notes=notes, **how), notes


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


SPELLINGS = {
    "whole": "{:d}",
    "savetxt": "{:.18e}",
    "short": "{:.0e}",
    "point": "{:.1f}",
    "signed": "{:+.2E}",
    "exact": "{!r}",
}
ZEROS = ["{}", "{}", "0e0", "-0.0", "0.00E+00"]
HOLES = ["nan", "NaN", "NA", "--", "<NA>", "null"]


@st.composite
def spelled_matrices(draw, least=2, diagonal=True):
    """A matrix of bytes, and its text in one of the ways in which programs write it; whether it names ranks."""
    size = draw(st.integers(least, 7))
    cells = st.integers(1, 9).flatmap(lambda digit: st.sampled_from([0, digit, digit * 100, digit * 10**6]))
    matrix = np.array(draw(st.lists(cells, min_size=size * size, max_size=size * size))).reshape(size, size)
    matrix[np.arange(size), np.arange(size)] *= diagonal
    assume(matrix.any())
    form, mark = (
        draw(st.sampled_from(list(SPELLINGS.values()))),
        draw(st.sampled_from([" ", "\t", ",", ";", ", ", "|"])),
    )
    named = draw(st.booleans())
    zero = draw(st.sampled_from(ZEROS + HOLES + [""] * (mark != " ")))
    point = "," if mark == ";" else "."
    rows = [[(form if value else zero).format(value).replace(".", point) for value in row] for row in matrix.tolist()]
    if named:
        corner = draw(st.sampled_from(["", "src", "sender\\receiver"])) if mark != " " else "src"
        rows = [[corner, *map(str, range(size))]] + [[str(rank), *row] for rank, row in enumerate(rows)]
    return matrix, "\n".join(mark.join(row) for row in rows) + "\n", named


def matrix_of(edges):
    found = np.zeros((edges.size, edges.size), dtype=int)
    np.add.at(found, (edges.source, edges.target), edges.volume)
    return found


@examples(150)
@given(spelled_matrices(diagonal=False))
def test_a_matrix_is_one_matrix_in_every_spelling(tmp_path_factory, case):
    matrix, text, named = case
    edges, notes = read(tmp_path_factory.getbasetemp(), text)
    assert matrix_of(edges).tolist() == matrix.tolist()
    assert not (named and [note for note in notes if "cells without a number" not in note])


@examples(100)
@given(spelled_matrices())
def test_a_matrix_with_bytes_from_ranks_to_themselves_is_read_or_the_other_reading_is_said(tmp_path_factory, case):
    matrix, text, _ = case
    edges, notes = read(tmp_path_factory.getbasetemp(), text)
    found = edges.size == len(matrix) and (matrix_of(edges) == matrix).all()
    assert found or any("taken as a list; else --columns matrix" in note for note in notes)
    edges, _ = read(tmp_path_factory.getbasetemp(), text, columns=("matrix",))
    assert matrix_of(edges).tolist() == matrix.tolist()


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("1 2 0\n2 1 1\n0 1 1\n", "matrix"),  # symmetric
        ("5 10 900 0\n10 5 0 900\n900 0 5 10\n0 900 10 5\n", "matrix"),
        ("5 3 8\n9 700 2\n1 0 4\n", "matrix"),  # four lines name few of so many ranks
        ("2 2 7\n0 1 8\n1 0 9\n", "matrix"),  # a rank that sends to itself
        ("0 1 100\n1 2 100\n2 0 7\n", "list"),
        ("0 1 5e2 1\n1 2 5e2 1\n2 3 5e2 2\n3 0 5e2 2\n", "list"),
        ("0 1\n1 2\n", "list"),
        ("[[0, 1, 100], [1, 2, 100], [2, 0, 7]]", "list"),
        ("[[0, 8, 9], [8, 0, 7], [9, 7, 0]]", "matrix"),
    ],
)
def test_both_readings_of_few_numbers_can_be_asked_for(tmp_path, text, form):
    other = {"matrix": "list", "list": "matrix"}[form]
    found = {}
    for columns in ((), (form,), (other,)):
        edges, notes = read(tmp_path, text, columns=columns)
        found[columns] = (edges.size, edges.source.tolist(), edges.volume.tolist())
        said = [note.rpartition("numbers ")[2] for note in notes if "taken as a" in note]
        assert said == ([] if columns else [f"taken as a {form}; else --columns {other}"])
    assert found[()] == found[form,] != found[other,]


@pytest.mark.parametrize(
    ("text", "size", "form"),
    [
        ("0 1 1\n1 2 1\n2 0 1\n", 3, "list"),
        ("0 7 7\n7 0 7\n7 7 0\n", 9, "list"),
        ("9 7 8\n7 5 9\n7 7 1\n", 3, "matrix"),
    ],
)
def test_the_number_of_ranks_decides_what_few_numbers_are(tmp_path, text, size, form):
    assert (len(read(tmp_path, text, size=size)[0].volume) == 3) == (form == "list")


PIVOT = {(0, 1): 5, (0, 3): 7, (1, 3): 9, (10, 2): 4}


@pytest.mark.parametrize("name", ["", "rank", "P"])
@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_a_pivot_table_without_the_ranks_that_only_send_or_receive_is_read(tmp_path, name, mark):
    sources, targets = (sorted({f"{name}{end[at]}" for end in PIVOT}) for at in (0, 1))
    rows = [["src" if not name else "", *targets]]
    rows += [[u, *(str(PIVOT.get((int(u[len(name) :]), int(v[len(name) :])), "")) for v in targets)] for u in sources]
    edges, notes = read(tmp_path, "\n".join(mark.join(row) for row in rows))
    assert (
        dict(zip(zip(edges.source.tolist(), edges.target.tolist(), strict=True), edges.volume.tolist(), strict=True))
        == PIVOT
    )
    assert (edges.size, edges.exact, notes) == (11, False, [])


@pytest.mark.parametrize("end", ["", "\n\n"])
@pytest.mark.parametrize("form", ["{}", "{:.1f}", "{:.6e}"])
@pytest.mark.parametrize(
    ("third", "fourth", "kinds"), [(900, 3, "bytes,hops"), (3, 24, "count,bytes"), (9, 400, "count,bytes")]
)
def test_a_fourth_column_has_one_meaning_in_every_spelling(tmp_path, end, form, third, fourth, kinds):
    rows = [f"{u} {u + 1} {form.format(third)} {form.format(fourth)}" for u in range(6)]
    assert f"taken as src,dst,{kinds};" in "".join(read(tmp_path, "\n".join(rows) + end)[1])


@pytest.mark.parametrize(
    "line",
    [
        "0 1 1,500",
        "0\t1\t1,500",
        '0,1,"1,500"',
        "0;1;1500,0",
        "0 -> 1 : 1500",
        "0 -> 1: 1500",
        "0, 1, 1500",
        "0 1,1500",
    ],
)
def test_a_list_has_one_meaning_between_all_marks(tmp_path, line):
    edges, _ = read(tmp_path, f"{line}\n" * 6)
    assert (edges.source.tolist(), edges.target.tolist(), edges.volume.tolist()) == ([0] * 6, [1] * 6, [1500] * 6)


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


def test_columns_that_name_no_ranks_are_refused(tmp_path):
    with pytest.raises(GraphFileError, match="expecting columns such as src,dst,count,bytes, got 'a,b'"):
        read(tmp_path, "0 1 5\n", columns=("a", "b"))
    with pytest.raises(GraphFileError, match="f:2: expecting 'src dst bytes', got '0 1'"):
        read(tmp_path, "src dst bytes\n0 1\n0 1 5\n")
