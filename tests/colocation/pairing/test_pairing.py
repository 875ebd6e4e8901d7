"""Pairs of jobs: properties of the score, of the matchings against brute force, and of the pairing of a pool."""

import math
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import examples, refusal
from topompi.machine.colocation.errors import ColocationError
from topompi.machine.colocation.pairing.matching import greedy, optimal, sequential, total
from topompi.machine.colocation.pairing.pool import Knowledge, pair_jobs
from topompi.machine.colocation.pairing.values import machine_seconds, saved, score, scores, weights_of
from topompi.machine.colocation.profiles.record import Profile
from topompi.machine.colocation.profiles.system import System, Tag
from topompi.machine.colocation.speedups.matrix import Speedups

AXES = st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))


def _tag(axes: tuple[float, float, float], name: str = "p") -> Tag:
    return Tag(name, *axes)


@examples(100)
@given(AXES, AXES)
def test_the_score_is_a_distance(one, other):
    assert score(_tag(one), _tag(other)) == score(_tag(other), _tag(one))
    assert score(_tag(one), _tag(one)) == 0
    assert 0 <= score(_tag(one), _tag(other)) <= math.sqrt(3) + 1e-12
    assert score(_tag((1.0, 0.0, 0.0)), _tag((0.0, 1.0, 1.0))) == math.sqrt(3)


def _values(count: int, seed: int) -> np.ndarray:
    value = np.random.default_rng(seed).normal(size=(count, count)).round(1)
    return value + value.T


def _matchings(jobs: list[int]) -> Iterator[list[tuple[int, int]]]:
    """All matchings, those that leave jobs alone included."""
    if not jobs:
        yield []
        return
    first, *rest = jobs
    yield from _matchings(rest)
    for other in rest:
        for more in _matchings([one for one in rest if one != other]):
            yield [(first, other), *more]


