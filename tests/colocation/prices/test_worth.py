"""Prices over a workload: who runs beside whom, what each rule charges, and who costs whom."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import examples, refusal
from topompi.machine.colocation.errors import ColocationError
from topompi.machine.colocation.prices.worth import NOBODY, Intervals, Worth, effects_of, worth
from topompi.machine.colocation.scheduling.allocators import Halves
from topompi.machine.colocation.scheduling.halves import on_halves
from topompi.machine.colocation.scheduling.neighbours import intervals_of
from topompi.machine.colocation.scheduling.speed import ColocatedSpeed
from topompi.machine.colocation.scheduling.table import rate_table
from topompi.machine.colocation.speedups.matrix import Speedups, draw_speedups
from topompi.machine.jobs import Cluster, Workload, simulate

MACHINE = 12
VICTIM = Speedups.of(["calm", "loud"], [[1.0, 0.5], [1.0, 0.8]], alone=[1.0, 1.0])


@st.composite
def loads(draw):
    """Jobs of up to the machine's nodes, and speed-ups of up to five drawn programs."""
    count, seed = draw(st.integers(1, 25)), draw(st.integers(0, 10_000))
    rng = np.random.default_rng(seed)
    matrix = draw_speedups(draw(st.integers(1, 5)), seed)
    submit = np.sort(rng.integers(0, 300, count))
    return (
        submit, rng.integers(1, 200, count), rng.integers(1, MACHINE + 1, count),
        rng.integers(len(matrix), size=count), matrix,
    )  # fmt: skip


def on_half_nodes(submit, seconds, nodes, program, matrix: Speedups, machine: int) -> Intervals:
    """Who runs beside whom if jobs start first come first served, beside any neighbour."""
    names = np.array(matrix.programs, object)[np.asarray(program)]
    jobs = Workload.of("drawn", submit=submit, run=seconds, nodes=nodes).with_columns(program=names)
    cluster, table = Cluster.regular(machine, machine).with_slots(2), rate_table(matrix)
    outcome = simulate(on_halves(jobs, matrix.programs), cluster, "no-overtaking", Halves(), ColocatedSpeed(table))
    return intervals_of(outcome, table)


def priced(load, error: float = 0.0, matrix: Speedups | None = None) -> tuple[Intervals, Worth]:
    submit, seconds, nodes, program, drawn = load
    matrix = matrix or drawn
    ran = on_half_nodes(submit, seconds, nodes, program, matrix, MACHINE)
    return ran, worth(effects_of(ran, nodes, program), seconds, 8, 1.0, error=error)


@given(loads())
@examples(60)
def test_jobs_lose_together_what_they_cost_each_other(load):
    _, found = priced(load)
    assert found.effects.lost.sum() == pytest.approx(found.effects.caused.sum())


@given(loads(), st.floats(0, 0.2))
@examples(60)
def test_oracle_and_poppa_are_equal_without_error_and_factors_make_sums_equal(load, error):
    _, found = priced(load)
    np.testing.assert_array_equal(found.prices["oracle"], found.prices["poppa"])
    assert (found.prices["poppa"] <= found.alone * (1 + 1e-9)).all()
    assert (found.alone <= found.prices["as-usual"] * (1 + 1e-9)).all()
    _, noisy = priced(load, error)
    for row in noisy.summary():
        paid = noisy.prices[row["rule"]]
        assert (paid * row["factor_as_usual"]).sum() == pytest.approx(noisy.prices["as-usual"].sum())
        assert (paid * row["factor_own_nodes"]).sum() == pytest.approx(noisy.own.sum())


@given(loads())
@examples(40)
def test_without_interference_all_rules_are_equal(load):
    size = len(load[4])
    _, found = priced(load, matrix=Speedups.of(load[4].programs, np.ones((size, size)), alone=np.ones(size)))
    for paid in found.prices.values():
        np.testing.assert_allclose(paid, found.own)


@given(st.floats(0.3, 1), st.integers(1, 6), st.integers(1, 100))
@examples(30)
def test_equal_jobs_beside_each_other_pay_equally(speed, pairs, seconds):
    matrix = Speedups.of(["a", "b"], np.full((2, 2), speed), alone=[1.0, 1.0])
    size = [1] * 2 * pairs
    ran = on_half_nodes([0] * len(size), [seconds] * len(size), size, [0, 1] * pairs, matrix, 2 * pairs)
    found = worth(effects_of(ran, size, [0, 1] * pairs), [seconds] * len(size), 4, 1.0)
    for paid in found.prices.values():
        np.testing.assert_allclose(paid, paid[0])
    np.testing.assert_allclose(found.relative("oracle"), speed)
    np.testing.assert_allclose(found.relative("as-usual"), 1 / speed)


def test_victims_lose_what_aggressors_cost():
    # For 100 s the calm job runs at half of its speed beside the loud one, which ends; then 50 s alone.
    ran = on_half_nodes([0, 0], [100, 100], [2, 2], [0, 1], VICTIM, 4)
    columns = (ran.job.tolist(), ran.partner.tolist(), ran.start.tolist(), ran.end.tolist())
    assert sorted(zip(*columns, strict=True)) == [(0, NOBODY, 100, 150), (0, 1, 0, 100), (1, 0, 0, 100)]
    found = worth(effects_of(ran, [2, 2], [0, 1]), [100, 100], 8, 1.0)
    assert found.effects.performance.tolist() == pytest.approx([2 / 3, 1])
    assert found.effects.lost.tolist() == found.effects.caused[::-1].tolist() == [100, 0]
    assert found.prices["as-usual"].tolist() == [2 * 8 * 150, 2 * 8 * 100]
    assert found.prices["poppa"].tolist() == pytest.approx([2 * 8 * 100 * 2 / 3, 2 * 8 * 100])
    calm, loud = found.programs(VICTIM.programs)
    assert (calm["kind"], loud["kind"]) == ("victim", "aggressor")
    assert (calm["suffers"], calm["costs"], loud["suffers"], loud["costs"]) == (0.5, 0, 0, 0.5)


def test_a_site_s_rule_is_one_more_column(tmp_path, monkeypatch):
    (tmp_path / "worth_rule.py").write_text("def half(solo, shared):\n    return (1 + solo / shared) / 2\n")
    monkeypatch.syspath_prepend(tmp_path)
    ran = on_half_nodes([0, 0], [100, 100], [2, 2], [0, 1], VICTIM, 4)
    found = worth(effects_of(ran, [2, 2], [0, 1]), [100, 100], 8, 1.0, ["worth_rule:half"])
    assert found.relative("worth_rule:half").tolist() == pytest.approx([5 / 6, 1])


def test_programs_without_known_neighbours_are_left_out_and_refused():
    matrix = Speedups.of("abc", [[1, np.nan, 1], [np.nan, np.nan, np.nan], [1, 1, 1]])
    assert matrix.complete().programs == ("a", "c")
    assert "a beside b, got none" in refusal(on_half_nodes, [0], [1], [1], [0], matrix, 4, error=ColocationError)
