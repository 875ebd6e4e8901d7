"""Logs as users have them: states of jobs, arrays, jobs of several components, and every form of sacct."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import command_line, shared_data
from topompi.inputs.slurm import accounting
from topompi.machine.jobs import Workload, WorkloadError, read_workload

DAY = "2025-04-01T08:00:00"


def read(folder: Path, text: str, **how: object) -> Workload:
    (folder / "log").write_text(text)
    return read_workload(folder / "log", **how)


def test_jobs_that_have_not_run_to_their_end_are_left_out_and_counted() -> None:
    for name in ("sacct.txt", "sacct2.txt"):
        jobs = read_workload(shared_data(f"cases/C04-states/{name}"))
        assert jobs.number.tolist() == [300, 305, 306, 306]
        reasons = {"not started": 2, "not ended": 1, "cancelled before start": 1, "revoked": 1}
        assert jobs.reading.dropped == reasons


def test_on_request_they_arrive_and_a_waiting_array_is_a_job_per_task() -> None:
    jobs = read_workload(shared_data("cases/C04-states/sacct.txt"), arrivals=True)
    assert jobs.number.tolist() == [300, 301, 302, 303, *[304] * 4, 305, 306, 306]
    assert jobs.run.tolist() == [3600, 86_400, 86_400, *[7200] * 5, 30, 600, 600]
    assert jobs.reading.dropped == {"revoked": 1}


def test_a_waiting_array_is_no_job_and_odd_limits_are_none() -> None:
    jobs = read_workload(shared_data("cases/C12-array/sacct.txt"))
    assert jobs.number.tolist() == [700, 700, 702, 703, 704]
    assert jobs.nodes.tolist() == [1, 1, 3, 2, 2]
    assert jobs.request.tolist() == [86_400, 86_400, 60, 0, 365 * 86_400]
    assert jobs.reading.dropped == {"not started": 1}
    assert len(read_workload(shared_data("cases/C12-array/sacct.txt"), arrivals=True)) == 5 + 8


def test_the_components_of_a_heterogeneous_job_start_together() -> None:
    jobs = read_workload(shared_data("cases/C03-hetjob/sacct.txt"))
    assert (jobs.number.tolist(), jobs.nodes.tolist(), jobs.request.tolist()) == ([200, 201], [5, 2], [7200, 0])
    assert jobs.reading.notes == ["1 heterogeneous job, 200 first: all components start together, as one job"]


def test_the_parts_of_a_checkpointed_job_are_no_jobs_beside_the_whole() -> None:
    jobs = read_workload(shared_data("cases/C08-swf/partial.swf"), 4)
    assert (jobs.number.tolist(), jobs.nodes.tolist(), jobs.run.tolist()) == ([1, 3], [4, 1], [700, 300])
    assert jobs.reading.dropped == {"no run time": 1, "part of a job that is there as a whole": 2}


def test_parts_without_a_whole_are_kept(tmp_path: Path) -> None:
    jobs = read(
        tmp_path, "".join(f"1 0 1 {run} 4 -1 -1 4 9 -1 {status} 1 1 1 1 1 -1 -1\n" for run, status in [(5, 2), (7, 3)])
    )
    assert jobs.run.tolist() == [5, 7]


FIELDS = ["JobID", "Submit", "Elapsed", "NNodes", "Timelimit"]
VALUES = [["700", DAY, "00:10:00", "3", "01:00:00"], ["701_2", DAY, "1-00:00:00", "2", "UNLIMITED"]]


@given(mark=st.sampled_from("|,;\t^"), order=st.permutations(range(5)), named=st.booleans(), last=st.booleans())
def test_separators_order_and_names_of_fields_do_not_change_the_jobs(
    tmp_path_factory, mark: str, order: list[int], named: bool, last: bool
) -> None:
    rows = [[row[at] for at in order] for row in ([FIELDS] * named + VALUES)]
    names = None if named else [FIELDS[at] for at in order]
    if names and not rows[0][0][0].isdigit():  # a first line that begins with letters has the names
        return
    text = "".join(mark.join(row) + mark * last + "\n" for row in rows)
    jobs = read(tmp_path_factory.getbasetemp(), text, columns=names)
    assert jobs.number.tolist() == [700, 701]
    assert (jobs.run.tolist(), jobs.nodes.tolist(), jobs.request.tolist()) == ([600, 86_400], [3, 2], [3600, 0])


def test_the_table_that_sacct_prints_by_itself_is_read(tmp_path: Path) -> None:
    widths, rows = (12, 19, 10, 6, 10), [FIELDS, VALUES[0], ["700.batch", DAY, "00:10:00", "3", ""], VALUES[1]]
    lines = [" ".join(word.rjust(width) for word, width in zip(row, widths, strict=True)) for row in rows]
    lines.insert(1, " ".join("-" * width for width in widths))
    assert read(tmp_path, "\n".join(lines) + "\n").request.tolist() == [3600, 0]


def test_a_line_that_is_cut_is_refused_if_no_field_is_free_text(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match=r"line 2: expecting 4 fields .*got 3"):
        read(tmp_path, f"JobID|Submit|Elapsed|NNodes\n700|{DAY}|00:10:00\n701|{DAY}|00:10:00|3\n")


def test_names_that_cannot_be_guessed_are_asked_for(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match=r"line 1: expecting .*--columns JobID,Submit"):
        read(tmp_path, f"700|{DAY}|00:10:00|3|4\n")
    done = command_line(
        "jobs", "simulate", tmp_path / "log", "--topology", "leaves=4x2x2", "--columns", "JobID,Submit,Elapsed,NNodes,x"
    )
    assert "1 job" in done.stdout


@pytest.mark.parametrize(
    ("fields", "values", "found"),
    [
        ("AllocNodes|ElapsedRaw|TimelimitRaw", "3|600|60", (3, 600, 3600)),
        ("NNodes|ElapsedRaw|TimelimitRaw", "3|600|Partition_Limit", (3, 600, 0)),
        ("NNodes|Elapsed|Timelimit", "3|00:10:00|INVALID", (3, 600, 0)),
        ("AllocTRES|Elapsed|Timelimit", "billing=4,cpu=4,node=3|00:10:00|10:00", (3, 600, 600)),
        ("NNodes|AllocNodes|Start|End|Timelimit", f"0|3|{DAY}|2025-04-01T08:10:00|", (3, 600, 0)),
        ("NNodes|Elapsed|Timelimit", "1.50K|00:10:00|", (1536, 600, 0)),
    ],
)
def test_other_fields_tell_the_same(tmp_path: Path, fields: str, values: str, found: tuple[int, ...]) -> None:
    jobs = read(tmp_path, f"JobID|Submit|{fields}\n7|{DAY}|{values}\n")
    assert (jobs.nodes[0], jobs.run[0], jobs.request[0]) == found


def test_a_job_whose_times_are_invalid_is_left_out(tmp_path: Path) -> None:
    jobs = read(tmp_path, f"JobID|Submit|Elapsed|NNodes\n7|{DAY}|INVALID|1\n8|{DAY}|10:00|1\n")
    assert (jobs.number.tolist(), jobs.reading.dropped) == ([8], {"not ended": 1})


def slurm_job(number: int, state: object, task: object = None, **more: object) -> dict[str, object]:
    times = {"submission": 1000, "start": 1010, "end": 1610, "elapsed": 600, "limit": {"set": True, "number": 60}}
    array = (
        {"job_id": 0, "task_id": {"set": False, "infinite": False, "number": 0}, "task": ""} if task is None else task
    )
    job = {"job_id": number, "time": times, "state": state, "allocation_nodes": 3, "user": "ann", "array": array}
    return job | more


def test_sacct_s_json_is_read(tmp_path: Path) -> None:
    set_five = {"set": True, "infinite": False, "number": 5}
    waiting = {"time": {"submission": 1000, "start": 0, "end": 0, "elapsed": 0, "limit": {"set": False}}}
    jobs = [
        slurm_job(1, {"current": ["COMPLETED"], "reason": "None"}),
        slurm_job(2, {"current": "COMPLETED"}, {"job_id": 20, "task_id": set_five}),
        slurm_job(3, {"current": ["PENDING"]}, {"job_id": 3, "task_id": {"set": False}, "task": "1-4%2"}, **waiting),
        slurm_job(4, {"current": ["COMPLETED"]}, het={"job_id": 4, "job_offset": {"set": True, "number": 0}}),
        slurm_job(5, {"current": ["COMPLETED"]}, het={"job_id": 4, "job_offset": {"set": True, "number": 1}}),
    ]
    found = read(tmp_path, json.dumps({"jobs": jobs, "meta": {}}))
    assert (found.number.tolist(), found.nodes.tolist()) == ([1, 20, 4], [3, 3, 6])
    assert (set(found.run.tolist()), set(found.request.tolist())) == ({600}, {3600})
    assert found.reading.dropped == {"not started": 1}
    assert set(found["user_name"].tolist()) == {"ann"}


def test_a_job_of_sacct_s_json_without_times_is_named(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match="job 7: expecting sacct --json or Batsim's JSON, got no field time"):
        read(tmp_path, json.dumps({"jobs": [{"job_id": 7}]}))


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50), st.integers(1, 7)), min_size=1, max_size=4),
    st.booleans(),
)
def test_a_waiting_array_has_as_many_tasks_as_its_ranges(ranges: list[tuple[int, int, int]], limited: bool) -> None:
    written = ",".join(f"{first}-{first + more}:{step}" for first, more, step in ranges)
    tasks = sum(len(range(first, first + more + 1, step)) for first, more, step in ranges)
    assert accounting.array_tasks(f"700_[{written}{'%4' if limited else ''}]") == tasks
    assert accounting.array_tasks("700_3") == 1
