"""The share of a possible gain that a file of choices gives, from measured times."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.choices_in_c_score import Cell, rechosen, share, tables

ARENA = ("4x4", "100M", "block", 1)


def cell(own, rules, arena=ARENA, method="Bcast", nbytes=16384, **forced):
    sides = {"-1/0": own, "0/0": rules, **{name.replace("_", "/").strip("n"): times for name, times in forced.items()}}
    words = [
        {"number": int(name.split("/")[0]), "segment": int(name.split("/")[1]), "seconds": times}
        for name, times in sides.items()
    ]
    network, uplinks, order, ppn = arena
    named = {"network": network, "uplinks": uplinks, "order": order, "ppn": ppn}
    return Cell.of({**named, "method": method, "nbytes": nbytes, "sides": words})


def test_the_share_is_that_of_the_logarithms():
    one = cell([4.0] * 4, [2.0] * 4, n3_8192=[1.0] * 4, n9_0=None)
    assert (9, 0) not in one.times  # refused
    assert (one.gain, one.offered) == pytest.approx((np.log(2), np.log(4)))
    assert one.best == (3, 8192)
    assert share([one]) == pytest.approx(0.5)
    assert share([one, cell([4.0] * 4, [1.0] * 4)]) == pytest.approx(0.75)


def test_an_algorithm_that_is_fastest_by_chance_offers_nothing():
    lucky = cell([2.0] * 4, [2.0] * 4, n1_0=[1.0, 3.0, 1.0, 3.0])
    assert lucky.offered == pytest.approx((np.log(2 / 3) + 0) / 2)
    assert cell([2.0] * 4, [2.0] * 4, n1_0=[1.0]).offered == 0  # left out early


def test_another_choice_gets_the_time_of_the_algorithm_that_it_names():
    times = {"own": [4.0] * 4, "rules": [3.0] * 4, "n6_0": [2.0] * 4, "n3_8192": [1.0] * 4}
    one, two = cell(**times), cell(**times, arena=(*ARENA[:3], 2))
    assert rechosen(one, 3, 8192, 16).gain == pytest.approx(np.log(4))
    assert rechosen(one, 0, 0, 16).gain == 0  # coll/tuned's choice is the library's
    assert rechosen(two, 0, 0, 16).gain == pytest.approx(np.log(2))  # binomial, because coll/han does not run
    assert rechosen(one, 8, 0, 16) is None


def test_the_tables_name_what_is_slower_with_the_file():
    cells = [cell([1.0] * 4, [1.1] * 4), cell([1.0] * 4, [0.5] * 4, method="Reduce", n7_0=[0.4] * 4)]
    lines = list(tables(cells))
    assert "| Reduce | 1 | 2.00 | 2.50 | 0.76 |" in lines
    assert lines[-2].startswith("1 of 2 collectives in a job are below 0.97. The slowest are Bcast, 4x4, uplinks 100M")
