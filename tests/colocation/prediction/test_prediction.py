"""Prediction of unmeasured pairs: drawn matrices of known parts, published ones, files, and the command."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from studies.coscheduling2025.active import POLICIES, curve
from tests.support import examples, refusal, shared_data
from topompi.cli.colocate.app import app
from topompi.machine.colocation.errors import ColocationError
from topompi.machine.colocation.prediction.cells import (
    LEAST,
    PredictedCells,
    choose_terms,
    expected_accuracy,
    left_out,
    next_cells,
    predict,
)
from topompi.machine.colocation.prediction.model import fit
from topompi.machine.colocation.speedups.bands import classes
from topompi.machine.colocation.speedups.files import read_speedups, write_speedups
from topompi.machine.colocation.speedups.matrix import Speedups

NAS = [
    "bt.D.256",
    "cg.D.128",
    "cg.D.64",
    "cg.E.512",
    "ep.E.256",
    "ft.D.256",
    "ft.D.64",
    "is.E.256",
    "lu.D.256",
    "mg.E.256",
    "sp.C.64",
    "sp.D.121",
    "sp.D.256",
]


def _drawn(seed: int, n: int = 9, noise: float = 0.02) -> np.ndarray:
    rng = np.random.default_rng(seed)
    level, sensitivity, pressure = rng.normal((0.1, 1, 0), (0.1, 0.5, 0.12), (n, 3)).T
    return np.exp(level[:, None] + np.outer(sensitivity, pressure) + rng.normal(0, noise, (n, n)))


def _of(ratio: np.ndarray) -> Speedups:
    return Speedups.of([f"p{at}" for at in range(len(ratio))], ratio)


def test_cells_of_rank_one_are_recovered_without_noise():
    ratio = _drawn(1, noise=0)
    known = np.random.default_rng(2).random(ratio.shape) < 0.7
    mean = fit(np.log(np.where(known, ratio, np.nan)), known[None]).mean[0]
    assert np.abs(mean - np.log(ratio))[~known].max() < 0.02


def test_a_mask_is_fitted_the_same_alone_and_beside_others():
    ratio = np.log(_drawn(3))
    masks = np.random.default_rng(4).random((5, *ratio.shape)) < 0.8
    together = fit(ratio, masks, 2)
    for at, mask in enumerate(masks):
        assert fit(ratio, mask[None], 2).mean[0] == pytest.approx(together.mean[at], abs=1e-9)


def test_a_left_out_cell_has_no_part_in_its_own_speed_up():
    ratio = _drawn(5, n=6)
    changed = ratio.copy()
    changed[1, 4] *= 3
    one, other = (left_out(_of(values)) for values in (ratio, changed))
    for name in ("speedup", "error"):
        assert getattr(one, name)[1, 4] == pytest.approx(getattr(other, name)[1, 4], rel=1e-12)


def test_intervals_cover_the_promised_share_of_drawn_cells():
    inside = []
    for seed in range(20):
        ratio = _drawn(seed)
        known = np.random.default_rng(100 + seed).random(ratio.shape) < 0.7
        made = predict(_of(np.where(known, ratio, np.nan)), terms=1)
        inside += ((made.low <= ratio) & (ratio <= made.high))[~known].tolist()
    assert 0.85 <= np.mean(inside) <= 0.97


def test_intervals_are_as_wide_as_conformal_prediction_says():
    """The factor of the errors is the ``ceil((n + 1) level)``-th least score; of a cell left out, without its own."""
    speedups = _of(_drawn(11, n=6))
    made = predict(speedups, terms=1)
    factor = np.log(made.high / made.speedup) / made.error
    assert factor == pytest.approx(np.full((6, 6), np.sort(np.abs(made.scores))[math.ceil(37 * 0.9) - 1]))
    made = left_out(speedups, terms=1)
    scores = (np.log(speedups.ratio) - np.log(made.speedup)) / made.error
    for row, column in np.ndindex(6, 6):
        others = np.sort(np.abs(np.delete(scores.ravel(), 6 * row + column)))
        wanted = others[math.ceil(36 * 0.9) - 1]
        assert np.log(made.high / made.speedup)[row, column] / made.error[row, column] == pytest.approx(wanted)


def test_as_many_terms_are_chosen_as_the_classes_need():
    rng = np.random.default_rng(12)
    two = np.exp(rng.normal(0, 0.3, (12, 2)) @ rng.normal(0, 0.5, (2, 12)))
    known = np.ones((12, 12), bool)
    assert choose_terms(two, known) > 1
    assert choose_terms(np.exp(0.3 * rng.normal(0, 1, (12, 1)) * np.ones((12, 12))), known) == 1


@pytest.mark.parametrize(("file", "names", "least"), [("aris-nas", NAS, 0.90), ("marconi-speedups", None, 0.70)])
def test_published_classes_are_predicted_from_the_other_cells(file: str, names: list[str] | None, least: float):
    measured = read_speedups(shared_data(f"colocation/{file}.csv"))
    measured = measured.only(names) if names else measured
    made, known = left_out(measured, terms=1), measured.known
    assert (made.label == classes(measured.ratio))[known].mean() >= least
    inside = ((made.low <= measured.ratio) & (measured.ratio <= made.high))[known]
    assert 0.85 <= inside.mean() <= 0.95


@pytest.mark.long
def test_further_programs_make_the_classes_of_13_programs_better():
    whole = read_speedups(shared_data("colocation/aris-nas.csv"))
    at = np.ix_(*[[whole.number[name] for name in NAS]] * 2)
    alone, among = left_out(whole.only(NAS)).label, left_out(whole).label[at]
    true = classes(whole.ratio[at])
    assert (among == true).mean() >= max(0.93, (alone == true).mean())


def test_the_next_cells_are_unknown_ones_each_once():
    ratio = np.where(np.random.default_rng(6).random((7, 7)) < 0.5, _drawn(7, n=7), np.nan)
    cells = next_cells(_of(ratio), predict(_of(ratio), terms=1), 99)
    assert sorted(cells) == [tuple(cell) for cell in np.argwhere(np.isnan(ratio)).tolist()]


def test_a_pair_of_unknown_cells_is_worth_more_than_a_less_sure_single_one():
    ratio = np.ones((3, 3))
    ratio[0, 1] = ratio[1, 0] = ratio[0, 2] = np.nan
    sure = np.full((3, 3), 0.7)  # probability of the best class
    sure[0, 2] = 0.5
    chance = np.stack((sure, 1 - sure, np.zeros((3, 3))), axis=-1)
    one = np.ones((3, 3))
    made = PredictedCells(one, one, one, chance, np.full((3, 3), 0.01), 1, np.ones(1), 0.9)
    assert next_cells(_of(ratio), made, 3) == [(0, 1), (1, 0), (0, 2)]


def test_too_few_cells_and_a_level_of_one_are_refused():
    few = np.full((3, 3), np.nan)
    few[0] = 1
    assert "at least 4 known cells to predict from, got 3" in refusal(predict, _of(few), error=ColocationError)
    assert "a share between 0 and 1, got 1" in refusal(lambda: predict(_of(_drawn(8)), level=1), error=ColocationError)


def test_the_command_fills_the_matrix_and_leaves_measured_cells(tmp_path: Path):
    ratio = _drawn(10, n=5)
    ratio[1, 2] = ratio[3, 0] = np.nan
    heat, filled = tmp_path / "heat.json", tmp_path / "filled.json"
    write_speedups(heat, _of(ratio))
    run = CliRunner().invoke(app, ["predict", str(heat), "-o", str(filled), "--next", "1", "--json"])
    assert run.exit_code == 0, run.output
    answer = json.loads(run.output)
    assert [(cell["program"], cell["beside"]) for cell in answer["cells"]] == [("p1", "p2"), ("p3", "p0")]
    assert len(answer["next"]) == 1
    assert answer["expected"] == pytest.approx(np.mean([cell["chance"] for cell in answer["cells"]]), abs=1e-3)
    again = read_speedups(filled).ratio
    assert np.isfinite(again).all()
    assert again[np.isfinite(ratio)].tolist() == ratio[np.isfinite(ratio)].tolist()


# --- Curves of active choice: which cells a run gives, and what the policies see.


@pytest.mark.parametrize("policy", POLICIES)
@given(seed=st.integers(0, 99), batch=st.integers(1, 4))
@examples(9)
def test_each_step_measures_as_many_pairs_as_the_batch_and_the_last_leaves_cells(policy: str, seed: int, batch: int):
    steps = curve(_of(_drawn(seed, 6, 0)), POLICIES[policy], seed=seed, batch=batch, terms=1)
    counts = [one.cells for one in steps]
    assert LEAST <= counts[0] <= LEAST + 1
    assert all(batch <= more <= 2 * batch for more in np.diff(counts))
    assert 36 - counts[-1] >= LEAST
    assert all(0 <= one.accuracy <= 1 and 1 / 3 <= one.expected <= 1 for one in steps)


def test_policies_begin_with_the_same_cells_and_see_measured_cells_only():
    speedups, asked = _of(_drawn(1, 6, 0)), []

    def spy(now: Speedups, prediction: object, rng: np.random.Generator) -> list[tuple[int, int]]:
        asked.append(now.known)
        return POLICIES["random"](now, prediction, rng)

    steps = curve(speedups, spy, seed=2, terms=1)
    assert [int(known.sum()) for known in asked] == [one.cells for one in steps]
    assert all((known == known.T).all() for known in asked)
    first = {name: curve(speedups, policy, seed=2, terms=1)[0] for name, policy in POLICIES.items()}
    assert len(set(first.values())) == 1


def test_unknown_cells_of_the_matrix_are_never_measured():
    speedups = _of(_drawn(3, 6, 0))
    ratio = speedups.ratio.copy()
    ratio[0, 1:] = np.nan
    known = []

    def spy(now: Speedups, prediction: object, rng: np.random.Generator) -> list[tuple[int, int]]:
        known.append(now.known)
        return POLICIES["random"](now, prediction, rng)

    steps = curve(Speedups.of(speedups.programs, ratio), spy, terms=1)
    assert not any(one[0, 1:].any() for one in known)
    assert max(one.cells for one in steps) <= 31 - LEAST


def test_the_expected_share_is_the_mean_chance_of_the_predicted_classes():
    speedups = _of(_drawn(4, 6, 0))
    made = predict(speedups, terms=1)
    cells = np.eye(6, dtype=bool)
    wanted = np.mean([made.chance[at, at, made.label[at, at]] for at in range(6)])
    assert expected_accuracy(made, cells) == pytest.approx(wanted)
    assert np.isnan(expected_accuracy(made, ~np.ones((6, 6), bool)))
