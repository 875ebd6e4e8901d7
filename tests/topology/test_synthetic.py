"""Synthetic fabrics against closed forms and graph searches, and the writer of ibnetdiscover reports."""

import io
import itertools
import re
from collections import Counter
from math import nan, prod

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import record_fabric
from tests.support import examples, shared_data
from topompi.errors import FabricError, SourceError
from topompi.inputs import InputFile, open_inputs
from topompi.topology import load
from topompi.topology.builder import FabricBuilder
from topompi.topology.discovery import Report
from topompi.topology.fabric import Fabric, infiniband_rate
from topompi.topology.sources import ibnetdiscover
from topompi.topology.synthetic import (
    PRESETS,
    dragonfly,
    dragonfly_plus,
    fat_tree,
    from_spec,
    group_of_switches,
    k_ary_n_tree,
    recognise_spec,
    torus,
)
from topompi.topology.writers.ibnetdiscover import link_rate_name, write_ibnetdiscover

few = examples(40)


def hop_matrix(fabric: Fabric) -> np.ndarray:
    """Hops between all hosts by breadth-first search: links on the way, less one; 0 on the diagonal."""
    graph = nx.Graph(fabric.to_networkx())
    lengths = dict(nx.all_pairs_shortest_path_length(graph))
    rows = [[lengths[a][b] - (a != b) for b in fabric.adapter_ids] for a in fabric.adapter_ids]
    return np.array(rows)


def described(fabric: Fabric) -> tuple[object, ...]:
    """Everything a report can say about a fabric, whatever the numbering."""
    ids = [*fabric.adapter_ids, *fabric.switch_ids]
    links = zip(
        [ids[vertex] for vertex in fabric.link_source],
        fabric.link_source_port.tolist(),
        [ids[vertex] for vertex in fabric.link_target],
        fabric.link_target_port.tolist(),
        fabric.link_rate.tolist(),
        strict=True,
    )
    hosts = {a: fabric.hosts[h] for a, h in zip(fabric.adapter_ids, fabric.adapter_host, strict=True)}
    return Counter(links), hosts, dict(zip(fabric.switch_ids, fabric.switch_names, strict=True))


def read_back(report: str) -> Fabric:
    """What the reader of ibnetdiscover reports makes of a text."""
    text = InputFile("written", lambda: io.BytesIO(report.encode()))
    assert ibnetdiscover.recognise(text.head())
    return ibnetdiscover.read([text], Report()).fabric


def check_sound(fabric: Fabric) -> None:
    """What holds for every synthetic fabric: distinct ids and ports, and every link with its way back."""
    assert len({*fabric.adapter_ids, *fabric.switch_ids}) == fabric.num_adapters + fabric.num_switches
    assert len(set(fabric.hosts)) == fabric.num_hosts
    there = list(zip(fabric.link_source.tolist(), fabric.link_source_port.tolist(), strict=True))
    back = list(zip(fabric.link_target.tolist(), fabric.link_target_port.tolist(), strict=True))
    assert len(set(there)) == len(there)
    assert set(zip(there, back, strict=True)) == set(zip(back, there, strict=True))
    assert fabric.link_source_port.min() == 1
    assert np.isnan(fabric.link_latency).all()
    assert (fabric.adapter_leaf >= 0).all()
    assert there == sorted(there)


@st.composite
def pgft_shapes(draw: st.DrawFn) -> tuple[list[int], list[int], list[int], int]:
    """Children, parents, cables, and a number of hosts to keep, all small."""
    height = draw(st.integers(1, 3))
    m = draw(st.lists(st.integers(1, 4), min_size=height, max_size=height))
    w = [1, *draw(st.lists(st.integers(1, 3), min_size=height - 1, max_size=height - 1))]
    p = [1, *draw(st.lists(st.integers(1, 2), min_size=height - 1, max_size=height - 1))]
    return m, w, p, draw(st.one_of(st.just(prod(m)), st.integers(1, prod(m))))


