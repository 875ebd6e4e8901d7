"""The load that a schedule puts on a network, against plain loops over rows and links and against networkx."""

import inspect
import math
from collections import Counter, defaultdict
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import examples
from topompi.schedules import Network, Schedule
from topompi.schedules.alltoall.direct import alltoall_bruck, alltoall_pairwise
from topompi.schedules.analysis.bounds import link_width, lower_bound, min_steps
from topompi.schedules.analysis.loads import Analysis, analyse, messages_of
from topompi.schedules.rooted import broadcast
from topompi.schedules.rooted.gather import gather_knomial, scatter_knomial
from topompi.schedules.rooted.reduction import reduce_knomial
from topompi.schedules.rooted.scatterallgather import scatter_allgather
from topompi.schedules.symmetric.allgather import allgather_doubling
from topompi.schedules.symmetric.allreduce import allreduce_halving, allreduce_ring
from topompi.schedules.symmetric.reduce_scatter import reduce_scatter_ring
from topompi.topology import TopologyInterface, load
from topompi.views.network import network_of

FABRICS = ("xgft:4,4;1,2", "XGFT(2; 3,5; 1,2)", "XGFT(3; 2,3,2; 1,1,2)", "torus:3x3")


@st.composite
def networks(draw: st.DrawFn) -> Network:
    """A few ranks, unevenly on some hosts, in any order; now and then links of several rates."""
    routes = load(draw(st.sampled_from(FABRICS))).routes
    hosts = draw(st.lists(st.sampled_from(routes.fabric.hosts), min_size=1, max_size=9))
    network = network_of(TopologyInterface.place(hosts, routes))
    if draw(st.booleans()):
        rates = st.lists(
            st.sampled_from((1e9, 2e9, 4e9)), min_size=len(network.capacity), max_size=len(network.capacity)
        )
        network = with_capacity(network, np.array(draw(rates)))
    return network


def with_capacity(network: Network, capacity: np.ndarray) -> Network:
    return Network(network.rank_host, network.hops, network.links, capacity, network.clusters, network.latency)


@st.composite
def schedules(draw: st.DrawFn, size: int) -> Schedule:
    """Any transfers in any steps: analysis must not rely on a schedule's being correct."""
    rank = st.integers(0, size - 1)
    row = st.tuples(st.integers(0, 4), rank, rank, st.just(0), st.integers(0, 9), st.just(1), st.integers(0, 9))
    rows = [(*r, draw(st.integers(1, 5)), 0) for r in draw(st.lists(row, max_size=25))]
    return Schedule.from_rows("allgather", size, "any", rows)


def alltoall(size: int, counts: np.ndarray | None = None, order: str = "shift") -> Schedule:
    rows = [
        (step, r, (r + step) % size if order == "shift" else step, 0, 0, 1, 0, 1, 0)
        for step in range(size)
        for r in range(size)
    ]
    return Schedule.from_rows("alltoall", size, order, rows, counts=counts)


def host_network(*rank_hosts: int, fabric: str = "xgft:4,4;1,2") -> Network:
    routes = load(fabric).routes
    return network_of(TopologyInterface.place([routes.fabric.hosts[host] for host in rank_hosts], routes))


@st.composite
def runs(draw: st.DrawFn) -> tuple[Network, Schedule]:
    """A network, and a schedule for its ranks."""
    network = draw(networks())
    return network, draw(schedules(network.num_ranks))


class ByHand:
    """The same facts, row by row and link by link."""

    def __init__(self, schedule: Schedule, network: Network, block_bytes: int) -> None:
        self.messages: Counter[tuple[int, int, int]] = Counter()
        for step, source, destination, count in zip(
            schedule.step, schedule.source, schedule.destination, schedule.count, strict=True
        ):
            if source != destination:
                self.messages[int(step), int(source), int(destination)] += int(count) * block_bytes
        self.transfers: Counter[tuple[int, int]] = Counter()
        self.bytes: Counter[tuple[int, int]] = Counter()
        senders: dict[tuple[int, int], set[int]] = defaultdict(set)
        self.busy: dict[int, set[int]] = defaultdict(set)
        self.by_hops: Counter[int] = Counter()
        for (step, source, destination), size in self.messages.items():
            a, b = int(network.rank_host[source]), int(network.rank_host[destination])
            self.busy[step] |= {source, destination}
            self.by_hops[int(network.hops[a, b])] += size
            for link in network.links[a, b]:
                if link >= 0:
                    self.transfers[step, int(link)] += 1
                    self.bytes[step, int(link)] += size
                    senders[step, int(link)].add(source)
        self.senders = {
            cell: max(Counter(int(network.rank_host[rank]) for rank in ranks).values())
            for cell, ranks in senders.items()
        }


