"""One communication graph in the forms in which programs and people write it: every one is read, or said why not."""

import io
import json
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import examples
from topompi.mapping.readers import GraphFileError, read_graph

ROWS = [(0, 1, 5000), (1, 2, 7000), (2, 3, 9000), (3, 4, 11000), (4, 0, 13000), (0, 2, 600)]
GRAPH = {(u, v): w for u, v, w in ROWS}
HALVES = {end: w // 2 for (u, v), w in GRAPH.items() for end in ((u, v), (v, u))}
ONES = dict.fromkeys(GRAPH, 1)
MATRIX = np.zeros((5, 5), dtype=int)
MATRIX[tuple(np.array(list(GRAPH)).T)] = list(GRAPH.values())
DIRECTED, UNDIRECTED = nx.DiGraph(), nx.Graph()
for made in (DIRECTED, UNDIRECTED):
    made.add_weighted_edges_from(ROWS)


def listed(form: str, heading: str = "", first: int = 0) -> str:
    """The lines of a list; ``form`` has u, v and w (bytes), k (KiB) and i (number of the line)."""
    rows = (form.format(u=u + first, v=v + first, w=w, k=w / 1024, i=i) for i, (u, v, w) in enumerate(ROWS, 1))
    return "\n".join([heading] * bool(heading) + list(rows)) + "\n"


def dense(between: str = " ", end: str = "", labels: str = "", heading: str = "") -> str:
    rows = [between.join(map(str, row)) + end for row in MATRIX.tolist()]
    return "".join(
        f"{line}\n" for line in [heading] * bool(heading) + [labels.format(i=i) + row for i, row in enumerate(rows)]
    )


def by_networkx(write, graph, **how) -> str:
    out = io.BytesIO()
    write(graph, out, **how)
    return out.getvalue().decode()


def read(folder: Path, text: str, **how) -> tuple[dict[tuple[int, int], int], int, list[str]]:
    (folder / "g").write_text(text, newline="")
    notes: list[str] = []
    graph = read_graph(folder / "g", notes=notes, **how)
    columns = (graph.sources, graph.targets, graph.volume)
    return {(int(u), int(v)): int(w) for u, v, w in zip(*columns, strict=True) if w}, graph.size, notes


@pytest.mark.parametrize(
    "text",
    [
        listed("{u},{v},{w}", "from,to,weight"),
        listed("{u} {v} {i} {w}", "sender receiver msgs volume"),
        listed("{u},{v},{w},{i}", "source,target,bytes,count"),
        listed("{u},{v},{i},{w}", "Sender Rank,Receiver Rank,Message Count,Total Bytes"),
        listed("{u},{v},{w}", "src_proc,dst_proc,tx_bytes"),
        listed("{u},{v},{w}", "source number,target number,bytes (B)"),
        listed("{u},{v},{w},{i}", "sender,receiver,bytes,max_bytes"),
        listed("{u},{v},{k!r}", "src,dst,volume_kb"),
        listed("{u},{v},{k!r}", "src,dst,KiB"),
        listed('"{u}","{v}","{w:,}"', '"src","dst","bytes"'),
        listed("{i},{u},{v},{w}", ",src,dst,bytes"),
        listed("{u},{v},{w},", "src,dst,bytes,"),
        listed("{u};{v};Directed;{i};;{w}", "Source;Target;Type;Id;Label;Weight"),
        listed("{u},{v},Directed,{i},,,{w}", "Source,Target,Type,Id,Label,timeset,Weight"),
        listed("rank{u},rank{v},{w}", "src,dst,bytes"),
        listed("{u}\t{v}\t{w}"),
        listed("{u}     {v}  {w}"),
        listed("{u};{v};{w},0"),
        listed("{u} | {v} | {w}"),
        listed("{u}|{v}|{w}", "src|dst|bytes"),
        listed("{u} -> {v}: {w}"),
        listed("{u:.18e} {v:.18e} {w:.18e}"),
        listed("{u:04d} {v}.0 {w}B"),
        listed("{u} {v} {w}", "// src dst bytes"),
        "\ufeff" + listed("{u},{v},{w}", "src,dst,bytes").replace("\n", "\r\n"),
        dense(end=" "),
        dense(","),
        dense(",", ","),
        dense(heading="5"),
        dense(heading="5 5"),
        dense(",", heading="0,1,2,3,4"),
        dense(",", labels="{i},", heading="Rank,0,1,2,3,4"),
        dense(",", labels="rank{i},", heading=",rank0,rank1,rank2,rank3,rank4"),
        dense(labels="P{i} ", heading="P0 P1 P2 P3 P4"),
        dense(labels="{i} "),
        dense(labels="{i}: "),
        f"{MATRIX}\n",
        json.dumps(MATRIX.tolist()),
        json.dumps(ROWS),
        json.dumps([{"src": u, "dst": v, "bytes": w} for u, v, w in ROWS]),
        by_networkx(nx.write_edgelist, DIRECTED),
        by_networkx(nx.write_multiline_adjlist, DIRECTED),
        by_networkx(nx.write_graphml, DIRECTED),
        by_networkx(nx.write_gml, DIRECTED),
        by_networkx(nx.write_pajek, nx.DiGraph(DIRECTED)),
        json.dumps(nx.node_link_data(DIRECTED, edges="links")),
        json.dumps(nx.node_link_data(DIRECTED, edges="edges")),
        json.dumps(nx.adjacency_data(DIRECTED)),
    ],
)
def test_one_graph_in_every_form_is_one_graph(text: str, tmp_path: Path) -> None:
    assert read(tmp_path, text)[:2] == (GRAPH, 5)


@pytest.mark.parametrize(
    "text",
    [
        listed("{u},{v},Undirected,{i},{w}", "Source,Target,Type,Id,Weight"),
        by_networkx(nx.write_graphml, UNDIRECTED),
        by_networkx(nx.write_gml, UNDIRECTED),
        json.dumps(nx.node_link_data(UNDIRECTED, edges="links")),
    ],
)
def test_half_of_an_undirected_edge_goes_each_way(text: str, tmp_path: Path) -> None:
    assert read(tmp_path, text)[0] == HALVES


@pytest.mark.parametrize(
    ("text", "found", "said"),
    [
        (listed("{u} {v} {w}", first=1), GRAPH, "rank 1 is the first, taken as rank 0; else --ranks 6"),
        (
            listed("{u} {v} {w}K"),
            {ends: w * 1024 for ends, w in GRAPH.items()},
            "5000K is 5,120,000 bytes: K, M, G and T",
        ),
        (listed("{u} {v} {w} MB"), {ends: w << 20 for ends, w in GRAPH.items()}, "5000MB is 5,242,880,000 bytes"),
        (listed("{u},{v},{i},{w}", "src,dst,size,bytes"), GRAPH, "size is not read; else --columns"),
        (listed("{u},{v},{w}", "src,dst,rate"), ONES, "each line counts 1 (rate is not read"),
        (
            listed("{u},{v},{i}", "src,dst,count"),
            dict(zip(GRAPH, range(1, 7), strict=True)),
            "its numbers of messages count",
        ),
        (
            listed("{u} {v} {i} 8"),
            dict.fromkeys(GRAPH, 8),
            "taken as src,dst,count,bytes; else --columns src,dst,bytes,hops",
        ),
        (listed("{u} {v} {w} 3"), GRAPH, "taken as src,dst,bytes,hops; else --columns src,dst,count,bytes"),
        # The writer puts the time into its text, which would be part of the test's name.
        pytest.param(by_networkx(nx.write_adjlist, DIRECTED), ONES, "each neighbour counts 1", id="adjlist"),
        (by_networkx(nx.write_adjlist, DIRECTED).partition("\n0")[2].join(["0", ""]), ONES, "each neighbour counts 1"),
        (by_networkx(nx.write_graphml, nx.DiGraph(list(GRAPH))), ONES, "edges without a weight: each counts 1"),
    ],
)
def test_a_guess_is_said(text: str, found: dict[tuple[int, int], int], said: str, tmp_path: Path) -> None:
    volumes, _, notes = read(tmp_path, text)
    assert volumes == found
    assert len(notes) == 1
    assert said in notes[0]


def test_the_number_of_ranks_or_the_columns_settle_from_which_rank_a_list_counts(tmp_path: Path) -> None:
    text, shifted = listed("{u} {v} {w}", first=1), {(u + 1, v + 1): w for (u, v), w in GRAPH.items()}
    assert read(tmp_path, text, size=5)[:2] == (GRAPH, 5)
    assert read(tmp_path, text, size=6) == (shifted, 6, [])
    assert read(tmp_path, text, columns=("src", "dst", "bytes")) == (shifted, 6, [])
    assert read(tmp_path, text, columns=("src1", "dst1", "bytes")) == (GRAPH, 5, [])
    assert read(tmp_path, "1 2 500\n2 4 500\n")[:2] == ({(1, 2): 500, (2, 4): 500}, 5)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (listed("{u} {v} {i} {w} 0.5"), "g:1: expecting 2 to 4 numbers, names of the columns .* --columns, or as many"),
        (dense().rpartition("1")[0], "g:1: expecting 2 to 4 numbers, .* or as many numbers as lines"),
        (listed("{u} {v} {w}Q"), "g:1: expecting a number of bytes, got '5000Q'"),
        (listed("{u}.5 {v} {w}"), "g:1: expecting a rank .*, got '0.5'"),
        ("digraph {\n0 -> 1 [weight=5];\n}\n", "got a graph in DOT"),
        ("@ mpiP\n@ Command : ./a.out\n", "got a report of mpiP, which does not tell which ranks exchange messages"),
        ("<?xml version='1.0'?>\n<ipm_job_profile>\n", "got a profile of IPM"),
        (
            '<!DOCTYPE g [<!ENTITY a "b">]>\n<graphml><graph></graph></graphml>',
            "g:1: expecting GraphML without entities",
        ),
        ("graph [\n node [ id 0\n", "g: expecting GML, got: expected"),
        ('<graphml><graph><edge source="0"', "g: expecting GraphML, got: unclosed token"),
        ("*Vertices 2\n*Arcs\n1 2 5\n*Edges\n1 2 5\n", r"expecting either \*Arcs or \*Edges"),
        (
            json.dumps({"nodes": [{"id": "a"}, {"id": "b"}], "links": [{"source": "a", "target": "b"}]}),
            "expecting a rank",
        ),
    ],
)
def test_what_is_not_read_is_named(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(GraphFileError, match=said):
        read(tmp_path, text)


@pytest.mark.parametrize("text", ["0 1 {long} 3\n", "0 {long}\n", "#a\n# GMT x\n0 {long}\n", ",\n,\n", "1 2\n,\n"])
def test_numbers_of_thousands_of_digits_and_empty_rows_are_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(GraphFileError):
        read(tmp_path, text.format(long="9" * 5000))


WRITERS = [nx.write_graphml, nx.write_gml, nx.write_multiline_adjlist, nx.write_edgelist]


@examples(40)
@given(
    edges=st.dictionaries(st.tuples(st.integers(0, 9), st.integers(0, 9)), st.integers(1, 2**40), min_size=1),
    write=st.sampled_from(WRITERS),
)
def test_whatever_networkx_writes_is_read_as_networkx_has_it(tmp_path_factory, edges, write) -> None:
    graph = nx.DiGraph()
    graph.add_node(0)
    graph.add_weighted_edges_from((u, v, w) for (u, v), w in edges.items())
    found, size, _ = read(tmp_path_factory.getbasetemp(), by_networkx(write, graph), size=10)
    assert found == edges
    assert size == 10