def papers_pgft(m: list[int], w: list[int], p: list[int], hosts: int) -> tuple[set[object], Counter[object]]:
    """Switches and cables by Zahavi's definition, on nodes (level, a_h..a_l+1, b_l..b_1).

    A switch stays if one of the first hosts descends from it.
    """
    height = len(m)
    levels = [
        [
            (level, a, b)
            for a in itertools.product(*(range(m[i]) for i in reversed(range(level, height))))
            for b in itertools.product(*(range(w[i]) for i in reversed(range(level))))
        ]
        for level in range(height + 1)
    ]
    cables: Counter[object] = Counter()
    kept = set(levels[0][:hosts])
    for level in range(height):
        for child in [node for node in levels[level] if node in kept]:
            for digit in range(w[level]):
                parent = (level + 1, child[1][:-1], (digit, *child[2]))
                kept.add(parent)
                cables[child, parent] += p[level]
    return kept, cables


def as_number(digits: tuple[int, ...], bases: list[int]) -> int:
    """A number from its digits, most significant first, in mixed bases."""
    number = 0
    for digit, base in zip(digits, bases, strict=True):
        number = number * base + digit
    return number


@few
@given(pgft_shapes())
def test_fat_tree_is_the_papers_pgft(shape: tuple[list[int], list[int], list[int], int]) -> None:
    """Switches and cables are those of the published definition, by name, whole or trimmed."""
    m, w, p, hosts = shape
    fabric = fat_tree(m, w, p, hosts)
    check_sound(fabric)
    nodes, cables = papers_pgft(m, w, p, hosts)
    height = len(m)

    def label(node: tuple[int, tuple[int, ...], tuple[int, ...]]) -> str:
        level, a, b = node
        subtree = as_number(a, [m[i] for i in reversed(range(level, height))])
        within = as_number(b, [w[i] for i in reversed(range(level))])
        return f"L{level}/{subtree}.{within}" if level else f"h{subtree:04d}"

    labels = [*fabric.hosts, *fabric.switch_names]
    assert set(labels) == {label(node) for node in nodes}
    up = fabric.link_source < fabric.link_target  # levels ascend with the vertex numbers
    found = Counter((labels[a], labels[b]) for a, b in zip(fabric.link_source[up], fabric.link_target[up], strict=True))
    assert found == Counter({(label(a), label(b)): count for (a, b), count in cables.items()})


@few
@given(pgft_shapes())
def test_fat_tree_ports_are_down_then_up(shape: tuple[list[int], list[int], list[int], int]) -> None:
    """A switch of level l has m p down ports from 1, then w p up ports, each over the neighbours in turns."""
    m, w, p, _ = shape
    fabric = fat_tree(m, w, p)
    for switch, name in enumerate(fabric.switch_names):
        level = int(name[1:].partition("/")[0])
        leaving = fabric.link_source == fabric.num_adapters + switch
        down = m[level - 1] * p[level - 1]
        up = w[level] * p[level] if level < len(m) else 0
        assert fabric.link_source_port[leaving].tolist() == list(range(1, down + up + 1))
        rises = fabric.link_target[leaving] > fabric.num_adapters + switch
        assert rises.tolist() == [False] * down + [True] * up
        ends = fabric.link_target[leaving].tolist()
        assert ends[:down] == ends[: m[level - 1]] * p[level - 1]
        assert not up or ends[down:] == ends[down : down + w[level]] * p[level]


@pytest.mark.parametrize(("k", "n"), [(1, 1), (2, 1), (2, 3), (3, 2), (4, 3)])
def test_k_ary_n_tree_has_its_closed_form(k: int, n: int) -> None:
    """k^n hosts, n k^(n-1) switches, n k^n cables."""
    fabric = k_ary_n_tree(k, n)
    check_sound(fabric)
    assert (fabric.num_hosts, fabric.num_switches) == (k**n, n * k ** (n - 1))
    assert fabric.num_links == 2 * n * k**n


