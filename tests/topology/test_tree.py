"""The cluster tree, against a plain implementation of the published algorithm's steps."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import examples
from topompi.topology import HostRoutes, Routes, cluster_tree, compute_routes
from topompi.topology.synthetic import from_spec
from topompi.topology.tree import UNREACHABLE

SPECS = ("xgft:2,3;1,2", "xgft:3,2,2;1,1,2", "xgft:4,3;1,2", "kary:2,3", "torus:3x3", "torus:2x2x3", "dragonfly:2,2,1")


def plain_tree(distance):
    """One join a step, in dictionaries, as the source describes it. Returns parents and heights."""
    hosts = range(len(distance))
    farther = np.where(np.minimum(distance, distance.T) < 0, UNREACHABLE, np.maximum(distance, distance.T))
    apart = {(i, j): int(farther[i, j]) for i in hosts for j in hosts if i != j}
    active, parent, height = list(hosts), {}, dict.fromkeys(hosts, 0)
    while len(active) > 1:
        nearest, first, _ = min((apart[i, j], i, j) for i in active for j in active if i < j)
        group = [first]
        for k in active:
            if k != first and apart[first, k] == nearest and all(apart[k, member] == nearest for member in group):
                group.append(k)
        new = len(height)
        height[new] = nearest
        parent.update(dict.fromkeys(group, new))
        active = [node for node in active if node not in group]
        for node in active:
            apart[new, node] = apart[node, new] = max(apart[member, node] for member in group)
        active.append(new)
    nodes = range(len(height))
    return [parent.get(node, -1) for node in nodes], [height[node] for node in nodes]


def assert_equal_to_plain(distance):
    tree = cluster_tree(distance)
    parent, height = plain_tree(distance)
    assert tree.parent.tolist() == parent
    assert tree.height.tolist() == height


@examples(200)
@given(st.integers(1, 9), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_equals_the_plain_algorithm_on_any_distances(hosts, farthest, seed):
    """Asymmetric distances, ties and missing routes included."""
    rng = np.random.default_rng(seed)
    distance = rng.integers(1, farthest + 1, (hosts, hosts))
    distance[rng.random((hosts, hosts)) < 0.1] = -1
    np.fill_diagonal(distance, 0)
    assert_equal_to_plain(distance)


@pytest.mark.parametrize("seed", range(50))
def test_equals_the_plain_algorithm_on_random_small_fabrics(seed):
    """A random part of a fabric, some of its links broken, routed anew."""
    rng = np.random.default_rng(seed)
    fabric = from_spec(SPECS[seed % len(SPECS)])
    routes = compute_routes(fabric)
    broken = rng.choice(fabric.switch_links, size=seed % 3, replace=False)
    table = routes.next_link.copy()
    table[np.isin(table, broken)] = -1
    hosts = rng.permutation(fabric.num_hosts)[: rng.integers(1, 20)].astype(np.int32)
    assert_equal_to_plain(HostRoutes(Routes(fabric, "broken", table), hosts).hops)


def test_levels_are_cut_at_the_same_distance_in_all_branches():
    """A host alone on its leaf joins late, and is a cluster of its own at the leaves' level."""
    distance = np.full((5, 5), 5)
    distance[:2, :2] = distance[2:4, 2:4] = 1
    distance[:4, :4][distance[:4, :4] == 5] = 3
    np.fill_diagonal(distance, 0)
    tree = cluster_tree(distance)
    assert tree.cuts.tolist() == [5, 3, 1]
    assert tree.depth == 3
    assert [len(np.unique(row)) for row in tree.clusters] == [1, 2, 3, 5]
    assert next(node for node, _ in tree.walk()) == tree.root


def test_hosts_without_a_route_join_last():
    distance = np.array([[0, 1, -1], [1, 0, -1], [-1, -1, 0]])
    tree = cluster_tree(distance)
    assert tree.height[tree.root] == UNREACHABLE
    assert tree.clusters[1].tolist() == [3, 3, 2]


@pytest.mark.long
@pytest.mark.parametrize(("name", "clusters"), [("ranger", [1, 14, 164, 328, 3936]), ("stampede", [1, 36, 320, 6400])])
def test_the_large_systems_have_the_levels_of_their_switches(name, clusters):
    """Ranger: leaf chips, pairs of them on a line card, pods; Stampede: leaves, groups of nine on a line card."""
    fabric = from_spec(name)
    hops = HostRoutes(compute_routes(fabric), np.arange(fabric.num_hosts, dtype=np.int32)).hops
    assert [len(np.unique(row)) for row in cluster_tree(hops).clusters] == clusters
