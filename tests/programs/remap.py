"""Re-ordered communicators against those in the given order: same data by position, never worse, errors on all ranks.

To be run by ``pytest_on_ranks`` of ``tests/support.py``; a failure on one rank ends all.
"""

import collections
import gc

import numpy as np
import pytest
from mpi4py import MPI

import topompi
from topompi.mapping.graph import CommunicationGraph
from topompi.mapping.placement import place
from topompi.mpi.communicator import Cartcomm, Distgraphcomm, Graphcomm, Intracomm
from topompi.mpi.communicator.agreement import AgreementError
from topompi.mpi.communicator.remap import methods as reordered
from topompi.mpi.communicator.remap.order import RemapError
from topompi.topology import TopologyInterface, load

pytestmark = pytest.mark.mpi

WORLD = MPI.COMM_WORLD
RANK, SIZE = WORLD.Get_rank(), WORLD.Get_size()
FABRIC = load("xgft:2,2;1,1")
NAMES = FABRIC.fabric.hosts
UNEVEN = [NAMES[host] for host in (0, 3, 0, 1, 0, 2, 3, 0, 1)]
PLACEMENTS = {
    "block": place(SIZE, NAMES, "block"),
    "cyclic": place(SIZE, NAMES, "cyclic"),
    "random": place(SIZE, NAMES, "random:3"),
    "uneven": [UNEVEN[rank % len(UNEVEN)] for rank in range(SIZE)],
}


def view(placement):
    if placement == "no switch known":
        return TopologyInterface.place(["a" if rank % 3 else "b" for rank in range(SIZE)], virtual=True)
    return TopologyInterface.place(PLACEMENTS[placement], FABRIC.routes, virtual=True)


@pytest.fixture
def comm(request):
    made = topompi.Intracomm(WORLD.Dup(), topology=view(getattr(request, "param", "cyclic")))
    yield made
    made.Free()


# The others in long runs: each search takes its time where ranks outnumber cores.
SOME = ("cyclic", "uneven")
OTHERS = [pytest.param(name, marks=pytest.mark.long) for name in (*PLACEMENTS, "no switch known") if name not in SOME]
every_placement = pytest.mark.parametrize("comm", [*SOME, *OTHERS], indirect=True)
SEEDS = range(3)


# What MPI says of each position, and what each position receives.


def received(comm, neighbours):
    """What all three neighbourhood exchanges bring to this rank, by its ``neighbours``: from whom, to whom."""
    rank, (sources, targets) = comm.rank, neighbours
    sent = np.array([1000 * rank + target for target in targets], dtype=int)
    gathered, blocks = (np.full(len(sources), -1) for _ in range(2))
    # Open MPI 5 lets a rank that hears nobody return at once, so that whom it speaks to waits forever.
    if comm.allreduce(bool(sources) == bool(targets), MPI.LAND):
        comm.Neighbor_allgather(np.array([100 + rank]), gathered)
        comm.Neighbor_alltoall(sent, blocks)
    else:
        gathered[:] = [100 + source for source in sources]
        blocks[:] = [1000 * source + rank for source in sources]
    sizes = [[(source + target) % 3 for source, target in pairs] for pairs in from_to(rank, neighbours)]
    parts = np.full(sum(sizes[0]), -1)
    comm.Neighbor_alltoallv([np.repeat(sent, sizes[1]), sizes[1]], [parts, sizes[0]])
    return gathered.tolist(), blocks.tolist(), parts.tolist()


def from_to(rank, neighbours):
    sources, targets = neighbours
    return [(source, rank) for source in sources], [(rank, target) for target in targets]


def cart_neighbours(comm):
    both = [end for dimension in range(comm.ndim) for end in comm.Shift(dimension, 1)]
    return both, both


def graph_neighbours(comm):
    both = comm.Get_neighbors(comm.rank)
    return both, both


