"""An alltoall under fair sharing, and the schedule ``even``, whose every step loads the links as the whole does."""

import re
import shutil
import subprocess
from collections import Counter

import numpy as np
import pytest
from hypothesis import given

from studies.simgrid.traces import write_traces
from tests.networks import job, jobs, link_loads, steps
from tests.support import examples
from topompi.schedules import Schedule, check, make
from topompi.schedules.alltoall.colouring import fewest_steps
from topompi.schedules.alltoall.direct import alltoall_at_once
from topompi.schedules.alltoall.even import even

few = examples(40)


@few
@given(jobs())
def test_each_rank_of_a_host_begins_with_another_step(network):
    """In each step of the ranks those of a host are as far apart in the steps of the hosts as these allow."""
    schedule = even(network)
    plain, whole = even(network, rotated=False), schedule.expand()
    of_pair = {(a, b): s for s, a, b in zip(plain.step, plain.source, plain.destination, strict=True)}
    where = network.rank_host
    place = np.array([np.count_nonzero(where[:rank] == host) for rank, host in enumerate(where)])
    most, steps_ = int(np.bincount(network.rank_host).max()), plain.num_host_steps
    sent = zip(whole.step, whole.source, whole.destination, strict=True)
    for step, source, destination in sent:
        turn, begun = divmod(int(step), steps_)
        assert (place[destination] - place[source]) % most == turn
        ahead = place[source] * steps_ // most
        assert (begun + ahead) % steps_ == of_pair[where[source], where[destination]]


def test_ranks_of_a_host_do_not_meet_on_a_target():
    """On a whole tree the four ranks of a host send to four hosts in each step, and so does the window of steps."""
    network = job("xgft:4,4;1,2", list(range(16)), [4] * 16)
    whole = even(network).expand()
    where = network.rank_host
    far = where[whole.source] != where[whole.destination]
    meets = np.stack((whole.step, where[whole.source], where[whole.destination]))[:, far]
    assert np.unique(meets, axis=1, return_counts=True)[1].max() == 1
    assert whole.window == 4
    assert even(network, window=3).window == 3


