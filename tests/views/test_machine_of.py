"""``machine_of``: hosts, slots, distances and routes equal those of the topology, whatever its shape."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import examples
from topompi.mapping.distances import DistanceTable, MachineError, TorusDistances, TreeDistances
from topompi.mapping.evaluate import evaluate
from topompi.mapping.graph import CommunicationGraph
from topompi.mapping.mappers.busiest import relieve
from topompi.mapping.mapping import Mapping
from topompi.topology import TopologyInterface, load
from topompi.views.machine import machine_of


def interface(source, hosts=None):
    routes = load(source).routes
    return TopologyInterface.place(routes.fabric.hosts if hosts is None else hosts, routes, source=source)


def table(machine):
    every = np.arange(machine.num_hosts)
    return machine.distance(every[:, None], every[None, :])


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("XGFT(2; 4,4; 1,2)", TreeDistances),
        ("XGFT(3; 3,2,3; 1,2,2)", TreeDistances),
        ("torus:3x3@hosts_per_switch=2", DistanceTable),
        ("dragonfly:4,2,2", DistanceTable),
    ],
)
def test_the_distance_is_the_switches_crossed(source, kind):
    job = interface(source)
    machine = machine_of(job, 3)
    assert isinstance(machine.distances, kind)
    assert (table(machine) == np.maximum(job.hop_matrix, job.hop_matrix.T)).all()


def test_on_a_torus_with_a_host_a_switch_it_is_the_links_between():
    job = interface("torus:4x3x2")
    machine = machine_of(job, 2)
    assert isinstance(machine.distances, TorusDistances)
    assert machine.distances.dims == (4, 3, 2)
    between_switches = np.maximum(job.hop_matrix - 1, 0)
    assert (table(machine) == between_switches).all()


def test_part_of_a_torus_keeps_its_places():
    hosts = load("torus:4x4").routes.fabric.hosts
    job = interface("torus:4x4", [hosts[at] for at in (15, 0, 6)])
    assert machine_of(job).distances.coordinates.tolist() == [[3, 3], [0, 0], [1, 2]]
    turned = machine_of(job, 1, [job.hosts[at] for at in (2, 0, 1)])
    assert turned.distances.coordinates.tolist() == [[1, 2], [3, 3], [0, 0]]


@examples(30)
@given(st.data())
def test_hosts_in_any_order_keep_their_distances_and_routes(data):
    job = interface("XGFT(2; 4,4; 1,2)")
    order = data.draw(st.permutations(range(16)))
    hosts = [job.hosts[at] for at in order]
    plain, turned = machine_of(job, range(16)), machine_of(job, [5] * 16, hosts)
    assert turned.hosts == tuple(hosts)
    assert isinstance(turned.distances, TreeDistances)
    assert turned.slots.tolist() == [5] * 16
    assert (table(turned) == table(plain)[np.ix_(order, order)]).all()
    assert (turned.links == plain.links[np.ix_(order, order)]).all()


def test_slots_are_by_default_the_ranks_on_each_host():
    names = load("XGFT(2; 4,4; 1,2)").routes.fabric.hosts
    job = interface("XGFT(2; 4,4; 1,2)", [names[at] for at in (3, 1, 3, 9, 3)])
    machine = machine_of(job)
    assert machine.slots.tolist() == [3, 1, 1]
    assert machine.num_slots == job.num_ranks


def test_the_busiest_link_is_counted_over_the_true_routes():
    """Two hosts of one leaf send to two of another, all to one host: its link in carries everything."""
    names = load("XGFT(2; 4,4; 1,2)").routes.fabric.hosts
    machine = machine_of(interface("XGFT(2; 4,4; 1,2)", [names[at] for at in (0, 1, 4)]), 1)
    graph = CommunicationGraph.from_arrays(3, [0, 1], [2, 2], [100, 23])
    found = evaluate(Mapping.identity(machine, 3), graph, machine)
    assert found.link_load == 123
    assert found.bytes_by_distance == {"host": 0, "3": 123}


@examples(30)
@given(st.permutations(range(16)), st.lists(st.tuples(*[st.integers(0, 15)] * 2, st.integers(0, 99)), max_size=20))
def test_links_of_many_hosts_are_loaded_as_those_of_few(order, edges):
    job = interface("XGFT(2; 4,4; 1,2)")
    machine = machine_of(job, 1, [job.hosts[at] for at in order])
    graph = CommunicationGraph.from_arrays(16, *(np.array(edges, dtype=np.int64).reshape(-1, 3).T))
    few, relieved = evaluate(Mapping.identity(machine, 16), graph, machine), relieve(graph, machine, steps=100)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("topompi.mapping.machine.MOST_EXPANDED", 0)
        patch.setattr("topompi.network.Tables.all_paths", None)
        machine = machine_of(job, 1, [job.hosts[at] for at in order])
        assert evaluate(Mapping.identity(machine, 16), graph, machine) == few
        again = relieve(graph, machine, steps=100)
        assert again.host_of_rank.tolist() == relieved.host_of_rank.tolist()


def test_hosts_alone_are_one_hop_apart_and_one_host_is_a_machine():
    flat = machine_of(TopologyInterface.place(["a", "b", "a"]))
    assert table(flat).tolist() == [[0, 1], [1, 0]]
    assert flat.slots.tolist() == [2, 1]
    assert machine_of(TopologyInterface.place(["a"]), 7).num_slots == 7


def test_routes_can_be_left_out():
    machine = machine_of(interface("XGFT(2; 4,4; 1,2)"), 1, routes=False)
    assert machine.links is None


def test_other_hosts_than_the_jobs_and_too_few_slots_are_refused():
    job = TopologyInterface.place(["a", "b"])
    with pytest.raises(MachineError, match="expecting the 2 hosts of the job in some order, got c"):
        machine_of(job, 1, ["a", "c"])
    with pytest.raises(MachineError, match="expecting a name, slots and a place for each host"):
        machine_of(job, [1, 2, 3])