def same_by_position(comm, native, neighbours_of, facts_of=None):
    """Position r of a re-ordered communicator has and receives what position r has in the given order."""
    here = None
    if native != MPI.COMM_NULL:
        neighbours = neighbours_of(native)
        here = native.rank, (neighbours, facts_of and facts_of(native), received(native, neighbours))
    expected = dict(one for one in WORLD.allgather(here) if one)
    if comm != MPI.COMM_NULL:
        neighbours = neighbours_of(comm)
        got = neighbours, facts_of and facts_of(comm), received(comm, neighbours)
        assert got == expected[comm.rank]
    sizes = WORLD.allgather(0 if comm == MPI.COMM_NULL else comm.size)
    assert sorted(sizes) == [0] * (SIZE - len(expected)) + [len(expected)] * len(expected)


def cost(network, placed, source, target, weight):
    """J, by the hops between the hosts of the two processes."""
    total = 0
    for one, other, amount in zip(source, target, weight, strict=True):
        here, there = (network.rank_host[placed[rank]] for rank in (one, other))
        total += int(network.hop_matrix[here, there]) * int(amount)
    return total


def not_worse(parent, comm, edges):
    """The new order costs what the report says, and at most what the given one costs; returns whether it is new."""
    mine = comm.rank if comm != MPI.COMM_NULL else None
    process = {rank: at for at, rank in enumerate(WORLD.allgather(mine)) if rank is not None}
    report = topompi.mapping_report(comm)
    assert WORLD.allgather(report.describe()) == [report.describe()] * SIZE
    before, after = (cost(topompi.interface(parent), placed, *edges) for placed in (range(SIZE), process))
    assert (report.before.doubled, report.after.doubled) == (before, after)
    assert after < before if report.reordered else after == before
    assert report.reordered == (process != {rank: rank for rank in process})
    assert report.virtual
    if not report.reordered:
        assert report.gain < 0.03
    if comm != MPI.COMM_NULL:
        ours, theirs = topompi.interface(comm), topompi.interface(parent)
        assert [ours.hosts[host] for host in ours.rank_host] == [
            theirs.hosts[theirs.rank_host[process[rank]]] for rank in range(comm.size)
        ]
    return report.reordered


# Cartesian


