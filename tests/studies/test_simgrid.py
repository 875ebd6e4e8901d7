"""SimGrid's arena: times against closed forms, the platform that it reads, and what fails."""

import shutil
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from osu_like_bench.simulate import Background
from osu_like_bench.simulate.ground import complete
from studies.simgrid import Arena
from studies.simgrid.platform import equal_shares, write_platform
from tests.bench.test_simulate import LATENCY, RATE, network, sends
from tests.support import examples
from topompi.schedules import Network
from topompi.topology import TopologyInterface, load
from topompi.views.network import network_of

ENVELOPE = 16  # bytes that SimGrid adds to each message
LOOPBACK = (6.75e9, 0.19e-6)  # inside a host, as on Stampede
needs_simgrid = pytest.mark.skipif(
    shutil.which("smpirun") is None, reason="smpirun is not here (Debian: libsimgrid-dev): nothing is simulated"
)


def message(nbytes: int, links: int) -> float:
    return links * LATENCY + (nbytes + ENVELOPE) / RATE


def inside(nbytes: int) -> float:
    return LOOPBACK[1] + (nbytes + ENVELOPE) / LOOPBACK[0]


def routes_of(path: Path) -> dict[tuple[int, int], list[str]]:
    """Links of each route of a platform's file."""
    routes = ElementTree.parse(path).getroot().iter("route")
    found = {}
    for route in routes:
        ends = int(route.attrib["src"][1:]), int(route.attrib["dst"][1:])
        found[ends] = [link.attrib["id"] for link in route.iter("link_ctn")]
    return found


@needs_simgrid
@pytest.mark.parametrize("nbytes", [1, 1000, 10**6])
def test_one_message_takes_the_latency_of_its_links_and_its_bytes_over_the_rate(nbytes: int) -> None:
    with Arena(network()) as here:
        assert here.time(sends(4, [(0, 1)]), nbytes) == pytest.approx(message(nbytes, 2), abs=2e-9)
        assert here.time(sends(4, [(0, 3)]), nbytes) == pytest.approx(message(nbytes, 4), abs=2e-9)


@needs_simgrid
def test_two_messages_that_share_a_link_take_twice_the_bytes() -> None:
    with Arena(network()) as here:
        shared = 4 * LATENCY + 2 * (10**6 + ENVELOPE) / RATE
        assert here.time(sends(4, [(0, 2), (1, 3)]), 10**6) == pytest.approx(shared, abs=2e-9)
        # The other direction of a cable is another link.
        assert here.time(sends(4, [(0, 2), (3, 1)]), 10**6) == pytest.approx(message(10**6, 4), abs=2e-9)


@needs_simgrid
def test_ranks_of_a_host_share_its_link_and_talk_inside_it_by_the_loopback() -> None:
    with Arena(network(ppn=2)) as here:
        assert here.time(sends(8, [(0, 1)]), 10**6) == pytest.approx(inside(10**6), abs=2e-9)
        both = 2 * message(10**6, 1)
        assert here.time(sends(8, [(0, 2), (1, 3)]), 10**6) == pytest.approx(both, abs=2e-9)


@needs_simgrid
@pytest.mark.parametrize("selector", ["mvapich2", "mpich", "ompi", "impi"])
def test_a_peer_takes_its_messages_and_not_what_sets_up_the_communicator(selector: str) -> None:
    with Arena(network(hosts=[0, 1])) as here:
        assert here.peer(selector, "bcast", 1000) == pytest.approx(message(1000, 2), abs=5e-9)
    with Arena(network(hosts=[0, 1], ppn=2)) as here:
        # Binomial: to the other host, and then inside both; ompi's sends to both ranks of the other host.
        both = message(1000, 2) + (1000 + ENVELOPE) / RATE * (selector == "ompi")
        assert here.peer(selector, "bcast", 1000) == pytest.approx(both + inside(1000), abs=5e-9)


@needs_simgrid
def test_a_background_takes_half_of_a_link_or_what_it_can() -> None:
    found = network(hosts=[0, 1])
    for nbytes, left in ((10**9, 0.5), (1000, 1 - 1 / 3)):  # alone 1,000 bytes take 2 us and 1 us: a third of the link
        with Arena(found, background=Background(nbytes)) as here:
            seconds = here.time(sends(2, [(0, 1)]), 10**6)
            assert seconds == pytest.approx(2 * LATENCY + (10**6 + ENVELOPE) / (left * RATE), rel=1e-5)
            assert here.bound("bcast", 10**6) == pytest.approx(10**6 / (left * RATE))


@pytest.mark.parametrize("hosts", [None, [5, 0, 3, 9, 2]])
def test_routes_of_the_platform_are_those_of_the_fabric(tmp_path: Path, hosts: list[int] | None) -> None:
    fabric = load("XGFT(3;2,3,2;1,2,1)").routes
    names = [fabric.fabric.hosts[host] for host in hosts or range(len(fabric.fabric.hosts))]
    interface = TopologyInterface.place(names, fabric)
    found = complete(network_of(interface))
    write_platform(found, tmp_path / "p.xml", LOOPBACK)
    written = routes_of(tmp_path / "p.xml")
    paths = interface.host_routes.paths()
    assert len(written) == len(names) ** 2
    for (source, destination), links in written.items():
        path = [f"l{link}" for link in paths[source, destination] if link >= 0]
        assert [link for link in links if link.startswith("l") and not link.startswith("loop")] == path
        assert (source == destination) == (links == [f"loop{source}"])
        own = [link for link in links if link.startswith("p")]
        assert all(link.startswith(f"p{source}k") for link in own)


@examples(60)
@given(st.integers(0, 10**6), st.integers(2, 5), st.integers(1, 4))
def test_links_of_its_own_make_each_route_weigh_the_same_and_slow_none(seed: int, hosts: int, longest: int) -> None:
    generator = np.random.default_rng(seed)
    links = generator.integers(0, 9, (hosts, hosts, longest))
    length = generator.integers(1, longest + 1, (hosts, hosts))
    np.fill_diagonal(length, 0)
    links[np.arange(longest) >= length[:, :, None]] = -1
    capacity = generator.choice([1e9, 2e9, 5e9, 6.75e9], 9)
    clusters = np.zeros((1, hosts), dtype=np.int64)
    found = Network(np.arange(hosts), (links >= 0).sum(axis=2), links, capacity, clusters, np.zeros(9))
    kind, rate, count = equal_shares(found)
    inverse = np.where(links >= 0, 1 / capacity[links], 0)
    weight, slowest = inverse.sum(axis=2), inverse.max(axis=2)
    assert (rate[kind[kind >= 0]] > 0).all()
    each = np.zeros_like(weight)
    each[kind >= 0] = 1 / rate[kind[kind >= 0]]
    own = each * count[kind]
    apart = length > 0
    assert (weight + own)[apart] == pytest.approx(weight.max(), rel=1e-6)
    assert (each <= slowest * (1 + 1e-6))[apart].all()
