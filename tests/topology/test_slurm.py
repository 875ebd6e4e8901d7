"""Slurm's topology.conf and topology.yaml: the fabric that they describe, and errors in them."""

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import examples, refusal, shared_data, text_of
from tests.support import read_text as read
from topompi.errors import SourceError, TopompiError
from topompi.inputs import open_inputs
from topompi.inputs.hostlist import compress
from topompi.topology import load, synthetic
from topompi.topology.discovery import Report
from topompi.topology.fabric import Fabric
from topompi.topology.sources import slurm, slurm_nodes, slurm_yaml

GO_ON = "--partial of topompi topology show and export"

# A generated topology: name -> (hosts, child switches), in file order.
Tree = dict[str, tuple[list[str], list[str]]]


def conf(content: str) -> Fabric:
    return read(slurm, content)[0].fabric


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    """Layers of switches; each switch above the leaves has some of the layer below, shared at will."""
    below = [f"leaf{i}" for i in range(draw(st.integers(1, 5)))]
    count = 0
    tree: Tree = {}
    for leaf in below:
        hosts = draw(st.integers(1, 4))
        tree[leaf] = ([f"n{i:02d}" for i in range(count, count + hosts)], [])
        count += hosts
    for layer in range(draw(st.integers(0, 3))):
        above = [f"l{layer}s{i}" for i in range(draw(st.integers(1, 3)))]
        for name in above:
            tree[name] = ([], draw(st.lists(st.sampled_from(below), min_size=1, unique=True)))
        below = above
    order = draw(st.permutations(list(tree)))
    return {name: tree[name] for name in order}


def write_conf(tree: Tree) -> str:
    lines = []
    for name, (hosts, children) in tree.items():
        lines.append(
            f"SwitchName={name} " + (f"Nodes={compress(hosts)}" if hosts else f"Switches={compress(children)}")
        )
    return "\n".join(lines) + "\n"


def write_yaml(tree: Tree) -> str:
    lines = ["- topology: t", "  cluster_default: true", "  tree:", "    switches:"]
    for name, (hosts, children) in tree.items():
        lines.append(f"    - switch: {name}")
        lines.append(f"      nodes: {compress(hosts)}" if hosts else f"      children: {compress(children)}")
    return "\n".join(lines) + "\n"


def expected_hops(tree: Tree) -> dict[str, dict[str, int]]:
    """Switches on the shortest paths between hosts, counted on a plain graph of the generated tree."""
    graph = networkx.Graph()
    graph.add_nodes_from(tree)
    graph.add_edges_from((name, end) for name, ends in tree.items() for end in ends[0] + ends[1])
    return host_hops(graph, [host for hosts, _ in tree.values() for host in hosts])


def host_hops(graph: networkx.Graph, hosts: list[str]) -> dict[str, dict[str, int]]:
    # a path of k links between two hosts crosses k - 1 switches
    return {
        host: {
            other: length - 1
            for other, length in networkx.single_source_shortest_path_length(graph, host).items()
            if other in set(hosts) and other != host
        }
        for host in hosts
    }


@pytest.mark.parametrize(("module", "write"), [(slurm, write_conf), (slurm_yaml, write_yaml)])
@given(tree=trees())
def test_hop_counts_equal_those_of_the_described_graph(
    module: ModuleType, write: Callable[[Tree], str], tree: Tree
) -> None:
    fabric = read(module, write(tree))[0].fabric
    assert fabric.switch_ids == tuple(tree)
    assert set(fabric.hosts) == {host for hosts, _ in tree.values() for host in hosts}
    assert host_hops(fabric.to_networkx(), list(fabric.hosts)) == expected_hops(tree)


@given(tree=trees())
def test_every_cable_has_both_directions_and_ports_of_a_switch_count_from_one(tree: Tree) -> None:
    fabric = conf(write_conf(tree))
    ends = [fabric.link_source, fabric.link_target, fabric.link_source_port, fabric.link_target_port]
    there = list(zip(*(column.tolist() for column in ends), strict=True))
    assert sorted(there) == sorted((t, s, tp, sp) for s, t, sp, tp in there)
    for vertex in range(fabric.num_adapters + fabric.num_switches):
        ports = sorted(fabric.link_source_port[fabric.link_source == vertex].tolist())
        assert ports == list(range(1, len(ports) + 1))
    assert np.isnan(fabric.link_rate).all()
    assert np.isnan(fabric.link_latency).all()