@examples(60)
@given(st.integers(0, 8), st.integers(0, 1000), st.booleans())
def test_the_optimal_matching_is_the_best_of_all(count: int, seed: int, every: bool):
    value = _values(count, seed)
    found = optimal(value, all_paired=every)
    wanted = [one for one in _matchings(list(range(count))) if not every or len(one) == count // 2]
    assert total(value, found) == pytest.approx(max(total(value, one) for one in wanted))
    assert not every or len(found) == count // 2


@examples(60)
@given(st.integers(0, 9), st.integers(0, 1000))
def test_greedy_and_sequential_pair_all_jobs_but_the_odd_one(count: int, seed: int):
    value = _values(count, seed)
    for pairs in (greedy(value), sequential(value)):
        flat = [one for pair in pairs for one in pair]
        assert len(set(flat)) == len(flat) == count // 2 * 2
        assert total(value, pairs) <= total(value, optimal(value)) + 1e-9


def test_greedy_favours_early_jobs_and_takes_the_lowest_index_on_a_tie():
    value = np.array([[0, 2, 5, 5], [2, 0, 9, 1], [5, 9, 0, 1], [5, 1, 1, 0]], float)
    assert greedy(value) == [(0, 2), (1, 3)]
    assert optimal(value) == [(0, 3), (1, 2)]


RATIOS = st.floats(0.4, 2)


@examples(40)
@given(st.lists(RATIOS, min_size=36, max_size=36), st.lists(st.floats(1, 50), min_size=6, max_size=6))
def test_pairs_by_speedups_take_the_least_machine_time_of_all_matchings(ratios, seconds):
    matrix = Speedups.of("abcdef", np.array(ratios).reshape(6, 6), compact=seconds, processes=4)
    weights = weights_of(matrix)
    shared = machine_seconds(matrix, weights)

    def seconds_of(pairs: list[tuple[int, int]]) -> float:
        alone = set(range(6)) - {one for pair in pairs for one in pair}
        return total(shared, pairs) + sum(weights[one] for one in alone)

    found = pair_jobs("abcdef", Knowledge({}, speedups=matrix), by="speedups")
    best = min(map(seconds_of, _matchings(list(range(6)))))
    assert seconds_of([pair.jobs for pair in found.pairs]) == pytest.approx(best)
    assert found.gain == pytest.approx(weights.sum() / best)
    assert found.gain >= 1 - 1e-12


def test_a_matrix_of_ones_saves_nothing_and_pairs_nobody():
    ones = Speedups.of("ab", np.ones((2, 2)))
    assert saved(ones, weights_of(ones)).tolist() == [[0, 0], [0, 0]]
    found = pair_jobs("abab", Knowledge({}, speedups=ones), by="speedups")
    assert (found.pairs, found.gain, len(found.alone)) == ((), 1.0, 4)
    assert len(pair_jobs("abab", Knowledge({}, speedups=ones), by="speedups", all_paired=True).pairs) == 2


def test_rows_are_the_affected_programs():
    matrix = Speedups.of("ab", [[1, 1.6], [0.8, 1]])
    (pair,) = pair_jobs("ab", Knowledge({}, speedups=matrix), by="speedups").pairs
    assert pair.speedups == (1.6, 0.8)
    assert pair.reason == "6.2% less machine time than on nodes of their own"  # 1/1.6 + 1/0.8 = 1.875 of 2


def test_no_program_is_slower_than_the_least_speedup():
    matrix = Speedups.of("abc", [[1, 1.6, 1.1], [0.8, 1, 1], [1.1, 1, 1]])
    known = Knowledge({}, speedups=matrix)
    assert [pair.programs for pair in pair_jobs("abc", known, by="speedups", least=0.9).pairs] == [("a", "c")]
    assert [pair.programs for pair in pair_jobs("abc", known, by="speedups").pairs] == [("a", "c")]
    found = pair_jobs("ab", known, by="speedups", least=0.9)
    assert found.alone == ((0, "a", "no job gains with it"), (1, "b", "no job gains with it"))


def _knowledge() -> Knowledge:
    made = (
        Profile("ep", flops=9, memory=1, mpi=0.05, hits=1, misses=1),
        Profile("mg", flops=2, memory=9, mpi=0.1, hits=1, misses=1),
        Profile("sp", flops=3, memory=8, mpi=0.1, hits=1, misses=1),
        Profile("ft", flops=2, memory=3, mpi=0.7, hits=1, misses=1, shares={"Alltoall": 0.97}),
    )
    return Knowledge({one.program: one for one in made}, System("s", 10, 10, 10, 10))


def test_pairs_by_labels_avoid_two_memory_bound_programs():
    found = pair_jobs(["mg", "sp", "ep", "ft"], _knowledge(), by="labels", all_paired=True)
    assert {frozenset(pair.programs) for pair in found.pairs} == {frozenset(("mg", "ep")), frozenset(("sp", "ft"))} or (
        {frozenset(pair.programs) for pair in found.pairs} == {frozenset(("mg", "ft")), frozenset(("sp", "ep"))}
    )
    reasons = [pair.reason for pair in found.pairs if "ep" in pair.programs]
    assert reasons == ["memory-bound: good; heavily compute-bound: stationary"]


def test_pairs_by_score_name_the_axis_that_differs_most():
    found = pair_jobs(["mg", "ep", "sp"], _knowledge(), by="score")
    assert [pair.reason for pair in found.pairs] == ["profiles differ by 1.06, most in memory (0.90 and 0.10)"]
    assert found.alone == ((2, "sp", "the number of jobs is odd"),)
    assert scores(_knowledge().tags(["mg", "ep"])).shape == (2, 2)


def test_missing_cells_are_refused_or_left_out():
    matrix = Speedups.of("abc", [[1, 1.5, np.nan], [1.2, 1, 1.1], [1.1, 1.1, 1]])
    known = Knowledge({}, speedups=matrix)
    assert refusal(lambda: pair_jobs("abc", known, by="speedups"), error=ColocationError) == (
        "expecting the speed-ups of all pairs, got none of a beside c"
    )
    left = pair_jobs("ac", known, by="speedups", skip_unknown=True)
    assert left.alone == (
        (0, "a", "no other job whose speed-ups beside it are known"),
        (1, "c", "no other job whose speed-ups beside it are known"),
    )
    diagonal = Speedups.of("ab", [[np.nan, 1.5], [1.2, 1]])
    assert len(pair_jobs("ab", Knowledge({}, speedups=diagonal), by="speedups").pairs) == 1
    assert "a beside a" in refusal(
        lambda: pair_jobs("aab", Knowledge({}, speedups=diagonal), by="speedups"), error=ColocationError
    )


def test_contradictory_and_unknown_kinds_are_named():
    system = System("s", 10, 10, 10, 10)
    wrong = Profile("mg", flops=2, memory=9, mpi=0.1, misses=1, kind="C_HEAVY")
    assert refusal(lambda: Knowledge({"mg": wrong}, system).characters(["mg"]), error=ColocationError) == (
        "mg: kind: expecting M, as its metrics imply, got C_HEAVY"
    )
    strange = Profile("mg", kind="MEMORY")
    assert "mg: kind: expecting one of C_HEAVY" in refusal(
        lambda: Knowledge({"mg": strange}).characters(["mg"]), error=ColocationError
    )
    assert Knowledge({"mg": Profile("mg", kind="M")}).characters(["mg"])[0].kind.value == "M"
