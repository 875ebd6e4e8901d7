"""Broadcasts: the checker's proof, their steps and messages, and their crossings on real allocations."""

import functools
import lzma
import math
import tarfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.schedules.test_trees import network_from, networks
from tests.support import shared_data
from topompi.schedules.network import Network
from topompi.schedules.proof import check
from topompi.schedules.rooted import broadcast, doubletree
from topompi.schedules.rooted.circulant import arrivals, receive_blocks, skips
from topompi.schedules.rooted.embedding import best_of, critical_path, host_trees
from topompi.schedules.rooted.scatterallgather import scatter_allgather, scatter_allgather_hosts
from topompi.schedules.schedule import OUTPUT


def uneven_network(size):
    """Ranks on hosts of one to five ranks, not in order; hosts on uneven leaves and cells."""
    rng = np.random.default_rng(size)
    host = np.unique(np.repeat(np.arange(size), rng.integers(1, 6, size))[:size], return_inverse=True)[1]
    host = rng.permutation(host)
    hosts = int(host.max()) + 1
    return network_from(host, rng.integers(0, 3, hosts), rng.integers(0, 4, hosts))


@pytest.mark.parametrize("make", [broadcast.knomial, broadcast.leaders, broadcast.reordered])
def test_trees_send_each_rank_the_message_once(make):
    schedule = make(40 if make is broadcast.knomial else uneven_network(40), root=7)
    assert len(schedule.messages) == 39
    assert sorted(schedule.destination[schedule.messages].tolist()) == [rank for rank in range(40) if rank != 7]


def test_no_blocks_and_a_root_outside_are_refused():
    with pytest.raises(ValueError, match="expecting at least one block, got 0"):
        broadcast.knomial(4, blocks=0)
    with pytest.raises(ValueError, match=r"expecting root in range\(4\), got 9"):
        broadcast.knomial(4, root=9)


# --- pipelines ---


@pytest.mark.parametrize("blocks", [1, 4, 16])
def test_a_chain_needs_a_step_for_each_rank_and_each_further_segment(blocks):
    network = uneven_network(20)
    schedule = broadcast.chain(network, root=5, blocks=blocks)
    assert schedule.num_steps == 20 - 2 + blocks
    assert len(schedule.messages) == 19 * blocks


@given(networks(), st.integers(1, 5), st.data())
def test_a_tree_of_any_shape_can_be_pipelined(network, blocks, data):
    tree = broadcast.reordered_tree(network, root=data.draw(st.integers(0, network.num_ranks - 1)), radix=3)
    schedule = broadcast.along(tree, "pipelined", blocks=blocks, pipelined=True)
    check(schedule)
    rows = schedule.messages
    assert len(rows) == blocks * (network.num_ranks - 1)
    turns = np.stack((schedule.step, schedule.source, schedule.source_block, tree.turn[schedule.destination]))[:, rows]
    turn_of = np.unique(turns, axis=1)
    assert len(np.unique(turn_of[:2], axis=1).T) == len(turn_of.T), "a rank serves one turn with one block a step"


def test_scatter_allgather_moves_at_most_twice_the_message_into_each_rank_and_nothing_into_the_root():
    network = uneven_network(32)
    schedule = scatter_allgather(network, root=9)
    rows = schedule.messages
    received = np.bincount(schedule.destination[rows], schedule.count[rows], minlength=32)
    assert received[9] == 0
    assert (np.delete(received, 9) == 32).all(), "each other rank receives every block once"
    sent = np.bincount(schedule.source[rows], schedule.count[rows], minlength=32)
    assert sent.max() <= 2 * 32
    assert schedule.num_steps == math.ceil(math.log2(32)) + 31


def check_arrivals(size, blocks, at, sender, receiver, block):
    """A rank sends and receives one block a step, every rank receives every block, and hands it on afterwards."""
    for rank in (sender, receiver):
        assert len(np.unique(at * size + rank)) == len(at)
    had = np.full((size, blocks), np.iinfo(np.int64).max)
    had[0] = -1
    had[receiver, block] = at
    assert (had < np.iinfo(np.int64).max).all(), "every rank receives every block"
    assert (had[sender, block] < at).all(), "no block is sent before it arrived"


