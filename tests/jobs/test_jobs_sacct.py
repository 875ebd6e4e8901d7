"""Logs of sacct as people keep them: joined, exported, cut, with texts that have separators, of requeued jobs."""

import json
from pathlib import Path

import pytest

from topompi.inputs.slurm.accounting import is_unknown, span
from topompi.machine.jobs import Workload, WorkloadError, read_workload

DAY = "2025-04-01T0"
HEAD = "JobID|JobName|State|Submit|Start|End|Elapsed|Timelimit|NNodes\n"
ONE = [(700, 600, 3, 3600)]


def read(folder: Path, text: str, **how: object) -> Workload:
    (folder / "log").write_text(text)
    return read_workload(folder / "log", **how)


def jobs_of(jobs: Workload) -> list[tuple[int, ...]]:
    columns = (jobs.number, jobs.run, jobs.nodes, jobs.request)
    return [tuple(map(int, row)) for row in zip(*columns, strict=True)]


def row(job: str, state: str = "COMPLETED", start: str = "8:01:00", end: str = "8:11:00", **more: str) -> str:
    """A line of a job that was submitted at 8:00:00."""
    times = [DAY + word if word[0].isdigit() else word for word in ("8:00:00", start, end)]
    fields = [job, more.get("name", "job"), state, *times, more.get("elapsed", "00:10:00")]
    return "|".join([*fields, more.get("limit", "01:00:00"), more.get("nodes", "3")]) + "\n"


def waiting(job: str) -> str:
    return row(job, "PENDING", "Unknown", "Unknown", elapsed="00:00:00")


REQUEUED = row("700", "REQUEUED", end="8:06:00", elapsed="00:05:00") + row("700", start="8:07:00", end="8:17:00")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (HEAD.lower() + row("700"), ONE),
        ((HEAD + row("700")).replace("|", ","), ONE),
        ((HEAD + waiting("700_[3-10,12%4]") + row("700")).replace("|", ","), ONE),
        ("".join(f'"{line}"\n' for line in (HEAD + row("700")).replace("|", '","').splitlines()), ONE),
        (f"JobID,Submit,Elapsed,AllocTRES,User\n700,{DAY}8:00:00,00:10:00,billing=4,cpu=4,node=3,ann\n", None),
        (f"JobID,Submit,Elapsed,NNodes,NodeList,User\n700,{DAY}8:00:00,00:10:00,3,n[1-2,4],ann\n", None),
        (f"JobID,Submit,Elapsed,NodeList,User\n700,{DAY}8:00:00,00:10:00,n1,n2,n4,ann\n", None),
        (f"JobID|Submit|Elapsed|NodeList\n700|{DAY}8:00:00|00:10:00|n[1-3]\n", None),
        (f",JobID,Submit,Elapsed,NNodes\n0,700,{DAY}8:00:00,00:10:00,3\n", None),
        (HEAD + row("700", limit="Partition_+"), [(700, 600, 3, 0)]),
        (HEAD + row("700", limit="1-02"), [(700, 600, 3, 93_600)]),
        (HEAD + row("700", limit="1-02:03"), [(700, 600, 3, 93_780)]),
        (HEAD + row("700") + row("700"), ONE),
        (HEAD + REQUEUED, [(700, 300, 3, 3600), *ONE]),
        (HEAD + REQUEUED.replace("REQUEUED", "RESIZING"), [(700, 300, 3, 3600), *ONE]),
        (HEAD + row("12+0", nodes="1") + row("13") + row("12+1", nodes="4"), [(12, 600, 5, 3600), (13, 600, 3, 3600)]),
        (HEAD + 2 * (row("12+0", nodes="1") + row("12+1", nodes="4")), [(12, 600, 5, 3600)]),
        (HEAD + row("700", name="a|b||c"), ONE),
        (HEAD + row("700", name="a\nb|c") + row("701"), [*ONE, (701, 600, 3, 3600)]),
    ],
)
def test_jobs_are_the_same_in_every_form_that_people_keep(
    text: str, found: list[tuple[int, ...]] | None, tmp_path: Path
) -> None:
    assert jobs_of(read(tmp_path, text)) == (found or [(700, 600, 3, 3600 if "Timelimit" in text else 0)])


def test_a_repeated_line_is_counted_and_a_rounded_number_is_said(tmp_path: Path) -> None:
    jobs = read(tmp_path, HEAD + row("700", nodes="1.2K") * 2)
    assert jobs.reading.dropped == {"the same line again": 1}
    assert jobs.reading.notes == [
        "NNodes 1.2K is taken as 1,229: sacct rounds with units of 1,024 (--noconvert prints all digits)"
    ]
    assert read(tmp_path, HEAD + row("700", nodes="1K")).reading.notes == []


