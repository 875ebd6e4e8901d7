"""Scores of predicted classes, parts of rows, two models together, and the frontier: against definitions by loops."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from studies.coscheduling2025.scoring import both_good, frontier, held_out, score, unseen
from tests.support import examples
from topompi.machine.colocation.prediction.features import FeatureRows
from topompi.machine.colocation.speedups.bands import BAD, GOOD, STATIONARY

CODES = st.lists(st.tuples(*[st.integers(0, 2)] * 3), min_size=1, max_size=40).map(lambda rows: np.array(rows).T)


@given(CODES)
@examples(60)
def test_a_score_counts_rows(codes: np.ndarray):
    predicted, measured, _ = codes
    made, both = score(predicted, measured), list(zip(predicted.tolist(), measured.tolist(), strict=True))
    assert math.isclose(made.accuracy, sum(one == other for one, other in both) / len(both))
    called, good = ([row for row in both if row[at] == GOOD] for at in (0, 1))
    for found, rows, at in ((made.precision, called, 1), (made.recall, good, 0)):
        if rows:
            assert math.isclose(found, sum(row[at] == GOOD for row in rows) / len(rows))
        else:
            assert math.isnan(found)
    assert made.confusion.tolist() == [[both.count((ours, true)) for ours in range(3)] for true in range(3)]


@given(CODES)
@examples(60)
def test_a_pair_says_good_only_if_both_do_and_never_calls_more_good(codes: np.ndarray):
    first, second, measured = codes
    both = both_good(first, second)
    assert ((both == GOOD) == ((first == GOOD) & (second == GOOD))).all()
    assert both.tolist() == both_good(second, first).tolist()
    one_only = (first == GOOD) != (second == GOOD)
    assert (both == np.where(first == GOOD, second, first))[one_only].all()
    if (measured == GOOD).any():
        recalls = [score(one, measured).recall for one in (both, first, second)]
        assert recalls[0] <= min(recalls[1:])


def test_of_two_classes_that_are_not_good_the_worse_is_taken():
    assert both_good([BAD, STATIONARY], [STATIONARY, BAD]).tolist() == [BAD, BAD]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=25))
@examples(60)
def test_the_frontier_has_the_points_that_no_other_beats(points: list[tuple[int, int]]):
    def beaten(one: tuple[int, int]) -> bool:
        return any(a >= one[0] and b >= one[1] and (a, b) != one for a, b in points)

    assert frontier(points).tolist() == [not beaten(one) for one in points]


def test_a_point_without_precision_is_beaten():
    assert frontier([(0.5, math.nan), (0.5, 0.1)]).tolist() == [False, True]


def test_the_source_s_218_rows_are_152_and_66():
    test = unseen(218, 3)
    assert (test.sum(), (~test).sum()) == (66, 152)
    assert (test != unseen(218, 4)).any()


def test_no_training_row_of_a_held_out_group_knows_it():
    names = ["cg.C", "cg.D", "ep.C", "ft.C"]
    one, other = (np.array(names, dtype=object)[at.ravel()] for at in np.indices((4, 4)))
    pairs = FeatureRows("axes", np.zeros((16, 1)), np.zeros(16, np.int8), one, other)
    seen = []
    for group, train, test in held_out(pairs, lambda name: name.partition(".")[0]):
        assert (train != test).all()
        assert not any(name.startswith(group) for name in [*one[train], *other[train]])
        assert all(a.startswith(group) or b.startswith(group) for a, b in zip(one[test], other[test], strict=True))
        seen.append((group, int(test.sum())))
    assert seen == [("cg", 12), ("ep", 7), ("ft", 7)]
