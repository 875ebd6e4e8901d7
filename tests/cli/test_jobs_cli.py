"""``topompi jobs``: its commands on small inputs, and their refusals."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from topompi.cli.app import app
from topompi.errors import TopompiError
from topompi.machine.jobs.study import SCENARIOS

LOG = "; MaxNodes: 16\n" + "".join(
    f"{job} {submit} -1 {run} {nodes} -1 -1 {nodes} {2 * run} -1 1 {job % 3} -1 -1 -1 -1 -1 -1\n"
    for job, (submit, run, nodes) in enumerate([(0, 100, 6), (5, 50, 6), (6, 30, 8), (7, 10, 2), (9, 10, 17)], 1)
)


def run(*words: object, code: int = 0) -> str:
    found = CliRunner().invoke(app, ["jobs", *map(str, words)])
    if isinstance(found.exception, TopompiError):
        raise found.exception
    assert found.exit_code == code, found.output
    return found.output


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.swf"
    path.write_text(LOG)
    return path


def test_simulate_says_what_ran_and_what_was_rejected(log: Path, tmp_path: Path):
    told = json.loads(run("simulate", log, "--topology", "leaves=4x2", "--policy", "isolated", "--json"))
    assert told["start"] == [0, 5, 55, 7, -1]
    assert told["summary"]["rejected"] == 1
    text = run("simulate", log, "--topology", "leaves=4x2", "--first", 3, "-o", tmp_path / "jobs.csv")
    assert "3 jobs" in text
    assert len((tmp_path / "jobs.csv").read_text().splitlines()) == 4


def test_compare_sets_policies_and_speeds_side_by_side(log: Path):
    names = "first,isolated,isolated@faster:50"
    told = json.loads(run("simulate", log, "--topology", "leaves=4x2", "-p", names, "--json"))
    assert list(told) == names.split(",")
    assert told["first"]["percent"] > told["isolated"]["percent"] == 0
    assert told["isolated@faster:50"]["makespan"] < told["isolated"]["makespan"]
    assert "isolated@faster:50" in run("simulate", log, "--topology", "leaves=4x2", "-p", "first,isolated@faster:50")


@pytest.mark.parametrize("scenario", ["pollard", "jokanovic"])
def test_a_scenario_replays_parts_of_a_log_and_gives_intervals(log: Path, scenario: str):
    words = ("simulate", log, "--topology", "leaves=4x2", "--scenario", scenario, "--first", 4, "--segments", 2)
    told = json.loads(run(*words, "--json"))
    assert list(told["policies"]) == list(SCENARIOS[scenario])
    alone = told["policies"][{"pollard": "TA", "jokanovic": "Exclusive"}[scenario]]
    assert alone["partners"]["mean"] == 0
    assert alone["jobs"]["replays"] == 2
    assert (told["break_even"] is None) == (scenario == "jokanovic")
    text = run(*words)
    assert "± half its interval of 95 %" in text
    assert ("pays for their wait" in text) == (scenario == "pollard")


def test_the_interval_of_a_figure_is_that_of_its_parts(log: Path):
    words = ("simulate", log, "--topology", "leaves=4x2", "-p", "first", "--first", 4, "--json")
    told = json.loads(run(*words, "--segments", 4))["policies"]["first"]["makespan"]
    assert told["mean"] == (100 + 50 + 30 + 10) / 4
    assert told["low"] < told["mean"] < told["high"]


def test_larger_jobs_need_more_nodes_and_are_rejected_where_there_are_not_enough(log: Path):
    words = ("simulate", log, "--topology", "leaves=4x2", "-p", "counts", "--json")
    assert [json.loads(run(*words, "--set", f"larger={times}"))["summary"]["rejected"] for times in (1, 2, 3)] == [
        1,
        1,
        4,
    ]


def test_simulate_checks_the_isolation_after_every_start_where_it_is_asked_to(log: Path):
    words = ("simulate", log, "--topology", "leaves=4x2", "--check", "--first", 4, "-p")
    assert "no two running jobs shared a link" in run(*words, "isolated")
    assert re.search(r"checks found shared links, first at 5 s: 1 pairs on \d+ links", run(*words, "first", code=1))


def test_allocate_names_nodes_and_check_finds_no_shared_link(tmp_path: Path):
    now = tmp_path / "now"
    now.write_text("# running\nold n[0-1,4]\n")
    told = json.loads(run("allocate", 5, "--topology", "leaves=4x2x2", "--running", now, "--json"))
    assert told["shares_with"] == []
    now.write_text(f"old n[0-1,4]\nnew {told['nodes']}\n")
    assert "0 pairs" in run("check", now, "--topology", "leaves=4x2x2")
    now.write_text("old n[0-1,4]\nnew n[2,6]\n")
    assert "old and new share 4 links" in run("check", now, "--topology", "leaves=4x2x2", code=1)


def test_check_of_a_source_has_a_row_for_each_job(tmp_path: Path):
    (tmp_path / "jobs.csv").write_text("a,h[0000-0001,0004]\nb,h[0002,0005]\nc,h[0008-0009]\n")
    source = "XGFT(2; 4,4; 1,2)"
    told = json.loads(run("check", tmp_path / "jobs.csv", "--topology", source, "--json", code=1))
    assert [row["shares_with"] for row in told["rows"]] == [["b"], ["a"], []]
    assert [pair[:2] for pair in told["pairs"]] == [["a", "b"]]
    assert run("check", tmp_path / "jobs.csv", "--topology", source, "--csv", code=1).count("\n") == 4


def test_check_refuses_options_of_sources_beside_a_specification(tmp_path: Path):
    (tmp_path / "now").write_text("a n0\n")
    with pytest.raises(TopompiError, match="expecting a topology source beside"):
        run("check", tmp_path / "now", "--topology", "leaves=4x2x2", "--csv")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("old n[0-1,99]", "job old: expecting hosts of .*, got 'n99'"),
        ("old n0 n1", "now:1: expecting a job's name and a host list"),
        ('{"jobs": 3}', "expecting squeue --json"),
        ('{"jobs": [{"job_id": 1, "job_state": ["RUNNING"], "nodes": 5}]}', "job 1: expecting a host list, got 5"),
    ],
)
def test_what_runs_now_is_refused_by_file_and_job(tmp_path: Path, content: str, message: str):
    (tmp_path / "now").write_text(content)
    with pytest.raises(TopompiError, match=message):
        run("check", tmp_path / "now", "--topology", "leaves=4x2x2")


@pytest.mark.parametrize("words", ["--queue -1", "--queue x", "--queue 1:x", "-p first@faster:200", "-p x"])
def test_words_that_mean_nothing_are_refused(log: Path, words: str):
    with pytest.raises(TopompiError, match="expecting"):
        run("simulate", log, "--topology", "leaves=4x2", *words.split())


def test_links_slow_jobs_that_share_a_cable_and_read_their_traffic_from_the_log(tmp_path: Path):
    traffic = {"pattern": "ring", "communication": 1.0, "injection": 4e9}
    jobs = [{"id": name, "subtime": 0, "res": 3, "profile": "p", **traffic} for name in ("1", "2")]
    log = tmp_path / "two.json"
    log.write_text(json.dumps({"nb_res": 8, "jobs": jobs, "profiles": {"p": {"type": "delay", "delay": 1000}}}))
    where = ("simulate", log, "--topology", "xgft:2,4;1,1@rate=4xQDR", "--json")
    for policy, speed, end in (("first", "as-logged", 1000), ("first", "links", 2000), ("disjoint", "links", 1000)):
        assert json.loads(run(*where, "-p", f"{policy}@{speed}"))["end"][0] == end
    for name in ("links:x", "linx"):
        with pytest.raises(TopompiError, match=r"expecting .*links"):
            run(*where, "-p", f"first@{name}")