def test_keys_ignore_case_comments_go_and_backslashes_join_lines() -> None:
    fabric = conf(
        "# header\r\n\r\n"
        "SWITCHNAME = s0 nodes=n[1-2] LinkSpeed=100 # four\r\n"
        "switchname=s1 \\  \r\n   NODES=n3\r\n"
        'SwitchName=top Switches="s[0-1]"\r\n'
    )
    assert fabric.hosts == ("n1", "n2", "n3")
    assert fabric.switch_ids == ("s0", "s1", "top")
    assert fabric.adapter_ids == fabric.hosts


def test_blocks_are_leaf_switches_below_one_switch() -> None:
    content = "BlockName=b1 Nodes=n[1-2]\nBlockName=b2 Nodes=n[3-4]\nBlockSizes=2,4\n"
    fabric = conf(content)
    assert fabric.switch_ids == ("b1", "b2", "topology/block")
    assert host_hops(fabric.to_networkx(), ["n1", "n2", "n3"])["n1"] == {"n2": 1, "n3": 3}
    assert conf("BlockName=b1 Nodes=n[1-2]\nBlockSizes=2\n").switch_ids == ("b1",)
    shown = (
        "BlockName=b1 BlockIndex=0 Nodes=n[1-2] BlockSize=2\nBlockName=b2 BlockIndex=1 Nodes=n[3-4] BlockSize=2\n"
        "AggregatedBlock=b[1-2] BlockIndex=2 Nodes=n[1-4] BlockSize=4\n"
    )
    assert conf(shown).switch_ids == fabric.switch_ids  # what scontrol prints, since Slurm 24.11