def cells(analysis: Analysis, column: np.ndarray) -> dict[tuple[int, int], int]:
    keys = zip(analysis.step.tolist(), analysis.link.tolist(), strict=True)
    return dict(zip(keys, column.tolist(), strict=True))


def nonzero(totals: np.ndarray) -> dict[int, int]:
    return {place: total for place, total in enumerate(totals.tolist()) if total}


@examples(150)
@given(runs())
def test_loads_are_those_counted_row_by_row(run: tuple[Network, Schedule]) -> None:
    network, schedule = run
    analysis = analyse(schedule, network, 7)
    hand = ByHand(schedule, network, 7)
    assert cells(analysis, analysis.transfers) == hand.transfers
    assert cells(analysis, analysis.bytes) == hand.bytes
    assert cells(analysis, analysis.senders) == hand.senders
    assert nonzero(analysis.bytes_by_hops) == hand.by_hops
    assert analysis.messages_by_hops.sum() == len(hand.messages)
    idle = [network.num_ranks - len(hand.busy[step]) for step in range(schedule.num_steps)]
    assert analysis.idle_ranks.tolist() == idle
    assert analysis.active_steps == sum(map(bool, hand.busy.values()))


@examples(80)
@given(runs())
def test_conflicts_and_the_busiest_link_follow_from_the_loads(run: tuple[Network, Schedule]) -> None:
    network, schedule = run
    analysis = analyse(schedule, network)
    hand = ByHand(schedule, network, 1)
    width = widths(network)
    beyond = {cell: max(0, n - width[cell[1]] * hand.senders[cell]) for cell, n in hand.transfers.items()}
    assert cells(analysis, analysis.conflicts) == beyond
    for step in range(schedule.num_steps):
        seconds = {link: size / network.capacity[link] for (s, link), size in hand.bytes.items() if s == step}
        busiest = min(seconds, key=lambda link: (-seconds[link], link), default=-1)
        assert analysis.busiest_link[step] == busiest
        assert analysis.busiest_seconds[step] == seconds.get(busiest, 0.0)
        assert analysis.conflicts_of_step[step] == sum(n for (s, _), n in beyond.items() if s == step)


def widths(network: Network) -> dict[int, int]:
    """Width of each used link: its rate over that of the fastest pair of hosts that uses it."""
    fastest: dict[int, float] = defaultdict(float)
    for route in network.links.reshape(-1, network.links.shape[2]).tolist():
        used = [link for link in route if link >= 0]
        for link in used:
            fastest[link] = max(fastest[link], min(network.capacity[used[0]], network.capacity[used[-1]]))
    return {link: max(1, math.floor(network.capacity[link] / rate + 1e-9)) for link, rate in fastest.items()}


@examples(60)
@given(networks())
def test_width_is_the_number_of_fastest_transfers_that_fit(network: Network) -> None:
    expected = widths(network)
    assert {link: int(link_width(network)[link]) for link in expected} == expected


@examples(30)
@given(runs(), st.integers(1, 6))
def test_loads_do_not_depend_on_how_many_messages_are_looked_at_together(
    run: tuple[Network, Schedule], together: int
) -> None:
    network, schedule = run
    whole = analyse(schedule, network)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("topompi.schedules.analysis.loads.ScheduleMessages.chunks.__defaults__", (together,))
        parts = analyse(schedule, network)
    for name in ("step", "link", "transfers", "bytes", "senders"):
        assert (getattr(whole, name) == getattr(parts, name)).all()


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 100])
def test_chunks_are_whole_steps_and_leave_nothing_out(limit: int) -> None:
    messages = messages_of(alltoall(5))
    spans = list(messages.chunks(limit))
    assert [i for span in spans for i in range(len(messages))[span]] == list(range(len(messages)))
    assert max(span.stop - span.start for span in spans) < limit + 5  # a step has five
    steps = [set(messages.step[span].tolist()) for span in spans]
    assert sum(map(len, steps)) == len(set().union(*steps))


