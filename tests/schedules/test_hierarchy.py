"""Nested clusters and their leaders."""

import numpy as np
import pytest

from topompi.schedules import Hierarchy


def test_leaders_are_lowest_ranks_and_rank_zero_leads_every_level():
    hierarchy = Hierarchy(6, [np.array([1, 0, 1, 0, 1, 0]), np.array([5, 4, 5, 3, 9, 3])])
    colors = [[hierarchy.color(level, rank) for rank in range(6)] for level in (1, 2, 3)]
    assert colors == [[0, 0, -1, -1, -1, -1], [0, 1, -1, 1, 0, -1], [0, 1, 0, 3, 4, 3]]


def test_levels_that_are_not_nested_are_refused():
    with pytest.raises(ValueError, match="a cluster of level 2 lies in two clusters"):
        Hierarchy(4, [np.array([0, 0, 1, 1]), np.array([0, 1, 1, 2])])