def blocks_of(count: int, sizes: list[int], form: str) -> str:
    """Blocks of two nodes, with sizes of aggregates, as Slurm's files have them or as scontrol prints them."""
    nodes = [f"n{block:02d}[0-1]" for block in range(count)]
    if form == "yaml":
        lines = "".join(f"    - {{block: b{at}, nodes: '{names}'}}\n" for at, names in enumerate(nodes))
        return f"- topology: t\n  block:\n    block_sizes: {sizes}\n    blocks:\n{lines}"
    lines = "".join(f"BlockName=b{at} Nodes={names}\n" for at, names in enumerate(nodes))
    if form == "conf":
        return lines + f"BlockSizes={','.join(map(str, sizes))}\n"
    for size in sizes[1:]:
        for begin in range(0, count, size // sizes[0]):
            part = [f"b{at}" for at in range(begin, min(count, begin + size // sizes[0]))]
            lines += (
                f"AggregatedBlock={compress(part)} BlockIndex=9 Nodes=n BlockSize={size}\n" if len(part) > 1 else ""
            )
    return lines


@examples(60)
@given(
    count=st.integers(1, 11),
    base=st.integers(1, 18),
    powers=st.sets(st.integers(1, 4)),
    form=st.sampled_from(["conf", "yaml", "show"]),
)
def test_hosts_are_as_far_apart_as_the_smallest_aggregate_of_their_blocks(
    count: int, base: int, powers: set[int], form: str
) -> None:
    text = blocks_of(count, [base, *(base << power for power in sorted(powers))], form)
    fabric = read(slurm_yaml if form == "yaml" else slurm, text)[0].fabric
    graph = fabric.to_networkx()
    hops = host_hops(graph, [f"n{block:02d}0" for block in range(count)])
    together = [1 << power for power in sorted(powers)] + [10**9]
    for one in range(count):
        for other in range(one):
            least = next(many for many in together if one // many == other // many)
            for third in range(count):  # who is in a larger aggregate is farther away
                if third not in (one, other) and one // least != third // least:
                    assert hops[f"n{one:02d}0"][f"n{third:02d}0"] > hops[f"n{one:02d}0"][f"n{other:02d}0"]


TWO_BLOCKS = "BlockName=a Nodes=n1\nBlockName=b Nodes=n2\nBlockName=c Nodes=n3\n"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("BlockSizes=4,6", "f:4: expecting BlockSizes in nodes, each a power of two times the first, got 4,6"),
        ("BlockSizes=4,12", "f:4: expecting BlockSizes in nodes, each a power of two times the first, got 4,12"),
        ("BlockSizes=0", "f:4: expecting BlockSizes in nodes, each a power of two times the first, got 0"),
        ("AggregatedBlock=a,x", "f:4: expecting aggregated blocks of whole blocks, got x, which is no block"),
        (
            "AggregatedBlock=a,b\nAggregatedBlock=b,c",
            "f:5: expecting aggregated blocks of whole blocks, got b,c, a part of another",
        ),
    ],
)
def test_wrong_aggregates_are_refused_with_their_line(line: str, message: str) -> None:
    assert refusal(read, slurm, f"{TWO_BLOCKS}{line}\n") == message
    fabric, problems = read(slurm, f"{TWO_BLOCKS}{line}\n", partial=True)
    assert (fabric.fabric.hosts, problems) == (("n1", "n2", "n3"), [message])


def torus_yaml(dims: tuple[int, ...], *, cut: int | None = None, gap: int = 0) -> str:
    """A torus whose node at (x, y, z) is called so; in two regions if ``cut`` along z, the latter without ``gap``."""

    def part(begin: int, end: int) -> tuple[str, str, str]:
        names = [f"n{x}-{y}-{z}" for z in range(begin, end) for y in range(dims[1]) for x in range(dims[0])]
        size = {"x": dims[0], "y": dims[1], "z": end - begin}
        return f"{{x: 0, y: 0, z: {begin}}}", str(size).replace("'", ""), ",".join(names)

    head = "- topology: t\n  torus3d:\n    toruses:\n    - name: p\n"
    _, size, nodes = part(0, dims[2])
    if cut is None:
        return f"{head}      dims: {size}\n      nodes: {nodes}\n      placements: [{{dims: {{x: 1, y: 1, z: 1}}}}]\n"
    regions = [part(0, cut), part(cut, dims[2] - gap)]
    text = "".join(f"      - {{anchor: {at}, dims: {dim}, nodes: '{names}'}}\n" for at, dim, names in regions)
    return f"{head}      dims: {size}\n      regions:\n{text}"


@examples(30)
@given(dims=st.tuples(st.integers(1, 5), st.integers(1, 4), st.integers(2, 4)), data=st.data())
def test_nodes_of_a_torus_are_as_far_apart_as_their_coordinates(dims: tuple[int, ...], data: st.DataObject) -> None:
    cut = data.draw(st.none() | st.integers(1, dims[2] - 1))
    gap = data.draw(st.integers(0, max(0, dims[2] - cut - 1))) if cut else 0
    discovery = read(slurm_yaml, torus_yaml(dims, cut=cut, gap=gap))[0]
    fabric = discovery.fabric
    assert fabric.num_switches == np.prod(dims)
    assert fabric.num_hosts == dims[0] * dims[1] * (dims[2] - gap)
    usual = synthetic.torus(dims)
    assert fabric.num_links - 2 * fabric.num_hosts == usual.num_links - 2 * usual.num_hosts
    hops = host_hops(fabric.to_networkx(), list(fabric.hosts))
    for one, found in hops.items():
        for other, count in found.items():
            steps = [abs(a - b) for a, b in zip(*(map(int, name[1:].split("-")) for name in (one, other)), strict=True)]
            assert count == 1 + sum(min(step, size - step) for step, size in zip(steps, dims, strict=True))


def one_torus(*lines: str) -> str:
    return "\n".join(["- topology: t", "  torus3d:", "    toruses:", *(f"    {line}" for line in lines)]) + "\n"


BAD_TORI = {
    "none": ("- topology: t\n  torus3d: {}\n", "f:2: expecting a list of toruses, got none"),
    "no dims": (one_torus("- {name: p}"), "f:4: expecting name and dims of a torus, got name"),
    "few nodes": (
        one_torus("- {name: p, dims: {x: 2, y: 2, z: 1}, nodes: 'n[1-3]'}"),
        "f:4: expecting 4 nodes, as dims says, got 3",
    ),
    "beyond": (
        one_torus(
            "- {name: p, dims: {x: 2, y: 1, z: 1}, regions: ["
            "{anchor: {x: 1, y: 0, z: 0}, dims: {x: 2, y: 1, z: 1}, nodes: 'n[1-2]'}]}"
        ),
        "f:4: expecting a region within the torus, got one that ends beyond it",
    ),
    "overlap": (
        one_torus(
            "- {name: p, dims: {x: 2, y: 1, z: 1}, regions: ["
            "{dims: {x: 2, y: 1, z: 1}, nodes: 'n[1-2]'}, {dims: {x: 1, y: 1, z: 1}, nodes: n3}]}"
        ),
        "f:4: expecting one node at each coordinate, got several at 0,0,0",
    ),
    "both": (
        one_torus("- {name: p, dims: {x: 1, y: 1, z: 1}, nodes: n1, regions: []}"),
        "f:4: expecting nodes or regions, got both",
    ),
    "no number": (
        one_torus("- {name: p, dims: {x: 0, y: 1, z: a}, nodes: n1}"),
        "f:4: expecting x from 1 to 99999, got 0",
    ),
    "node twice": (
        one_torus(*(f"- {{name: {name}, dims: {{x: 1, y: 1, z: 1}}, nodes: n1}}" for name in "pq")),
        "f:5: node n1 appears twice",
    ),
    "torus twice": (
        one_torus(*(f"- {{name: p, dims: {{x: 1, y: 1, z: 1}}, nodes: {node}}}" for node in ("n1", "n2"))),
        "f:5: torus p appears twice",
    ),
}


@pytest.mark.parametrize(("content", "message"), BAD_TORI.values(), ids=BAD_TORI)
def test_a_malformed_torus_is_refused_with_its_line(content: str, message: str) -> None:
    assert refusal(read, slurm_yaml, content) == message


def test_a_torus_beyond_the_limit_is_refused_before_memory_is_allocated() -> None:
    content = one_torus("- {name: p, dims: {x: 9999, y: 9999, z: 9999}}")
    assert "hosts" in refusal(read, slurm_yaml, content)


PATHS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2)), min_size=1, max_size=6)