# --- double tree ---


@pytest.mark.parametrize("blocks", [1, 2, 5, 16])
def test_over_two_trees_a_rank_sends_and_receives_one_block_a_step(blocks):
    for size in [*range(2, 130), 255, 257, 1000]:
        at, sender, receiver, block = doubletree.arrivals(size, blocks)
        assert at.max() < blocks + 2 * math.log2(size)
        check_arrivals(size, blocks, at, sender, receiver, block)


@pytest.mark.parametrize("size", [*range(2, 130), 255, 256, 1000])
def test_inner_ranks_of_one_tree_are_leaves_of_the_other_one(size):
    inner, outer = (set(parent[1:].tolist()) for parent in doubletree.parents(size))
    assert inner & outer <= {0}
    for parent in doubletree.parents(size):
        children = np.bincount(parent[1:], minlength=size)
        assert children[0] == 1
        assert children.max() <= 2


# --- circulant ---


@pytest.mark.parametrize("blocks", [1, 2, 5, 16, 33])
def test_circulant_is_round_optimal_with_one_send_and_one_receive_a_rank_and_round(blocks):
    for size in [*range(2, 130), 255, 257, 1000]:
        at, sender, receiver, block = arrivals(size, blocks)
        assert at.max() + 1 == blocks - 1 + (size - 1).bit_length()
        check_arrivals(size, blocks, at, sender, receiver, block)


# All up to 299; beyond that every seventh, with the neighbours of the powers of two, where a phase begins.
BEYOND = sorted({*range(300, 2100, 7), 511, 512, 513, 1023, 1024, 1025, 2047, 2048, 2049})


@pytest.mark.parametrize("sizes", [range(2, 300), pytest.param(BEYOND, marks=pytest.mark.long), [4097, 10007]])
def test_the_receive_blocks_meet_the_four_conditions_of_the_paper(sizes):
    """Träff, arXiv:2407.18004: what comes in a phase is all different, one block of the phase and the rest of earlier
    ones; what goes out came in before, in this phase or in the one before."""
    for size in sizes:
        skip, receive = skips(size), receive_blocks(size)
        phase = len(skip) - 1
        send = np.stack([receive[(np.arange(size) + skip[k]) % size, k] for k in range(phase)], axis=1)
        base = receive.max(axis=1)
        assert send[0].tolist() == list(range(phase))
        assert (np.sort(np.where(receive >= 0, receive - phase, receive), axis=1) == np.arange(-phase, 0)).all()
        assert ((receive >= 0).sum(axis=1)[1:] == 1).all()
        assert (receive[0] < 0).all()
        assert (send[1:, 0] == base[1:] - phase).all()
        for k in range(1, phase):
            new = send[1:, k] != base[1:] - phase
            assert (~new | (send[1:, k][:, None] == receive[1:, :k]).any(axis=1)).all()


# --- real allocations ---


@functools.cache
def leonardo_jobs():
    """Cell and leaf switch of each host of each job, hosts as listed; None for a job with hosts that the map lacks."""
    with lzma.open(shared_data("fabrics/leonardo-nodemap.txt.xz"), "rt") as text:
        words = [line.split() for line in text if "NODE" in line]
    nodes = [dict(zip(line[::2], line[1::2], strict=True)) for line in words]
    place = {f"lrdn{node['NODE']}": (node["CELL"], int(node["SWITCH"])) for node in nodes}
    cells = {cell: number for number, cell in enumerate(sorted({cell for cell, _ in place.values()}))}
    jobs = []
    with tarfile.open(shared_data("fabrics/leonardo-job-nodelists.tar.gz")) as archive:
        listed = {member.name: archive.extractfile(member).read() for member in archive if member.isfile()}
        for _, text in sorted(listed.items()):  # members are read in their order: gzip goes back by starting again
            hosts = text.decode().split()
            known = all(host in place for host in hosts)
            jobs.append([(cells[place[host][0]], place[host][1]) for host in hosts] if known else None)
    return jobs


