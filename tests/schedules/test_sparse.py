"""Neighbourhood collectives as data: every block arrives at its place, and in few messages; ranks know little."""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import examples
from topompi.schedules import ScheduleError, check
from topompi.schedules.neighbourhood import Edges, Neighbourhood
from topompi.schedules.schedule import INPUT, OUTPUT, Schedule
from topompi.schedules.sparse.carriers import DIRECT, CarryingTerms, carriers, landings
from topompi.schedules.sparse.exchange import EdgeBlocks, Known, exchange_of
from topompi.schedules.sparse.rounds import most_rounds, route
from topompi.schedules.sparse.schedules import exchanges, schedule_of


def from_lists(sources, destinations, size=1):
    """The alltoall of ranks that list their neighbours, as a distributed graph of MPI does."""
    out, into = ([(own, other) for own, of in enumerate(lists) for other in of] for lists in (destinations, sources))
    places = defaultdict(list)
    for own, of in enumerate(sources):
        for place, other in enumerate(of):
            places[other, own].append(place)
    number = [at for of in destinations for at in range(len(of))]
    place = [places[edge].pop(0) for edge in out]
    assert len(out) == len(into)
    source, destination = np.array(out, dtype=np.int64).reshape(-1, 2).T
    columns = (source, destination, *(np.array(one, dtype=np.int64) for one in (number, place)))
    return Neighbourhood(len(sources), Edges(*columns, np.broadcast_to(size, len(out)).astype(np.int64)))


def aggregated(graph, groups, terms=None):
    """The schedule of an exchange in which carriers send the small blocks of their group."""
    return schedule_of(graph, exchanges(graph, groups, terms or CarryingTerms()), "aggregated")


@st.composite
def graphs(draw):
    """A graph with edges that repeat, or lead back, blocks of 0 to 5 units, listed by each rank in its own order."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    ranks, number = draw(st.integers(1, 12)), draw(st.integers(0, 60))
    source, destination = rng.integers(0, ranks, (2, number))
    sources = [rng.permutation(source[destination == rank]).tolist() for rank in range(ranks)]
    destinations = [destination[source == rank].tolist() for rank in range(ranks)]
    graph = from_lists(sources, destinations, rng.integers(0, 6, number))
    groups = np.unique(rng.integers(0, draw(st.integers(1, 5)), ranks), return_inverse=True)[1]
    terms = CarryingTerms(*(int(one) for one in rng.integers((0, 1, 1, 1), (7, 4, 6, 4))))
    return (graph.shared(rng.integers(0, 6, ranks)) if draw(st.booleans()) else graph), groups, terms


@given(graphs())
@examples(300)
def test_every_block_arrives_at_its_place_and_nothing_else_is_written(case):
    graph, groups, terms = case
    check(aggregated(graph, groups, terms))


@given(graphs())
@examples(60)
def test_blocks_of_other_sizes_than_planned_arrive_too(case):
    """A block that fits into its room is carried, and one that does not goes directly, as do all of zero rooms."""
    graph, groups, terms = case
    rng = np.random.default_rng(len(graph.edges))
    parts = exchanges(graph, groups, terms)
    edges = graph.edges
    if graph.shares:
        other = graph.shared(rng.integers(0, 8, graph.ranks))
    else:
        sizes = rng.integers(0, 8, len(edges))
        other = Neighbourhood(graph.ranks, Edges(edges.source, edges.destination, edges.number, edges.place, sizes))
    memory = _run(other, parts)
    for edge in zip(*(getattr(other.edges, name).tolist() for name in COLUMNS), strict=True):
        source, destination, number, place, size = edge
        sent, received = _blocks_of(other, source)[0], _blocks_of(other, destination)[1]
        block = memory[source][INPUT][sent.begin[number] : sent.begin[number] + size]
        arrived = memory[destination][OUTPUT][received.begin[place] : received.begin[place] + size]
        assert (arrived == block).all()
    for part in parts:
        assert (memory[part.rank][OUTPUT] >= 0).all()


COLUMNS = ("source", "destination", "number", "place", "size")


def _blocks_of(graph, rank):
    """The blocks of a rank's input, and of its output."""
    edges, (_, begin), (_, to) = graph.edges, graph.inputs(), graph.outputs()
    found = []
    for mine, index, first in (
        (edges.source == rank, edges.number, begin),
        (edges.destination == rank, edges.place, to),
    ):
        order = np.flatnonzero(mine)[np.argsort(index[mine])]
        found.append(EdgeBlocks(first[order], edges.size[order]))
    return found


