"""Curves of active choice: which cells a run gives, and what the policies see."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from studies.coscheduling2025.active import POLICIES, curve
from tests.support import examples
from topompi.machine.colocation.prediction.cells import LEAST, expected_accuracy, predict
from topompi.machine.colocation.speedups.matrix import Speedups


def _drawn(seed: int, n: int = 6) -> Speedups:
    rng = np.random.default_rng(seed)
    level, sensitivity, pressure = rng.normal((0.1, 1, 0), (0.1, 0.5, 0.12), (n, 3)).T
    ratio = np.exp(level[:, None] + np.outer(sensitivity, pressure))
    return Speedups.of([f"p{at}" for at in range(n)], ratio)


@pytest.mark.parametrize("policy", POLICIES)
@given(seed=st.integers(0, 99), batch=st.integers(1, 4))
@examples(9)
def test_each_step_measures_as_many_pairs_as_the_batch_and_the_last_leaves_cells(policy: str, seed: int, batch: int):
    steps = curve(_drawn(seed), POLICIES[policy], seed=seed, batch=batch, terms=1)
    counts = [one.cells for one in steps]
    assert LEAST <= counts[0] <= LEAST + 1
    assert all(batch <= more <= 2 * batch for more in np.diff(counts))
    assert 36 - counts[-1] >= LEAST
    assert all(0 <= one.accuracy <= 1 and 1 / 3 <= one.expected <= 1 for one in steps)


def test_policies_begin_with_the_same_cells_and_see_measured_cells_only():
    speedups, asked = _drawn(1), []

    def spy(now: Speedups, prediction: object, rng: np.random.Generator) -> list[tuple[int, int]]:
        asked.append(now.known)
        return POLICIES["random"](now, prediction, rng)

    steps = curve(speedups, spy, seed=2, terms=1)
    assert [int(known.sum()) for known in asked] == [one.cells for one in steps]
    assert all((known == known.T).all() for known in asked)
    first = {name: curve(speedups, policy, seed=2, terms=1)[0] for name, policy in POLICIES.items()}
    assert len(set(first.values())) == 1


def test_unknown_cells_of_the_matrix_are_never_measured():
    speedups = _drawn(3)
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
    speedups = _drawn(4)
    made = predict(speedups, terms=1)
    cells = np.eye(6, dtype=bool)
    wanted = np.mean([made.chance[at, at, made.label[at, at]] for at in range(6)])
    assert expected_accuracy(made, cells) == pytest.approx(wanted)
    assert np.isnan(expected_accuracy(made, ~np.ones((6, 6), bool)))
