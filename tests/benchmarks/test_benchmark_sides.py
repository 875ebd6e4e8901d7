"""The sides of benchmarks that count as one, and variation of cells beyond chance."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.emulated import rivals_among
from benchmarks.sides import spread, together
from osu_like_bench.statistics import Comparison


def cells(ratios: np.ndarray, error: float) -> list[Comparison]:
    """Comparisons whose logarithms have a standard error."""
    ends = np.exp(np.log(ratios)[:, None] + 1.96 * error * np.array([-1, 1]))
    return [Comparison(ratio, *pair, 100) for ratio, pair in zip(ratios.tolist(), ends.tolist(), strict=True)]


@given(st.lists(st.floats(0.5, 2), min_size=2, max_size=30), st.floats(0.001, 0.5))
def test_spread_of_cells_measured_alike_is_their_variance_without_that_of_chance(ratios, error):
    found = spread(cells(np.array(ratios), error))
    assert found == pytest.approx(np.sqrt(max(0, np.var(np.log(ratios), ddof=1) - error**2)), rel=1e-6, abs=1e-6)


def test_a_cell_known_better_counts_for_more():
    generator = np.random.default_rng(0)
    errors = np.repeat([0.01, 0.3], 500)
    for true in (0.0, 0.05):
        logs = true * generator.normal(size=1000) + errors * generator.normal(size=1000)
        found = [one for log, error in zip(logs, errors, strict=True) for one in cells(np.exp([log]), error)]
        assert spread(found) == pytest.approx(true, abs=0.005)


def test_cells_without_an_interval_say_nothing_of_the_spread():
    alone = [Comparison(ratio, ratio, ratio, 1) for ratio in (0.5, 1.0, 2.0)]
    assert spread(alone) == 0
    apart = cells(np.array([0.8, 1.25]), 0.01)
    assert spread(alone + apart) == spread(apart) > 0.3
    assert "3 cells, geometric mean 1.000x; below 0.97: 1, with the whole interval 1; least 0.500x" in together(
        alone, 0.97
    )


def test_one_program_under_two_names_is_one_rival():
    assert rivals_among(["mpich", "openmpi", "topompi", "han"]) == [["openmpi", "han"], ["mpich"]]
    assert rivals_among(["topompi", "han"]) == [["han"]]
    assert rivals_among(["topompi"]) == [["topompi"]]
