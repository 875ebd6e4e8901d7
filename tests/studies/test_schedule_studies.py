"""Studies of schedules: new allreduces, least times, and slow hosts."""

import re
import tarfile
from io import BytesIO

import numpy as np
import pytest

from studies.families.allocations import BYTES, allocations, between, bytes_of, network_on
from studies.families.fabrics import FORMER, Case, rows_of
from studies.optimum.cli import COLLECTIVES, SIZES, best, others, ours, unaware
from studies.optimum.fabrics import FABRICS, QUICK, network, slowed
from studies.slow.cli import ALL, HALF, HOSTS, WITHOUT, aside, fastest
from tests.studies.test_studies import rows_of as page_rows
from topompi.schedules import make, optimum


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


# --- The study of least times: its page has all fabrics, and no schedule is faster than the least time.


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_the_page_has_every_fabric_and_no_time_below_the_least(collective):
    rows = page_rows(f"optimum {collective}")[1:]
    assert [row[0] for row in rows] == list(FABRICS)
    ratios = [float(one) for row in rows for cell in row[2:] for one in re.findall(r"(?:^|; )([0-9.]+) ", cell)]
    assert len(ratios) > len(SIZES) * len(FABRICS)
    assert min(ratios) >= 0.995
    # Before, ours, other: nothing that may be chosen now is slower than what might be chosen before.
    cells = [re.findall(r"(?:^|; )([0-9.]+) ", cell) for row in rows for cell in row[2:]]
    assert all(float(one[1]) <= float(one[0]) for one in cells if len(one) == 3)


def test_the_fastest_schedule_takes_at_least_the_least_time():
    place = network(QUICK["XGFT 2:1, 16 hosts"])
    least = optimum("allreduce", place).given.seconds * (1 << 20)
    for seen, names in ((place, ours("allreduce", 1 << 20, place)), (unaware(place), others("allreduce"))):
        seconds, name = best(place, seen, "allreduce", 1 << 20, names)
        assert least < seconds < 2 * least
        assert name in names


# --- The study of slow hosts: its page has all rows, no time is below the least, and slow hosts aside are faster.


ROWS = {
    "ranks": ["8", "16", "32", "64"],
    "fabrics": [name for name in FABRICS if name not in WITHOUT],
    "hosts": list(HOSTS),
}


@pytest.mark.parametrize("name", ROWS)
def test_the_page_has_every_row_and_no_time_below_the_least(name):
    rows = page_rows(f"slow {name}")[1:]
    assert [row[0] for row in rows] == ROWS[name]
    for cell in (cell for row in rows for cell in row[1:]):
        least, every, beside = (float(part.split()[0]) for part in cell.split("; ")[1:])
        assert least - 0.005 <= beside < every


def test_a_slow_host_aside_is_faster_and_no_faster_than_the_least_time():
    place = network(QUICK["XGFT 2:1, 16 hosts"])
    slow, nbytes = slowed(place, HALF), 4 << 20
    least = optimum("allreduce", slow).given.seconds * nbytes
    beside, name = fastest(slow, nbytes, aside(nbytes, 16))
    assert least < beside < 0.8 * fastest(slow, nbytes, ALL)[0]
    assert name.startswith("aside")
