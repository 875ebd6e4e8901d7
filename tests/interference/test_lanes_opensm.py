"""Lanes in OpenSM's files: a job each with its level, and equal in packets to the weights that they stand for."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.interference.fabrics import LINK
from tests.interference.lanefiles import members_of_partitions, members_of_policy
from tests.interference.test_lanes import APART, KERNELS, SPEC, network
from tests.support import refusal
from topompi.machine.interference.lanes import Lanes
from topompi.machine.interference.lanes.membership import Member, partitions, policy
from topompi.machine.interference.lanes.opensm import Qos, entries_of
from topompi.machine.interference.placement import fragmented
from topompi.netsim import Hosts, packets
from topompi.topology import load
from topompi.views.cluster import cluster_of


def test_wrong_tables_are_refused():
    for wrong, problem in (
        ({"lanes": 3}, "expecting 1, 2, 4, 8 or 15 lanes, and a limit of 0 to 255, got 3 and 0"),
        ({"low": ((0, 256),)}, "low: expecting lanes below 15 with 1 to 255 units, got 0:256"),
        ({"high": ((0, 1),) * 65}, "high: expecting up to 64 turns, got 65"),
        ({"lane_of_level": (0, 1)}, "expecting the lanes of 16 service levels, got 0,1"),
    ):
        assert problem in refusal(lambda wrong=wrong: Qos(**wrong))


def test_full_packets_are_64_units_and_entries_end_at_255():
    assert entries_of(2, 1) == [(2, 64)]
    assert entries_of(2, 3) == [(2, 192)]
    assert entries_of(2, 4) == [(2, 255)]  # the fourth packet begins with 63 units left
    assert entries_of(2, 9) == [(2, 255), (2, 255), (2, 64)]
    assert entries_of(0, 8, mtu=2048) == [(0, 255)]


def sent(units, packet):
    """Packets that a turn sends: one is sent if any weight is left (InfiniBand, volume 1, 7.6.9.2)."""
    return -(-units // packet)


@given(st.integers(1, 255), st.sampled_from([256, 512, 1024, 2048, 4096]), st.integers(0, 64))
def test_the_entries_of_a_weight_send_so_many_packets_with_or_without_headers(packets, mtu, header):
    turns = entries_of(0, packets, mtu)
    assert sum(sent(units, -(-(mtu + header) // 64)) for _, units in turns) == packets
    assert all(1 <= units <= 255 for _, units in turns)


def test_the_files_of_two_lanes_are_those_of_the_manual():
    qos = Qos.of(Lanes((0, 1), (1, 4)))
    assert qos.lines() == (
        "qos TRUE\nqos_max_vls 2\nqos_high_limit 0\nqos_vlarb_high 0:0\nqos_vlarb_low 0:64,1:255\n"
        "qos_sl2vl 0,1,0,0,0,0,0,0,0,0,0,0,0,0,0,0\n"
    )
    urgent = Qos.of(Lanes((0, 1), (1, 1), (1,)))
    assert (urgent.high, urgent.low, urgent.limit) == (((1, 64),), ((0, 64),), 255)


@pytest.mark.parametrize("lanes", [APART, Lanes((0, 1), (1, 4)), Lanes((0, 1), (8, 1)), Lanes((0, 1), (1, 1), (1,))])
def test_the_tables_of_opensm_give_packets_the_times_of_the_choice(lanes):
    """Bit for bit if all packets are full: messages of 64 KiB without control packets."""
    where = network(SPEC, LINK, hosts=Hosts(eager=np.inf))
    nodes = fragmented(cluster_of(load(SPEC).routes), {"A": 16, "B": 16}, 2)
    jobs = lanes.programs([KERNELS["FT"].on(nodes[name], name=name) for name in nodes])
    times = []
    for arbitration in (lanes.arbitration(), Qos.of(lanes).arbitration()):
        settings = replace(lanes.settings(where.settings), arbitration=arbitration)
        found = packets.run(where.tables, jobs, hosts=where.hosts, settings=settings)
        times.append(found.job_seconds.tolist())
    assert times[0] == times[1]


# ---- service levels of jobs ----

NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9_.-]{0,8}", fullmatch=True)


@st.composite
def members(draw):
    names = draw(st.lists(NAMES, min_size=1, max_size=6, unique=True))
    ports = draw(st.lists(st.integers(1, 2**64 - 1), min_size=len(names), max_size=40, unique=True))
    owner = list(range(len(names))) + [draw(st.integers(0, len(names) - 1)) for _ in ports[len(names) :]]
    return [
        Member(
            name,
            draw(st.integers(0, 14)),
            tuple(f"{port:#018x}" for port, own in zip(ports, owner, strict=True) if own == at),
        )
        for at, name in enumerate(names)
    ]


@given(members())
def test_policies_and_partitions_hold_each_job_with_its_level_and_ports(jobs):
    assert members_of_policy(policy(jobs)) == jobs
    assert members_of_partitions(partitions(jobs)) == jobs


def test_a_port_belongs_to_one_job_and_is_a_guid():
    jobs = [Member("A", 0, ("0x1",)), Member("B", 1, ("0x2", "0x1"))]
    assert "opensm: 0x1: expecting it once, got it in A and B" in refusal(policy, jobs)
    assert "opensm: job A: expecting it once" in refusal(partitions, [jobs[0], replace(jobs[0], ports=())])
    assert "A: expecting GUIDs of InfiniBand ports such as 0x2c9, got 'swp1'" in refusal(Member, "A", 0, ("swp1",))
    assert "a b: expecting a job's name of letters" in refusal(Member, "a b", 0, ())
    assert "A: expecting a service level below 15, got 15" in refusal(Member, "A", 15, ())