def nodes_of(places: list[tuple[int, int]], form: str) -> str:
    """Nodes below a spine and a leaf each, as slurm.conf has them and as scontrol prints them."""
    values = [f"other:x,net:s{spine}:l{spine}-{leaf}" for spine, leaf in places]
    if form == "json":
        return json.dumps({"nodes": [{"name": f"n{at}", "topology": value} for at, value in enumerate(values)]})
    lines = {
        "conf": "NodeName=n{} CPUs=16 \\\n  State=CLOUD topology={} # Topology=net:no:no\n",
        "quoted": '# NodeName=n Topology=net:no:no\nNODENAME=n{} Topology="{}"\n',
        "show": "NodeName=n{} Arch=x86_64\n   Comment=a Topology=net:no:no\n   ReservationName=r\n   Topology={}\n\n",
        "line": "NodeName=n{} Arch=x86_64 Comment=a Topology=net:no:no Topology={}\n",
    }[form]
    return "".join(lines.format(*pair) for pair in enumerate(values)) + "PartitionName=p Topology=net:no:no\n"


@pytest.mark.parametrize("form", ["conf", "quoted", "show", "line", "json"])
@examples(20)
@given(places=PATHS)
def test_nodes_name_the_switches_above_them_in_every_form(places: list[tuple[int, int]], form: str) -> None:
    text = text_of(nodes_of(places, form))
    assert slurm_nodes.recognise(text.head())
    fabric = slurm_nodes.read([text], Report(), "net").fabric
    leaf = {host: fabric.switch_ids[at] for host, at in zip(fabric.hosts, fabric.adapter_leaf.tolist(), strict=True)}
    assert leaf == {f"n{at}": f"l{spine}-{one}" for at, (spine, one) in enumerate(places)}
    hops = host_hops(fabric.to_networkx(), list(fabric.hosts))
    for (one, (spine, a)), (two, (other, b)) in itertools.combinations(enumerate(places), 2):
        expected = 1 if (spine, a) == (other, b) else 3 if spine == other else None
        assert hops[f"n{one}"].get(f"n{two}") == expected


def test_nodes_may_have_a_default_topology_and_none() -> None:
    text = (
        "NodeName=DEFAULT Topology=t:b1\nNodeName=n[1-2]\nNodeName=n3 Topology=t:b2,u:c\nNodeName=DEFAULT Topology=\n"
    )
    report = Report()
    fabric = slurm_nodes.read([text_of(f"{text}NodeName=n4\n")], report).fabric
    assert np.bincount(fabric.adapter_leaf).tolist() == [2, 1]
    assert report.notes == [
        "f: topology t is read; SOURCE#NAME reads another one: u",
        "f: 1 nodes without Topology= are left out: n4",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "NodeName=n1 Topology=t:r:0\nNodeName=n2 Topology=t:r:1\n",
            "f:1: expecting switches or a block above each node",
        ),
        (
            "NodeName=n1 Topology=t:p:0:2:1\nNodeName=n2 Topology=t:p:1:0:1\n",
            "f:1: expecting switches or a block above",
        ),
        ("NodeName=n1 Topology=t:a,u\n", "f:1: expecting Topology=NAME:SWITCH, got 'u'"),
        ("NodeName=n1 Topology=t:a:\n", "f:1: expecting Topology=NAME:SWITCH, got 't:a:'"),
        ("NodeName=n[1- Topology=t:a\n", "f:1: host list 'n[1-': expecting ']'"),
    ],
)
def test_nodes_with_coordinates_or_malformed_fields_are_refused(text: str, message: str) -> None:
    assert refusal(slurm_nodes.read, [text_of(text)], Report()).startswith(message)


