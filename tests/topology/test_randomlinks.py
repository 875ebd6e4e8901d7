"""Static random routes: drawn per pair by a seed, with equal probabilities on fat trees."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from topompi.errors import RouteError
from topompi.netsim import NetsimError
from topompi.topology import load
from topompi.topology.randomlinks import RandomLinks
from topompi.views.tables import tables_of


def every_path(spec: str, seed: int) -> np.ndarray:
    return tables_of(load(spec).routes, latency=0, seed=seed).all_paths()


def test_one_seed_gives_the_same_routes_and_another_gives_others() -> None:
    first, again, other = (every_path("xgft:4,4,3;1,3,2", seed) for seed in (7, 7, 8))
    assert (first == again).all()
    assert (first != other).any()


@pytest.mark.parametrize(("spec", "paths"), [("XGFT(2; 4,4; 1,5)", 5), ("xgft:2,3,2;1,2,3", 6)])
def test_a_pair_draws_every_path_of_a_fat_tree_with_the_same_probability(spec: str, paths: int) -> None:
    """600 seeds: counts within five standard deviations of their mean, for a far pair and its way back."""
    last = load(spec).fabric.num_hosts - 1
    for source, target in ((0, last), (last, 0)):
        found: Counter[tuple[int, ...]] = Counter()
        for seed in range(600):
            network = tables_of(load(spec).routes, latency=0, seed=seed)
            found[tuple(network.paths(np.array([source]), np.array([target]))[0].tolist())] += 1
        assert len(found) == paths
        spread = 5 * (600 / paths * (1 - 1 / paths)) ** 0.5
        assert all(abs(count - 600 / paths) < spread for count in found.values())


def test_pairs_of_one_destination_draw_by_themselves() -> None:
    """In a table by destination the four hosts of a leaf would share the link up towards it."""
    paths = every_path("XGFT(2; 16,2; 1,16)", 1)
    up = paths[:16, 16:, 1]
    assert len(np.unique(up[:, 0])) > 5
    assert all(0.5 < np.mean(up[:, host] != up[0, host]) <= 1 for host in range(16))


@pytest.mark.parametrize("spec", ["dragonfly:4,2,2", "xgft:4,4;1,2;1,3", "dragonfly+:3,2,2,2"])
def test_loads_are_the_sums_over_the_paths(spec: str) -> None:
    network = tables_of(load(spec).routes, latency=0, seed=3)
    draw = np.random.default_rng(3)
    source, target = draw.integers(0, network.num_hosts, (2, 500))
    amounts = draw.integers(1, 100, 500)
    expected = np.zeros(network.num_links)
    for row, amount in zip(network.paths(source, target), amounts, strict=True):
        np.add.at(expected, row[row >= 0], amount)
    assert network.loads(source, target, amounts) == pytest.approx(expected)


def test_no_table_by_destination_is_made_of_routes_per_pair() -> None:
    network = tables_of(load("xgft:4,4;1,2").routes, latency=0, seed=3)
    for call in (lambda: network.table, lambda: network.crossed(np.arange(16, dtype=np.int32))):
        with pytest.raises(NetsimError, match="expecting routes by destination, got routes per pair of adapters"):
            call()


def test_the_draws_are_limited_as_computed_routes_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOPOMPI_LIMITS", "routes=10")
    with pytest.raises(RouteError, match="routes"):
        RandomLinks.of(load("xgft:4,4;1,2").fabric)
