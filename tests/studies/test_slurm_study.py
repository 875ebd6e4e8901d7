"""The study of a real Slurm without a Slurm: its list of jobs, the figures of runs, the page, and a user's script."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from osu_like_bench.emulate import emulated_fabric
from studies.slurm import analysis
from studies.slurm.jobs import BYTES, KINDS, bound, drawn, kinds_of, messages, script
from studies.slurm.plan import Plan, Results
from topompi.errors import BenchmarkError
from topompi.topology import compute_routes
from topompi.views.cluster import cluster_of

TREE = 4, 20e6, 40e6  # hosts per leaf switch, rates of links in bits/s
SUBMIT = Path(analysis.__file__).with_name("submit.sh")


def test_each_rank_sends_to_its_neighbours_in_a_grid_by_rows():
    sent = [*messages("stencil", 6)]  # 2 x 3, periodic
    assert [other for rank, other in sent if rank == 1] == [2, 0, 4, 4]
    assert sorted(messages("stencil", 2)) == [(0, 1), (0, 1), (1, 0), (1, 0)]
    assert len({*messages("alltoall", 5)}) == 20


def test_the_busiest_link_bounds_a_round():
    message = 8 * BYTES / 20e6
    assert bound("alltoall", range(4), *TREE) == pytest.approx(3 * message)
    assert bound("alltoall", range(8), *TREE) == pytest.approx(16 * message / 2)  # over the trunk of twice the rate
    assert bound("alltoall", [0, 1, 4, 5, 8, 9, 12, 13], *TREE) == pytest.approx(7 * message)
    assert bound("alltoall", [0, 1, 2, 3], 2, 20e6, 20e6) == pytest.approx(4 * message)  # two hosts share a cable
    assert bound("stencil", [0] * 4, *TREE) == 0  # all inside one host


def test_the_list_has_each_kind_as_often_as_said_and_takes_the_seconds_by_the_rates():
    jobs = drawn(8, 5.5, 1.0, *TREE)
    assert jobs == drawn(8, 5.5, 1.0, *TREE) != drawn(9, 5.5, 1.0, *TREE)
    assert {kind: sum(job.kind == kind for job in jobs) for kind in KINDS} == {kind: KINDS[kind][0] for kind in KINDS}
    assert all(job.nodes in KINDS[job.kind][1] for job in jobs)
    assert all(abs(job.seconds - 5.5) < 0.5 for job in jobs if job.rounds)
    assert all(2.75 <= job.seconds <= 5.5 for job in jobs if not job.rounds)
    assert jobs[0].arrival == 0
    assert [job.arrival for job in jobs] == sorted(job.arrival for job in jobs)
    kinds = [(job.kind, job.nodes) for job in kinds_of(jobs)]
    assert kinds == sorted({(job.kind, job.nodes) for job in jobs if job.rounds})


def test_a_compute_job_sleeps_and_the_others_exchange():
    jobs = drawn(8, 5.5, 1.0, *TREE)
    talking, quiet = (next(job for job in jobs if bool(job.rounds) is talks) for talks in (True, False))
    assert f"mpirun --map-by ppr:1:node exchange {talking.kind} {BYTES} {talking.rounds} ||" in script(
        talking, "exchange", "mpirun --map-by"
    )
    assert f"\nsleep {quiet.seconds} ||" in script(quiet, "exchange", "mpirun --map-by")
    assert f" --nodes={quiet.nodes} " in script(quiet, "exchange", "mpirun --map-by")


def line(number: int, nodes: str, begin: int, end: int) -> str:
    when = [f"2026-11-26T14:00:{second:02}" for second in (begin, end)]
    return f"JobId={number} JobState=COMPLETED StartTime={when[0]} EndTime={when[1]} NodeList={nodes} NodeCnt=2"


@pytest.fixture
def cluster():
    return cluster_of(compute_routes(emulated_fabric("2x4")))


@pytest.mark.parametrize(
    ("second", "pairs"),
    [
        (line(2, "h[0001,0005]", 4, 9), [("1", "2")]),  # both cross between the leaf switches
        (line(2, "h[0001,0005]", 5, 9), []),  # starts in the second in which the first ends
        (line(2, "h[0001-0002]", 0, 9), []),  # on one leaf switch
        (line(2, "(null)", 0, 9), []),  # never started
    ],
)
def test_jobs_share_links_if_they_run_in_the_same_second(cluster, second, pairs):
    jobs = analysis.completed("\n".join([line(1, "h[0000,0004]", 0, 5), second]))
    assert analysis.sharing_pairs(jobs, cluster) == pairs


def record(number: int, submit: float, start: float, end: float, seconds: float, kind: str = "alltoall"):
    times = {"submit": submit, "start": start, "end": end, "seconds": seconds}
    return {
        "id": str(number),
        "number": number,
        "kind": kind,
        "size": 4,
        "rounds": 0 if kind == "compute" else 9,
        **times,
    }


def run_of(*jobs, pairs=()):
    return {"policy": "slurm", "jobs": [*jobs], "pairs": [*pairs], "ways": {}, "idle": 0.5, "busiest": 1.0}


def test_figures_of_a_run():
    jobs = record(1, 0, 1, 6, 5.0), record(2, 2, 5, 10, 4.0), record(3, 2, 2, 4, 2.0, "compute")
    found = analysis.figures(run_of(*jobs, pairs=[("1", "2"), ("1", "3")]), {"alltoall 4": 4.0}, 8)
    assert found == pytest.approx(
        {
            "makespan": 10,
            "cumulative": 6 + 8 + 2,
            "mean wait": 4 / 3,
            "median wait": 1,
            "utilisation": 4 * (5 + 5 + 2) / 80,
            "mean interference": (1.25 + 1) / 2,
            "worst interference": 1.25,
            "pairs": 2,
            "talking pairs": 1,
        }
    )
    with pytest.raises(BenchmarkError, match="expecting jobs in a run, got none"):
        analysis.figures(run_of(), {}, 8)


def test_spreads_and_intervals():
    assert analysis.spread([3.0, 1.0, 2.0]) == "2.0 (1.0 to 3.0)"
    assert analysis.spread([3.0]) == "3.0"
    mean, low, high = analysis.interval([1.0, 2.0, 3.0, 2.0])
    assert mean == 2
    assert 1 < low < 2 < high < 3
    assert analysis.output("start 1.5\nhosts_list h[1-2]\nempty\n") == {
        "start": "1.5",
        "hosts_list": "h[1-2]",
        "empty": "",
    }


def test_a_cell_is_measured_once_and_one_that_fails_is_listed(tmp_path):
    calls = []

    def fails():
        raise BenchmarkError("no Slurm")

    first = Results(tmp_path / "results.json", Plan())
    first.cell("a", lambda: calls.append(1) or [1])
    first.cell("b", fails)
    assert first.failed == ["b"]
    again = Results(tmp_path / "results.json", Plan(repetitions=5, policies=("slurm",)))
    again.cell("a", lambda: calls.append(2))
    assert calls == [1]
    assert {name: cell["result"] for name, cell in again.cells.items()} == {"a": [1]}
    with pytest.raises(BenchmarkError, match="expecting results of"):
        Results(tmp_path / "results.json", Plan(seed=1))


FAKES = {
    "sinfo": "echo $IDLE",
    "sbatch": 'echo "$@" > asked; echo 7',
    "squeue": "echo $STATE",
    "scontrol": 'echo "$@" > dropped',
    "chooser": "echo 'h[0-1]'",
}


@pytest.mark.parametrize(
    ("idle", "state", "said", "asked", "dropped"),
    [
        (4, "", "7 chosen", "--parsable --nodelist=h[0-1] --output=o job.sh", ""),
        (4, "PENDING", "7 dropped", "--parsable --nodelist=h[0-1] --output=o job.sh", "update JobId=7 ReqNodeList="),
        (1, "PENDING", "7 plain", "--parsable --output=o job.sh", ""),
    ],
)
def test_a_user_chooses_nodes_only_if_enough_are_idle_and_drops_them_if_the_job_waits(
    tmp_path, idle, state, said, asked, dropped
):
    for name, body in FAKES.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    own = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "TOPOMPI": "chooser", "LOCK": str(tmp_path / "lock")}
    own |= {"IDLE": str(idle), "STATE": state, "PATIENCE": "1"}
    words = ["sh", str(SUBMIT), "2", "fabric.json", "job.sh", "--output=o"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=30, cwd=tmp_path, env={**os.environ, **own})
    assert (done.stdout.strip(), done.returncode) == (said, 0)
    assert (tmp_path / "asked").read_text().strip() == asked
    assert ((tmp_path / "dropped").read_text().strip() if dropped else "") == dropped
    assert (tmp_path / "dropped").exists() is bool(dropped)