@few
@given(st.lists(st.integers(1, 5), min_size=1, max_size=3), st.integers(1, 3))
def test_torus_hops_are_the_wrapped_manhattan_distance(dims: list[int], hosts_per_switch: int) -> None:
    """Also where a dimension has one or two switches, which have none and one cable."""
    fabric = torus(dims, hosts_per_switch)
    check_sound(fabric)
    assert fabric.num_hosts == prod(dims) * hosts_per_switch
    places = np.array(list(itertools.product(*map(range, dims)))).repeat(hosts_per_switch, axis=0)
    apart = np.abs(places[:, None, :] - places[None, :, :])
    distance = np.minimum(apart, np.array(dims) - apart).sum(axis=2)
    expected = distance + 1 - np.eye(fabric.num_hosts, dtype=int)
    assert (hop_matrix(fabric) == expected).all()
    cables = sum(prod(dims) // size * {1: 0, 2: 1}.get(size, size) for size in dims)
    assert fabric.num_links == 2 * (fabric.num_hosts + cables)


@st.composite
def dragonflies(draw: st.DrawFn) -> tuple[int, int, int, int]:
    """Routers, hosts, links, and a possible number of groups."""
    routers, hosts, links = draw(st.integers(1, 4)), draw(st.integers(1, 2)), draw(st.integers(0, 3))
    return routers, hosts, links, draw(st.integers(1, routers * links + 1))


@few
@given(dragonflies())
def test_dragonfly_joins_every_pair_of_groups_evenly(shape: tuple[int, int, int, int]) -> None:
    """Pairs of groups have as many cables as each other, or one more; at most one port a group stays free."""
    routers, hosts, links, groups = shape
    fabric = dragonfly(*shape)
    check_sound(fabric)
    assert (fabric.num_switches, fabric.num_hosts) == (groups * routers, groups * routers * hosts)
    ends = fabric.link_source[fabric.switch_links], fabric.link_target[fabric.switch_links]
    group = [(end - fabric.num_adapters) // routers for end in ends]
    joined = np.zeros((groups, groups), dtype=int)
    np.add.at(joined, tuple(group), 1)
    assert (np.diag(joined) == routers * (routers - 1)).all()
    between = joined[~np.eye(groups, dtype=bool)]
    if groups > 1:
        assert between.min() >= 1
        assert between.max() - between.min() <= 1
        free = routers * links - between.reshape(groups, -1).sum(axis=1)
        assert (free == (groups % 2) * (routers * links % (groups - 1) % 2)).all()
    assert np.bincount(ends[0][group[0] != group[1]], minlength=1).max() <= links


@few
@given(dragonflies())
def test_dragonfly_crosses_at_most_four_switches(shape: tuple[int, int, int, int]) -> None:
    """The source's router, the two at the ends of a cable between the groups, the destination's."""
    assert hop_matrix(dragonfly(*shape)).max(initial=0) <= 4


@st.composite
def dragonflies_plus(draw: st.DrawFn) -> tuple[int, int, int, int, int]:
    """Leaf switches, spines, hosts, links, and a possible number of groups."""
    leaves, spines, hosts = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(1, 2))
    links = draw(st.integers(0, 3))
    return leaves, spines, hosts, links, draw(st.integers(1, spines * links + 1))


@few
@given(dragonflies_plus())
def test_dragonfly_plus_joins_leaves_to_all_spines_of_a_group_and_groups_evenly_by_spines(
    shape: tuple[int, int, int, int, int],
) -> None:
    """Each leaf switch has its hosts and one cable per spine of its group; global cables have spines at both ends."""
    leaves, spines, hosts, links, groups = shape
    fabric = dragonfly_plus(*shape)
    check_sound(fabric)
    size = leaves + spines
    assert (fabric.num_switches, fabric.num_hosts) == (groups * size, groups * leaves * hosts)
    source, target = (
        end[fabric.switch_links] - fabric.num_adapters for end in (fabric.link_source, fabric.link_target)
    )
    joined = np.zeros((groups * size, groups * size), dtype=int)
    np.add.at(joined, (source, target), 1)
    is_leaf, group = np.arange(groups * size) % size < leaves, np.arange(groups * size) // size
    assert (group_of_switches(fabric) == group).all()
    assert (is_leaf == (np.bincount(fabric.adapter_leaf, minlength=groups * size) == hosts)).all()
    own = group[:, None] == group
    assert (joined[own] == (own & (is_leaf[:, None] != is_leaf))[own]).all()
    assert not (joined * ~own)[is_leaf].any()
    assert (joined * ~own).sum(axis=1).max(initial=0) <= links
    between = np.zeros((groups, groups), dtype=int)
    np.add.at(between, (group[source], group[target]), 1)
    pairs = between[~np.eye(groups, dtype=bool)]
    assert groups == 1 or (pairs.min() >= 1 and pairs.max() - pairs.min() <= 1)


def test_the_groups_of_a_fabric_without_groups_are_an_error() -> None:
    with pytest.raises(FabricError, match=re.escape("expecting switches group<n>/..., got L1/0.0")):
        group_of_switches(from_spec("xgft:4,3;1,2"))


@pytest.mark.parametrize(
    ("name", "hosts", "leaves", "switches", "below", "rate"),
    [
        # Ranger: 328 leaves; 164 pairs of them x 2; 14 sub-trees x 24; 288 at the top.
        ("ranger", 3936, 328, 328 + 328 + 336 + 288, [12, 24, 288, 6912], "4xSDR"),
        # Stampede: 320 leaves; eight directors of 36 line and 18 spine chips.
        ("stampede", 6400, 320, 320 + 8 * (36 + 18), [20, 180, 6480], "4xFDR"),
        ("hyperion", 175, 11, 11 + 8, [16, 176], "4xQDR"),
        ("slurm64", 64, 4, 4 + 2, [20, 80], "4xQDR"),
    ],
)
def test_preset_trees_have_the_references_numbers(
    name: str, hosts: int, leaves: int, switches: int, below: list[int], rate: str
) -> None:
    """Hosts, leaf switches, switches, rate; and the hops of sampled hosts are the tree's closed form."""
    fabric = PRESETS[name]()
    check_sound(fabric)
    assert (fabric.num_hosts, fabric.num_switches) == (hosts, switches)
    assert len(np.unique(fabric.adapter_leaf)) == leaves
    assert set(fabric.link_rate) == {infiniband_rate(rate)}
    graph = nx.Graph(fabric.to_networkx())
    for host in (0, hosts // 2, hosts - 1):
        lengths = nx.single_source_shortest_path_length(graph, fabric.adapter_ids[host])
        found = np.array([lengths[identity] - 1 for identity in fabric.adapter_ids])
        level = np.argmax([host // size == np.arange(hosts) // size for size in [1, *below]], axis=0)
        assert (found == 2 * level - 1).all()
        assert set(found) == {-1, *range(1, 2 * len(below), 2)}  # -1 is the host itself


@pytest.mark.parametrize(("name", "down", "up"), [("stampede", 20, 16), ("slurm64", 20, 16), ("ranger", 12, 12)])
def test_preset_leaves_have_the_references_oversubscription(name: str, down: int, up: int) -> None:
    """A full leaf's hosts and up-links: 5:4 at Stampede and the Slurm cluster, none at Ranger."""
    fabric = PRESETS[name]()
    assert np.bincount(fabric.adapter_leaf).max() == down
    assert np.count_nonzero(fabric.link_source[fabric.switch_links] == fabric.num_adapters) == up


def test_glenn_is_two_trees_of_different_rates_joined_at_the_spines() -> None:
    """877 SDR and 650 DDR hosts; 1, 3 or, between the trees, 4 switches."""
    fabric = PRESETS["glenn"]()
    check_sound(fabric)
    slow, fast = infiniband_rate("4xSDR"), infiniband_rate("4xDDR")
    assert fabric.link_rate[fabric.adapter_uplink].tolist() == [slow] * 877 + [fast] * 650
    graph = nx.Graph(fabric.to_networkx())
    for host, (own, other) in {0: (877, 650), 1000: (650, 877)}.items():
        lengths = nx.single_source_shortest_path_length(graph, fabric.adapter_ids[host])
        hops = Counter(lengths[identity] - 1 for identity in fabric.adapter_ids if lengths[identity])
        assert hops == {1: 11, 3: own - 12, 4: other}


@pytest.mark.parametrize(
    ("spec", "same"),
    [
        ("xgft:4,3;1,2", lambda: fat_tree([4, 3], [1, 2])),
        ("XGFT(2; 4,3; 1,2)", lambda: fat_tree([4, 3], [1, 2])),
        (" pgft: 4,3 ; 1,2 ; 1,2 @ hosts = 7", lambda: fat_tree([4, 3], [1, 2], [1, 2], hosts=7)),
        (
            "PGFT(2; 4,3; 1,2; 1,2)@hosts=7,rate=4xFDR",
            lambda: fat_tree([4, 3], [1, 2], [1, 2], hosts=7, rate=infiniband_rate("4xFDR")),
        ),
        ("kary:2,3", lambda: k_ary_n_tree(2, 3)),
        ("torus:4x2x1", lambda: torus([4, 2, 1])),
        ("Torus:3@hosts_per_switch=2", lambda: torus([3], 2)),
        ("dragonfly:3,2,1", lambda: dragonfly(3, 2, 1)),
        ("dragonfly:3,2,2,4", lambda: dragonfly(3, 2, 2, 4)),
        ("dragonfly+:3,2,2,1", lambda: dragonfly_plus(3, 2, 2, 1)),
        ("Dragonfly+: 3,2,1,2,4 @ rate = 4xFDR", lambda: dragonfly_plus(3, 2, 1, 2, 4, infiniband_rate("4xFDR"))),
        ("Stampede", PRESETS["stampede"]),
    ],
)
def test_spec_strings_name_the_generators_fabrics(spec: str, same: object) -> None:
    """Every spelling a user may type is recognised and makes the fabric of the function."""
    assert recognise_spec(spec)
    assert described(from_spec(spec)) == described(same())  # type: ignore[operator] # a function without arguments


@pytest.mark.parametrize("source", ["", "fabric.json", "torus.conf", "ranger.xz", "tcp://host:1", "kary", "/a/xgft"])
def test_files_are_not_taken_for_specs(source: str) -> None:
    """What is no formula and no preset is left to the readers of files."""
    assert not recognise_spec(source)
    with pytest.raises(SourceError, match="expecting a synthetic fabric"):
        from_spec(source)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("torus:4x0", "expecting sizes of at least 1, got 0"),
        ("torus:", "expecting whole numbers separated by 'x', got ''"),
        (
            "torus:4x4@hosts=2",
            "expecting options of hosts_per_switch, ports, rate, rails, each once, as key=value, got 'hosts=2'",
        ),
        ("torus:2@rate=4xfast", "expecting a rate such as 4xQDR, got '4xfast'"),
        ("torus:100000x100000", "expecting at most 4000000 hosts, switches and cables each, got 20000000000"),
        ("kary:3", "expecting k,n, got 1 number(s)"),
        ("kary:3,99", "expecting at most 32 levels, got 99"),
        ("kary:10,30", "expecting at most 4000000 hosts, switches and cables each, got more than 10^15"),
        ("xgft:4,4", "expecting children; parents, or children; parents; cables, got 1 list(s)"),
        ("xgft:4,4;1", "expecting lists of one length, got 2 children, 1 parents, 2 cables"),
        ("XGFT(3; 4,4; 1,2)", "expecting 3 level(s), got 2 numbers of children"),
        ("XGFT(2; 4,4; 1,2", "expecting XGFT(height; children; parents) or xgft:children;parents"),
        ("xgft:4,4;2,2", "expecting one cable a host (w1 = p1 = 1), got w1 = 2, p1 = 1"),
        ("xgft:4,4;1,2@hosts=17", "expecting hosts between 1 and 16, got 17"),
        ("xgft:4,4;1,2@hosts=4,hosts=4", "each once"),
        ("dragonfly:2,2,2,9", "expecting groups between 1 and 5 (a h + 1), got 9"),
        ("dragonfly:2", "expecting routers,hosts,links[,groups], got 1 number(s)"),
        ("dragonfly+:2,2,2", "expecting leaves,spines,hosts,links[,groups], got 3 number(s)"),
        ("dragonfly+:2,0,2,1", "expecting leaf switches, spines and hosts of at least 1, got 0"),
        ("dragonfly+:2,2,2,1,4", "expecting groups between 1 and 3 (spines x links + 1), got 4"),
    ],
)
def test_wrong_specs_say_what_was_expected_and_given(spec: str, message: str) -> None:
    """The error starts with what was typed, and names the demand and the value."""
    assert recognise_spec(spec)
    with pytest.raises(SourceError) as caught:
        from_spec(spec)
    assert str(caught.value).startswith(f"{spec}: ")
    assert message in str(caught.value)


SPECS = st.one_of(
    pgft_shapes().map(lambda shape: fat_tree(*shape, rate=infiniband_rate("4xFDR"))),
    dragonflies().map(lambda shape: dragonfly(*shape)),
    dragonflies_plus().map(lambda shape: dragonfly_plus(*shape)),
    st.lists(st.integers(1, 3), min_size=1, max_size=3).map(lambda dims: torus(dims, 2)),
)


@few
@given(SPECS)
def test_written_reports_read_back_equal(fabric: Fabric) -> None:
    """The writer and the reader of ibnetdiscover reports undo each other."""
    assert described(read_back(write_ibnetdiscover(fabric))) == described(fabric)


@pytest.mark.parametrize("name", ["janus-2014", "dgxh100-2025", "stage-fdr10-2014"])
def test_real_reports_survive_being_written_again(name: str) -> None:
    """What is read from a real report is read again from what we write of it: rails, rates, nameless hosts."""
    path = shared_data(f"fabrics/{name}.ibnetdiscover.xz")
    fabric = ibnetdiscover.read(open_inputs(path), Report(partial=True)).fabric
    assert described(read_back(write_ibnetdiscover(fabric))) == described(fabric)


def test_written_hosts_keep_their_rails_and_cards() -> None:
    """A host with a two-port card and another card comes back with three adapters in rail order."""
    builder = FabricBuilder("rails")
    builder.add_switch("0x0000000000000900", "leaf")
    ports = [("0x0000000000000101", 1), ("0x0000000000000102", 2), ("0x0000000000000201", 1)]
    for down, (identity, port) in enumerate(ports, 1):
        builder.add_adapter(identity, "node7")
        builder.add_cable("0x0000000000000900", identity, down, port, rate=infiniband_rate("12xQDR"))
    fabric = builder.build()
    report = write_ibnetdiscover(fabric)
    assert 'Ca\t2 "H-0000000000000100"' in report
    assert report.count("\nCa\t") == 2
    again = read_back(report)
    assert described(again) == described(fabric)
    assert again.adapter_ids == fabric.adapter_ids


def test_recorded_fabric_is_the_one_its_recording_says() -> None:
    """Fabric and OpenSM's tables in the repository: the formula's cables, all pairs routed on shortest paths."""
    there = record_fabric.DIRECTORY / record_fabric.NAME
    discovery = load(f"{there}.ibnetdiscover.xz", f"{there}.lfts.xz")
    fabric = discovery.fabric
    assert described(fabric) == described(from_spec(record_fabric.SPEC))
    assert discovery.routes is not None
    hops = discovery.routes.tables.hops_from(fabric.adapter_leaf, np.arange(fabric.num_adapters, dtype=np.int32))
    np.fill_diagonal(hops, 0)
    assert (hops == hop_matrix(fabric)).all()


@given(
    st.sampled_from(["SDR", "DDR", "QDR", "FDR10", "FDR", "EDR", "HDR", "NDR", "XDR"]),
    st.sampled_from([1, 2, 4, 8, 12]),
)
def test_rate_names_keep_the_rate(speed: str, width: int) -> None:
    """Every rate that has a name gets one of the same rate, a 4x link's its own."""
    name = f"{width}x{speed}"
    assert infiniband_rate(link_rate_name(infiniband_rate(name))) == infiniband_rate(name)
    assert width != 4 or link_rate_name(infiniband_rate(name)) == name


@given(st.floats(1, 1e12))
def test_rate_names_are_never_faster(rate: float) -> None:
    """A rate without a name becomes the next slower one's, below all names the slowest 4x link's."""
    assert infiniband_rate(link_rate_name(rate)) <= max(rate * 1.000001, infiniband_rate("4xSDR"))
    assert link_rate_name(nan) == "4xSDR"


@pytest.mark.parametrize(
    ("switch", "port", "message"),
    [
        ("leaf", 1, "expecting a GUID such as 0x0002c90300000001, got 'leaf'"),
        ("0x09", 0, "expecting port numbers between 1 and 254, got 0"),
        ("0x09", 255, "expecting port numbers between 1 and 254, got 255"),
    ],
)
def test_what_the_report_cannot_say_is_refused(switch: str, port: int, message: str) -> None:
    """Names in place of GUIDs, unknown ports and ports beyond InfiniBand's are errors, not wrong reports."""
    builder = FabricBuilder("odd")
    builder.add_switch(switch)
    builder.add_adapter("0x101", "a")
    builder.add_cable(switch, "0x101", port, 1)
    with pytest.raises(FabricError, match="expecting") as caught:
        write_ibnetdiscover(builder.build())
    assert message in str(caught.value)