def grids():
    plane, box = MPI.Compute_dims(SIZE, 2), MPI.Compute_dims(SIZE, 3)
    yield plane, [True, False]
    yield plane, None
    yield plane, True
    yield box, [False, True, False]
    yield [SIZE], [True]
    yield [SIZE - 1], [False]
    yield [2, SIZE // 2 - 1], [True, True]
    yield [1, SIZE // 2], [True, False]
    yield [1], None


def grid_edges(dims, periods):
    size, wraps = int(np.prod(dims)), np.broadcast_to(bool(periods) if isinstance(periods, bool) else 0, len(dims))
    wraps = wraps if periods is None or isinstance(periods, bool) else periods
    edges = []
    for rank in range(size):
        for dimension in range(len(dims)):
            for step in (-1, 1):
                to = list(np.unravel_index(rank, dims))
                to[dimension] += step
                if wraps[dimension] or 0 <= to[dimension] < dims[dimension]:
                    edges.append((rank, int(np.ravel_multi_index(to, dims, mode="wrap")), 1))
    return tuple(zip(*edges, strict=True)) if edges else ((), (), ())


@every_placement
def test_grids(comm):
    moved = 0
    for dims, periods in grids():
        made = comm.Create_cart(dims, periods, reorder=True)
        native = WORLD.Create_cart(dims, periods)
        assert type(made) is Cartcomm
        same_by_position(made, native, cart_neighbours, lambda one: (one.topo, one.Get_coords(one.rank)))
        moved += not_worse(comm, made, grid_edges(dims, periods))
        if made != MPI.COMM_NULL:
            made.Free()
        if native != MPI.COMM_NULL:
            native.Free()
    hosts = [NAMES[at] for at in topompi.interface(comm).rank_host]
    if topompi.interface(comm).num_hosts > 2 and SIZE > 4 and PLACEMENTS["cyclic"] == hosts:
        assert moved


@every_placement
def test_parts_of_a_grid_keep_working(comm):
    dims = MPI.Compute_dims(SIZE, 2)
    made, native = (one.Create_cart(dims, [True, False], True) for one in (comm, WORLD))
    native = WORLD.Create_cart(dims, [True, False])
    for remain in ([True, False], [False, True]):
        part, expected = made.Sub(remain), native.Sub(remain)
        assert type(part) is Cartcomm
        same_by_line = {native.rank: (expected.rank, expected.allgather(native.rank))}
        known = {rank: facts for one in WORLD.allgather(same_by_line) for rank, facts in one.items()}
        assert known[made.rank] == (part.rank, part.allgather(made.rank))
        hosts = part.allgather(topompi.interface(comm).hosts[topompi.interface(comm).rank_host[comm.rank]])
        assert [topompi.interface(part).hosts[host] for host in topompi.interface(part).rank_host] == hosts
        again = part.Dup()
        assert isinstance(again, Cartcomm)
        for one in (again, part, expected):
            one.Free()
    made.Free()
    native.Free()


# Graphs


def random_edges(seed, symmetric=False):
    """Edges with loops, repeated edges and ranks without any; of the first seed everybody speaks and is spoken to."""
    rng = np.random.default_rng([seed, SIZE])
    count = int(rng.integers(1, 4 * SIZE))
    ends = rng.integers(0, max(1, SIZE - seed % 3), (count, 2))
    if seed == 0:
        ends = np.r_[ends, np.stack([np.arange(SIZE), np.roll(np.arange(SIZE), 3)], axis=1)]
    weight = rng.integers(0, 50, len(ends))
    if symmetric:
        proper = ends[:, 0] != ends[:, 1]
        ends = np.r_[ends, ends[proper][:, ::-1]]
        weight = np.ones(len(ends), dtype=int)
    return ends[:, 0].tolist(), ends[:, 1].tolist(), weight.tolist()


@every_placement
def test_graphs(comm):
    for seed in SEEDS:
        source, target, _ = random_edges(seed, symmetric=True)
        nodes = max(1, SIZE - seed % 3)
        order = np.argsort(source, kind="stable")
        index, edges = np.cumsum(np.bincount(source, minlength=nodes)).tolist(), np.array(target)[order].tolist()
        if index[0] == 0:
            index = [0, *index]  # else mpi4py would take the first for a leading 0
        made, native = comm.Create_graph(index, edges, reorder=True), WORLD.Create_graph(index, edges)
        assert type(made) is Graphcomm
        same_by_position(made, native, graph_neighbours)
        not_worse(comm, made, (source, target, [1] * len(source)))
        for one in (made, native):
            if one != MPI.COMM_NULL:
                one.Free()


def adjacent(source, target, weight, seed):
    """The lists of this rank, in an order of its own."""
    rng = np.random.default_rng([seed, RANK])
    inward = [(s, w) for s, t, w in zip(source, target, weight, strict=True) if t == RANK]
    outward = [(t, w) for s, t, w in zip(source, target, weight, strict=True) if s == RANK]
    inward, outward = ([pairs[at] for at in rng.permutation(len(pairs))] for pairs in (inward, outward))
    return [[one[column] for one in pairs] for column in (0, 1) for pairs in (inward, outward)]


def dist_neighbours(comm):
    return comm.Get_dist_neighbors()[:2]


def weights(comm):
    return comm.Get_dist_neighbors()[2]


@every_placement
@pytest.mark.parametrize("weighted", [True, False])
def test_adjacent_graphs(comm, weighted):
    """Neighbours, their order and their weights are those that the old rank of the same number said."""
    for seed in SEEDS:
        source, target, weight = random_edges(seed)
        if not weighted:
            weight = [1] * len(source)
        lists = adjacent(source, target, weight, seed)
        given = lists if weighted else lists[:2]
        made = comm.Create_dist_graph_adjacent(*given, reorder=True)
        native = WORLD.Create_dist_graph_adjacent(*given)
        assert type(made) is Distgraphcomm
        said = WORLD.allgather(lists)[made.rank]
        assert made.Get_dist_neighbors() == (*said[:2], tuple(said[2:]) if weighted else None)
        same_by_position(made, native, dist_neighbours, weights)
        not_worse(comm, made, (source, target, weight))
        made.Free()
        native.Free()


@every_placement
@pytest.mark.parametrize("weighted", [True, False])
def test_distributed_graphs(comm, weighted):
    """Any rank says any edge; the order of neighbours is the MPI library's, so they are compared in ascending order."""
    for seed in SEEDS:
        source, target, weight = random_edges(seed)
        who = np.random.default_rng([seed, 7]).integers(0, SIZE, len(source))
        mine = [at for at in range(len(source)) if who[at] == RANK]
        given = [[source[at] for at in mine], [1] * len(mine), [target[at] for at in mine]]
        made = comm.Create_dist_graph(*given, [weight[at] for at in mine] if weighted else None, reorder=True)
        assert type(made) is Distgraphcomm
        amounts = weight if weighted else [1] * len(source)
        edges = sorted(zip(source, target, amounts, strict=True))
        sources, targets, found = made.Get_dist_neighbors()
        heavy = found if weighted else ([1] * len(sources), [1] * len(targets))
        assert sorted(zip(sources, heavy[0], strict=True)) == [(s, w) for s, t, w in edges if t == made.rank]
        assert sorted(zip(targets, heavy[1], strict=True)) == sorted((t, w) for s, t, w in edges if s == made.rank)
        gathered, blocks, parts = received(made, (sources, targets))
        assert gathered == [100 + source for source in sources]
        assert blocks == [1000 * source + made.rank for source in sources]
        assert collections.Counter(parts) == collections.Counter(
            1000 * source + made.rank for source in sources for _ in range((source + made.rank) % 3)
        )
        not_worse(comm, made, (source, target, amounts))
        made.Free()


@pytest.mark.parametrize("marker", [None, MPI.UNWEIGHTED, MPI.WEIGHTS_EMPTY])
def test_nobody_speaks(comm, marker):
    made = comm.Create_dist_graph_adjacent([], [], marker, marker, reorder=True)
    assert made.Get_dist_neighbors()[:2] == ([], [])
    assert topompi.mapping_report(made).reason == "nothing is sent between hosts"
    assert made.is_weighted if hasattr(made, "is_weighted") else True
    assert (
        made.Get_dist_neighbors_count()[2]
        == WORLD.Create_dist_graph_adjacent([], [], marker, marker).Get_dist_neighbors_count()[2]
    )
    made.Free()


# remap


def shuffled_ring(seed=5):
    order = np.random.default_rng(seed).permutation(SIZE)
    return order.tolist(), np.roll(order, -1).tolist(), [1000] * SIZE


@every_placement
@pytest.mark.parametrize("objective", ["hop-bytes", "busiest link"])
def test_remap(comm, objective):
    edges = shuffled_ring()
    graph = CommunicationGraph.from_arrays(SIZE, *edges) if RANK == 0 else None
    made = topompi.remap(comm, graph, objective=objective)
    again = topompi.remap(comm, graph, objective=objective)
    assert type(made) is Intracomm
    assert made.rank == again.rank
    assert MPI.Comm.Compare(made, comm) in (MPI.SIMILAR, MPI.CONGRUENT)
    if objective == "hop-bytes":
        not_worse(comm, made, edges)
    else:
        report = topompi.mapping_report(made)
        assert report.after.link_seconds <= report.before.link_seconds
    total = np.empty(1, int)
    made.Allreduce(np.array([made.rank]), total)
    assert total[0] == SIZE * (SIZE - 1) // 2
    again.Free()
    made.Free()


def test_the_graph_may_be_a_matrix_or_a_networkx_graph(comm):
    networkx = pytest.importorskip("networkx")
    edges = shuffled_ring()
    matrix = np.zeros((SIZE, SIZE), dtype=int)
    matrix[edges[0], edges[1]] = 1000
    web = networkx.DiGraph()
    web.add_nodes_from(range(SIZE))
    web.add_weighted_edges_from(zip(*edges, strict=True))
    made = [topompi.remap(comm, one) for one in (CommunicationGraph.from_arrays(SIZE, *edges), matrix, web)]
    assert len({one.rank for one in made}) == 1
    for one in made:
        one.Free()


def test_below_the_threshold_the_given_order_comes_back(comm):
    made = topompi.remap(comm, CommunicationGraph.from_arrays(SIZE, *shuffled_ring()), threshold=1)
    report = topompi.mapping_report(made)
    assert made.rank == RANK
    assert not report.reordered
    assert report.after == report.before
    assert "no better order found" in report.reason or "below the threshold of 100.0%" in report.reason
    made.Free()


def test_the_quality_of_rank_0s_environment_counts(comm, monkeypatch):
    monkeypatch.setenv("TOPOMPI_MAP_QUALITY", "1" if RANK == 0 else "nonsense")
    made = topompi.remap(comm, np.ones((SIZE, SIZE), dtype=int) * 0 + np.eye(SIZE, k=1, dtype=int))
    report = topompi.mapping_report(made)
    assert report.reason.startswith("no better order found; the search was cut after 0 steps")
    assert made.rank == RANK
    made.Free()
    monkeypatch.setenv("TOPOMPI_MAP_QUALITY", "nonsense" if RANK == 0 else "1")
    shifted = np.eye(SIZE, k=1, dtype=int)
    raised(RemapError, "TOPOMPI_MAP_QUALITY: expecting a part", lambda: topompi.remap(comm, shifted))


# Where nothing is to be re-ordered


def test_one_host_keeps_its_order():
    comm = topompi.Intracomm(WORLD.Dup(), topology=TopologyInterface.place(["a"] * SIZE))
    around = [(RANK + 1) % SIZE]
    before = [(RANK - 1) % SIZE]
    made = [
        comm.Create_cart([SIZE], [True], reorder=True),
        comm.Create_graph(range(1, SIZE + 1), [*range(1, SIZE), 0], reorder=True),
        comm.Create_dist_graph([RANK], [1], around, reorder=True),
        comm.Create_dist_graph_adjacent(before, around, reorder=True),
        topompi.remap(comm, np.eye(SIZE, k=1, dtype=int)),
    ]
    for one in made:
        assert one.rank == RANK
        assert topompi.mapping_report(one).reason == "one host"
        one.Free()
    comm.Free()


def test_without_reorder_calls_are_the_mpi_librarys(comm, monkeypatch):
    monkeypatch.setattr(reordered, "_solved", None)
    for made in (comm.Create_cart([SIZE]), comm.Create_dist_graph_adjacent([], [], reorder=False)):
        assert made.rank == RANK
        assert topompi.mapping_report(made) is None
        made.Free()


# Errors: the same on all ranks, and nothing hangs


def raised(kind, words, call):
    with pytest.raises(kind) as caught:
        call()
    said = WORLD.allgather(str(caught.value))
    assert said == said[:1] * SIZE
    assert words in said[0]


@pytest.mark.parametrize("how", ["swapped on one", "no permutation anywhere"])
def test_a_disagreement_is_raised_on_all_ranks(comm, monkeypatch, how):
    honest = reordered.from_rank_0

    def told(plain, work):
        solution = honest(plain, work)
        order = solution.new_rank if solution.new_rank is not None else np.arange(SIZE)
        if how.startswith("no"):
            order[:] = 0
        elif RANK == SIZE - 1:
            order[:2] = order[1::-1]
        return type(solution)(order, solution.report)

    monkeypatch.setattr(reordered, "from_rank_0", told)
    words = f"expecting one permutation of {SIZE} ranks, the same on all of them"
    around, before = [(RANK + 1) % SIZE], [(RANK - 1) % SIZE]
    raised(AgreementError, f"remap: {words}", lambda: topompi.remap(comm, np.eye(SIZE, k=1, dtype=int)))
    raised(AgreementError, f"Create_cart: {words}", lambda: comm.Create_cart([SIZE], reorder=True))
    raised(AgreementError, words, lambda: comm.Create_dist_graph_adjacent(before, around, reorder=True))


def test_arguments_that_differ_are_refused_on_all_ranks(comm):
    words = "Create_cart: expecting the same arguments on all ranks"
    raised(AgreementError, words, lambda: comm.Create_cart([SIZE], [RANK == 1], reorder=True))
    raised(AgreementError, words, lambda: comm.Create_cart([SIZE] if RANK else "strange", reorder=True))


def test_what_a_rank_says_wrongly_is_refused_on_all_ranks(comm):
    beyond = [SIZE] if RANK == 1 else []
    raised(
        RemapError,
        f"Create_dist_graph_adjacent: rank 1: expecting ranks in range({SIZE}), got {SIZE}",
        lambda: comm.Create_dist_graph_adjacent([], beyond, reorder=True),
    )
    raised(
        RemapError,
        "Create_dist_graph: rank 0: expecting 2 items, got 1",
        lambda: comm.Create_dist_graph([0], [2], [1], reorder=True),
    )


def test_what_remap_cannot_do_is_refused_on_all_ranks(comm):
    fitting = np.eye(SIZE, k=1, dtype=int)
    raised(RemapError, "expecting a communication graph on rank 0", lambda: topompi.remap(comm, None))
    raised(RemapError, f"graph of {SIZE} ranks, got {SIZE + 1}", lambda: topompi.remap(comm, np.eye(SIZE + 1)))
    raised(RemapError, "expecting objective hop-bytes or", lambda: topompi.remap(comm, fitting, objective="speed"))
    raised(RemapError, "expecting threshold from 0 to 1", lambda: topompi.remap(comm, fitting, threshold=2))
    raised(Exception, "no-such-file", lambda: topompi.remap(comm, "no-such-file"))
    made = topompi.remap(comm, fitting if RANK == 0 else "rank 0's counts", threshold=0.03 if RANK == 0 else 7)
    made.Free()


def test_what_makes_no_sense_is_the_mpi_librarys_to_refuse(comm):
    for call in (
        lambda: comm.Create_cart([SIZE + 1], reorder=True),
        lambda: comm.Create_cart([2, 1], [True], reorder=True),
        lambda: comm.Create_cart(SIZE, reorder=True),
        lambda: comm.Create_graph(range(1, SIZE + 2), [0] * (SIZE + 1), reorder=True),
    ):
        with pytest.raises((MPI.Exception, ValueError, TypeError)):
            call()
    assert comm.allreduce(1) == SIZE


def next_numbers(comm, count=32):
    """The handles that the MPI library gives next."""
    gc.collect()
    probes = [comm.Dup() for _ in range(count)]
    numbers = {probe.py2f() for probe in probes}
    for probe in probes:
        probe.Free()
    return numbers


def test_nothing_is_left_behind(comm):
    """Communicators in between are freed: of the handles that come next, not one a round is gone.

    A few may be: MPICH takes some for communicators of its own, in another order each time.
    """

    def work(rounds):
        for _ in range(rounds):
            comm.Create_cart(MPI.Compute_dims(SIZE, 2), reorder=True).Free()
            comm.Create_dist_graph_adjacent([(RANK - 2) % SIZE], [(RANK + 2) % SIZE], reorder=True).Free()
            topompi.remap(comm, np.eye(SIZE, k=2, dtype=int)).Free()

    work(1)
    before = next_numbers(comm)
    work(6)
    assert len(next_numbers(comm) - before) < 6
