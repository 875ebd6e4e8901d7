"""Networks of random jobs on random fabrics, and the load that a step of a host-level schedule puts on their links."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache

import numpy as np
from hypothesis import strategies as st

from topompi.schedules import Network, check
from topompi.schedules.alltoall.hostschedule import HostSchedule
from topompi.topology import Routes, TopologyInterface, load
from topompi.views.network import network_of

SPECS = (
    "XGFT(2; 5,4; 1,4)",
    "XGFT(2; 6,4; 1,3)",
    "XGFT(3; 3,3,2; 1,2,2)",
    "XGFT(2; 5,4; 1,2; 1,2)",
    "dragonfly:3,2,2",
    "torus:3x3@hosts_per_switch=2",
    "slurm64",
)


@cache
def routes(spec: str) -> Routes:
    """Routes over a synthetic fabric."""
    return load(spec).routes


def job(spec: str, hosts: Iterable[int], ranks: Iterable[int]) -> Network:
    """The network of a job with so many ranks on each of these hosts, dealt round so that hosts alternate."""
    names = routes(spec).fabric.hosts
    turns = sorted((turn, place) for place, many in enumerate(ranks) for turn in range(many))
    listed = list(hosts)
    return network_of(TopologyInterface.place([names[listed[place]] for _, place in turns], routes(spec)))


@st.composite
def jobs(draw: st.DrawFn, most_hosts: int = 10, most_ranks: int = 3) -> Network:
    """Random hosts of a random fabric in random order, with unequal numbers of ranks."""
    spec = draw(st.sampled_from(SPECS))
    count = routes(spec).fabric.num_hosts
    hosts = draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=most_hosts, unique=True))
    ranks = draw(st.lists(st.integers(1, most_ranks), min_size=len(hosts), max_size=len(hosts)))
    return job(spec, hosts, ranks)


def steps(schedule: HostSchedule) -> dict[int, list[tuple[int, int]]]:
    """The (source, destination) pairs of hosts of each step, without those inside a host."""
    found: dict[int, list[tuple[int, int]]] = {}
    rows = zip(schedule.step.tolist(), schedule.source.tolist(), schedule.destination.tolist(), strict=True)
    for step, source, destination in rows:
        if source != destination:
            found.setdefault(step, []).append((source, destination))
    return found


def link_loads(network: Network, pairs: Iterable[tuple[int, int]]) -> Counter[int]:
    """Routes over each link, followed one by one."""
    return Counter(int(link) for pair in pairs for link in network.links[pair] if link >= 0)


def same_rows(schedule: HostSchedule) -> bool:
    """Whether each rank's own rows are those of the expanded schedule."""
    whole = schedule.expand()
    table = np.stack(list(whole.columns().values()), axis=1)
    return all(np.array_equal(schedule.rows_of(rank), table[whole.of_rank(rank)]) for rank in range(schedule.size))


def prove(schedule: HostSchedule) -> None:
    """Check that every rank ends with what MPI defines, and that each rank can make its rows alone."""
    check(schedule.expand())
    assert same_rows(schedule)


def one_message_each(schedule: HostSchedule) -> bool:
    """Whether in each step of the ranks a rank sends at most one message and receives at most one."""
    whole = schedule.expand()
    sent = np.stack((whole.step, whole.source))[:, whole.messages]
    received = np.stack((whole.step, whole.destination))[:, whole.messages]
    return all(np.unique(ends, axis=1).shape == ends.shape for ends in (sent, received))


def scattered_job() -> Network:
    """Ten ranks dealt over hosts of all four leaves of a 2:1 fat tree, up to three on one, with real routes."""
    discovery = load("xgft:4,4;1,2")
    hosts = [discovery.fabric.hosts[i] for i in (0, 5, 5, 1, 9, 12, 0, 14, 13, 5)]
    return network_of(TopologyInterface.place(hosts, discovery.routes))


def slowed(network: Network, rates: Mapping[int, float]) -> Network:
    """The network in which the own links of some hosts, both ways, have other rates, as multiples of their own."""
    capacity = network.capacity.copy()
    for host, rate in rates.items():
        other = (host + 1) % network.num_hosts
        there, back = network.links[host, other], network.links[other, host]
        capacity[[there[0], back[back >= 0][-1]]] *= rate
    return replace(network, capacity=capacity)
