"""Commands on topologies with parts that do not connect, or with faults that ``--partial`` passes over."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import command_line, examples, shared_data, text_of
from topompi.topology import Report, load_routes
from topompi.topology.routecheck import with_routes
from topompi.topology.sources import fabricjson, slurm
from topompi.views.cluster import cluster_of

NOTE = "no links join 3 parts of the hosts, and each job gets nodes of one part"
TWICE = "SwitchName=a Nodes=n[1-4]\nSwitchName=b Nodes=n[4-8]\nSwitchName=t Switches=a,b\n"


def test_jobs_are_placed_on_trees_that_do_not_connect() -> None:
    folder = shared_data("cases/A32-disconnected")
    cluster = ("--topology", folder / "topology.conf")
    given = command_line("jobs", "allocate", 4, *cluster, "--running", folder / "run.txt", "--json")
    assert given.returncode == 0, given.stderr
    assert json.loads(given.stdout)["nodes"] == "node[25-28]"
    assert NOTE in command_line("jobs", "allocate", 4, *cluster).stderr
    assert command_line("jobs", "check", folder / "run.txt", *cluster).returncode == 0
    ran = command_line("jobs", "simulate", folder / "one.swf", *cluster)
    assert ran.returncode == 0, ran.stderr
    assert NOTE in ran.stderr


@pytest.mark.parametrize("words", [("schedule", "bcast"), ("why", "bcast", "1K")])
def test_a_job_on_hosts_that_no_links_join_is_refused_with_their_names(words: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "f").write_text("SwitchName=a Nodes=n[1-4]\nSwitchName=b Nodes=n[5-7]\n")
    done = command_line(*words, "--topology", tmp_path / "f")
    assert done.returncode == 1
    assert done.stderr.endswith(
        "f: expecting hosts of one part, got n5, n6, n7, which no links join to the others: choose --hosts\n"
    )
    assert command_line(*words, "--topology", tmp_path / "f", "--hosts", "n[1-4]").returncode == 0
    route = command_line("topology", "route", "--topology", tmp_path / "f", "n1", "n5")
    assert route.stderr == "topompi: no route from n1 to n5: no links join their parts of the fabric\n"


def test_algorithms_that_need_a_failed_link_are_left_out_and_named(tmp_path: Path) -> None:
    routes = load_routes("torus:4x4")
    fabric, rate = routes.fabric, routes.fabric.link_rate.copy()
    rate[np.flatnonzero((fabric.link_source >= 16) & (fabric.link_target >= 16))[0]] = 0
    (tmp_path / "fabric.json").write_text(fabricjson.write(replace(fabric, link_rate=rate), routes))
    source = "--topology", tmp_path / "fabric.json"
    listed = command_line("schedule", "allreduce", *source, "--bytes", "1M")
    assert listed.returncode == 0
    assert "note: left out for want of routes: doubling: no route from host" in listed.stderr
    assert "\nring " in listed.stdout
    assert "halving" not in listed.stdout
    why = command_line("why", "allreduce", "1M", *source)
    assert "no route" in why.stdout
    assert "inf" not in why.stdout
    facts = json.loads(command_line("why", "allreduce", "1M", *source, "--json").stdout)
    assert facts["native"]["seconds"] is None
    assert facts["algorithm"].startswith("ring")


@examples(25)
@given(trees=st.lists(st.lists(st.integers(1, 3), min_size=1, max_size=3), min_size=2, max_size=3))
def test_trees_without_links_between_them_use_each_their_own_links_alone(trees: list[list[int]]) -> None:
    lines, host = [], 0
    for number, leaves in enumerate(trees):
        for leaf, size in enumerate(leaves):
            lines.append(f"SwitchName=l{number}-{leaf} Nodes=n[{host}-{host + size - 1}]")
            host += size
        lines.append(f"SwitchName=s{number} Switches=" + ",".join(f"l{number}-{leaf}" for leaf in range(len(leaves))))
    cluster = cluster_of(with_routes(slurm.read([text_of("\n".join(lines))], Report()), Report()).routes)
    assert cluster.num_nodes == host
    assert cluster.num_pods == len(trees)
    assert cluster.num_leaves == sum(len(leaves) for leaves in trees)
    uses = [cluster.links.links_of(np.flatnonzero(cluster.pod == pod)) for pod in range(cluster.num_pods)]
    assert len(np.unique(np.concatenate(uses))) == sum(len(links) for links in uses)


@pytest.mark.parametrize(
    "words",
    [
        ("jobs", "allocate", 4, "--topology"),
        ("map", "graph.txt", "--hosts", "n[1-4]", "-o", "out", "--topology"),
        ("topology", "draw", "-o", "out.svg"),
        ("topology", "show"),
        ("topology", "links", "--topology"),
    ],
    ids=lambda words: "-".join(words[:2]),
)
def test_a_host_at_two_switches_is_passed_over_with_partial(words: tuple[object, ...], tmp_path: Path) -> None:
    (tmp_path / "topology.conf").write_text(TWICE)
    (tmp_path / "graph.txt").write_text("0 1 100\n1 2 100\n2 3 100\n3 0 100\n")
    command = (*words, "topology.conf") if words[1] != "draw" else ("topology", "draw", "topology.conf", *words[2:])
    refused = command_line(*command, folder=tmp_path)
    assert refused.returncode == 1
    assert "--partial" in refused.stderr
    read = command_line(*command, "--partial", folder=tmp_path)
    assert read.returncode == 0, read.stderr
    assert "problem: topology.conf:2: host n4 is at switch b, but at switch a already" in read.stderr
