"""Hierarchies of clouds and labels of Kubernetes: hops between hosts are those of their common switches."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import examples, refusal, shared_data, text_of
from topompi.errors import TopompiError
from topompi.topology import HostRoutes, load
from topompi.topology.discovery import Report
from topompi.topology.routecheck import with_routes
from topompi.topology.sources import clouds

NVIDIA = "network.topology.nvidia.com/"


def hops_of(found) -> dict[tuple[str, str], int]:
    routes = with_routes(found, Report()).routes
    hosts = routes.fabric.hosts
    hops = HostRoutes(routes, np.arange(len(hosts), dtype=np.int32)).hops
    return {(a, b): int(hops[i, j]) for i, a in enumerate(hosts) for j, b in enumerate(hosts) if i < j}


def test_a_reported_answer_of_aws_is_a_tree_and_says_that_it_is_one_page() -> None:
    report = Report()
    found = load(shared_data("cases/A16-clouds/aws.json"), report=report)
    one, two, three = (f"i-{str(number) * 10}example" for number in (1, 2, 3))
    assert hops_of(found) == {(one, two): 1, (one, three): 3, (two, three): 3}
    assert not found.fabric.cabled
    assert any("NextToken" in note for note in report.notes)


TREES = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=8)


def written(places: list[tuple[int, int, int]], form: str) -> str:
    """The hierarchy of hosts n0, n1, ... in one of the forms; each place is a core, a spine and a leaf."""
    paths = [[f"c{core}", f"s{core}-{spine}", f"l{core}-{spine}-{leaf}"] for core, spine, leaf in places]
    names = [f"n{number}" for number in range(len(places))]
    if form == "aws":
        return json.dumps(
            {"Instances": [{"InstanceId": n, "NetworkNodes": path} for n, path in zip(names, paths, strict=True)]}
        )
    if form == "oci":
        keys = ("compute-hpc-island-id", "compute-network-block-id", "compute-local-block-id")
        return json.dumps(
            {
                "data": {
                    "items": [
                        {"instance-id": n, **dict(zip(keys, p, strict=True))} for n, p in zip(names, paths, strict=True)
                    ]
                }
            }
        )
    if form == "oci snake":
        keys = ("compute_hpc_island_id", "compute_network_block_id", "compute_local_block_id")
        items = [
            {"id": n, "instance_id": n, **dict(zip(keys, p, strict=True))} for n, p in zip(names, paths, strict=True)
        ]
        return json.dumps({"items": items})
    if form == "gcloud":
        keys = ("cluster", "block", "subblock")
        topologies = [dict(zip(keys, path, strict=True)) | {"host": "h"} for path in paths]
        return json.dumps(
            [{"name": n, "resourceStatus": {"physicalHostTopology": t}} for n, t in zip(names, topologies, strict=True)]
        )
    if form == "gcloud paths":
        return json.dumps(
            [
                {"name": n, "resourceStatus": {"physicalHost": "/".join(["", *p, n])}}
                for n, p in zip(names, paths, strict=True)
            ]
        )
    if form == "jgf":
        graph = [{"id": "0", "metadata": {"type": "cluster", "name": "c", "paths": {"containment": "/c"}}}]
        graph += [
            {"id": n, "metadata": {"type": "node", "name": n, "paths": {"containment": "/".join(["", *p, n])}}}
            for n, p in zip(names, paths, strict=True)
        ]
        return json.dumps({"graph": {"nodes": graph, "edges": []}})
    if form == "gcp titles":
        return "NAME PHYSICAL_HOST\n" + written(places, "gcp")
    if form == "gcp":
        return "".join(f"{n} /{'/'.join(path)}/{n}\n" for n, path in zip(names, paths, strict=True))
    keys = (
        [f"fabric.topograph.run/tier-{tier}" for tier in (2, 1, 0)]
        if form == "tiers"
        else [f"oci.oraclecloud.com/rdma.{level}_id" for level in ("hpc_island", "network_block", "local_block")]
        if form == "oci labels"
        else [NVIDIA + level for level in ("core", "spine", "leaf")]
    )
    labels = [{"kubernetes.io/os": "linux", **dict(zip(keys, path, strict=True))} for path in paths]
    if form == "kubectl":
        head = "NAME   STATUS   ROLES    AGE   VERSION   LABELS\n"
        return head + "".join(
            f"{n}   Ready   <none>   3d   v1.30.1   {','.join('='.join(pair) for pair in one.items())}\n"
            for n, one in zip(names, labels, strict=True)
        )
    nodes = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": n, "labels": one}}
        for n, one in zip(names, labels, strict=True)
    ]
    return json.dumps({"apiVersion": "v1", "items": nodes, "kind": "List"})


FORMS = (
    *("aws", "oci", "oci snake", "oci labels", "gcp", "gcp titles", "gcloud", "gcloud paths", "jgf"),
    *("labels", "tiers", "kubectl"),
)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"basename": "n", "id": 3}, "n3"),
        ({"basename": "login", "id": -1}, "login"),
        ({"basename": "x", "id": 3, "last": "x03"}, "x03"),
        ({"basename": "x", "id": 0, "last": "x00"}, "x00"),
        ({"last": "n03"}, "n03"),
        ({"name": "n7", "basename": "x", "id": 3}, "n7"),
    ],
)
def test_a_node_of_flux_without_a_name_has_one(given: dict[str, object], name: str) -> None:
    path = f"/c0/rack0/{given.pop('last', 'node9')}"
    graph = {"graph": {"nodes": [{"metadata": {"type": "node", "paths": {"containment": path}, **given}}]}}
    assert clouds.read([text_of(json.dumps(graph))], Report()).fabric.hosts == (name,)


KEYS = st.lists(
    st.from_regex(r"[a-z]{1,5}\.[a-z]{1,5}/[a-z-]{0,5}[0-9]", fullmatch=True), min_size=3, max_size=3, unique=True
)


@pytest.mark.parametrize("form", ["labels", "kubectl"])
@examples(25)
@given(places=TREES, keys=KEYS)
def test_any_keys_of_labels_name_the_switches(places: list[tuple[int, int, int]], keys: list[str], form: str) -> None:
    usual = written(places, form)
    renamed = usual
    for level, key in zip(("core", "spine", "leaf"), keys, strict=True):
        renamed = renamed.replace(NVIDIA + level, key)
    expected = hops_of(clouds.read([text_of(usual)], Report()))
    assert hops_of(clouds.read([text_of(renamed)], Report(labels=tuple(keys)))) == expected
    message = refusal(clouds.read, [text_of(renamed)], Report())
    assert all(key in message for key in keys)
    assert "--labels TOP,...,LEAF" in message
    strange = refusal(clouds.read, [text_of(renamed)], Report(labels=(*keys, "a/b")))
    assert strange.startswith("f: expecting label a/b of a node, got ")
    assert all(key in strange for key in keys)


@pytest.mark.parametrize("source", ["torus:4x4", "topology.conf", "auto"])
def test_labels_of_a_source_without_labels_are_refused(source: str, tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "topology.conf").write_text("SwitchName=s Nodes=n1\n")
    monkeypatch.chdir(tmp_path)
    message = refusal(load, source, None, Report(labels=("a",)))
    assert message.startswith("--labels: expecting nodes of Kubernetes with labels, got ")


@pytest.mark.parametrize("form", FORMS)
@examples(25)
@given(places=TREES)
def test_every_form_gives_the_hops_of_the_lowest_common_switch(places: list[tuple[int, int, int]], form: str) -> None:
    text = text_of(written(places, form))
    assert clouds.recognise(text.head())
    hops = hops_of(clouds.read([text], Report()))
    for (one, other), count in hops.items():
        a, b = places[int(one[1:])], places[int(other[1:])]
        same = next((level for level in range(3) if a[level] != b[level]), 3)
        assert count == 2 * (3 - same) + 1
    assert len(hops) == len(places) * (len(places) - 1) // 2


def test_nodes_without_labels_are_noted_and_left_out() -> None:
    content = json.loads(written([(0, 0, 0), (0, 0, 1)], "labels"))
    content["items"].append({"kind": "Node", "metadata": {"name": "control", "labels": {}}})
    report = Report()
    assert clouds.read([text_of(json.dumps(content))], report).fabric.hosts == ("n0", "n1")
    assert report.notes == ["f: 1 hosts without switches are left out: control"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"Instances": [{"InstanceId": "", "NetworkNodes": ["a"]}]}', "f: item 0: expecting the name of an instance"),
        ('{"kind": "NodeList", "items": {}}', "f: expecting a list of instances or nodes, got dict"),
        ('{"kind": "NodeList", "items": []}', "f: expecting hosts with the switches above them"),
        ("NAME STATUS ROLES AGE VERSION\nn1 Ready <none> 3d v1\n", "f:1: expecting a column LABELS"),
        ("n1 /a/b/c\nn2\n", "f:2: expecting a host and /BLOCK/SUBBLOCK/HOST, got 'n2'"),
    ],
)
def test_malformed_hierarchies_are_refused_with_their_place(content: str, message: str) -> None:
    assert refusal(clouds.read, [text_of(content)], Report()).startswith(message)


def test_a_graph_of_flux_without_racks_says_nothing_about_switches() -> None:
    node = {"metadata": {"type": "node", "name": "n", "paths": {"containment": "/c/n"}}}
    text = text_of(json.dumps({"execution": {}, "scheduling": {"graph": {"nodes": [node], "edges": []}}}))
    assert clouds.recognise(text.head())
    with pytest.raises(
        TopompiError, match="expecting racks or switches between cluster and nodes, got none: use --hosts"
    ):
        clouds.read([text], Report())


NAMED = {
    "list of nodes": ('Switch\t : 0xb0cf0e0300000000 ports 145 devid 0xd2f4 vendid 0x2c9 "leaf0"\n', "a list of nodes"),
    "differences": ('< 0xb0cf0e0300000000 "sw1" 1 1[  ] ==( 4X', "differences of two reports (--diff)"),
    "flux R": (
        '{"version": 1, "execution": {"R_lite": [{"rank": "0"}], "nodelist": ["n[1-4]"]}}',
        "a resource set of Flux (R)",
    ),
    "JGF": ('{"graph": {"nodes": [{"id": "0"}], "edges": []}}', "a graph in JSON (JGF, as Flux writes it)"),
    "topograph": ('{"provider": {"name": "aws"}, "engine": {"name": "slurm"}}', "a request to topograph: its answer"),
    "instances": ('{"Reservations": []}', "JSON of aws ec2 describe-instances: that of describe-instance-topology"),
    "GPUs": ("\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV12\t0-31\n", "nvidia-smi topo -m, which describes one host"),
    "PBS": ("exec_host = n01/0*16+n02/0*16\n", "hosts of a job of PBS, which have no switches: give them with --hosts"),
    "PBS vnodes": ("(n01:ncpus=16)+(n02:ncpus=16)\n", "hosts of a job of PBS"),
    "LSF": ("LSB_MCPU_HOSTS=n01 16 n02 16\n", "hosts of a job of LSF"),
    "PBS_NODEFILE": ("n01\nn01\nn02.site\n", "a list of hosts, which has no switches: give it with --hosts"),
    "LSF numbers": ("n01 16 n02 16\n", "a list of hosts, which has no switches"),
    "model of topograph": ("switches:\n  core:\n    nodes: [n1]\n", "a model of topograph: its answer"),
    "gcloud yaml": ("resourceStatus:\n  physicalHost: /a/b/c\n", "YAML of gcloud: its --format=json is read"),
    "aws yaml": ("Instances:\n- InstanceId: i-1\n", "YAML of aws: its --output json is read"),
    "opareport": ("12 Links in Fabric:\nRate NodeGUID\n", "a report of Omni-Path (opareport): opaextractsellinks"),
    "UFM": ('[{"source_guid": "0x1", "destination_guid": "0x2"}]', "JSON of UFM (links): ibnetdiscover is read"),
    "kubectl yaml": (
        "apiVersion: v1\nitems:\n- apiVersion: v1\n",
        "YAML of Kubernetes: kubectl get nodes -o json is read",
    ),
}


@pytest.mark.parametrize(("content", "words"), NAMED.values(), ids=NAMED)
def test_files_that_are_not_read_are_named_with_a_way_out(content: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "f").write_text(content)
    assert f"got {words}" in refusal(load, tmp_path / "f")
