"""The study of fair prices in the model: its page has what the study makes, and no demand fails."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from studies.poppa.applications import applications, cells_of, literal
from studies.poppa.coverage import LENGTHS, REFILLS
from tests.colocation.estimates.test_estimators import noisy
from tests.studies.test_studies import rows_of


def test_no_case_of_the_grid_has_fewer_than_90_of_100_intervals_with_the_truth():
    rows = rows_of("poppa coverage of both")
    least = rows[0].index("coverage: least, mean, new")
    assert len(rows) == 1 + len(REFILLS) * len(LENGTHS)
    assert all(int(row[least].partition("%")[0]) >= 90 for row in rows[1:])


def test_phases_of_1_ms_are_found_by_balanced_and_not_by_the_source():
    first, second, *_ = applications()
    loud = applications()[10]
    cells = [cells_of([one, loud], nodes=128, rounds=4, seed=seed)[0] for one in (first, second) for seed in (0, 1)]
    assert sum(abs(cell.error("balanced")) for cell in cells) / 4 < 0.03
    assert max(abs(cell.error("algorithm 4")) for cell in cells) > 0.05


def test_algorithm_4_word_for_word_has_the_published_bias_and_is_1_if_no_shutter_passes():
    assert literal(noisy(1.0, 0.02)) == pytest.approx(0.975, abs=0.002)
    assert literal(noisy(0.5, 0.0, 50)) == pytest.approx(0.5)
    assert literal(noisy(1.0, 0.0, 50)) == 1.0


def test_algorithm_4_takes_no_shutter_of_another_job():
    groups = noisy(0.5, 0.0, 50)
    rates = groups.rates.copy()
    rates[1, ::2] = np.nan  # the job stands still for another one
    assert literal(replace(groups, rates=rates)) == literal(groups) == pytest.approx(0.5)