def _run(graph, parts):
    """Each rank's input, output and scratch memory after all stages, in which messages between two ranks keep order."""
    lengths = zip(graph.inputs()[0], graph.outputs()[0], strict=True)
    memory = [
        (1000 * rank + np.arange(inputs), np.full(outputs, -1), np.full(part.scratch, -2))
        for rank, (part, (inputs, outputs)) in enumerate(zip(parts, lengths, strict=True))
    ]
    stages = [part.stages(*_blocks_of(graph, part.rank)) for part in parts]
    for number in range(len(stages[0])):
        flying = defaultdict(list)
        for rank, mine in enumerate(stages):
            for here, begin, there, to, length in mine[number].moves.tolist():
                memory[rank][there][to : to + length] = memory[rank][here][begin : begin + length]
        for rank, mine in enumerate(stages):
            for peer, buffer, begin, length in mine[number].sends.tolist():
                flying[rank, peer].append(memory[rank][buffer][begin : begin + length].copy())
        for rank, mine in enumerate(stages):
            for peer, buffer, begin, length in mine[number].receives.tolist():
                data = flying[peer, rank].pop(0)
                assert len(data) == length
                memory[rank][buffer][begin : begin + length] = data
        assert not any(flying.values())
    return memory


def test_a_block_at_the_wrong_place_is_found():
    graph = from_lists([[1, 1], [0, 0]], [[1, 1], [0, 0]])
    rows = aggregated(graph, np.zeros(2, dtype=np.int64)).rows()
    rows[[0, 1], 6] = rows[[1, 0], 6]
    with pytest.raises(ScheduleError, match="expecting input block"):
        check(Schedule.from_rows("neighbor_alltoall", 2, "wrong", rows, graph=graph))


def test_between_two_groups_there_is_one_message_and_an_allgather_sends_a_block_once():
    """Four groups of four ranks, all neighbours of all: 12 messages between groups instead of 192."""
    others = [[rank for rank in range(16) if rank != own] for own in range(16)]
    graph, groups = from_lists(others, others), np.arange(16) // 4
    for one, units in ((graph, 192), (graph.shared(), 48)):
        schedule = aggregated(one, groups, CarryingTerms(inside=0.2))
        between = groups[schedule.source] != groups[schedule.destination]
        assert between.sum() == 12
        assert schedule.count[between].sum() == units
        sent = np.bincount(schedule.source[between], minlength=16)
        assert sent.max() == 1  # each group's three messages have three carriers


@given(st.integers(0, 2**32), st.integers(1, 40), st.integers(0, 60))
@examples(150)
def test_routes_lead_to_their_ends_in_few_rounds_and_cost_no_more_than_direct_messages(seed, members, blocks):
    rng = np.random.default_rng(seed)
    begin, end = rng.integers(0, members, (2, blocks))
    at, load = route(begin, end, rng.integers(0, 100, blocks), members, 1000.0)
    assert (at[0] == begin).all()
    assert (at[-1] == end).all()
    assert ((at >= 0) & (at < members)).all()
    assert len(at) - 1 <= most_rounds(members)
    pairs = np.unique(np.stack((begin, end))[:, begin != end], axis=1)
    direct = np.bincount(pairs.ravel(), minlength=members).max()
    assert load.max() + len(at) - 1 <= direct + 60 * 100 / 1000 + 1


