"""Machines: distances between hosts, slots, and mappings on them."""

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topompi.mapping.machine import Machine, MachineError
from topompi.mapping.mapping import Mapping, MappingError


def all_distances(machine: Machine) -> np.ndarray:
    hosts = np.arange(machine.num_hosts)
    return machine.distance(hosts[:, None], hosts[None, :])


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_a_hierarchy_is_written_lowest_level_first(counts: list[int]) -> None:
    far = [3 * 10**level for level in range(len(counts))]
    machine = Machine.hierarchy(":".join(map(str, counts)), ":".join(map(str, far)))
    assert machine.slots.tolist() == [counts[0]] * int(np.prod(counts[1:]))
    for a in range(machine.num_hosts):
        for b in range(machine.num_hosts):
            x, y, expected = a, b, far[0]
            for level, width in enumerate(counts[1:], 1):
                if x != y:
                    expected = far[level]
                x, y = x // width, y // width
            assert machine.distance(a, b) == expected


@given(st.lists(st.integers(1, 4), min_size=1, max_size=3), st.booleans())
def test_a_torus_is_as_far_as_networkx_walks(dims: list[int], wrap: bool) -> None:
    machine = Machine.torus(dims, 2, wrap=wrap, inside=0)
    walked = dict(networkx.all_pairs_shortest_path_length(networkx.grid_graph(dims[::-1], periodic=wrap)))
    places = [place if len(dims) > 1 else place[0] for place in np.ndindex(*dims)]
    assert all_distances(machine).tolist() == [[walked[a][b] for b in places] for a in places]


def test_a_table_is_itself() -> None:
    table = [[0, 5], [5, 1]]
    assert all_distances(Machine.from_matrix(None, [1, 2], table)).tolist() == table


@given(st.data())
def test_distances_are_sums_over_axes(data: st.DataObject) -> None:
    """Of some hosts in any order: on trees, on tori and meshes, also with a distance within hosts, and in tables."""
    dims = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    hosts = np.random.default_rng(0).integers(0, 9, (int(np.prod(dims)),) * 2)
    machine = data.draw(
        st.sampled_from(
            [
                Machine.torus(dims),
                Machine.torus(dims, wrap=[axis % 2 == 0 for axis in range(len(dims))]),
                Machine.torus(dims, inside=2),
                Machine.hierarchy([2, *dims], [1, *(10**level for level in range(len(dims)))]),
                Machine.from_matrix(None, np.ones(len(hosts), dtype=int), hosts + hosts.T),
            ]
        )
    )
    some = np.array(data.draw(st.lists(st.integers(0, machine.num_hosts - 1), min_size=1, unique=True)))
    far, column = machine.distances.axes(some)
    assert far[:, column].sum(axis=2).tolist() == machine.distance(some[:, None], some[None, :]).tolist()


@pytest.mark.parametrize(
    "make",
    [
        lambda: Machine.hierarchy("4:2", "1"),
        lambda: Machine.hierarchy("4:x", "1:2"),
        lambda: Machine.hierarchy("4:2", "10:1"),
        lambda: Machine.tree(["a", "a"], [1, 1], [], [1, 0]),
        lambda: Machine.tree(None, [1, 1, 1], [[0, 0, 1], [0, 1, 1]], [3, 2, 1, 0]),
        lambda: Machine.tree(None, [-1], [], [1, 0]),
        lambda: Machine.from_matrix(None, [1, 1], [[0, 1], [2, 0]]),
        lambda: Machine.from_matrix(None, [1, 1], [[0, 0.5], [0.5, 0]]),
        lambda: Machine.torus((2, 2), 1, coordinates=[[0, 0], [0, 0]]),
        lambda: Machine.torus((2, 2), 1, coordinates=[[0, 2]]),
    ],
)
def test_contradictions_are_refused(make: object) -> None:
    with pytest.raises(MachineError):
        make()  # type: ignore[operator] # a lambda of the list above


def test_unequal_slots_and_the_digest_of_the_allocation() -> None:
    machine = Machine.tree(["a", "b", "c"], [2, 0, 3], [], [1, 0])
    assert machine.slot_host.tolist() == [0, 0, 2, 2, 2]
    same = Machine.tree(["a", "b", "c"], [2, 0, 3], [[0, 1, 1]], [9, 1, 0])
    other = Machine.tree(["a", "b", "c"], [2, 1, 2], [], [1, 0])
    assert machine.digest == same.digest != other.digest
    assert Mapping.identity(machine, 4).digest == machine.digest


@given(st.lists(st.integers(0, 4), min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_a_mapping_names_both_directions(slots: list[int], random: object) -> None:
    machine = Machine.tree(None, slots, [], [1, 0])
    order = np.random.default_rng(random.randint(0, 99)).permutation(machine.num_slots)  # type: ignore[attr-defined] # Hypothesis' random
    mapping = Mapping.of(order[: len(order) // 2 + len(order) % 2], machine.hosts, machine.slots)
    for rank, slot in enumerate(mapping.slot_of_rank.tolist()):
        assert mapping.rank_of_slot[slot] == rank
    assert (mapping.rank_of_slot >= 0).sum() == mapping.size
    again = Mapping.on_hosts(mapping.host_of_rank, machine)
    assert (again.host_of_rank == mapping.host_of_rank).all()


@pytest.mark.parametrize("slots", [[0, 0], [0, 4], [-1, 0], [0, 1, 2, 3, 3]])
def test_what_is_not_one_to_one_is_refused(slots: list[int]) -> None:
    with pytest.raises(MappingError):
        Mapping.of(slots, ["a", "b"], [2, 2])


def test_two_arrays_that_are_not_inverse_are_refused() -> None:
    with pytest.raises(MappingError, match="inverse"):
        Mapping(np.array([0, 1]), np.array([1, 0]), ("a",), np.array([2]))
    with pytest.raises(MappingError, match="2 slots"):
        Mapping.on_hosts([0, 0, 0], Machine.tree(None, [2, 2], [], [1, 0]))