def test_a_folder_with_nodes_and_switches_is_read_by_its_switches(tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text("NodeName=n1 Topology=default:a\n")
    assert load(tmp_path).fabric.switch_ids == ("a",)
    (tmp_path / "topology.conf").write_text("SwitchName=s Nodes=n1\n")
    assert load(tmp_path).fabric.switch_ids == ("s",)


# Each: content, the exact note, and the hosts and switches that are read.
UNUSUAL_CONF = {
    "an empty switch": (
        "SwitchName=a Nodes=n1\nSwitchName=b\n",
        "f:2: switch b has neither nodes nor child switches",
        ("n1", "a b"),
    ),
    "phantom blocks": (
        "BlockName=a Nodes=n1\nBlockName=b\nBlockName=c\nBlockSizes=1\n",
        "f:2: 2 switches have neither nodes nor child switches: b, c",
        ("n1", "a b c topology/block"),
    ),
    "tree and blocks": (
        "BlockName=b Nodes=n[1-2]\nSwitchName=a Nodes=n1\n",
        "f:1: blocks, left out, because the file has a tree, too",
        ("n1", "a"),
    ),
    "tree and ring": (
        "SwitchName=a Nodes=n1\nRingName=r Nodes=n[1-4]\n",
        "f:2: a ring, left out, because the file has a tree, too",
        ("n1", "a"),
    ),
    "blocks and torus": (
        "BlockName=a Nodes=n1\nTorusName=p Dims=2x2x1 Nodes=n[1-4]\n  TorusName=p PlacementDims=2x1x1(2) Anchors=8\n",
        "f:2: a torus, left out, because the file has blocks, too",
        ("n1", "a"),
    ),
}


@pytest.mark.parametrize("case", UNUSUAL_CONF)
def test_unusual_conf_is_read_with_a_note(case: str) -> None:
    content, note, (hosts, switches) = UNUSUAL_CONF[case]
    report = Report()
    fabric = slurm.read([text_of(content)], report).fabric
    assert report.notes == [note]
    assert fabric.hosts == tuple(hosts.split())
    assert fabric.switch_ids == tuple(switches.split())


@pytest.mark.parametrize(
    ("name", "kind"), [("topology.conf", "a ring"), ("show.txt", "a ring"), ("torus.txt", "a torus")]
)
def test_a_reported_ring_or_torus_alone_is_refused_by_its_name(name: str, kind: str) -> None:
    with pytest.raises(TopompiError, match=rf"{name}:1: expecting SwitchName or BlockName lines, got {kind}, which"):
        load(shared_data(f"cases/A11-slurm-ring/{name}"))


def test_an_empty_switch_is_accepted_where_the_file_allows_it() -> None:
    assert conf("AllowEmptySwitch=yes\nSwitchName=s0 Nodes=n1\nSwitchName=s1\n").num_switches == 2


# Each: content, the exact message, and the (hosts, switches) that partial reading keeps.
@pytest.mark.parametrize(
    ("text", "leaves"),
    [
        ("SwitchName=s1 Nodes=n[1-2]\nSwitchName=s2 Nodes=\nSwitchName=t Switches=s[1-2]\n", {"s1": 2}),
        ("SwitchName=s1 Nodes=n[1-2] Switches=\nSwitchName=t Nodes= Switches=s1\n", {"s1": 2}),
        ("SwitchName = s1 Nodes = n[1-2]\nSWITCHNAME=s2 nodes=n[3-4]\n", {"s1": 2, "s2": 2}),
        ("SwitchName=s1 Level=0 LinkSpeed=1 Nodes=n1\nSwitchName=s2 Level=0 LinkSpeed=1 Nodes=(null)\n", {"s1": 1}),
        ("SwitchName=s1 Nodes=n1,\\\nn2\\\n,n3\nSwitchName=s2 \\\n  Nodes=n4\\\n LinkSpeed=1\n", {"s1": 3, "s2": 1}),
        ('BlockName=b1 Nodes=n[1-2]\nBlockName=b2 Nodes=""\nBlockName=b3 Nodes=\nBlockSizes=2,4\n', {"b1": 2}),
    ],
)
def test_absent_values_and_lists_cut_by_backslashes_are_read(text: str, leaves: dict[str, int], tmp_path: Path) -> None:
    (tmp_path / "topology.conf").write_text(text)
    fabric = load(tmp_path / "topology.conf").fabric
    counts = np.bincount(fabric.adapter_leaf, minlength=fabric.num_switches).tolist()
    assert {name: count for name, count in zip(fabric.switch_names, counts, strict=True) if count} == leaves


def test_an_included_file_is_read_from_the_same_folder(tmp_path: Path) -> None:
    (tmp_path / "topology.conf").write_text("Include /etc/slurm/leaves.conf\nSwitchName=t Switches=s[1-2]\n")
    with pytest.raises(SourceError) as caught:
        load(tmp_path / "topology.conf")
    assert str(caught.value).endswith(
        ":1: expecting /etc/slurm/leaves.conf, which this file includes, got none: give a folder with both"
    )
    (tmp_path / "leaves.conf").write_text("SwitchName=s1 Nodes=n[1-2]\nSwitchName=s2 Nodes=n3\n")
    assert load(tmp_path).fabric.hosts == ("n1", "n2", "n3")


@pytest.mark.parametrize(
    "text",
    [
        "- cluster_default: true\n  topology: t\n  tree:\n    switches:\n      - nodes: n[1-2]\n        switch: s\n",
        "  - topology: t\n    tree:\n      switches:\n        - switch: s\n          nodes: n[1-2]\n",
        '[{"topology": "t", "cluster_default": true, "tree": {"switches": [{"switch": "s", "nodes": "n[1-2]"}]}}]',
    ],
)
def test_topologies_are_recognised_in_any_order_indentation_and_as_json(text: str, tmp_path: Path) -> None:
    (tmp_path / "topology.yaml").write_text(text)
    assert load(tmp_path / "topology.yaml").fabric.hosts == ("n1", "n2")


BAD_CONF = {
    "host twice": (
        "SwitchName=a Nodes=n[1-2]\nSwitchName=b Nodes=n[2-3]\n",
        f"f:2: host n2 is at switch b, but at switch a already (f:1); {GO_ON} leaves it at a",
        ("n1 n2 n3", "a b"),
    ),
    "host twice on one line": (
        "SwitchName=a Nodes=n1,n1\n",
        f"f:1: host n1 is at switch a, but at switch a already (f:1); {GO_ON} leaves it at a",
        ("n1", "a"),
    ),
    "unknown child": (
        "SwitchName=a Nodes=n1\n\nSwitchName=t Switches=a,b\n",
        "f:3: child switch b of t is not defined",
        ("n1", "a t"),
    ),
    "child twice": (
        "SwitchName=a Nodes=n1\nSwitchName=t Switches=a,a\n",
        "f:2: child switch a of t appears twice",
        ("n1", "a t"),
    ),
    "switch twice": (
        "SwitchName=a Nodes=n1\nSwitchName=a Nodes=n2\n",
        "f:2: switch a appears twice, first at f:1",
        ("n1", "a"),
    ),
    "cycle": (
        "SwitchName=a Nodes=n1\nSwitchName=s Switches=t,a\nSwitchName=t Switches=u\nSwitchName=u Switches=s\n",
        "f:4: switches form a cycle: s -> t -> u -> s",
        ("n1", "a s t u"),
    ),
    "cycle of one": (
        "SwitchName=a Nodes=n1\nSwitchName=s Switches=s,a\n",
        "f:2: switches form a cycle: s -> s",
        ("n1", "a s"),
    ),
    "both": (
        "SwitchName=a Nodes=n1\nSwitchName=b Nodes=n2 Switches=a\n",
        "f:2: switch b: expecting nodes or child switches, got both",
        ("n1 n2", "a b"),
    ),
    "host named as a switch": (
        "SwitchName=a Nodes=n1,b\nSwitchName=b Nodes=n2\n",
        "f:1: host b has the name of the switch at f:2",
        ("n1 n2", "a b"),
    ),
    "unknown key": (
        "SwitchName=a Nodes=n1 Color=red\n",
        "f:1: expecting SwitchName, Nodes, Switches or LinkSpeed, got color",
        ("n1", "a"),
    ),
    "key of the other plugin": (
        "BlockName=a Nodes=n1 Switches=b\n",
        "f:1: expecting BlockName or Nodes, got switches",
        ("n1", "a"),
    ),
    "key twice": (
        "SwitchName=a Nodes=n1 nodes=n2\n",
        "f:1: expecting nodes once, got it twice",
        ("n1", "a"),
    ),
    "no pair": (
        "SwitchName=a Nodes=n1\nSwitchName=b Nodes=n2 oops\n",
        "f:2: expecting KEY=VALUE, got 'oops'",
        ("n1 n2", "a b"),
    ),
    "bad host list": (
        "SwitchName=a Nodes=n1\nSwitchName=b Nodes=n[2-\n",
        "f:2: host list 'n[2-': expecting ']' at position 4",
        ("n1", "a"),
    ),
    "several names": (
        "SwitchName=s[1-2] Nodes=n1\nSwitchName=a Nodes=n1\n",
        "f:1: expecting one switch name, got 2",
        ("n1", "a"),
    ),
    "place of joined lines": (
        "SwitchName=a \\\n\\\nNodes=n1\nSwitchName=b \\\nNodes=n1,n2\n",
        f"f:4: host n1 is at switch b, but at switch a already (f:1); {GO_ON} leaves it at a",
        ("n1 n2", "a b"),
    ),
}


@pytest.mark.parametrize("case", BAD_CONF)
def test_bad_conf_is_named_with_its_line_and_partial_reading_keeps_the_rest(case: str) -> None:
    content, message, (hosts, switches) = BAD_CONF[case]
    assert refusal(read, slurm, content) == message
    discovery, problems = read(slurm, content, partial=True)
    assert problems == [message]
    assert discovery.fabric.hosts == tuple(hosts.split())
    assert discovery.fabric.switch_ids == tuple(switches.split())


def test_partial_reading_cuts_a_cycle_at_one_link_only() -> None:
    content = "SwitchName=a Nodes=n1\nSwitchName=b Nodes=n2\nSwitchName=s Switches=a,s,b\n"
    fabric = read(slurm, content, partial=True)[0].fabric
    assert host_hops(fabric.to_networkx(), ["n1", "n2"]) == {"n1": {"n2": 3}, "n2": {"n1": 3}}


def test_a_conf_without_switches_is_refused_even_partially() -> None:
    for partial in (False, True):
        message = refusal(read, slurm, "# nothing\n", partial)
        assert message == "f: expecting SwitchName or BlockName lines, got none"


def test_a_long_chain_of_switches_needs_no_recursion() -> None:
    lines = ["SwitchName=s0 Nodes=n0"] + [f"SwitchName=s{i} Switches=s{i - 1}" for i in range(1, 5000)]
    assert conf("\n".join(reversed(lines))).num_switches == 5000


@given(tree=trees(), data=st.data())
def test_a_link_back_to_an_ancestor_is_always_found(tree: Tree, data: st.DataObject) -> None:
    graph = networkx.DiGraph((name, child) for name, (_, children) in tree.items() for child in children)
    pairs = sorted((low, high) for low in graph for high in networkx.ancestors(graph, low) if not tree[low][0])
    if not pairs:
        return
    low, high = data.draw(st.sampled_from(pairs))
    tree[low][1].append(high)
    with pytest.raises(TopompiError, match="switches form a cycle: ") as caught:
        conf(write_conf(tree))
    cycle = str(caught.value).partition("cycle: ")[2].split(" -> ")
    assert cycle[0] == cycle[-1]
    assert all(below in tree[above][1] for above, below in itertools.pairwise(cycle))


YAML = """\
---
- topology: other
  cluster_default: false
  flat: true
- topology: main
  cluster_default: True
  tree:
    switches:
      - switch: top
        children: s[1-2]
      - {switch: s1, nodes: "n[1-2]"}
      - switch: s2   # a comment
        nodes: n3
- topology: late
  cluster_default: true
  block:
    block_sizes: [1, 2]
    blocks:
      - block: b1
        nodes: n[1-2]
      - block: b2
        nodes: n3
"""


def test_yaml_takes_the_first_topology_where_none_is_default() -> None:
    content = YAML[YAML.index("- topology: late") :].replace("cluster_default: true", "cluster_default: no")
    assert read(slurm_yaml, content + "- topology: x\n  flat: true\n")[0].fabric.switch_ids == (
        "b1",
        "b2",
        "topology/block",
    )


RINGS = """\
- topology: loops
  ring: {rings: [{ring: r1, nodes: "n[1-4]"}]}
- topology: cube
  torus3d: {tori: []}
- topology: main
  cluster_default: true
  tree: {switches: [{switch: s1, nodes: "n[1-2]"}]}
- topology: news
  dragonfly: {}
"""


def test_yaml_topologies_that_are_not_the_default_may_be_of_any_kind() -> None:
    report = Report()
    assert slurm_yaml.read([text_of(RINGS)], report).fabric.hosts == ("n1", "n2")
    assert report.notes == ["f:5: topology main is read; SOURCE#NAME reads another one: loops, cube, news"]


def test_yaml_topologies_are_chosen_by_name(tmp_path: Path) -> None:
    (tmp_path / "topology.yaml").write_text(YAML)
    assert load(f"{tmp_path}/topology.yaml#late").fabric.switch_ids == ("b1", "b2", "topology/block")
    assert load(f"{tmp_path}/topology.yaml").fabric.switch_ids == ("top", "s1", "s2")
    with pytest.raises(TopompiError, match=r"expecting one of the topologies other, main, late, got 'x'"):
        load(f"{tmp_path}/topology.yaml#x")
    (tmp_path / "topology.conf").write_text("SwitchName=s Nodes=n1\n")
    with pytest.raises(TopompiError, match=r"topology.conf#x: expecting a name after # for Slurm topology.yaml, got"):
        load(f"{tmp_path}/topology.conf#x")


def yaml_tree(*lines: str) -> str:
    return "\n".join(["- topology: t", "  tree:", "    switches:", *(f"    {line}" for line in lines)]) + "\n"


BAD_YAML = {
    "syntax": ("- topology: [t\n", "f:1: expecting YAML, but expected ',' or ']', but got '<stream end>'"),
    "no list": ("topology: t\n", "f:1: expecting a list, got a mapping"),
    "nothing": ("# nothing\n", "f: expecting a list of topologies, got an empty file"),
    "empty list": ("[]\n", "f: expecting a list of topologies, got an empty one"),
    "no mapping": (
        "- topology\n",
        "f:1: expecting a mapping with names and values, got 'topology'",
    ),
    "no kind": ("- topology: t\n", "f:1: expecting one of tree, block or flat, got none"),
    "two kinds": (
        "- topology: t\n  flat: true\n  tree: {switches: []}\n",
        "f:1: expecting one of tree, block or flat, got tree and flat",
    ),
    "other kind": (
        "- topology: t\n  mesh: {}\n",
        "f:2: expecting one of topology, cluster_default, tree, block, flat, ring, torus3d, got 'mesh'",
    ),
    "ring": (
        "- topology: t\n  ring: {}\n- topology: u\n  flat: true\n",
        "f:1: expecting a tree, block or torus topology, got a ring, which Slurm alone knows how to use"
        "; SOURCE#NAME reads another one: u",
    ),
    "flat": (
        "- topology: t\n  flat: true\n",
        "f:1: expecting a tree, block or torus topology, got a flat one, which lists no hosts",
    ),
    "no switches": (
        "- topology: t\n  tree:\n    switches: []\n",
        "f:3: expecting a list of switches, got none",
    ),
    "no name": (yaml_tree("- nodes: n1"), "f:4: expecting a field switch, got none"),
    "unknown field": (
        yaml_tree("- switch: a", "  node: n1"),
        "f:5: expecting one of switch, nodes, children, got 'node'",
    ),
    "field twice": (
        yaml_tree("- switch: a", "  nodes: n1", "  nodes: n2"),
        "f:6: expecting nodes once, got it twice",
    ),
    "list as nodes": (
        yaml_tree("- switch: a", "  nodes: [n1]"),
        "f:5: expecting a name or a host list, got a list",
    ),
    "bad host list": (
        yaml_tree("- switch: a", "  nodes: n[1-"),
        "f:5: host list 'n[1-': expecting ']' at position 4",
    ),
    "host twice": (
        yaml_tree("- switch: a", "  nodes: n1", "- switch: b", "  nodes: n1"),
        f"f:6: host n1 is at switch b, but at switch a already (f:4); {GO_ON} leaves it at a",
    ),
    "cycle": (
        yaml_tree("- switch: a", "  children: b", "- switch: b", "  children: a"),
        "f:6: switches form a cycle: a -> b -> a",
    ),
}


@pytest.mark.parametrize(("content", "message"), BAD_YAML.values(), ids=BAD_YAML)
def test_bad_yaml_is_named_with_its_line(content: str, message: str) -> None:
    assert refusal(read, slurm_yaml, content) == message


def test_partial_yaml_keeps_the_sound_switches() -> None:
    content = yaml_tree("- switch: a", "  nodes: n1", "- nodes: n2", "- switch: b", "  nodes: n1,n3")
    discovery, problems = read(slurm_yaml, content, partial=True)
    assert discovery.fabric.hosts == ("n1", "n3")
    assert problems == [
        "f:6: expecting a field switch, got none",
        f"f:7: host n1 is at switch b, but at switch a already (f:4); {GO_ON} leaves it at a",
    ]


def test_each_format_is_recognised_and_no_other() -> None:
    heads = [
        "# c\n  switchname=s0 Nodes=a\n",
        "BlockName = b Nodes=a\n",
        YAML,
        "vendid=0x2c9\nSwitch 36 x\n",
        "0: 1 2 3\n",
        "{}",
        "NODE 1 SWITCH 2",
    ]
    assert [slurm.recognise(head) for head in heads] == [True, True] + [False] * 5
    assert [slurm_yaml.recognise(head) for head in heads] == [False, False, True] + [False] * 4


def test_circe_names_one_host_at_two_leaves_and_has_no_root() -> None:
    [text] = open_inputs(shared_data("fabrics/circe-dgx2.topology.conf"))
    place = f"{text.name}:5: host circe-n051 is at switch s4"
    message = f"{place}, but at switch s2 already ({text.name}:3); {GO_ON} leaves it at s2"
    assert refusal(slurm.read, [text], Report()) == message
    report = Report(partial=True)
    fabric = slurm.read([text], report).fabric
    assert report.problems == [message]
    assert (fabric.num_hosts, fabric.num_switches) == (79, 5)
    assert len(set(fabric.switch_component.tolist())) == 5
