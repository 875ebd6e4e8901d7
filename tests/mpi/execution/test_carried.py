"""Uneven exchanges by carriers: their stages without MPI, for any hosts and sizes; under mpirun against the library."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import ROOT, run_mpi
from topompi.mpi.execution.eligibility import can_run
from topompi.mpi.execution.parcels import REFUSED, Parcel, Route


@st.composite
def exchanges(draw):
    """Hosts of ranks, bytes from each to each, and the ranks that refuse the call."""
    size = draw(st.integers(1, 14))
    hosts = draw(st.lists(st.integers(0, draw(st.integers(0, 5))), min_size=size, max_size=size))
    random = np.random.default_rng(draw(st.integers(0, 1 << 16)))
    sizes = random.integers(0, draw(st.sampled_from([2, 5, 900])), (size, size))
    return np.array(hosts), sizes, draw(st.sets(st.integers(0, size - 1), max_size=2))


def block(source, target, length):
    return (np.arange(length) + 31 * source + 7 * target).astype(np.uint8)


def delivered(sent, expected):
    """The parcels that each rank receives; fails if a rank receives a parcel that it does not expect, or misses one."""
    came = [{} for _ in sent]
    for source, parcels in enumerate(sent):
        for target, parcel in parcels.items():
            if len(parcel):
                came[target][source] = parcel
    assert [{peer: len(parcel) for peer, parcel in one.items()} for one in came] == expected
    return came


@given(exchanges())
def test_every_block_comes_to_its_place_and_a_refusal_to_all_who_expect_data(exchange):
    hosts, sizes, refusing = exchange
    ranks = range(len(hosts))
    routes = [Route(hosts, rank) for rank in ranks]
    own = [
        Parcel.refused(len(hosts))
        if rank in refusing
        else Parcel(
            sizes[rank][routes[rank].order],
            np.concatenate([block(rank, other, sizes[rank, other]) for other in routes[rank].order]),
        )
        for rank in ranks
    ]
    came = delivered([routes[rank].handed(own[rank]) for rank in ranks], [route.to_collect for route in routes])
    direct, sent = zip(*(routes[rank].collected(came[rank]) for rank in ranks), strict=True)
    for rank, parcels in enumerate(sent):
        assert all(hosts[rank] != hosts[peer] for peer in parcels)
    came = delivered(sent, [route.to_exchange for route in routes])
    came = delivered([routes[rank].exchanged(came[rank]) for rank in ranks], [route.to_hand_out for route in routes])
    for rank in ranks:
        got, order = routes[rank].arrived(direct[rank], came[rank]), routes[rank].arrival
        assert sorted(order) == list(ranks)
        assert got.sizes.tolist() == [REFUSED if one in refusing else sizes[one, rank] for one in order]
        wanted = [block(one, rank, sizes[one, rank]) for one in order if one not in refusing]
        assert got.data.tolist() == np.concatenate([np.empty(0, np.uint8), *wanted]).tolist()


@given(st.lists(st.integers(0, 5), min_size=1, max_size=40))
def test_each_pair_of_hosts_has_one_message_and_a_hosts_ranks_share_them(hosts):
    routes = [Route(np.array(hosts), rank) for rank in range(len(hosts))]
    pairs = [(hosts[peer], hosts[rank]) for rank, route in enumerate(routes) for peer in route.to_exchange]
    assert len(set(pairs)) == len(pairs) == len(set(hosts)) * (len(set(hosts)) - 1)
    for host in set(hosts):
        carried = [len(route.to_exchange) for route, own in zip(routes, hosts, strict=True) if own == host]
        assert max(carried) - min(carried) <= 1


def test_equal_blocks_are_sent_as_the_schedule_of_alltoall_sends_them():
    from topompi.schedules.alltoall.aggregation import alltoall_node_aware

    hosts = np.array([0, 1, 0, 2, 1, 0, 3])
    schedule = alltoall_node_aware(hosts)
    ends = np.stack((schedule.source, schedule.destination))
    crossing = ends[:, hosts[ends[0]] != hosts[ends[1]]]
    routes = [Route(hosts, rank) for rank in range(len(hosts))]
    assert sorted(zip(*crossing.tolist(), strict=True)) == sorted(
        (peer, rank) for rank, route in enumerate(routes) for peer in route.to_exchange
    )


def test_node_aware_runs_alltoallv_and_still_not_alltoallw():
    assert can_run("Alltoallv", "node_aware")
    assert not can_run("Alltoallw", "node_aware")
    assert not can_run("Alltoallv", "leaders")
    assert not can_run("Alltoallv", "node_aware/32K")


@pytest.mark.parametrize("ranks", [1, 4, 5])
@pytest.mark.long
def test_alltoallv_by_carriers_equals_native_and_no_rank_waits_for_one_that_refuses(ranks):
    """Derived datatypes with gaps, in place, empty blocks, any displacements and hosts, parcels of several messages."""
    done = run_mpi(ranks, "-m", "mpi4py", ROOT / "tests" / "programs" / "carried.py", "7", "6", timeout=120)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert re.search("^all right: 60 cases$", done.stdout, re.MULTILINE)


@pytest.mark.long
def test_alltoallv_by_carriers_equals_native_on_more_ranks():
    done = run_mpi(8, "-m", "mpi4py", ROOT / "tests" / "programs" / "carried.py", "8", "12", timeout=300)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