def test_small_blocks_inside_a_group_take_rounds_with_few_messages():
    """Four groups of sixteen ranks, all neighbours of all: 4 + 1 + 4 messages of a rank instead of 63, or of 31."""
    others = [[rank for rank in range(64) if rank != own] for own in range(64)]
    schedule = aggregated(from_lists(others, others), np.arange(64) // 16)
    check(schedule)
    away = schedule.source != schedule.destination
    assert np.bincount(schedule.source[away]).max() <= 9


def test_blocks_alone_in_their_bundle_go_directly():
    """A ring: no message could be saved."""
    ranks = np.arange(12)
    graph = from_lists(((ranks[:, None] + (-1, 1)) % 12).tolist(), ((ranks[:, None] + (1, -1)) % 12).tolist())
    assert len(aggregated(graph, ranks // 3).step) == 24


def test_large_blocks_go_directly_and_long_bundles_have_several_carriers():
    size = np.where(np.arange(64) % 8 == 0, 5000, 100)
    sources, destinations = [[]] * 8 + [list(range(8))] * 8, [list(range(8, 16))] * 8 + [[]] * 8
    graph, groups = from_lists(sources, destinations, size), np.arange(16) // 8
    schedule = aggregated(graph, groups, CarryingTerms(limit=4096, start=1, grain=700))
    check(schedule)
    between = groups[schedule.source] != groups[schedule.destination]
    lengths = schedule.count[between]
    assert (lengths == 5000).sum() == 8
    assert sorted(lengths[lengths != 5000].tolist()) == [700] * 8


def test_two_bundles_for_one_group_have_two_carriers():
    """Also if one rank has the least to send before and after the first of them is dealt."""
    group_of, members = np.array([0, 0, 1, 2]), np.array([0, 1])
    columns = ([0, 1, 0], [2, 2, 3], [0, 0, 1], [-1, -1, -1], [7, 5, 11])
    out = Edges(*(np.array(column) for column in columns))
    dealt = carriers(out, group_of, members, CarryingTerms(start=1, grain=1, fewest=1), shares=False)
    assert sorted(dealt[:2].tolist()) == [0, 1]


def test_an_allgathers_bundle_weighs_a_block_once():
    """A source's block for many ranks of a group is no more to send than one for a single rank."""
    group_of, members = np.array([0, 0, 1, 1, 1, 1, 2, 3]), np.array([0, 1])
    destination = np.array([2, 3, 4, 5, 6, 7])
    size = np.full(6, 100)
    out = Edges(np.zeros(6, dtype=np.int64), destination, np.arange(6), np.full(6, -1), size)
    terms = CarryingTerms(start=1, grain=10000, fewest=1)
    loads = {
        shares: np.bincount(carriers(out, group_of, members, terms, shares=shares)).tolist() for shares in (True, False)
    }
    assert loads == {True: [5, 1], False: [4, 2]}


def test_a_plan_needs_no_more_than_the_edges_of_a_group():
    """1,000 ranks, 16 a group, with 900 neighbours each: the plan of one rank, without loops over edges."""
    ranks, degree, members = 1000, 900, np.arange(16)
    group_of, steps = np.arange(ranks) // 16, np.arange(1, degree + 1)
    source, number = np.repeat(members, degree), np.tile(np.arange(degree), 16)
    size = np.full(len(source), 8)
    out = Edges(source, (source + np.tile(steps, 16)) % ranks, number, np.full(len(source), -1), size)
    into = Edges((source - np.tile(steps, 16)) % ranks, source, number, number, size)
    terms = CarryingTerms()
    carrier = carriers(out, group_of, members, terms, shares=False)
    arriving = np.where(group_of[into.source] == 0, DIRECT, 16 * group_of[into.source])
    landing = landings(into, arriving, members, terms, shares=False)
    known = Known(group_of, out, carrier, into, arriving, landing)
    partner = {group: 16 * group for group in range(1, 63)}
    part = exchange_of(3, known, partner)
    stages = part.stages(*(EdgeBlocks(8 * np.arange(degree), np.full(degree, 8)) for _ in range(2)))
    sends = [len(stage.sends) for stage in stages]
    assert sends[0] <= 15
    assert sends[2] <= 5
    assert sum(sends) < 60
    assert part.scratch < 5 << 20