def test_a_schedule_without_messages_loads_nothing() -> None:
    analysis = analyse(Schedule.from_rows("allgather", 1, "alone", [(0, 0, 0, 0, 0, 1, 0, 1, 0)]), host_network(3))
    assert len(analysis.step) == 0
    assert analysis.idle_ranks.tolist() == [1]
    assert analysis.seconds == analysis.bound.seconds == 0
    assert math.isnan(analysis.ratio)


def test_a_network_of_other_size_is_refused() -> None:
    with pytest.raises(ValueError, match="expecting a network of 3 ranks, got 2"):
        analyse(alltoall(3), host_network(0, 1))


def test_hosts_alone_are_ports_of_one_switch() -> None:
    """Where nothing above the hosts is known, ranks meet on their hosts' own links only."""
    network = network_of(TopologyInterface.place(["a", "b", "b", "c"]))
    analysis = analyse(alltoall(4), network)
    assert analysis.messages_by_hops.tolist() == [2, 10]
    assert analysis.bound.host_out == 4
    assert analysis.transfers.sum() == 20


def test_a_message_without_a_route_is_refused_and_others_are_not() -> None:
    network = host_network(0, 1, 2)
    network.hops[0, 2] = -1
    with pytest.raises(ValueError, match="no route from host 0 to host 2"):
        analyse(alltoall(3), network)
    analyse(Schedule.from_rows("allgather", 3, "one", [(0, 2, 0, 0, 0, 1, 0, 1, 0)]), network)


@examples(60)
@given(st.data())
def test_the_bound_of_alltoall_is_the_most_loaded_link_of_all_pairs(data: st.DataObject) -> None:
    network = data.draw(networks())
    p = network.num_ranks
    counts = np.array(data.draw(st.lists(st.integers(0, 9), min_size=p * p, max_size=p * p))).reshape(p, p)
    load_of: Counter[int] = Counter()
    out: Counter[int] = Counter()
    for i in range(p):
        for j in range(p):
            a, b = network.rank_host[i], network.rank_host[j]
            if a != b:
                out[int(a)] += int(counts[i, j]) * 3
            for link in network.links[a, b]:
                if link >= 0:
                    load_of[int(link)] += int(counts[i, j]) * 3
    bound = lower_bound(network, "alltoall", counts, block_bytes=3)
    assert bound.link == pytest.approx(max((n / network.capacity[link] for link, n in load_of.items()), default=0))
    up = {int(a): network.capacity[network.links[a, b, 0]] for a in out for b in range(len(network.hops)) if a != b}
    assert bound.host_out == pytest.approx(max((out[host] / up[host] for host in out), default=0))
    assert max(bound.host_out, bound.host_in, bound.leaf_out, bound.leaf_in) <= bound.link * (1 + 1e-9)


@examples(40)
@given(networks(), st.sampled_from(("shift", "same")))
def test_no_alltoall_is_below_its_bound(network: Network, order: str) -> None:
    analysis = analyse(alltoall(network.num_ranks, order=order), network, 100, alpha=1e-9)
    assert not analysis.ratio < 1 - 1e-9
    if order == "shift" and not analysis.conflicts.any():
        assert analysis.active_steps >= analysis.min_steps


GENERATORS = (
    alltoall_bruck,
    alltoall_pairwise,
    broadcast.knomial,
    scatter_allgather,
    gather_knomial,
    scatter_knomial,
    allgather_doubling,
    allreduce_ring,
    allreduce_halving,
    reduce_scatter_ring,
    reduce_knomial,
)