def leonardo_network(job) -> Network:
    """One rank a host, in the order listed; a minimal path crosses 1, 3 or 4 switches."""
    cell, leaf = np.array(job).T
    leaf = np.unique(leaf, return_inverse=True)[1]
    shared = (cell[:, None] == cell).astype(int) + (leaf[:, None] == leaf)
    hops = np.where(np.eye(len(job), dtype=bool), 0, np.array([4, 3, 1])[shared]).astype(np.int16)
    links = np.zeros((len(job), len(job), 0), dtype=np.int32)
    return Network(np.arange(len(job)), hops, links, np.zeros(0), np.stack((cell, leaf)), np.zeros(0))


def crossing(schedule, cell):
    """Messages between cells."""
    rows = schedule.messages
    return int(np.count_nonzero(cell[schedule.source[rows]] != cell[schedule.destination[rows]]))


def savings(jobs):
    """Share of the halving binomial's messages between cells that the least possible number saves, by job."""
    saved = []
    for job in jobs:
        network = leonardo_network(job)
        cell = network.clusters[0]
        least = len(np.unique(cell)) - 1
        assert crossing(broadcast.leaders(network), cell) == least
        assert crossing(broadcast.chain(network, blocks=1), cell) == least
        saved.append(1 - least / crossing(broadcast.knomial(len(job)), cell))
    return saved


def multi_cell(jobs):
    return [job for job in jobs if job is not None and len({cell for cell, _ in job}) > 1]


@pytest.mark.long
def test_leaders_and_chain_save_38_5_per_cent_of_the_halving_binomials_crossings_over_all_jobs():
    """Of 2,215 jobs 19 have hosts that the map lacks; 1,508 of the others lie in more than one cell."""
    jobs = leonardo_jobs()
    saved = savings(multi_cell(jobs))
    assert (len(jobs), sum(job is None for job in jobs), len(saved)) == (2215, 19, 1508)
    assert round(100 * float(np.mean(saved)), 1) == 38.5


@pytest.mark.parametrize("radix", [2, 4])
def test_the_critical_path_is_never_above_the_plain_ones_on_200_random_allocations(radix):
    """Jobs drawn at random from those on more than one leaf, each with its hosts in the order listed and shuffled."""
    rng = np.random.default_rng(2013)
    jobs = [job for job in leonardo_jobs() if job is not None and len({leaf for _, leaf in job}) > 1]
    ratios = []
    for index in rng.choice(len(jobs), 200, replace=False):
        for job in (jobs[index], [jobs[index][i] for i in rng.permutation(len(jobs[index]))]):
            delay = leonardo_network(job).hops
            trees = host_trees(delay, radix=radix)
            paths = {name: critical_path(tree, delay) for name, tree in trees.items()}
            ratios.append(paths[best_of(trees, delay)] / paths["plain"])
    assert max(ratios) <= 1
    assert np.mean(ratios) < 1


def test_the_choice_of_the_re_ordered_broadcast_is_the_best_of_its_trees():
    network = leonardo_network(max(multi_cell(leonardo_jobs()), key=len))
    paths = {}
    for choose in ("best", "plain", "dft", "bft"):
        schedule = broadcast.reordered(network, root=17, choose=choose)
        check(schedule)
        tree = broadcast.reordered_tree(network, root=17, choose=choose)
        paths[choose] = critical_path(tree, network.hops)
    assert paths["best"] == min(paths.values())
    assert (schedule.destination_buffer == OUTPUT).all()


def test_shares_are_handed_on_inside_hosts_while_others_come():
    """On n hosts of r ranks a rank gets each share once, in n + r - 2 steps behind the scatter, log2 n."""
    network = network_from(np.repeat(np.arange(8), 4), np.arange(8) // 2, np.zeros(8, dtype=int))
    schedule = scatter_allgather_hosts(network)
    assert schedule.num_steps == 3 + 8 + 4 - 2
    sent = schedule.messages
    received = np.bincount(schedule.destination[sent], weights=schedule.count[sent], minlength=32)
    assert np.unique(received[np.arange(32) % 4 > 0]).tolist() == [8.0]
