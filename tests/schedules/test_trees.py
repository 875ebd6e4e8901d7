"""Virtual trees against walks without pointer doubling, and embeddings against the definition."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topompi.network import rate_delay
from topompi.schedules.network import Network
from topompi.schedules.rooted.embedding import (
    WALKS,
    best_of,
    critical_path,
    embed,
    host_trees,
    reordered_tree,
)
from topompi.schedules.trees import Tree, chain, depth_first, knomial, leaders, linear, rank_clusters, rotation

SIZES = [*range(1, 18), 24, 31, 32, 33, 48, 64, 100]
HOPS = (5, 3, 1)  # between hosts that share no cluster, the cell, the leaf


def network_from(rank_host, cell, leaf):
    """A network of cells and leaves without links: what trees look at."""
    leaf = np.asarray(cell) * 100 + np.asarray(leaf)
    cell = np.asarray(cell)
    shared = (cell[:, None] == cell).astype(int) + (leaf[:, None] == leaf)
    hops = np.where(np.eye(len(cell), dtype=bool), 0, np.array(HOPS)[shared]).astype(np.int16)
    links = np.zeros((len(cell), len(cell), 0), dtype=np.int32)
    return Network(np.asarray(rank_host), hops, links, np.zeros(0), np.stack((cell, leaf)), np.zeros(0))


@st.composite
def networks(draw, largest=24):
    """Ranks in any order and number on hosts below leaves of any size in any cells."""
    size = draw(st.integers(1, largest))
    host = draw(st.lists(st.integers(0, largest - 1), min_size=size, max_size=size))
    host = np.unique(host, return_inverse=True)[1]
    hosts = int(host.max()) + 1
    cell, leaf = (draw(st.lists(st.integers(0, 3), min_size=hosts, max_size=hosts)) for _ in range(2))
    return network_from(host, cell, leaf)


@st.composite
def random_trees(draw, largest=30):
    """Trees of any shape, root and turns, several children a turn allowed."""
    size = draw(st.integers(1, largest))
    above = [draw(st.integers(0, i - 1)) if i else -1 for i in range(size)]
    turns = draw(st.lists(st.integers(-3, 3), min_size=size, max_size=size))
    ranks = np.array(draw(st.permutations(range(size))))
    parent = np.full(size, -1)
    parent[ranks[1:]] = ranks[above[1:]] if size > 1 else []
    return Tree(parent, turns)


def path(tree, rank):
    """From a rank up to the root."""
    ranks = [rank]
    while tree.parent[ranks[-1]] >= 0:
        ranks.append(int(tree.parent[ranks[-1]]))
    return ranks


@given(random_trees(), st.data())
def test_sums_along_paths_and_over_sub_trees_are_what_a_walk_finds(tree, data):
    weight = np.array(data.draw(st.lists(st.integers(-9, 9), min_size=tree.size, max_size=tree.size)))
    paths = [path(tree, rank) for rank in range(tree.size)]
    assert tree.from_root(weight).tolist() == [sum(weight[p]) for p in paths]
    assert tree.below(weight).tolist() == [
        sum(weight[r] for r, p in enumerate(paths) if top in p) for top in range(tree.size)
    ]
    assert tree.depth.tolist() == [len(p) - 1 for p in paths]
    assert tree.inner.tolist() == [bool((tree.parent == rank).any()) for rank in range(tree.size)]


@given(random_trees())
def test_children_are_served_by_turn_and_then_the_largest_sub_tree_first(tree):
    for rank in range(tree.size):
        children = tree.children(rank).tolist()
        assert sorted(children) == np.flatnonzero(tree.parent == rank).tolist()
        assert children == sorted(children, key=lambda child: (tree.turn[child], -tree.sizes[child], child))
        assert sorted(set(tree.turn[children].tolist())) == list(range(len(set(tree.turn[children].tolist()))))


@given(random_trees())
def test_siblings_before_are_those_served_earlier(tree):
    weight = np.arange(tree.size) + 1
    total = tree.siblings(weight, tree.service)
    for rank in tree.others:
        served = tree.children(tree.parent[rank]).tolist()
        assert total[rank] == sum(weight[served[: served.index(rank)]])


@given(random_trees())
def test_preorder_visits_each_top_before_its_sub_tree_without_gap(tree):
    def visit(rank):
        return [rank, *itertools.chain.from_iterable(map(visit, tree.children(rank).tolist()))]

    assert tree.preorder().tolist() == visit(tree.root)


@given(random_trees())
def test_steps_follow_the_parents_and_each_other(tree):
    """Down: a child comes after its parent and an earlier turn. Up is the same backwards, the root last."""
    assert tree.down[tree.root] == -1
    for rank in tree.others:
        assert tree.down[rank] == tree.down[tree.parent[rank]] + 1 + tree.turn[rank]
        assert tree.up[rank] < tree.up[tree.parent[rank]]
    assert tree.up.min() == 0 or tree.size == 1


@given(random_trees(), st.data())
def test_a_placed_tree_is_the_same_tree_under_other_names(tree, data):
    ranks = np.array(data.draw(st.permutations(range(tree.size))))
    placed = tree.placed(ranks)
    for rank in range(tree.size):
        assert path(placed, int(ranks[rank])) == ranks[path(tree, rank)].tolist()
        assert placed.turn[ranks[rank]] == tree.turn[rank]


@pytest.mark.parametrize("parent", [[1, 0], [-1, -1], [-1, 2, 1], [-1, 2], [-1, -2], [0]])
def test_what_is_no_tree_is_refused(parent):
    with pytest.raises(ValueError, match="expecting"):
        Tree(parent)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("radix", [2, 3, 4, 8])
def test_knomial_trees_double_as_fast_as_they_can_and_have_ranges_for_sub_trees(size, radix):
    tree = knomial(size, radix)
    steps = 0
    while radix**steps < size:
        steps += 1
    assert tree.down.max() + 1 == steps
    assert tree.preorder(np.arange(size)).tolist() == list(range(size))
    assert (
        np.unique(np.stack((tree.parent, tree.turn))[:, 1:], axis=1, return_counts=True)[1].max(initial=0) <= radix - 1
    )


def test_the_root_of_a_binomial_tree_first_serves_the_rank_half_way():
    for size in SIZES[1:]:
        tree = knomial(size)
        assert tree.children(0)[0] == 2 ** (math.ceil(math.log2(size)) - 1)
        assert tree.parent[1:].tolist() == [rank & (rank - 1) for rank in range(1, size)]


def test_a_radix_below_two_and_a_root_outside_are_refused():
    with pytest.raises(ValueError, match="radix of at least 2, got 1"):
        knomial(4, 1)
    with pytest.raises(ValueError, match=r"root in range\(4\), got 4"):
        rotation(4, 4)


def test_a_chain_takes_a_step_a_rank_and_a_linear_tree_a_turn_a_rank():
    assert chain(5).down.tolist() == [-1, 0, 1, 2, 3] == linear(5).down.tolist()
    assert chain(5).depth.max() == 4
    assert linear(5).depth.max() == 1


@given(networks(), st.integers(2, 4), st.data())
def test_a_leader_tree_enters_every_cluster_once_at_every_level(network, radix, data):
    root = data.draw(st.integers(0, network.num_ranks - 1))
    clusters = rank_clusters(network)
    tree = leaders(clusters, network.num_ranks, root=root, radix=radix)
    assert tree.root == root
    for row in clusters:
        crossing = np.count_nonzero(row[tree.others] != row[tree.parent[tree.others]])
        assert crossing == len(np.unique(row)) - 1


@given(networks(), st.data())
def test_a_leader_serves_the_outer_levels_first(network, data):
    clusters = rank_clusters(network)
    tree = leaders(clusters, network.num_ranks, root=data.draw(st.integers(0, network.num_ranks - 1)))
    for rank in range(network.num_ranks):
        shared = [int((clusters[:, rank] == clusters[:, child]).sum()) for child in tree.children(rank)]
        assert shared == sorted(shared)


@pytest.mark.parametrize("radix", [2, 3, 5])
def test_a_leader_tree_of_one_cluster_is_the_knomial_tree_from_the_root_on(radix):
    for size in SIZES:
        tree = leaders([np.zeros(size, dtype=np.int64)], size, root=size // 3, radix=radix)
        plain = knomial(size, radix).placed(rotation(size, size // 3))
        assert tree.parent.tolist() == plain.parent.tolist()
        assert tree.turn.tolist() == plain.turn.tolist()


def test_clusters_that_are_not_nested_are_refused():
    with pytest.raises(ValueError, match="nested"):
        leaders([[0, 0, 1, 1], [0, 1, 1, 2]], 4)


@given(networks(), st.data())
def test_depth_first_order_keeps_clusters_together_and_begins_at_the_root(network, data):
    root = data.draw(st.integers(0, network.num_ranks - 1))
    order = depth_first(rank_clusters(network), network.num_ranks, root=root)
    assert order[0] == root
    assert sorted(order.tolist()) == list(range(network.num_ranks))
    for row in rank_clusters(network):
        assert np.count_nonzero(np.diff(row[order])) == len(np.unique(row)) - 1


# --- who stands where ---


@st.composite
def delays(draw, largest=20, least=1):
    size = draw(st.integers(least, largest))
    cells = st.lists(st.sampled_from([1.0, 2.0, 3.0, 5.0]), min_size=size * size, max_size=size * size)
    return np.array(draw(cells)).reshape(size, size)


@given(random_trees(), st.data())
def test_the_critical_path_is_the_time_of_the_last_rank_when_parents_send_one_after_another(tree, data):
    delay = np.array(data.draw(st.lists(st.integers(0, 9), min_size=tree.size**2, max_size=tree.size**2)))
    delay = delay.reshape(tree.size, tree.size)

    def last(rank, time):
        latest = time
        for child in tree.children(rank):
            time += delay[rank, child]
            latest = max(latest, last(int(child), time))
        return latest

    assert critical_path(tree, delay) == last(tree.root, 0)


def walked(tree, delay, walk):
    """The embedding by its definition: a list of nodes to visit, used as a stack or as a queue."""
    place, free = {0: 0}, set(range(1, tree.size))
    waiting = [int(child) for child in tree.children(0)]
    while waiting:
        node = waiting.pop(0)
        above = place[int(tree.parent[node])]
        place[node] = min(free, key=lambda rank: (delay[above, rank], rank))
        free.remove(place[node])
        children = [int(child) for child in tree.children(node)]
        waiting = children + waiting if walk == "dft" else waiting + children
    return [place[node] for node in range(tree.size)]


@given(delays(), st.integers(2, 5), st.sampled_from(WALKS))
def test_an_embedding_gives_each_node_the_closest_rank_left_in_the_order_of_the_walk(delay, radix, walk):
    tree = knomial(len(delay), radix)
    assert embed(tree, delay, walk).tolist() == walked(tree, delay, walk)


@given(delays(), st.integers(2, 5))
def test_the_best_tree_is_never_worse_than_the_plain_one(delay, radix):
    trees = host_trees(delay, radix=radix)
    paths = {name: critical_path(tree, delay) for name, tree in trees.items()}
    assert paths[best_of(trees, delay)] == min(paths.values()) <= paths["plain"]
    assert all(tree.root == 0 for tree in trees.values())


@pytest.mark.parametrize("walk", WALKS)
def test_a_walk_moves_a_slow_adapter_from_a_sub_trees_top_to_a_leaf(walk):
    """Where host 4 of 8 is half as fast, the plain binomial tree hangs three hosts below it."""
    rate = np.full(8, 2.0)
    rate[4] = 1.0
    delay = rate_delay(rate)
    trees = host_trees(delay, radix=2)
    assert trees["plain"].sizes[4] == 4
    assert trees[walk].sizes[4] == 1
    assert critical_path(trees[walk], delay) < critical_path(trees["plain"], delay)


def test_the_delay_by_speed_is_that_of_the_slower_adapter():
    assert rate_delay([1.0, 2.0, 4.0]).tolist() == [[1, 1, 1], [1, 0.5, 0.5], [1, 0.5, 0.25]]


@given(networks(), st.integers(2, 4), st.sampled_from(["best", "plain", *WALKS]), st.data())
def test_a_re_ordered_tree_enters_each_host_once_and_keeps_its_root(network, radix, choose, data):
    root = data.draw(st.integers(0, network.num_ranks - 1))
    tree = reordered_tree(network, root=root, radix=radix, choose=choose)
    host = network.rank_host
    assert tree.root == root
    assert np.count_nonzero(host[tree.others] != host[tree.parent[tree.others]]) == network.num_hosts - 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"choose": "worst"}, "expecting best, plain"),
        ({"delay": np.array([[0, -1], [1, 0]])}, "none negative or unknown"),
        ({"delay": np.array([[0, np.nan], [1, 0]])}, "none negative or unknown"),
    ],
)
def test_unusable_delays_and_unknown_walks_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        reordered_tree(network_from([0, 1], [0, 0], [0, 1]), **arguments)
