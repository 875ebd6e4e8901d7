"""What is chosen without measurements, against measurements of all algorithms on emulated networks."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.predictions import read
from topompi.selection.classes import NATIVE

RECORD = Path(__file__).parent / "records" / "emulated.json"
LONG = 64 << 10  # bytes: below, start-ups decide, which no rate tells


@pytest.fixture(scope="module")
def scores():
    return read(RECORD)


def test_no_choice_lost_against_native_where_it_was_measured(scores):
    assert len(scores) > 100
    lost = [(one.cell.job, one.cell.method, one.chosen, one.gain) for one in scores if one.gain < 0.97]
    assert lost == []


def test_the_chosen_algorithm_is_mostly_the_fastest_one(scores):
    """The aim is 1.2 for nine of ten.

    Chains are faster than predicted: a shaped link at rest takes 15 KB at once. Allreduces of 64 KiB by ``ring``, the
    fastest there, lost in a job whose processors were busy, so they are out of the default set.
    """
    regrets = [one.regret for one in scores if one.cell.nbytes >= LONG]
    assert np.median(regrets) < 1.02
    assert np.quantile(regrets, 0.9) < 1.4


def test_algorithms_rank_as_they_were_measured(scores):
    assert np.median([one.correlation for one in scores if one.cell.nbytes >= LONG]) > 0.8


def test_the_librarys_own_time_is_known_within_a_third(scores):
    known = [one.native_ratio for one in scores if one.cell.nbytes >= LONG and "ignores switches" not in one.native]
    assert len(known) > 50
    assert np.mean(np.abs(np.log(known)) < np.log(4 / 3)) > 0.9


def test_what_is_left_to_the_library_is_so_for_lack_of_a_prediction_not_of_candidates(scores):
    gains = {one.cell.method: 0.0 for one in scores}
    for one in scores:
        gains[one.cell.method] = max(gains[one.cell.method], one.gain if one.chosen != NATIVE else 1.0)
    assert {method for method, gain in gains.items() if gain > 1.1} >= set(gains) - {"Scatter"}