@few
@given(jobs(most_hosts=14, most_ranks=1))
def test_each_step_has_its_part_of_each_links_load(network):
    """No step puts more on a link than the whole load over half the bound, rounded up, and the steps are not many."""
    pairs = [(a, b) for a in range(network.num_hosts) for b in range(network.num_hosts) if a != b]
    found, whole = steps(even(network)), link_loads(network, pairs)
    source, destination = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    least = -(-fewest_steps(network, source, destination) // 2)
    assert sorted(pair for step in found.values() for pair in step) == pairs
    for step in found.values():
        assert all(load <= -(-whole[link] // least) for link, load in link_loads(network, step).items())
    assert least <= len(found) <= max(1.25 * least, least + 4)


def fair_seconds(routes):
    """Time of equal messages that start together and share links max-min fairly, each link carrying one a second."""
    left, clock = dict.fromkeys(range(len(routes)), 1.0), 0.0
    while left:
        rate = fair_rates({message: routes[message] for message in left})
        step = min(left[message] / rate[message] for message in left)
        clock += step
        left = {message: rest for message in left if (rest := left[message] - step * rate[message]) > 1e-9}
    return clock


def fair_rates(routes):
    """Rates by filling: all grow alike until a link is full, whose messages then stay as they are."""
    rates, free = {}, Counter({link: 1.0 for route in routes.values() for link in route})
    while len(rates) < len(routes):
        open_ = {message: route for message, route in routes.items() if message not in rates}
        users = Counter(link for route in open_.values() for link in route)
        tightest = min(users, key=lambda link: (free[link] / users[link], link))
        share = free[tightest] / users[tightest]
        for message, route in open_.items():
            if tightest in route:
                rates[message] = share
                free.subtract(dict.fromkeys(route, share))
    return rates


@examples(15)
@given(jobs(most_hosts=7, most_ranks=1))
def test_all_at_once_takes_what_the_busiest_link_needs(network):
    """On any routes, if links share max-min fairly; so does each step of ``even`` on its own."""
    pairs = [(a, b) for a in range(network.num_hosts) for b in range(network.num_hosts) if a != b]
    for together in (pairs, *steps(even(network)).values()):
        routes = [[int(link) for link in network.links[pair] if link >= 0] for pair in together]
        assert fair_seconds(routes) == pytest.approx(max(link_loads(network, together).values(), default=0))


def test_all_at_once_bounds_nothing():
    schedule = alltoall_at_once(6, blocks=2)
    check(schedule)
    assert schedule.independent
    assert schedule.window == 0


def test_it_is_the_same_each_time_and_hands_on_its_window():
    network = job("XGFT(2; 6,4; 1,3)", range(20), [1] * 20)
    one, other = even(network), even(network, window=9)
    assert np.array_equal(one.step, other.step)
    assert np.array_equal(one.destination, other.destination)
    assert (one.window, other.window) == (8, 9)
    assert even(job("XGFT(2; 6,4; 1,3)", range(2), [20, 1])).window == 1


RATE, LATENCY, BLOCK = 6.75e9, 0.25e-6, 1 << 18
AS_WRITTEN = ("bw-factor:0:1", "lat-factor:0:1", "send-is-detached-thresh:0", "host-speed:1Gf")


def platform(network):
    """SimGrid's platform of a network with its own routes, all links alike."""
    hosts, links = range(network.num_hosts), np.unique(network.links[network.links >= 0])
    lines = [f'<host id="h{host}" speed="1Gf"/>' for host in hosts]
    lines += [f'<link id="l{link}" bandwidth="{RATE}Bps" latency="{LATENCY}s"/>' for link in links]
    for a, row in enumerate(network.links.tolist()):
        for b, route in enumerate(row):
            path = "".join(f'<link_ctn id="l{link}"/>' for link in route if link >= 0)
            if a != b:
                lines.append(f'<route src="h{a}" dst="h{b}" symmetrical="NO">{path}</route>')
    head = '<?xml version=\'1.0\'?><!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd"><platform version="4.1">'
    return f'{head}<zone id="z" routing="Full">{"".join(lines)}</zone></platform>'


def over_the_bound(network, schedule: Schedule, folder):
    """Seconds of SimGrid's replay over those that the busiest link takes; one rank a host."""
    if shutil.which("smpirun") is None:
        pytest.skip("smpirun is not here (Debian: libsimgrid-dev), so nothing was replayed")
    folder.mkdir()
    listing = write_traces(schedule, folder / "traces", BLOCK)
    (folder / "platform.xml").write_text(platform(network))
    (folder / "hosts").write_text("".join(f"h{host}\n" for host in network.rank_host))
    command = ["smpirun", "-replay", listing, "-np", str(schedule.size), "-platform", "platform.xml"]
    options = [f"--cfg=smpi/{option}" for option in AS_WRITTEN]
    command += ["-hostfile", "hosts", *options, "--cfg=network/crosstraffic:0", "--log=xbt_cfg.thres:warning"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    busiest = np.bincount(network.links[network.links >= 0]).max() * BLOCK / RATE
    return float(re.search(r"Simulation time ([\d.]+)", done.stderr + done.stdout)[1]) / busiest


def test_on_part_of_a_machine_few_in_flight_come_within_5_percent(tmp_path):
    """Eighty random hosts of a three-level fat tree, 2:1: where shifts and conflict-free steps drift far apart."""
    hosts = np.sort(np.random.default_rng(1).permutation(128)[:80])
    network = job("XGFT(3; 8,4,4; 1,4,4)", hosts.tolist(), [1] * 80)
    ratio = {
        name: over_the_bound(network, make("alltoall", name, network), tmp_path / name)
        for name in ("even", "at_once", "shift", "colouring")
    }
    assert ratio["at_once"] == pytest.approx(1, abs=0.002)
    assert ratio["even"] <= 1.05
    assert min(ratio["shift"], ratio["colouring"]) > 1.3
