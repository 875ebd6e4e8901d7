"""The study of least times: its page has all fabrics, and no schedule is faster than the least time."""

import re

import pytest

from studies.optimum.cli import COLLECTIVES, SIZES, best, others, ours, unaware
from studies.optimum.fabrics import FABRICS, QUICK, network
from tests.studies.test_studies import rows_of
from topompi.schedules import optimum


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_the_page_has_every_fabric_and_no_time_below_the_least(collective):
    rows = rows_of(f"optimum {collective}")[1:]
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