@pytest.mark.parametrize(
    ("name", "line"), [("o|k", "ab"), ("ok", "a|b"), ("o|k", "a||b"), ("o\nk", "a\nset -e\nb|c\n")]
)
def test_separators_in_two_free_texts_leave_the_other_fields_in_place(name: str, line: str, tmp_path: Path) -> None:
    heading = "JobID|JobName|Submit|Elapsed|NNodes|SubmitLine\n"
    rows = "".join(f"{job}|{name}|{DAY}8:00:00|00:10:00|3|{line}\n" for job in (700, 701))
    assert jobs_of(read(tmp_path, heading + rows)) == [(700, 600, 3, 0), (701, 600, 3, 0)]


@pytest.mark.parametrize("job", ["700_[1-3,7...%4]", "700_[3-1000+"])
def test_an_array_whose_tasks_are_cut_is_no_job_and_not_one_arrival(job: str, tmp_path: Path) -> None:
    table = (
        "       JobID              Submit    Elapsed   NNodes\n------------ ------------------- ---------- --------\n"
    )
    line = f"{job[:12]:>12} {DAY}8:00:00   00:00:00        3\n"
    for text in (HEAD + waiting(job), table + line):
        assert read(tmp_path, text).reading.dropped == {"not started": 1}
        with pytest.raises(WorkloadError, match="JobID: expecting all tasks of the array"):
            read(tmp_path, text, arrivals=True)


def test_a_waiting_array_of_a_log_with_commas_arrives_as_its_tasks(tmp_path: Path) -> None:
    jobs = read(tmp_path, (HEAD + waiting("700_[3-5,12%4]")).replace("|", ","), arrivals=True)
    assert jobs_of(jobs) == [(700, 3600, 3, 3600)] * 4


@pytest.mark.parametrize("word", ["", "UNLIMITED", "unlimited", "Partition_L+", "Unk+", "None", "INVALID", "N/A"])
def test_a_word_for_an_unknown_time_is_none(word: str) -> None:
    assert is_unknown(word)
    assert not is_unknown("1+")
    assert span("1-02:03:04") == 93_784


@pytest.mark.parametrize("states", [["REQUEUED"], ["RESIZING"], ["COMPLETED", "COMPLETING"]])
def test_a_run_that_has_ended_counts_in_json(states: list[str], tmp_path: Path) -> None:
    times = {"submission": 1000, "start": 1010, "end": 1610, "elapsed": 600, "limit": {"set": True, "number": 60}}
    job = {"job_id": 700, "time": times, "state": {"current": states}, "allocation_nodes": 3}
    assert jobs_of(read(tmp_path, json.dumps({"jobs": [job]}))) == ONE


def batsim(profiles: dict[str, object], profile: str) -> str:
    job = {"id": "w!700", "subtime": 0, "walltime": 3600, "res": 3, "profile": profile}
    return json.dumps({"nb_res": 8, "jobs": [job], "profiles": profiles})


@pytest.mark.parametrize(
    "sequence",
    [
        {"type": "composed", "repeat": 3, "seq": ["p", "p"]},
        {"type": "sequential_composition", "seq": ["p"] * 6},
        {"type": "SequentialCompositionProfile", "repetition_count": 2, "profile_ids": ["q", "p"]},
    ],
)
def test_a_sequence_of_delays_runs_for_their_sum(sequence: dict[str, object], tmp_path: Path) -> None:
    profiles = {"p": {"type": "delay", "delay": 100}, "q": {"type": "composed", "seq": ["p", "p"]}, "c": sequence}
    assert jobs_of(read(tmp_path, batsim(profiles, "c"))) == ONE


def test_profiles_that_need_a_model_of_the_machine_are_named_and_sequences_without_end_refused(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match=r"job 1: profile: .*, got 'p' of type parallel_homogeneous"):
        read(tmp_path, batsim({"p": {"type": "parallel_homogeneous", "cpu": 1e9, "com": 0}}, "p"))
    with pytest.raises(WorkloadError, match=r"job 1: profile: .*, got 'c' of type composed"):
        read(tmp_path, batsim({"c": {"type": "composed", "seq": ["c", "c"]}}, "c"))


def test_comments_of_other_programs_are_comments_of_a_workload_log(tmp_path: Path) -> None:
    line = "1 0 5 600 3 -1 -1 3 3600 -1 1 1 1 1 1 1 -1 -1"
    for text in (f"# cleaned\n{line}\n", f"; head\n{line} ; note\n", line.replace(" ", "\t")):
        assert jobs_of(read(tmp_path, text)) == [(1, 600, 3, 3600)]


def test_a_count_of_thousands_of_digits_beside_a_separator_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match="NNodes: expecting a whole number"):
        read(tmp_path, HEAD + row("700", name="a|b", nodes="9" * 5000))
