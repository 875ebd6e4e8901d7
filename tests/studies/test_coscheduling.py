"""The study of co-scheduling: its command, and the experiment with random pools of jobs."""

from __future__ import annotations

import numpy as np
import pytest

from studies.coscheduling2025.published import NAS
from studies.coscheduling2025.rules import JOBS, experiment, implied_tags
from topompi.machine.colocation.pairing.matching import sequential
from topompi.machine.colocation.pairing.values import score
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
