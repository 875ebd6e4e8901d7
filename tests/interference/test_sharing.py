"""Bounds on the jobs that share a job's links: the source's examples, and matchings by another algorithm."""

from fractions import Fraction
from math import prod

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.interference.fabrics import hosts_of, routed, shapes, tree
from tests.support import examples
from topompi.errors import TopompiError
from topompi.machine.interference import levels_of
from topompi.machine.interference.rivals import job_links, rivals
from topompi.machine.interference.sharing import per_link, sharing_jobs, sharing_jobs_on
from topompi.topology import load

BINARY = [2, 2, 2]


# Jokanovic 2014, section 4.1: jobs of N nodes, n of them per sub-tree, on XGFT(3; 2,2,2; 1,1,1).
# The last two columns are the bounds on jobs, and on jobs per link.
@pytest.mark.parametrize(
    ("nodes", "level", "each", "jobs", "of_link"),
    [(4, 2, 1, 4, 1), (4, 3, 2, 4, 2), (2, 2, 1, 2, 1), (2, 3, 1, 6, 3)],
)
def test_the_source_s_examples(nodes, level, each, jobs, of_link):
    assert sharing_jobs(nodes, BINARY, level, each) == jobs
    assert per_link(BINARY, level, each) == of_link
    levels = levels_of(tree(BINARY, [1, 1, 1]))
    placed = np.arange(0, 8, 8 // nodes)
    assert sharing_jobs_on(levels, placed, level - 1) == jobs


@given(radix=st.integers(2, 20), level=st.integers(2, 4), data=st.data())
def test_the_forms_for_equal_radices_are_the_general_one(radix, level, data):
    each = data.draw(st.integers(1, radix ** (level - 1)))
    populated = data.draw(st.integers(1, 9))
    nodes = populated * each
    general = sharing_jobs(nodes, [radix] * level, level, each)
    assert general == populated * radix ** (level - 1) - nodes  # (4.2)
    assert general == populated * per_link([radix] * level, level, each)
    if each == 1:
        assert general == nodes * (radix ** (level - 1) - 1)  # (4.3) for level 2, (4.4) for level 3


def test_a_job_that_leaves_a_part_of_a_sub_tree_has_a_fraction_as_its_bound():
    assert sharing_jobs(3, [4, 4], 2, 2) == Fraction(3)
    assert sharing_jobs(5, [3, 4], 2, 2) == Fraction(5, 2)


@given(st.data())
def test_on_a_tree_with_equal_fragments_the_bound_of_any_fabric_is_the_general_one(data):
    children, parents = data.draw(shapes(least_height=2))
    each = data.draw(st.integers(1, children[0]))
    leaves = data.draw(st.integers(2, prod(children[1:])))
    fabric = tree(children, parents)
    levels, placed = levels_of(fabric), hosts_of(f"F{each}", fabric, each * leaves)
    assert sharing_jobs_on(levels, placed, 1) == sharing_jobs(each * leaves, children, 2, each)


def test_a_job_inside_a_group_shares_nothing_outside():
    levels = levels_of(tree([4, 4, 2], [1, 2, 2]))
    assert sharing_jobs_on(levels, np.arange(3), 1) == 0
    assert sharing_jobs_on(levels, np.arange(16), 2) == 0
    assert sharing_jobs_on(levels, np.arange(3, 6), 1) == 5


@pytest.mark.parametrize("source", ["xgft:3,2,2;1,2,1", "torus:3x4", "torus:3x3@hosts_per_switch=2", "dragonfly:3,1,1"])
@given(data=st.data())
@examples(40)
def test_rivals_are_a_largest_matching_of_the_hosts_whose_routes_cross(source, data):
    """The oracle follows each route by itself, and matches by Edmonds' algorithm."""
    tables = load(source).routes.tables
    some = st.sets(st.integers(0, tables.num_hosts - 1), min_size=2, max_size=6)
    hosts = np.array(sorted(data.draw(some)))
    own = _links(tables, hosts)
    graph = networkx.Graph()
    others = sorted(set(range(tables.num_hosts)) - set(hosts.tolist()))
    graph.add_edges_from((a, b) for a in others for b in others if a < b and own & _links(tables, np.array([a, b])))
    exact = len(networkx.max_weight_matching(graph, maxcardinality=True))
    found = rivals(tables, hosts)
    assert exact <= found <= 1.5 * exact
    assert set(job_links(tables, hosts).tolist()) == own


def _links(tables, hosts):
    """The links between switches on the routes between some hosts."""
    found = set()
    for one in hosts.tolist():
        for other in hosts.tolist():
            path = tables.paths(np.array([one]), np.array([other]))[0]
            found |= {
                int(link)
                for link in path[path >= 0]
                if min(tables.source[link], tables.target[link]) >= tables.first_switch
            }
    return found


@given(st.data())
@examples(40)
def test_on_a_tree_rivals_are_within_the_source_s_bound_per_level_and_per_link(data):
    children, parents = data.draw(shapes(most_hosts=32, least_height=2))
    routes = routed(children, parents)
    levels, tables = levels_of(routes.fabric), routes.tables
    size = data.draw(st.integers(2, prod(children)))
    hosts = np.array(data.draw(st.permutations(range(prod(children))))[:size])
    for level in range(1, len(levels)):
        links = job_links(tables, hosts, levels, level)
        assert rivals(tables, hosts, links) <= sharing_jobs_on(levels, hosts, level)
        for link in links[:3].tolist():
            group = max(int(levels.leaves[level][link]), int(levels.enters[level][link]))
            others = int((levels.group[level] == group).sum() - (levels.group[level][hosts] == group).sum())
            assert rivals(tables, hosts, np.array([link])) <= others


def test_jobs_with_two_hosts_each_are_fewer_than_the_source_s_bound():
    routes = routed(BINARY, [1, 1, 1])
    levels = levels_of(routes.fabric)
    placed = np.array([0, 2, 4, 6])
    links = [job_links(routes.tables, placed, levels, level) for level in (1, 2)]
    assert [rivals(routes.tables, placed, some) for some in links] == [2, 2]  # four other hosts make two jobs
    assert [rivals(routes.tables, placed, some[:1]) for some in links] == [1, 2]


def test_on_a_torus_more_jobs_share_than_the_groups_of_a_job_have_hosts():
    """Routes pass through switches at whose hosts they neither begin nor end."""
    routes = load("torus:8").routes
    levels, placed = levels_of(routes.fabric), np.array([2, 5])
    assert sharing_jobs_on(levels, placed, 1) == 0
    assert rivals(routes.tables, placed) > 0


def test_bounds_refuse_what_is_not_in_the_tree():
    with pytest.raises(TopompiError, match="expecting a level from 2 to 3, got 4"):
        per_link(BINARY, 4, 1)
    with pytest.raises(TopompiError, match="expecting 1 to 2 nodes of the job per sub-tree, got 3"):
        sharing_jobs(6, BINARY, 2, 3)
