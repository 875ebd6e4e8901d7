"""The order in which programs take neighbours, against the rule cell by cell."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.colocation.scheduling.drawn import NAMES, drawn_table, seeds
from tests.support import examples
from topompi.machine.colocation.scheduling.preferences import REFUSED, favoured


@given(seeds, st.sampled_from([0.5, 0.9, 1.0, 1.1]))
@examples(60)
def test_slow_pairs_are_refused_and_the_others_ordered_by_what_both_get_done(seed: int, threshold: float) -> None:
    table = drawn_table(np.random.default_rng(seed))
    found = favoured(table, threshold)
    assert found.numbers == {name: at for at, name in enumerate(NAMES)}
    for one in range(len(NAMES)):
        rank, worth, good = found.rank[one + 1], dict[int, float](), list[bool]()
        for other in range(len(NAMES)):
            rates = table.rates[one, other], table.rates[other, one]
            assert (rank[other + 1] == REFUSED) == (min(rates) < threshold)
            if rank[other + 1] != REFUSED:
                worth[other] = sum(rates) / 2
                good.append(worth[other] >= 1)
                assert (rank[other + 1] < found.last[one + 1]) == good[-1]
        by_rank = sorted(worth, key=lambda other: rank[other + 1])
        assert all(worth[a] >= worth[b] for a, b in pairwise(by_rank))
        assert found.spread[one + 1] == any(good)
