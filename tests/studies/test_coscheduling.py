"""The study of co-scheduling: its command, and the experiment with random pools of jobs."""

import numpy as np
import pytest

from studies.coscheduling2025 import predict, trained
from studies.coscheduling2025.bounds import without_sizes
from studies.coscheduling2025.published import NAS, SPEC
from studies.coscheduling2025.rules import JOBS, experiment, implied_tags
from tests.support import shared_data
from topompi.machine.colocation.pairing.matching import sequential
from topompi.machine.colocation.pairing.values import score
from topompi.machine.colocation.rules.kinds import Kind
from topompi.machine.colocation.speedups.matrix import Speedups


def test_pools_of_a_constant_matrix_have_its_speedup():
    speedups = Speedups.of("abc", np.full((3, 3), 1.25))
    found = experiment(speedups, lambda pool: sequential(np.zeros((len(pool), len(pool)))), 3)
    assert JOBS == 300
    assert np.allclose(found, [[1.25, 0, 0.8]] * 3)


def test_programs_of_one_kind_have_score_zero():
    tags = {tag.program: tag for tag in implied_tags(NAS)}
    assert score(tags["mg.E.256"], tags["sp.C.64"]) == 0
    assert score(tags["mg.E.256"], tags["ep.E.256"]) == pytest.approx(2**0.5)


# --- The study of prediction: what its models may see, on the measurements and on a drawn matrix.


@pytest.fixture
def sklearn():
    shared_data("colocation/aris-spec.csv")
    return pytest.importorskip("sklearn")


def test_implied_axes_keep_the_order_of_bandwidths_and_regular_programs_above_irregular_ones():
    for published in (NAS, SPEC):
        tags = dict(zip(published.characters, trained.implied_axes(published), strict=True))
        regular = sorted((one for one in tags if one.kind is Kind.M), key=lambda one: one.memory)
        memory = [tags[one].memory for one in regular]
        assert memory == sorted(set(memory))
        assert all(tags[one].memory < memory[0] for one in tags if one.kind is not Kind.M)
        assert all(tags[one].misses == (one.kind is Kind.M_IRR) for one in tags)


def test_a_pair_is_predicted_without_any_size_of_it():
    names, rng = ["cg.C", "cg.D", "ep.C", "ep.D", "ft.C", "mg.C"], np.random.default_rng(0)
    level, sensitivity, pressure = rng.normal((0.1, 1, 0), (0.1, 0.5, 0.12), (6, 3)).T
    ratio = np.exp(level[:, None] + np.outer(sensitivity, pressure))
    block = np.zeros((6, 6), bool)
    block[:2, 2:4] = True  # cg beside ep
    changed = np.where(block, ratio * 2, ratio)
    one, other = (without_sizes(Speedups.of(names, values)) for values in (ratio, changed))
    assert one[block] == pytest.approx(other[block], rel=1e-9)
    assert (one[:2, 4:] != other[:2, 4:]).any()


def test_our_model_does_not_see_the_rows_that_it_answers(monkeypatch: pytest.MonkeyPatch, sklearn):
    pairs = trained.rows("kinds")
    known = np.random.default_rng(1).random(len(pairs)) < 0.5
    suites = trained._suites()
    changed, start = [], 0
    for published, speedups in suites:
        part = known[start : start + speedups.ratio.size].reshape(speedups.ratio.shape)
        changed.append((published, Speedups.of(speedups.programs, np.where(part, speedups.ratio, 3.0))))
        start += part.size
    expected = trained.ours(known)
    monkeypatch.setattr(trained, "_suites", lambda: tuple(changed))
    assert trained.ours(known).tolist() == expected.tolist()


def test_a_new_program_runs_beside_two_programs_that_are_not_sizes_of_it(sklearn):
    pairs = trained.rows("kinds")
    runs = list(trained._runs(pairs, "cg", np.random.default_rng(0)))
    assert sorted({one for one, _ in runs}) == ["cg.D.128", "cg.D.64", "cg.E.512"]
    assert len(set(runs)) == 6
    assert not any(other.startswith("cg") for _, other in runs)


def test_a_combination_with_itself_is_the_model_and_no_pair_recalls_more_than_a_member(sklearn):
    points = predict.combined((0,), "kinds")
    runs = trained.random_split("kinds", 0)
    assert len(points) == 9 + 36
    for name in predict.NAMES:
        assert points[name,][0] == pytest.approx(runs[name].score.accuracy)
    assert all(points[pair][2] <= min(points[one,][2] for one in pair) + 1e-12 for pair in points if len(pair) == 2)


# --- Improvements of the makespan beside those that the source prints, and the shape of its other experiments.


def test_improvements_by_marconis_matrix_are_within_four_points_and_grow_with_the_mean_speed_up() -> None:
    shared_data("colocation/marconi-speedups.csv")
    from studies.coscheduling2025.schedule import PUBLISHED, mean_speedups

    found = [float(row[3].split()[0]) for row in mean_speedups(4)]
    assert [round(one, 1) for one in found] == [21.3, 24.3, 26.5, 30.8]
    assert all(abs(one - other) < 4 for one, other in zip(found, PUBLISHED.values(), strict=True))


def test_filler_gains_nothing_with_one_size_and_more_than_easy_with_four() -> None:
    shared_data("colocation/aris-nas.csv")
    from studies.coscheduling2025.schedule import diversity

    one, *_, four = ([float(cell.split()[0]) for cell in row[2:]] for row in diversity(1))
    assert one[0] == one[1]
    assert one[0] > four[0]  # EASY Co loses with diversity
    assert four[1] > four[0] + 5
    assert one[2] > one[0]  # matched
    assert four[2] > four[0]
