"""T_base: the least time of a crossbar, and the simulated time of a program on one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.interference.fabrics import LINK, jobs
from tests.support import examples
from topompi.machine.interference import crossbar
from topompi.machine.interference.kernels import make_kernel, trace_of
from topompi.machine.interference.network import SharedNetwork, shared_network
from topompi.mapping.graph import CommunicationGraph
from topompi.netsim import COMPUTE, RECEIVE, SEND, Program
from topompi.topology import load
from topompi.views.cluster import cluster_of

MACHINE = cluster_of(load("xgft:4,4;1,1@rate=1xFDR10").routes)


def seconds(program, latency=0.0):
    """The time on a crossbar of a program whose hosts are in a slimmed tree, which is that on equal links."""
    found = SharedNetwork(shared_network(MACHINE, None, latency)).base_seconds(program)
    assert found == pytest.approx(crossbar.seconds(program, LINK, 2 * latency))
    return found


def at_once(graph, hosts, compute=0.0):
    """A program that computes, then sends all messages of a graph in one step."""
    edges, rank = len(graph.targets), np.arange(graph.size)
    return Program(
        hosts,
        rank=np.concatenate((rank, graph.sources, graph.targets)),
        step=np.zeros(graph.size + 2 * edges),
        kind=np.repeat([COMPUTE, SEND, RECEIVE], [graph.size, edges, edges]),
        peer=np.concatenate((rank, graph.targets, graph.sources)),
        amount=np.concatenate((np.full(graph.size, compute), graph.volume, graph.volume)),
    )


def without_self(graph):
    apart = graph.sources != graph.targets
    return CommunicationGraph.from_arrays(graph.size, graph.sources[apart], graph.targets[apart], graph.volume[apart])


@given(jobs(12))
def test_the_least_time_is_that_of_the_busiest_end(job):
    graph, hosts = job
    ends = np.zeros((2, 12))
    for source, target, volume in zip(graph.sources, graph.targets, graph.volume, strict=True):
        if source != target:
            ends[0, hosts[source]] += volume
            ends[1, hosts[target]] += volume
    assert crossbar.bound(graph, LINK, hosts) == pytest.approx(ends.max() / LINK)


@given(jobs(12), st.floats(0, 1))
@examples(40)
def test_a_simulated_crossbar_takes_at_least_the_least_time_and_the_computation(job, compute):
    graph, hosts = without_self(job[0]), job[1]
    found = seconds(at_once(graph, hosts, compute))
    assert found >= (compute + crossbar.bound(graph, LINK)) * (1 - 1e-9)


@pytest.mark.parametrize("ranks", [2, 5, 16])
def test_an_alltoall_reaches_the_least_time(ranks):
    graph = CommunicationGraph.from_matrix(16_000 * (1 - np.eye(ranks, dtype=np.int64)))
    found = seconds(at_once(graph, np.arange(ranks), 0.25))
    assert found == pytest.approx(0.25 + crossbar.bound(graph, LINK))
    assert crossbar.bound(graph, LINK) == pytest.approx((ranks - 1) * 16_000 / LINK)


@pytest.mark.parametrize("name", ["ft", "cg", "bt", "mg"])
def test_the_phases_of_a_nas_kernel_keep_the_busiest_link_busy(name):
    kernel = make_kernel(name, range(16))
    trace = trace_of(kernel, kernel.usual_size, burst=kernel.usual_burst)
    found = seconds(trace.on(range(16)))
    assert found == pytest.approx(kernel.usual_burst + crossbar.bound(kernel.graph, LINK))


def test_a_message_takes_the_latency_of_the_crossbar():
    program = at_once(CommunicationGraph.from_arrays(2, [0], [1], [1250]), np.array([7, 3]))
    assert seconds(program, latency=5e-7) == pytest.approx(2e-6)  # two links


def test_ranks_of_one_host_use_no_link():
    graph = CommunicationGraph.from_arrays(4, [0, 2, 0], [1, 3, 2], [10**9, 10**9, 1250])
    assert crossbar.bound(graph, LINK, np.array([0, 0, 1, 1])) == 1e-6


@given(jobs(12))
@examples(30)
def test_a_program_has_the_bytes_of_the_graph_that_it_sends(job):
    graph = without_self(job[0])
    found = crossbar.graph_of(at_once(graph, job[1]))
    assert (found.sources == graph.sources).all()
    assert (found.targets == graph.targets).all()
    assert (found.volume == graph.volume).all()
