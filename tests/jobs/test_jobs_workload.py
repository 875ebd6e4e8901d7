"""Workloads: accepted and refused inputs of readers, and properties that generators and transformations keep."""

from __future__ import annotations

import gzip
import json
import lzma
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from studies.mixes import capacity_mix, power_of_two_mix
from tests.workloads import random_workload
from topompi.errors import TopompiError
from topompi.machine.jobs import Workload, WorkloadError, read_swf, read_workload
from topompi.machine.jobs.workload import read_sacct
from topompi.machine.jobs.workload.workload import larger, segments

SWF = "; Version: 2.2\n; MaxNodes: 64\n" + "1 0 -1 34616 472 -1 -1 156 -1 -1 0 16 -1 64 -1 1 -1 -1\n" * 8
SACCT = """JobID|User|NNodes|Timelimit|Submit|Start|Elapsed|End
7|ann|4|1-02:00:00|2014-08-01T00:00:10|2014-08-01T00:00:10|01:02:03|2014-08-01T01:02:13
7.batch|ann|4||2014-08-01T00:00:10|2014-08-01T00:00:10|01:02:03|2014-08-01T01:02:13
8_3|bob|1|UNLIMITED|2014-08-01T00:00:00|2014-08-01T00:00:20|03:04|2014-08-01T00:03:24
9||0|10:00|2014-08-01T00:00:00|Unknown|00:00|Unknown
"""
BATSIM = json.dumps(
    {
        "nb_res": 4,
        "jobs": [{"id": "w!5", "subtime": 10.4, "walltime": 100, "res": 4, "profile": "1"}] * 3,
        "profiles": {"1": {"type": "delay", "delay": 20.2}},
    }
)


def refusal(read: Callable[[], Workload]) -> str | None:
    """The message of the error of ours that a reader raises; none where it reads. Any other error passes on."""
    try:
        read()
    except TopompiError as error:
        return str(error)
    return None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "; head\n1 0 -1 x 4 -1 -1 4 -1 -1 0 16 -1 64 -1 1 -1 -1\n",
            r"line 2: field 4 \(run time\): .*, got 'x'",
        ),
        (SACCT.replace("|4|1-02", "|four|1-02"), r"line 2: NNodes: expecting a whole number .*, got 'four'"),
        (SACCT.replace("01:02:03", "1h"), r"line 2: Elapsed: expecting a time such as 1-02:03:04, got '1h'"),
        (
            SACCT.replace("2014-08-01T00:00:10|2", "yesterday|2"),
            r"line 2: Submit: .*, got 'yesterday'",
        ),
        ("JobID|User\n", "line 1: expecting a field Submit"),
        (BATSIM.replace("10.4", "-3"), r"job 1: subtime: expecting a number from 0 .*, got '-3'"),
        (BATSIM.replace("delay", "msg_par"), "job 1: profile: expecting one of type delay"),
        ("{}", "expecting sacct --json or Batsim's JSON, got an empty object"),
    ],
)
def test_a_wrong_field_is_named_with_its_place_and_partial_reading_goes_on(tmp_path: Path, content: str, message: str):
    (tmp_path / "log").write_text(content)
    with pytest.raises(WorkloadError, match=message):
        read_workload(tmp_path / "log")
    if "line 1" not in message and "object" not in message:
        assert read_workload(tmp_path / "log", partial=True).reading.problems


def test_slurm_s_jobs_are_read_and_steps_are_not(tmp_path: Path):
    (tmp_path / "log").write_text(SACCT)
    jobs = read_workload(tmp_path / "log")
    assert jobs.number.tolist() == [8, 7]
    assert jobs.nodes.tolist() == [1, 4]
    assert jobs.run.tolist() == [184, 3723]
    assert jobs.request.tolist() == [0, 93_600]
    assert np.diff(jobs.submit).tolist() == [10]
    assert jobs.reading.dropped == {"no nodes": 1}


def test_transformations_change_what_they_say_and_nothing_else():
    jobs = random_workload(3, 50, 8)
    assert (larger(jobs, 3).nodes == 3 * jobs.nodes).all()
    assert sum(len(part) for part in segments(jobs, 7)) == 50


@pytest.mark.parametrize("make", [capacity_mix, power_of_two_mix])
def test_a_seed_makes_the_same_workload_and_another_one_another(make):
    one, again, other = (make(np.random.default_rng(seed), 2000, 1296) for seed in (1, 1, 2))
    assert (one.submit == again.submit).all()
    assert (one.nodes == again.nodes).all()
    assert (one.run != other.run).any()
    assert one.nodes.max() <= 1296
    assert (np.diff(one.submit) >= 0).all()


def test_drawn_loads_have_the_figures_of_the_literature():
    cab = capacity_mix(np.random.default_rng(1), 20_000, 1296, 0.9)
    assert 0.80 < (cab.nodes < 18).mean() < 0.87
    assert cab.nodes.max() <= 256
    assert cab.run.max() <= 86_400
    assert (cab.run * cab.nodes).sum() / (1296 * np.ptp(cab.submit)) == pytest.approx(0.9, rel=0.03)
    mare = power_of_two_mix(np.random.default_rng(1), 20_000)
    assert (mare.run * mare.nodes).mean() == pytest.approx(40.7 * 3600, rel=0.01)
    big = mare.nodes[mare.nodes > 18]
    assert 0.01 < (big % 18 == 0).mean() < 0.06


def test_a_million_jobs_take_less_than_200_mebibytes():
    jobs = capacity_mix(np.random.default_rng(0), 1000, 1296)
    held = sum(getattr(jobs, one).nbytes for one in ("number", "submit", "run", "request", "nodes", "user"))
    assert held / 1000 * 10**6 < 200 * 2**20


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
@pytest.mark.parametrize("content", [SWF, SACCT, BATSIM], ids=["swf", "sacct", "batsim"])
def test_a_packed_log_is_the_log(tmp_path: Path, content: str, pack: Callable[[bytes], bytes]):
    (tmp_path / "plain").write_text(content)
    (tmp_path / "packed").write_bytes(pack(content.encode()))
    plain, packed = (read_workload(tmp_path / name) for name in ("plain", "packed"))
    assert (packed.submit == plain.submit).all()
    assert (packed.run == plain.run).all()
    assert packed.name == str(tmp_path / "packed")


@pytest.mark.parametrize("read", [read_workload, read_swf, read_sacct])
def test_what_is_no_log_is_refused_as_what_it_is(tmp_path: Path, read: Callable[[Path], Workload]):
    (tmp_path / "empty").touch()
    (tmp_path / "binary").write_bytes(b"\x7fELF\0\0" * 9)
    for name, message in (("none", "no such file"), ("empty", "empty file|expecting JSON"), ("binary", "expecting ")):
        with pytest.raises(WorkloadError, match=f"{name}.*{message}"):
            read(tmp_path / name)
    with pytest.raises(WorkloadError, match="expecting one file, got 2"):
        read(tmp_path)


def test_a_log_is_read_within_the_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "log").write_text(SWF)
    monkeypatch.setenv("TOPOMPI_LIMITS", "bytes=100")
    with pytest.raises(WorkloadError, match="log: expecting at most 100 bytes"):
        read_workload(tmp_path / "log")


def test_a_number_beyond_floating_point_is_refused_by_its_field(tmp_path: Path):
    (tmp_path / "log").write_text(BATSIM.replace("10.4", "9" * 400))
    with pytest.raises(WorkloadError, match="job 1: subtime: expecting a number"):
        read_workload(tmp_path / "log")
