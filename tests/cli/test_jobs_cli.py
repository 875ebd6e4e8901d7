"""``topompi jobs``: its commands on small inputs, and their refusals."""

import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.documents import BLOCK
from tests.support import ROOT
from topompi.cli.app import app
from topompi.errors import TopompiError
from topompi.machine.jobs import read_workload
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
    told = run("check", now, "--topology", "leaves=4x2x2", code=1)
    assert "old and new share 4 links" in told
    assert "leaf 0 up: old, new" in told


def test_check_of_a_source_has_a_row_for_each_job(tmp_path: Path):
    (tmp_path / "jobs.csv").write_text("a,h[0000-0001,0004]\nb,h[0002,0005]\nc,h[0008-0009]\n")
    source = "XGFT(2; 4,4; 1,2)"
    told = json.loads(run("check", tmp_path / "jobs.csv", "--topology", source, "--json", code=1))
    assert [row["shares_with"] for row in told["rows"]] == [["b"], ["a"], []]
    assert [pair[:2] for pair in told["pairs"]] == [["a", "b"]]
    assert run("check", tmp_path / "jobs.csv", "--topology", source, "--csv", code=1).count("\n") == 4


def test_check_names_the_busiest_shared_links_and_the_command_that_simulates_the_jobs(tmp_path: Path):
    jobs = tmp_path / "jobs"
    jobs.write_text("a h[0000,0004,0008]\nb h[0001,0005,0009]\nc h[0002,0006]\n")
    where = ("check", jobs, "--topology", "XGFT(2; 4,4; 1,1)")
    shared = json.loads(run(*where, "--json", code=1))["shared"]
    assert [len(users) for _, users in shared] == [3] * 4 + [2] * 2
    assert dict(map(tuple, shared))["L2/0.0 → L1/2.0"] == ["a", "b"]
    told = run(*where, code=1)
    assert [f"{link}: {', '.join(users)}" in told for link, users in shared] == [True] * 4 + [False] * 2
    assert "and 2 more links: see --json" in told
    command = shlex.split(told[told.index("topompi jobs replay") :])
    assert command[3:5] == ["a=alltoall@ranks=3", "b=alltoall@ranks=3"]
    assert "wasted" in run(*command[2:])


@pytest.mark.parametrize("hosts", ["n0/0*32+n4/0*32", "n0/0+n0/1+n4/0", "(n0:ncpus=32)+(n4:ncpus=8)"])
@pytest.mark.parametrize("mark", [" ", ","])
def test_the_hosts_of_a_job_may_be_those_of_pbs(tmp_path: Path, hosts: str, mark: str):
    (tmp_path / "now").write_text(f"101.pbs{mark}{hosts}\n102.pbs{mark}n[1,5]\n")
    assert "101.pbs and 102.pbs share 4 links" in run(
        "check", tmp_path / "now", "--topology", "leaves=4x2", "--nodes", 8, code=1
    )


RECORDS = """06/01/2020 00:00:10;S;101.pbs;user=a ctime=1590969600 start=1590969610
06/01/2020 00:06:40;E;101.pbs;user=a ctime=1590969600 start=1590969610 Resource_List.nodect=2 end=1590970000
06/01/2020 00:11:40;E;102[3].pbs;jobname=a b ctime=1590969660 start=1590970010 Resource_List.nodect=1 end=1590970300
06/01/2020 00:11:40;E;102[].pbs;user=b ctime=1590969660 start=1590970010 end=1590970300
"""
QSTAT = """Job Id: 101.pbs
    job_state = R
    exec_host = n0/0*8+n1/0*8+
\tn4/0*8
Job Id: 102.pbs
    job_state = Q
"""


def test_the_recipes_of_the_page_make_inputs_of_what_pbs_prints(tmp_path: Path):
    blocks = BLOCK.findall((ROOT / "docs" / "jobs.md").read_text(encoding="utf-8"))
    (tmp_path / "pbs.awk").write_text(next(content for _, name, content in blocks if name == "pbs.awk"))
    (tmp_path / "acct").write_text(RECORDS)
    (tmp_path / "qstat").write_text(QSTAT)
    recipe = next(content for kind, _, content in blocks if kind == "sh" and "qstat -f" in content)
    shell = f"awk -f pbs.awk acct > jobs.txt; {recipe.replace('qstat -f', 'cat qstat')}"
    subprocess.run(["sh", "-c", shell], cwd=tmp_path, check=True)
    log = read_workload(tmp_path / "jobs.txt")
    assert ((log.submit - 1590969600).tolist(), log.run.tolist(), log.nodes.tolist()) == ([0, 60], [390, 290], [2, 1])
    assert (tmp_path / "now.txt").read_text().split() == ["101.pbs", "n0/0*8+n1/0*8+n4/0*8"]


def test_check_refuses_options_of_sources_beside_a_specification(tmp_path: Path):
    (tmp_path / "now").write_text("a n0\n")
    with pytest.raises(TopompiError, match="expecting a topology source beside"):
        run("check", tmp_path / "now", "--topology", "leaves=4x2x2", "--csv")


def test_allocate_says_on_which_routes_its_answer_rests_and_what_to_do_if_no_node_suits(tmp_path: Path):
    assumed = "assumed: one link up and one down for each leaf and each pod"
    computed = "computed: shortest paths, d-mod-k among equals"
    (tmp_path / "now").write_text("old h[0000-0001,0004]\n")
    for source, routes in (("leaves=4x2x2", assumed), ("XGFT(2; 4,4; 1,1)", computed)):
        assert f"routes: {routes}" in run("allocate", 2, "--topology", source)
        assert json.loads(run("allocate", 2, "--topology", source, "--json"))["routes"] == routes
    told = run("allocate", 12, "--topology", "XGFT(2; 4,4; 1,1)", "--running", tmp_path / "now", code=1)
    assert "none suit disjoint; wait, or take -p bestfit" in told


def test_a_stranger_among_the_nodes_is_an_error_that_names_the_file_of_the_fabric(tmp_path: Path):
    fabric = tmp_path / "fabric.json"
    CliRunner().invoke(app, ["topology", "export", "XGFT(2; 4,4; 1,1)", "-o", str(fabric)])
    (tmp_path / "now").write_text("old h0000,n99\n")
    for words in (
        ("allocate", 2, "--running", tmp_path / "now"),
        ("allocate", 2, "--closed", "n99"),
        ("check", tmp_path / "now"),
    ):
        with pytest.raises(TopompiError, match=f"{fabric}"):
            run(*words, "--topology", fabric)


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


@pytest.mark.parametrize(
    ("words", "way"),
    [
        ("check now --topology leaves=4x3", "(--nodes 24), or of pods (leaves=4x3x2)"),
        ("simulate log.txt --topology leaves=4x3x2", "expecting 5 fields with '|' between them, got 1"),
        ("replay 501 --topology leaves=4x3x2", "expecting a source with routes"),
        ("replay 501 --topology XGFT(2;4,4;1,1)", "expecting NAME=WHAT, such as 501=alltoall@ranks=4, or the file of"),
    ],
)
def test_a_short_refusal_names_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, way: str):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "now").write_text("a n0\n")
    (tmp_path / "log.txt").write_text("JobID|Submit|Start|End|NNodes\n1 0 1 2 3\n")
    with pytest.raises(TopompiError, match=re.escape(way)):
        run(*words.split())


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