@examples(60)
@given(networks(), st.sampled_from(GENERATORS))
def test_no_correct_schedule_beats_the_borders_of_hosts_and_leaves(
    network: Network, generator: Callable[..., Schedule]
) -> None:
    """Whatever forwards, aggregates or combines: the bounds that force no route hold."""
    wants_network = "network" in inspect.signature(generator).parameters
    analysis = analyse(generator(network if wants_network else network.num_ranks), network, 100)
    bound = analysis.bound
    assert analysis.seconds >= max(bound.host_out, bound.host_in, bound.leaf_out, bound.leaf_in) * (1 - 1e-9)


def test_a_ring_allreduce_meets_its_bound() -> None:
    assert analyse(allreduce_ring(4), host_network(0, 1, 2, 3), 100).ratio == pytest.approx(1)


def test_one_leaf_switch_lets_alltoall_meet_its_bounds() -> None:
    analysis = analyse(alltoall(4), host_network(0, 1, 2, 3), 1000)
    assert analysis.ratio == pytest.approx(1)
    assert analysis.conflicts.sum() == 0
    assert analysis.min_steps == 3
    assert analysis.bound.host_out == pytest.approx(3 * 1000 / 4e9)
    assert analysis.bound.leaf_out == 0


@examples(40)
@given(networks(), st.integers(1, 3))
def test_steps_are_bounded_by_ranks_and_by_messages_over_what_links_carry(network: Network, conflicts: int) -> None:
    ranks = np.bincount(network.rank_host).tolist()
    crossing: Counter[int] = Counter()
    senders: dict[int, int] = defaultdict(int)
    for a, k in enumerate(ranks):
        for b, m in enumerate(ranks):
            for link in network.links[a, b]:
                if link >= 0:
                    crossing[int(link)] += k * m
                    senders[int(link)] = max(senders[int(link)], k)
    width = widths(network)
    steps = [math.ceil(n / (conflicts * width[link] * senders[link])) for link, n in crossing.items()]
    assert min_steps(network, conflicts) == max([network.num_ranks - 1, *steps])


ROOTED_BOUNDS = [  # blocks over a host's link with four hosts, one rank each, one block a rank, root 0
    ("bcast", (1, 1)),
    ("reduce", (1, 1)),
    ("gather", (1, 3)),
    ("scatter", (3, 1)),
    ("allgather", (1, 3)),
    ("reduce_scatter", (3, 1)),
    ("allreduce", (1.5, 1.5)),
    ("alltoall", (3, 3)),
]


@pytest.mark.parametrize(("collective", "blocks"), ROOTED_BOUNDS)
def test_the_busiest_host_follows_from_the_collectives_definition(collective: str, blocks: tuple[float, float]) -> None:
    root = 0 if collective in ("bcast", "reduce", "gather", "scatter") else None
    bound = lower_bound(host_network(0, 1, 2, 3), collective, root=root, block_bytes=4, alpha=1e-6)
    assert (bound.host_out, bound.host_in) == pytest.approx(tuple(4 * n / 4e9 for n in blocks))
    assert bound.latency == pytest.approx(2e-6)
    assert bound.seconds == bound.latency


def test_a_gather_crosses_its_leafs_border_with_all_that_others_have() -> None:
    """Two leaves of four hosts with one up-link: the root's leaf takes in four blocks, the root itself seven."""
    bound = lower_bound(host_network(*range(8), fabric="XGFT(2; 4,2; 1,1)"), "gather", root=0, block_bytes=4)
    assert bound.leaf_in == pytest.approx(4 * 4 / 4e9)
    assert bound.host_in == pytest.approx(7 * 4 / 4e9)
    assert bound.link == 0


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 5, 8, 9])
def test_latency_is_the_binary_logarithm_rounded_up(ranks: int) -> None:
    bound = lower_bound(host_network(*[0] * ranks), "allreduce", alpha=1.0)
    assert bound.seconds == math.ceil(math.log2(ranks))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("sort", None), "expecting one of bcast"),
        (("gather", None), "expecting a root for gather"),
        (("gather", 9), r"expecting root in range\(2\), got 9"),
    ],
)
def test_a_bound_of_no_collective_is_refused(arguments: tuple[str, int | None], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lower_bound(host_network(0, 1), arguments[0], root=arguments[1])
