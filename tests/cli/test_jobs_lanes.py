"""``topompi jobs lanes``: its tables, its JSON, the files for OpenSM, and its errors of one line."""

import json

import pytest
from typer.testing import CliRunner

from tests.interference.lanefiles import members_of_partitions, members_of_policy
from tests.support import command_line
from topompi.cli.app import app

TREE = ("--topology", "XGFT(3;4,4,2;1,1,1)@rate=1xFDR10", "-p", "F2")
FT = "FT=fft3d@grid=1x16,size=32K,iterations=2,burst=0.001"
BT = "BT=stencil3d@grid=2x2x4,periodic,size=4K,iterations=8,burst=0.0003"


def told(*words):
    done = command_line("jobs", "lanes", *words, *TREE)
    assert done.returncode == 0, done.stderr
    return done


def found(*words):
    return json.loads(told(*words, "--json").stdout)


def test_json_has_the_times_of_jobs_the_waits_of_lanes_and_t_total():
    facts = found(FT, BT, "--lanes", 4, "--set", "buffer=64K")
    assert [job["lane"] for job in facts["jobs"]] == [0, 1]
    assert [(lane["jobs"], lane["weight"], lane["buffer"]) for lane in facts["lanes"]] == [
        (["FT"], 1, 32768),
        (["BT"], 2, 32768),
    ]
    assert facts["one_lane"]["buffer"] == 65536
    for name, kind in (("one_lane", "one_lane"), ("lanes", "lanes")):
        lost = sum(job[kind] - job["alone"] for job in facts["jobs"])
        assert facts["total"][name] == pytest.approx(lost)
    assert facts["total"]["reduction"] == pytest.approx(1 - facts["total"]["lanes"] / facts["total"]["one_lane"])
    assert facts["search"] is None
    assert facts["lanes"][0]["waits"] > 0
    assert facts["opensm"]["low"] == [[0, 64], [1, 128]]


def test_tables_have_jobs_lanes_and_a_sweep_from_the_least_total():
    printed = told(FT, BT, "--sweep", "1,4", "--weights", "1,4").stdout
    lines = [" ".join(line.split()) for line in printed.splitlines()]
    assert "2 lanes (by rules), 64K of buffer per port" in lines[0]
    assert lines[1] == "job class usage lane alone one lane lanes change"
    assert any(line.startswith("lane 1 BT 4 32K") for line in lines)
    assert any(line.startswith("T_total, what all jobs lose: ") for line in lines)
    rows = [line.split() for line in lines[-3:]]
    assert {row[0] for row in rows} == {"1:1", "1:4", "4:1"}
    totals = [float(row[1]) for row in rows]
    assert totals == sorted(totals)


def test_a_search_keeps_its_limit():
    assert found(FT, BT, "--by", "search", "--set", "tries=3")["search"] == {"tried": 3, "every": False}


def test_classes_share_a_lane_and_limits_of_classes_are_options():
    assert len(found(FT, BT, "--by", "classes", "--set", "moderate=100,extreme=100")["lanes"]) == 1
    assert [job["class"] for job in found(FT, BT, "--by", "classes")["jobs"]] == ["extreme", "moderate"]


def test_a_job_of_high_priority_loses_less_than_on_a_lane_of_its_own():
    low, high = found(FT, BT), found(FT, BT, "--high", "BT")
    assert high["jobs"][1]["lanes"] < low["jobs"][1]["lanes"]
    assert high["opensm"]["limit"] == 255
    assert "2, high priority" in told(FT, BT, "--high", "BT").stdout


def test_draws_have_means_and_deviations():
    facts = found(FT, BT, "--draws", 3)
    assert facts["total"]["lanes_deviation"] > 0
    assert "means of 3 draws" in told(FT, BT, "--draws", 3).stdout


