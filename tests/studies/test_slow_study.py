"""The study of slow hosts: its page has all rows, no time is below the least, and slow hosts aside are faster."""

import pytest

from studies.optimum.fabrics import FABRICS, QUICK, network, slowed
from studies.slow.cli import ALL, HALF, HOSTS, WITHOUT, aside, fastest
from tests.studies.test_studies import rows_of
from topompi.schedules import optimum

ROWS = {
    "ranks": ["8", "16", "32", "64"],
    "fabrics": [name for name in FABRICS if name not in WITHOUT],
    "hosts": list(HOSTS),
}


@pytest.mark.parametrize("name", ROWS)
def test_the_page_has_every_row_and_no_time_below_the_least(name):
    rows = rows_of(f"slow {name}")[1:]
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
