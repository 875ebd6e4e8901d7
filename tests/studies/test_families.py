"""The study of new allreduces: its rows, and the bytes between cells that it counts."""

from __future__ import annotations

import tarfile
from io import BytesIO

import numpy as np
import pytest

from studies.families.allocations import BYTES, allocations, between, bytes_of, network_on
from studies.families.fabrics import FORMER, Case, rows_of
from topompi.schedules import make


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A map of five cells of four leaf switches of four nodes, and a list of 70 nodes beside one of 3."""
    folder = tmp_path_factory.mktemp("leonardo")
    lines = [f"NODE {node:04} CELL {node // 16} SWITCH {node // 4}\n" for node in range(80)]
    (folder / "map.txt").write_text("".join(lines))
    with tarfile.open(folder / "lists.tar.gz", "w:gz") as archive:
        for name, nodes in (("1.txt", range(70)), ("2.txt", range(3))):
            text = "".join(f"lrdn{node:04}\n" for node in nodes).encode()
            member = tarfile.TarInfo(name)
            member.size = len(text)
            archive.addfile(member, BytesIO(text))
    return str(folder / "map.txt"), str(folder / "lists.tar.gz")


def test_rows_say_the_fastest_former_algorithm_and_how_many_times_as_fast_the_new_ones_are():
    rows = list(rows_of([Case("XGFT(2; 4,2; 1,4)", 6), Case("torus:4x2", 8, 1)], [1024, 65536], "flows"))
    assert [row[1] for row in rows] == [
        *("fastest former, us", "`grouped`", "`bine`"),
        *("fastest former, us", "`grouped`", "`swing`", "`bucket`", "`bine`"),
    ]
    assert {cell.split()[1] for cell in rows[0][2:]} <= set(FORMER)
    assert all(float(cell) > 0 for cell in rows[1][2:])


def test_bytes_between_cells_are_counted_on_jobs_of_many_nodes_alone(files):
    cluster, jobs = allocations(*files)
    assert [len(nodes) for nodes in jobs] == [70]
    network = network_on(cluster, jobs[0])
    cell = network.clusters[0]
    assert np.bincount(cell)[np.unique(cell)].tolist() == [16, 16, 16, 16, 6]
    assert between(make("allreduce", "grouped", network), cell) == 2 * 4
    assert {int(hops) for hops in network.hops.ravel()} == {0, 1, 3, 4}
    rows = {row[0]: row for row in bytes_of(*files)}
    assert rows["`grouped`"][1:6] == rows["least possible"][1:6]
    assert {len(row) for row in rows.values()} == {len(BYTES)}
