"""Jobs in words, and the command that characterises them."""

import json

import pytest
from typer.testing import CliRunner

from topompi.cli.app import app
from topompi.errors import TopompiError
from topompi.interference import Thresholds, read_traffic

TREE = "XGFT(3; 16,16,4; 1,4,4)@rate=1xFDR10"


def run(*words):
    found = CliRunner().invoke(app, ["jobs", "characterise", *map(str, words)])
    if isinstance(found.exception, TopompiError):
        raise found.exception
    assert found.exit_code == 0, found.output
    return found.output


def test_kernels_and_options_are_read():
    job = read_traffic("cg:64@compute=0.5")
    assert (job.graph.size, job.compute, job.base) == (64, 0.5, None)
    assert read_traffic("alltoall:4:2K").graph.volume.tolist() == [2048] * 12
    grid = read_traffic("stencil:4x2:3").graph
    assert (grid.dims, set(grid.volume.tolist())) == ((4, 2), {3})
    assert read_traffic("ft:256").compute == 1.5
    assert read_traffic("ft:512").compute == 0.75


def test_a_time_on_a_crossbar_is_given_or_computed():
    assert read_traffic("alltoall:5:1000@base=7").seconds(1e3) == 7
    assert read_traffic("alltoall:5:1000@compute=7").seconds(1e3) == 7 + 4
    assert read_traffic("alltoall:5:1000").seconds(1e3) == 4


def test_files_of_graphs_are_read(tmp_path):
    path = tmp_path / "edges.txt"
    path.write_text("0 1 100\n1 0 50\n")
    job = read_traffic(f"{path}@base=2")
    assert (job.graph.size, job.graph.volume.tolist(), job.base) == (2, [100, 50], 2)


@pytest.mark.parametrize(
    "text",
    [
        "cg:64@base=0",
        "cg:64@base=x",
        "cg:64@speed=1",
        "cg:64@base=1,base=2",
        "cg:64:1K",
        "alltoall:8",
        "stencil:4x0:1",
        "ft:8x8",
        "cg:12",
    ],
)
def test_malformed_jobs_are_refused(text):
    with pytest.raises(TopompiError, match="expecting"):
        read_traffic(text)


def test_the_command_tells_the_source_s_classes_and_its_thresholds():
    told = json.loads(run("ft:256", "cg:256", "bt:256", "--cluster", TREE, "--placement", "F4", "--json"))
    assert [job["class"] for job in told["jobs"]] == ["moderate", "low", "low"]
    assert told["thresholds"] == {"moderate": 0.09, "extreme": 1.0}
    level = told["jobs"][0]["levels"][2]
    assert level["usage"] == pytest.approx(0.2005, abs=1e-4)
    assert (level["groups"], level["available"], level["sharing_jobs"]) == (4, 80e9, 768)
    text = run("cg:256", "--cluster", TREE, "--placement", "F4", "--moderate", 0.05)
    assert "cg:256  moderate  0" in text
    assert "moderate from 0.05, extreme from 1" in text
    limits = Thresholds()
    words = " ".join(run("--help").replace("│", "").split())
    assert f"moderate job; {limits.moderate:g} by" in words
    assert f"extreme job; {limits.extreme:g} by" in words


def test_ranks_share_hosts():
    told = json.loads(run("alltoall:8:1M", "--cluster", "xgft:4,2;1,1", "--ppn", 2, "--json"))
    job = told["jobs"][0]
    assert (job["ranks"], job["hosts"]) == (8, 4)
    assert job["levels"][0]["nbytes"] == 8 * 6 * 2**20
    assert (job["class"], job["usage"]) == ("low", 0)


def test_jobs_that_may_share_links_are_counted_by_hosts_or_by_routes():
    words = ("alltoall:4:1K", "--cluster", "xgft:2,2,2;1,1,1", "--placement", "F1", "--json")
    counts = [
        [level["sharing_jobs"] for level in json.loads(run(*words, *more))["jobs"][0]["levels"]]
        for more in ((), ("--by-routes",))
    ]
    assert counts == [[0, 4, 4], [0, 2, 2]]


def test_a_file_places_jobs(tmp_path):
    path = tmp_path / "now.txt"
    path.write_text("one h[0000,0004]\ntwo h[0001-0002]\n")
    words = ("alltoall:2:1M", "alltoall:2:1M", "--cluster", "xgft:4,2;1,1", "--json", "--placement", path)
    told = json.loads(run(*words))
    assert [job["levels"][1]["nbytes"] for job in told["jobs"]] == [2 * 2**20, 0]


def test_a_wrong_rate_is_refused():
    with pytest.raises(TopompiError, match="--rate: expecting a rate such as 4xEDR, got 'fast'"):
        run("ft:4", "--cluster", "xgft:4,2;1,1", "--rate", "fast")
