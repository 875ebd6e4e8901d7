"""``topompi jobs replay``: its tables, its JSON, and its errors of one line."""

import json

import pytest

from tests.support import command_line

TREE = ("--topology", "xgft:2,2;1,1")  # two leaves of two hosts with one link up
ONE = "A=fft3d@grid=1x2,size=4000000"  # a message of 1 ms in each direction
TWO = "B=fft3d@grid=1x2,size=4000000"


def told(*words):
    done = command_line("jobs", "replay", *words, *TREE)
    assert done.returncode == 0, done.stderr
    return done


def test_times_alone_and_together_and_what_is_wasted_are_printed():
    printed = told(ONE, TWO, "-p", "F1", "--set", "latency=0").stdout
    assert "placement F1" in printed
    row = " ".join(printed.splitlines()[2].split())
    assert row == "A 2 1 ms 1 ms 2 ms 0 ms 1 ms 2 1"
    assert "wasted: 0.004 node-seconds" in printed


def test_json_has_every_figure_run_link_and_pair():
    printed = told(ONE, TWO, "-p", "F1", "-p", "NF", "--set", "latency=0", "--show", "pairs,links", "--json").stdout
    found = json.loads(printed)
    shared, apart = found["placements"]
    assert [job["inter"] for job in shared["jobs"]] == pytest.approx([1e-3] * 2)
    assert [job["inter"] for job in apart["jobs"]] == [0, 0]
    assert (shared["effectiveness"], apart["effectiveness"]) == (1, None)
    assert shared["runs"] == [[pytest.approx([2e-3])] * 2]
    assert [shared["groups"], apart["groups"]] == [[[["A", "B"]]], [[["A"], ["B"]]]]
    assert {tuple(row["jobs"]) for row in shared["links"]} == {("A", "B")}
    assert len(shared["links"]) == 4  # each leaf's link up and down
    assert shared["links"][0]["time"] == pytest.approx(2e-3)
    assert [(row["job"], row["delayed_by"]) for row in shared["pairs"]] == [("A", "B"), ("B", "A")]
    assert shared["pairs"][0]["delay"] == pytest.approx(1e-3)
    assert (apart["links"], apart["pairs"]) == ([], [])


def test_the_jobs_are_drawn_on_the_fabric_with_who_delays_whom(tmp_path):
    told(ONE, TWO, "-p", "F1", "--set", "latency=0", "--draw", tmp_path / "jobs.svg")
    drawn = (tmp_path / "jobs.svg").read_text()
    assert "2 jobs on the fabric xgft:2,2;1,1, placement F1" in drawn
    assert "A loses 1 ms (100.0% of alone) to B, on 4 common links" in drawn
    assert "used by A, B, busy 100% of the time" in drawn
    told(ONE, TWO, "-p", "NF", "--draw", tmp_path / "apart.svg")
    assert "no two jobs use one link between switches" in (tmp_path / "apart.svg").read_text()


def test_draws_have_means_and_deviations():
    found = json.loads(told(ONE, TWO, "-p", "RF:1", "--draws", 5, "--json").stdout)["placements"][0]
    assert found["draws"] == len(found["runs"]) == 5
    assert found["jobs"][0]["sharing_deviation"] > 0
    assert "mean of 5 draws ± standard deviation" in told(ONE, TWO, "-p", "RF:1", "--draws", 5).stdout


def test_packets_take_lanes_and_each_job_its_own():
    first, second = f"{ONE},lane=0", f"{TWO},lane=1"
    found = json.loads(told(first, second, "-p", "F1", "--network", "packet", "--lanes", 2, "--json").stdout)
    assert [job["inter"] for job in found["placements"][0]["jobs"]] == pytest.approx([1e-3] * 2, rel=0.05)


def test_an_arriving_job_is_told_whether_other_nodes_are_worth_waiting_for(tmp_path):
    for name, nodes in (("now", "0000,0002"), ("later", "0002,0000")):
        (tmp_path / name).write_text(f"A h[{nodes}]\nB h[0001,0003]\n")
    words = (ONE, TWO, "--set", "latency=0", "-p", tmp_path / "now", "-p", tmp_path / "later", "--arriving")
    assert "later is not worth waiting for" in told(*words, "A").stdout
    done = command_line("jobs", "replay", *words, "C", *TREE)
    assert (done.returncode, "--arriving: expecting one of A, B, got 'C'" in done.stderr) == (1, True)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["pcg"], "expecting ranks or grid of the kernel, got neither"),
        ([ONE, ONE], "expecting different names, got A twice"),
        (["pcg@ranks=2,base=1"], "pcg: base: expecting jobs whose time is simulated, got 1 s"),
        (["pcg@ranks=8"], "pcg: expecting at most 4 nodes in placement NF, got 8"),
        ([ONE, "-p", "F0"], "placement: expecting NF, F8, F4"),
        ([ONE, "--network", "fluid"], "network: expecting one of flow, packet, got 'fluid'"),
        ([ONE, "-p", "NF", "--arriving", "A"], "--arriving: expecting two placements, got 1"),
        ([ONE, "--draw", "jobs.gif"], "expecting a file name in .svg, .png, .html, got 'jobs.gif'"),
        ([ONE, "-p", "nonsense"], "allocator: expecting one of"),
    ],
)
def test_a_wrong_option_is_an_error_of_one_line(words, problem):
    done = command_line("jobs", "replay", *words, *TREE)
    assert done.returncode == 1
    assert problem in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_a_cluster_without_routes_is_refused():
    done = command_line("jobs", "replay", ONE, "--topology", "leaves=2x2x2")
    assert "expecting a source with routes, got leaves and pods" in " ".join(done.stderr.split())


def test_packets_cross_a_dragonfly_with_lanes_by_hop_and_not_without():
    fabric = ("--topology", "dragonfly:4,2,1", "--network", "packet")
    words = ("fft3d@grid=1x40,size=400000", "-p", "RF:1", *fabric, "--json")
    refused = command_line("jobs", "replay", *words)
    assert (refused.returncode, "expecting routes without a circle" in refused.stderr) == (1, True)
    done = command_line("jobs", "replay", *words, "--lanes", 3, "--set", "hop-lanes=3,buffer=196608")
    assert json.loads(done.stdout)["placements"][0]["jobs"][0]["normalised"] > 1
