"""Classes of speed-ups, and verdicts on predicted classes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import examples
from topompi.machine.colocation.speedups.bands import (
    BAD,
    CLASSES,
    GOOD,
    STATIONARY,
    UNKNOWN,
    VERDICTS,
    classes,
    verdicts,
)

FULLY, SUFFICIENTLY, WRONG = 2, 1, 0


@pytest.mark.parametrize(
    ("ratio", "expected"),
    [(0.9449, BAD), (0.945001, STATIONARY), (0.95, STATIONARY), (1.094, STATIONARY), (1.0951, GOOD), (1.1, GOOD)],
)
def test_a_class_is_that_of_the_speedup_with_two_decimals(ratio: float, expected: int):
    assert classes(ratio) == expected


@pytest.mark.parametrize(
    ("predicted", "ratio", "expected"),
    [
        (GOOD, 1.1, FULLY), (GOOD, 1.05, SUFFICIENTLY), (GOOD, 1.04, WRONG),
        (STATIONARY, 0.95, FULLY), (STATIONARY, 0.9, SUFFICIENTLY), (STATIONARY, 0.89, WRONG),
        (STATIONARY, 1.14, SUFFICIENTLY), (STATIONARY, 1.15, WRONG),
        (BAD, 0.94, FULLY), (BAD, 0.95, SUFFICIENTLY), (BAD, 0.96, WRONG),
    ],
)  # fmt: skip
def test_verdicts_at_the_ends_of_the_bands(predicted: int, ratio: float, expected: int):
    assert verdicts(predicted, ratio) == expected


@examples(100)
@given(st.lists(st.floats(0.01, 10), max_size=20))
def test_the_class_of_a_speedup_is_always_fully_correct(ratios: list[float]):
    assert (verdicts(classes(ratios), ratios) == FULLY).all()


def test_what_is_unknown_has_no_class_and_no_verdict():
    assert classes([np.nan]).tolist() == [UNKNOWN]
    assert verdicts([GOOD, UNKNOWN], [np.nan, 1.0]).tolist() == [UNKNOWN, UNKNOWN]
    assert (len(CLASSES), len(VERDICTS)) == (3, 3)
