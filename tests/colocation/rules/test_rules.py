"""Kinds of programs, and the labels of pairs against the published ones and the measurements behind them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from studies.coscheduling2025.published import ACCURACY, MEASURED_NAMES, NAS, SPEC, STATED, Predicted
from tests.support import examples, refusal, shared_data
from topompi.machine.colocation.errors import ColocationError
from topompi.machine.colocation.profiles.record import Profile
from topompi.machine.colocation.profiles.system import KindLimits, System, Tag
from topompi.machine.colocation.rules.kinds import Kind, kind_of
from topompi.machine.colocation.rules.labels import Labels, label, labels
from topompi.machine.colocation.speedups.bands import VERDICTS, verdicts
from topompi.machine.colocation.speedups.files import read_speedups


@pytest.mark.parametrize(("published", "counts"), [(NAS, (22, 42, 105)), (SPEC, (6, 25, 18))])
def test_the_rules_give_all_218_published_labels(published: Predicted, counts: tuple[int, ...]):
    assert np.array_equal(labels(published.characters), published.labels)
    assert tuple(np.bincount(published.labels.ravel())) == counts


def _accuracy(published: Predicted, file: str) -> list[int]:
    speedups = read_speedups(shared_data(file))
    ratio = speedups.only([MEASURED_NAMES.get(name, name) for name in published.programs]).ratio
    return np.bincount(verdicts(labels(published.characters), ratio).ravel(), minlength=3)[::-1].tolist()


def test_the_rules_are_as_accurate_on_spec_as_published():
    assert _accuracy(SPEC, "colocation/aris-spec.csv") == list(ACCURACY["SPEC"])


def test_the_rules_are_within_three_cells_of_the_published_accuracy_on_nas():
    found = _accuracy(NAS, "colocation/aris-nas.csv")
    assert max(abs(a - b) for a, b in zip(found, ACCURACY["NAS"], strict=True)) <= 3
    assert sum(found) == 169


@pytest.mark.parametrize(("program", "beside", "speedup", "verdict"), STATED)
def test_stated_speedups_have_their_verdicts(program: str, beside: str, speedup: float, verdict: str):
    one, other = (next(c for c in NAS.characters if c.program == name) for name in (program, beside))
    assert VERDICTS[int(verdicts(label(one, other), speedup))] == verdict


def test_all_stated_speedups_of_ep_are_fully_correct():
    ep = next(c for c in NAS.characters if c.program == "ep.E.256")
    assert all(verdicts(label(ep, other), [0.96, 1.01]).tolist() == [2, 2] for other in NAS.characters)


@pytest.mark.parametrize(
    ("axes", "shares", "kind"),
    [
        ((0.9, 0.1, 0.1, 0), {}, Kind.C_HEAVY),
        ((0.9, 0.4, 0.1, 0), {}, Kind.C_MEM),
        ((0.9, 0.4, 0.2, 0), {}, Kind.C_COMM),
        ((0.2, 0.9, 0.2, 0.1), {}, Kind.M),
        ((0.2, 0.9, 0.2, 0.9), {}, Kind.M_IRR),
        ((0.2, 0.2, 0.9, 0), {"Waitall": 0.999, "Isend": 0.0004}, Kind.X_IDLE),  # table 4.1: weather
        ((0.2, 0.2, 0.9, 0), {"Recv": 0.8524, "Send": 0.1449}, Kind.X_IDLE),  # miniswp
        ((0.2, 0.2, 0.9, 0), {"MPI_Alltoall": 0.9716, "MPI_Barrier": 0.0088}, Kind.X_USEFUL),  # ft
    ],
)
def test_the_kind_follows_the_largest_axis_and_a_second_one(axes, shares: dict[str, float], kind: Kind):
    flops, memory, mpi, misses = axes
    assert kind_of(Tag("p", flops, memory, mpi, misses=misses, shares=shares), KindLimits()) is kind


AXIS = st.floats(0, 1)


@examples(100)
@given(AXIS, AXIS, AXIS, AXIS, st.floats(1e-3, 1e12))
def test_kinds_depend_on_normalised_axes_only(flops, memory, mpi, misses, scale):
    """A machine whose rates are all larger by a factor gives the same kinds."""
    small, large = (System("s", 2 * by, 2 * by, 2 * by, 2 * by) for by in (1.0, scale))
    tags = [
        system.tag(Profile("p", flops=flops * by, memory=memory * by, mpi=mpi, hits=0, misses=misses * by))
        for system, by in ((small, 1.0), (large, scale))
    ]
    assert np.allclose(tags[0].axes, tags[1].axes)


def test_an_unknown_axis_that_decides_is_named():
    assert refusal(kind_of, Tag("p", 0.1, 0.9, 0.2), KindLimits(), error=ColocationError) == (
        "p: misses: expecting a measured value, got none"
    )
    one, other = Labels("a", Kind.M, 1.0), Labels("b", Kind.M)
    assert "b: memory: expecting the bandwidth" in refusal(label, one, other, error=ColocationError)
