"""Jobs as users name them, and the command that characterises them."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from topompi.cli.app import app
from topompi.errors import TopompiError
from topompi.interference import Thresholds, read_jobs
from topompi.interference.network import SharedNetwork, shared_network
from topompi.netsim import COMPUTE
from topompi.topology import load
from topompi.views.cluster import cluster_of

TREE = "XGFT(3; 16,16,4; 1,4,4)@rate=1xFDR10"
SMALL = cluster_of(load("xgft:4,2;1,1").routes)
LINK = 4e9  # bytes/s


def run(*words):
    found = CliRunner().invoke(app, ["jobs", "characterise", *map(str, words)])
    if isinstance(found.exception, TopompiError):
        raise found.exception
    assert found.exit_code == 0, found.output
    return found.output


def base(text, nodes):
    (job,) = read_jobs([text])
    return job.on_crossbar(SharedNetwork(shared_network(SMALL, None, 0.0)), np.arange(nodes))


def test_nas_kernels_compute_for_the_seconds_of_the_source_divided_by_the_ranks():
    texts = ["ft@ranks=256", "A=ft@ranks=128", "B=cg@ranks=64,burst=5", "alltoall@ranks=4"]
    bursts = [job.trace.ranks.amount[job.trace.ranks.kind == COMPUTE] for job in read_jobs(texts)]
    assert [set(one.tolist()) for one in bursts] == [{1.5}, {3}, {5}, {0}]


def test_bytes_between_ranks_are_those_of_all_iterations():
    jobs = read_jobs(["A=alltoall@ranks=4,size=2K", "B=alltoall@ranks=4,size=2K,iterations=3"])
    assert [job.graph.volume.tolist() for job in jobs] == [[2048] * 12, [3 * 2048] * 12]
    (grid,) = read_jobs(["stencil@grid=4x2,size=3"])
    assert set(grid.graph.volume.tolist()) == {3}
    assert grid.graph.targets[: grid.graph.offsets[1]].tolist() == [1, 2]


def test_a_time_on_a_crossbar_is_given_or_simulated_or_the_least(tmp_path):
    (tmp_path / "edges.txt").write_text("0 1 4000000\n2 1 4000000\n1 2 1000000\n")
    assert base("alltoall@ranks=5,size=1000,base=7", 5) == (7, "given")
    seconds, origin = base("alltoall@ranks=5,size=1000,burst=7", 5)
    assert (seconds, origin) == (pytest.approx(7 + 4e3 / LINK), "simulated: flow on a crossbar")
    seconds, origin = base(f"{tmp_path}/edges.txt@burst=2,iterations=3,speed=2", 3)
    assert (seconds, origin) == (pytest.approx(3 + 2e-3), "least time: 3 s of computation, then all bytes")
    assert base(f"{tmp_path}/edges.txt@speed=2", 3)[0] == pytest.approx(2e-3)


def test_ranks_of_one_node_use_no_link_on_a_crossbar(tmp_path):
    (tmp_path / "edges.txt").write_text("0 1 4000000\n1 0 4000000\n0 2 1000\n3 2 0\n")
    assert base(f"{tmp_path}/edges.txt@ppn=2", 2)[0] == pytest.approx(1000 / LINK)


@pytest.mark.parametrize(
    "text",
    [
        "cg@ranks=64,base=0",
        "cg@ranks=64,base=x",
        "cg@ranks=64,colour=1",
        "ft@grid=8x8",
        "stencil@grid=4x0",
        "cg@ranks=12",
    ],
)
def test_malformed_jobs_are_refused(text):
    with pytest.raises(TopompiError, match="expecting"):
        read_jobs([text])


def test_the_command_tells_the_source_s_classes_and_its_thresholds():
    jobs = [f"{name}@ranks=256" for name in ("ft", "cg", "bt")]
    told = json.loads(run(*jobs, "--cluster", TREE, "--placement", "F4", "--json"))
    assert [job["class"] for job in told["jobs"]] == ["moderate", "low", "low"]
    assert told["thresholds"] == {"moderate": 0.09, "extreme": 1.0}
    level = told["jobs"][0]["levels"][2]
    assert level["usage"] == pytest.approx(0.2005, abs=1e-4)
    assert (level["groups"], level["available"], level["sharing_jobs"]) == (4, 80e9, 768)
    assert [job["base_seconds"] for job in told["jobs"]] == pytest.approx([1.607, 0.02526, 0.3512], rel=3e-4)
    text = run("cg@ranks=256", "--cluster", TREE, "--placement", "F4", "--moderate", 0.05)
    assert "cg   moderate  0" in text
    assert "cg: T_base 0.02526 s (simulated: flow on a crossbar)" in text
    assert "moderate from 0.05, extreme from 1" in text
    limits = Thresholds()
    words = " ".join(run("--help").replace("│", "").split())
    assert f"moderate job; {limits.moderate:g} by" in words
    assert f"extreme job; {limits.extreme:g} by" in words


def test_ranks_share_hosts():
    told = json.loads(run("alltoall@ranks=8,size=1M,ppn=2", "--cluster", "xgft:4,2;1,1", "--json"))
    job = told["jobs"][0]
    assert (job["ranks"], job["nodes"], job["hosts"]) == (8, 4, "h[0000-0003]")
    assert job["levels"][0]["nbytes"] == 8 * 6 * 2**20
    assert (job["class"], job["usage"]) == ("low", 0)


def test_jobs_that_may_share_links_are_counted_by_hosts_or_by_routes():
    words = ("alltoall@ranks=4,size=1K", "--cluster", "xgft:2,2,2;1,1,1", "--placement", "F1", "--json")
    counts = [
        [level["sharing_jobs"] for level in json.loads(run(*words, *more))["jobs"][0]["levels"]]
        for more in ((), ("--by-routes",))
    ]
    assert counts == [[0, 4, 4], [0, 2, 2]]


def test_a_file_places_jobs_by_their_names_also_by_numbers_of_slurm(tmp_path):
    path = tmp_path / "now.txt"
    path.write_text("4712 h[0001-0002]\n4711 h[0000,0004]\n")
    jobs = [f"{name}=alltoall@ranks=2,size=1M" for name in (4711, 4712)]
    told = json.loads(run(*jobs, "--cluster", "xgft:4,2;1,1", "--json", "--placement", path))
    assert [job["levels"][1]["nbytes"] for job in told["jobs"]] == [2 * 2**20, 0]