def test_files_for_opensm_have_the_tables_the_service_levels_and_the_way_back(tmp_path):
    done = told(FT, BT, "-o", tmp_path / "lanes.conf", "--weights", "1,4")
    assert "wrote" in done.stdout
    options = (tmp_path / "lanes.conf").read_text()
    assert "\nqos_vlarb_low 0:64,1:255\n" in options
    assert f"\nqos_policy_file {tmp_path / 'lanes.policy.conf'}\n" in options
    jobs = members_of_policy((tmp_path / "lanes.policy.conf").read_text())
    assert [(job.name, job.level, len(job.ports)) for job in jobs] == [("FT", 0, 16), ("BT", 1, 16)]
    assert members_of_partitions((tmp_path / "lanes.partitions.conf").read_text()) == jobs
    assert (tmp_path / "lanes.undo.conf").read_text().splitlines()[2:] == ["qos TRUE"]


def test_a_table_that_some_ports_would_cut_off_is_named(tmp_path):
    done = told(FT, BT, "-o", tmp_path / "lanes.conf", "--weights", "1,40")
    assert "a table has 11 turns, and some ports have room for 8" in " ".join(done.stderr.split())
    assert "turns" not in told(FT, BT, "-o", tmp_path / "lanes.conf", "--weights", "1,28").stderr


@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_a_picture_is_drawn_with_and_without_a_sweep(tmp_path, suffix):
    told(FT, BT, "--draw", tmp_path / f"a.{suffix}")
    told(FT, BT, "--draw", tmp_path / f"b.{suffix}", "--sweep", "1,2")
    assert (tmp_path / f"a.{suffix}").stat().st_size < (tmp_path / f"b.{suffix}").stat().st_size


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--by", "luck"], "--by: expecting one of rules, classes, search, got 'luck'"),
        (["--weights", "1,2,4"], "--weights: expecting those of 2 lanes, got 1,2,4"),
        (["--weights", "1,0"], "--weights: expecting numbers of 1 to 255 packets such as 1,2,4, got '1,0'"),
        (["--weights", "1,2", "--by", "search"], "--weights: expecting --by rules or classes, got search"),
        (["--sweep", "1;2"], "--sweep: expecting numbers of 1 to 255 packets"),
        (["--sweep", "1,2,4,8,16,32", "--set", "tries=3"], "sweep: expecting at most 3 ratios of 2 weights, got more"),
        (["--high", "CG"], "--high: expecting one of FT, BT, got 'CG'"),
        (["--set", "buffer=6K"], "buffer: expecting 8192 bytes for a packet a lane, got 6144"),
        (["--set", "buffer=much"], "--set buffer: expecting a number of bytes"),
    ],
)
def test_a_wrong_option_is_an_error_of_one_line(words, problem):
    done = command_line("jobs", "lanes", FT, BT, *words, *TREE)
    assert done.returncode == 1
    assert problem in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_a_job_with_a_lane_of_its_own_is_refused():
    done = command_line("jobs", "lanes", f"{FT},lane=1", BT, *TREE)
    assert "FT: expecting no lane, because lanes are chosen here, got 1" in " ".join(done.stderr.split())


def test_a_job_without_times_gets_lanes_by_a_search_alone(tmp_path):
    (tmp_path / "graph.txt").write_text("0 1 40000\n1 0 40000\n")
    words = ["jobs", "lanes", f"G={tmp_path}/graph.txt", f"H={tmp_path}/graph.txt@burst=0", *TREE]
    for by in ("rules", "classes"):
        refused = str(CliRunner().invoke(app, [*words, "--by", by]).exception)
        assert f"G: --by {by}: expecting a job whose load is known, got no times of computation: add burst=S" in refused
    done = CliRunner().invoke(app, [*words, "--by", "search", "--set", "tries=2", "--json"])
    jobs = json.loads(done.stdout)["jobs"]
    assert [(job["class"] is None, job["usage"] is None) for job in jobs] == [(True, True), (False, False)]
