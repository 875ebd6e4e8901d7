"""Jobs as users name them, and the command that characterises them."""

import json
import tempfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from tests.support import examples
from topompi.cli.app import app
from topompi.errors import TopompiError
from topompi.machine.interference import Thresholds, read_jobs
from topompi.machine.interference.classes import CLASSES
from topompi.machine.interference.network import SharedNetwork, shared_network
from topompi.mpi.profile import Profile, write_profile
from topompi.mpi.profile.recording import RankRows
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
    assert base(f"{tmp_path}/edges.txt@burst=0,speed=2", 3)[0] == pytest.approx(2e-3)


def recorded(path, seconds, nbytes=4_000_000):
    rows = [RankRows.of_rows(rank, [(0, (rank + 4) % 8, 3, nbytes)]) for rank in range(8)]
    write_profile(Profile(8, "by hand", of_rank=rows, seconds=seconds), path)
    return f"P={path}"


@given(st.floats(1e-4, 1e4), st.integers(0, 10**9), st.integers(1, 3))
@examples(25)
def test_a_recorded_run_computes_while_it_does_not_send(seconds, nbytes, iterations):
    with tempfile.TemporaryDirectory() as folder:
        text = recorded(f"{folder}/p.topoprof", seconds, nbytes) + f"@iterations={iterations}"
        found, origin = base(text, 8)
    assert found == pytest.approx(max(seconds, nbytes / LINK))
    assert origin.startswith("least time: ")


def test_a_recorded_run_has_the_class_of_its_run_time(tmp_path):
    jobs = [recorded(tmp_path / f"{at}.topoprof", at).replace("P=", f"P{at}=") for at in (0.001, 0.01, 1)]
    told = json.loads(run(*jobs, "--topology", "xgft:4,6;1,1", "--json").splitlines()[0])["jobs"]
    assert [job["class"] for job in told] == ["extreme", "moderate", "low"]
    usages = [job["usage"] * job["base_seconds"] for job in told]
    assert usages == pytest.approx([usages[0]] * 3)


WITHOUT_TIMES = {
    "graph.txt": "0 1 4000000\n2 3 4000000\n",
    "matrix.txt": "0 5 0 9\n7 0 3 0\n0 1 0 2\n3 0 4 0\n",
    "messages.goal": "num_ranks 2\nrank 0 {\nl1: send 5000b to 1\n}\nrank 1 {\nl1: recv 5000b from 0\n}\n",
    "messages.ti": "0 send 1 7 500000 6\n1 recv 0 7 500000 6\n",
}


@pytest.mark.parametrize("name", [*WITHOUT_TIMES, "run.topoprof"])
def test_a_job_without_times_has_bytes_and_no_class_and_says_what_to_add(tmp_path, name):
    text = recorded(tmp_path / name, 0.0) if name == "run.topoprof" else f"P={tmp_path / name}"
    (tmp_path / name).write_text(WITHOUT_TIMES[name]) if name in WITHOUT_TIMES else None
    where = ("--topology", "xgft:1,8;1,2")
    (job,) = json.loads(run(text, *where, "--json", "--draw", tmp_path / "usage.svg").splitlines()[0])["jobs"]
    assert job["class"] is job["usage"] is job["base_seconds"] is None
    assert job["levels"][1]["nbytes"] > 0
    assert [level[key] for level in job["levels"] for key in ("injection", "usage", "busiest_cut", "busiest_link")] == (
        [None] * 4 * len(job["levels"])
    )
    assert "P: no class: no times of computation: add burst=S" in run(text, *where)
    for option in ("burst=0", "burst=2", "base=3"):
        (timed,) = json.loads(run(f"{text}@{option}", *where, "--json").splitlines()[0])["jobs"]
        assert timed["class"] in CLASSES
        assert timed["levels"][1]["nbytes"] == job["levels"][1]["nbytes"]


def test_ranks_of_one_node_use_no_link_on_a_crossbar(tmp_path):
    (tmp_path / "edges.txt").write_text("0 1 4000000\n1 0 4000000\n0 2 1000\n3 2 0\n")
    assert base(f"{tmp_path}/edges.txt@burst=0,ppn=2", 2)[0] == pytest.approx(1000 / LINK)


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
    told = json.loads(run(*jobs, "--topology", TREE, "--place", "F4", "--json"))
    assert [job["class"] for job in told["jobs"]] == ["moderate", "low", "low"]
    assert told["thresholds"] == {"moderate": 0.09, "extreme": 1.0}
    level = told["jobs"][0]["levels"][2]
    assert level["usage"] == pytest.approx(0.2005, abs=1e-4)
    assert (level["groups"], level["available"], level["sharing_jobs"]) == (4, 80e9, 768)
    assert [job["base_seconds"] for job in told["jobs"]] == pytest.approx([1.607, 0.02526, 0.3512], rel=3e-4)
    text = run("cg@ranks=256", "--topology", TREE, "--place", "F4", "--set", "moderate=0.05")
    assert "cg   moderate  0" in text
    assert "cg: T_base 0.02526 s (simulated: flow on a crossbar)" in text
    assert "moderate from 0.05, extreme from 1" in text
    limits = Thresholds()
    words = " ".join(run("--help").replace("│", "").split())
    assert f"(least usage of these classes: {limits.moderate:g} and {limits.extreme:g})" in words


def test_ranks_share_hosts():
    told = json.loads(run("alltoall@ranks=8,size=1M,ppn=2", "--topology", "xgft:4,2;1,1", "--json"))
    job = told["jobs"][0]
    assert (job["ranks"], job["nodes"], job["hosts"]) == (8, 4, "h[0000-0003]")
    assert job["levels"][0]["nbytes"] == 8 * 6 * 2**20
    assert (job["class"], job["usage"]) == ("low", 0)


def test_jobs_that_may_share_links_are_counted_by_hosts_or_by_routes():
    words = ("alltoall@ranks=4,size=1K", "--topology", "xgft:2,2,2;1,1,1", "--place", "F1", "--json")
    counts = [
        [level["sharing_jobs"] for level in json.loads(run(*words, *more))["jobs"][0]["levels"]]
        for more in (
            (),
            (
                "--by",
                "routes",
            ),
        )
    ]
    assert counts == [[0, 4, 4], [0, 2, 2]]


def test_a_file_places_jobs_by_their_names_also_by_numbers_of_slurm(tmp_path):
    path = tmp_path / "now.txt"
    path.write_text("4712 h[0001-0002]\n4711 h[0000,0004]\n")
    jobs = [f"{name}=alltoall@ranks=2,size=1M" for name in (4711, 4712)]
    told = json.loads(run(*jobs, "--topology", "xgft:4,2;1,1", "--json", "--place", path))
    assert [job["levels"][1]["nbytes"] for job in told["jobs"]] == [2 * 2**20, 0]
