"""Files of speed-ups: three forms, the published numbers, and what is refused."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import examples, refusal, shared_data
from topompi.machine.colocation.errors import ColocationError
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
from topompi.machine.colocation.speedups.files import HEADER, read_speedups, speedups_of_runs, write_speedups
from topompi.machine.colocation.speedups.matrix import Speedups

RATIOS = st.one_of(st.just(float("nan")), st.floats(0.01, 100))


@examples(60)
@given(st.data(), st.integers(1, 5))
def test_a_written_matrix_is_read_back_to_the_last_bit(tmp_path_factory: pytest.TempPathFactory, data, n: int):
    ratio = np.array(data.draw(st.lists(RATIOS, min_size=n * n, max_size=n * n))).reshape(n, n)
    made = Speedups.of([f"p{at}" for at in range(n)], ratio, low=ratio / 2, high=ratio * 2, compact=3.5, processes=4)
    path = tmp_path_factory.mktemp("heat") / "heat.json"
    write_speedups(path, made)
    again = read_speedups(path)
    assert again.programs == made.programs
    for name in ("ratio", "low", "high", "compact", "alone", "processes"):
        assert np.array_equal(getattr(again, name), getattr(made, name), equal_nan=True), name


def test_speedups_are_medians_of_the_last_group():
    runs = [("a", 4, "compact", "0", 8.0), ("a", 4, "compact", "1", 10.0), ("a", 4, "compact", "1", 12.0)]
    runs += [("a", 4, "a", "0", 99.0), ("a", 4, "a", "2", 5.0), ("a", 4, "a", "2", 5.5), ("a", 4, "a", "2", 6.0)]
    assert speedups_of_runs(runs).ratio.tolist() == [[2.0]]


def test_the_published_measurements_have_the_published_means():
    spec = read_speedups(shared_data("colocation/aris-spec.csv"))
    assert len(spec) == 8
    assert spec.known.sum() == 63
    marconi = read_speedups(shared_data("colocation/marconi-speedups.csv"))
    assert marconi.ratio.mean() == pytest.approx(1.122, abs=5e-4)
    assert marconi.ratio[marconi.number["ft"], marconi.number["cg"]] == 1.47


def test_a_program_runs_beside_nothing_as_fast_as_beside_the_best_neighbour_unless_this_was_measured():
    made = Speedups.of("abc", [[1, 1.5, np.nan], [0.9, 1, 1], [np.nan] * 3], alone=[np.nan, 1.7, np.nan])
    assert made.beside_nothing.tolist() == [1.5, 1.7, 1.0]


def _json(**changed: object) -> str:
    cell = {"program": "a", "beside": "a", "speedup": 1.5}
    return json.dumps(HEADER | {"programs": [{"name": "a"}], "cells": [cell]} | changed)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"format": "other"}', "expecting an object with"),
        (_json(programs=[{"name": "a"}, {"name": "a"}]), "each name once, got 'a' twice"),
        (_json(programs=[{}]), "programs[0]: name: expecting str, got None"),
        (_json(cells=[{"program": "b"}]), "cells[0]: program: expecting a program of the list, got 'b'"),
        (_json(cells=[{"program": "a", "beside": "a", "speedup": "1"}]), "cells[0]: speedup: expecting float, got '1'"),
        (_json(cells=[{"program": "a", "beside": "a", "speedup": 0}]), "ratio: expecting positive numbers, got 0"),
        (_json(cells=3), "cells: expecting a list of objects, got 3"),
        (
            "application,a,b\na,1,2\nc,1,2\n",
            "line 3: expecting a program of the first line, once, and 2 cells, got 'c'",
        ),
        ("application,a,b\na,1\n", "line 2: expecting a program of the first line, once, and 2 cells, got 'a' and 1"),
        ("application,a\na,fast\n", "line 2: a: expecting a positive number, got 'fast'"),
        ("application,processes,beside,group,seconds\na,4,b,0,-1\n", "line 2: seconds: expecting a positive number"),
        ("application,processes,beside,group,seconds\na,4,b,0,1\n", "expecting runs in compact mode, got none"),
        ("words\n", "expecting a matrix"),
    ],
)
def test_a_malformed_file_is_refused_in_one_line_with_its_place(tmp_path: Path, text: str, problem: str):
    path = tmp_path / "heat"
    path.write_text(text)
    message = refusal(read_speedups, path, error=ColocationError)
    assert message.startswith(f"{path}: ")
    assert problem in message
    assert "\n" not in message


# --- Classes of speed-ups, and verdicts on predicted classes.


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
