"""Further columns of workloads: their types, the operations that keep them, and the formats that hold them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import examples, shared_data
from tests.workloads import batsim, random_workload
from topompi.machine.jobs import Workload, WorkloadError, read_swf, read_workload
from topompi.machine.jobs.workload.workload import larger, segments

KINDS = {"slots": np.int64, "shared": bool, "program": object, "group": np.int64, "weight": np.float64}


def with_columns(jobs: int = 50) -> Workload:
    """Jobs whose further columns all follow from their numbers."""
    made = random_workload(3, jobs, 8)
    at = made.number
    texts = [f"app {one % 7}" for one in at.tolist()]
    return made.with_columns(slots=at % 9, shared=at % 2 == 0, program=texts, group=at % 5, weight=at / 4)


def follows(jobs: Workload, times: int = 1) -> bool:
    """Whether each job still has the values that its number gave it."""
    at = jobs.number
    assert {word: column.dtype for word, column in jobs.columns.items()} == KINDS
    numbers = (jobs.slots == times * (at % 9)) & (jobs.shared == (at % 2 == 0)) & (jobs["group"] == at % 5)
    texts = [text == f"app {one % 7}" for text, one in zip(jobs["program"], at.tolist(), strict=True)]
    return bool(numbers.all() and (jobs["weight"] == at / 4).all() and all(texts))


def test_every_transformation_keeps_the_columns_with_their_jobs():
    jobs = with_columns()
    made = [*segments(jobs, 7), jobs.select(slice(None, None, -1)), jobs.select(jobs.nodes > 3)]
    assert all(len(one) and follows(one) for one in made)
    assert follows(larger(jobs, 3), times=3)


def test_columns_are_sorted_with_their_jobs():
    jobs = Workload.of("late first", submit=[9, 3], run=[1, 1], nodes=[1, 1], columns={"program": ["late", "early"]})
    assert jobs["program"].tolist() == ["early", "late"]
    assert jobs["submit"].tolist() == [3, 9]
    assert jobs.slots.tolist() == [0, 0]
    assert jobs.shared.tolist() == [False, False]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ({"slots": [1]}, "expecting 2 values of slots, got 1"),
        ({"slots": [1, -1]}, r"job 2: expecting slots in 0\.\.2147483647, got -1"),
        ({"shared": [0, 1]}, "expecting truth values of shared in one row, got int64"),
        ({"program": [None, "a"]}, "expecting numbers, truth values or texts of program in one row, got object"),
        ({"program": [["a"], ["b"]]}, r"texts of program in one row, got object \(2, 1\)"),
        ({"nodes": [1, 2]}, "expecting a further column, got nodes, which every workload has"),
    ],
)
def test_a_column_of_another_length_or_type_is_refused(column: dict[str, list[object]], message: str):
    with pytest.raises(WorkloadError, match=message):
        Workload.of("two", submit=[0, 1], run=[1, 1], nodes=[1, 1], columns=column)
    with pytest.raises(WorkloadError, match=message):
        Workload.of("two", submit=[0, 1], run=[1, 1], nodes=[1, 1]).with_columns(**column)


def test_a_column_that_is_not_there_is_named_with_those_that_are():
    with pytest.raises(WorkloadError, match=r"expecting a column of number, .*, user, slots, .*, got 'rack'"):
        with_columns()["rack"]


def test_batsim_s_file_holds_every_column(tmp_path: Path):
    jobs = with_columns()
    (tmp_path / "w.json").write_text(batsim(jobs, 8))
    again = read_workload(tmp_path / "w.json")
    assert follows(again)
    for column in ("number", "submit", "run", "request", "nodes", "user"):
        assert (again[column] == jobs[column]).all()
    assert again.machine_nodes == 8


def test_profiles_of_batsim_keep_their_names(tmp_path: Path):
    profiles = {"lu": {"type": "delay", "delay": 5}, "lu 7": {"type": "DelayProfile", "delay": 7}}
    profiles["delay5"] = {"type": "delay", "delay": 5}
    jobs = [{"subtime": 0, "res": 1, "profile": name, "user": 3} for name in ("lu", "lu", "lu 7", "delay5")]
    (tmp_path / "w.json").write_text(json.dumps({"nb_res": 8, "jobs": jobs, "profiles": profiles}))
    again = read_workload(tmp_path / "w.json")
    assert again["profile"].tolist() == ["lu", "lu", "lu 7", ""]  # the last one says no more than its run time
    assert again.run.tolist() == [5, 5, 7, 5]
    assert again.user.tolist() == [3] * 4


@pytest.mark.parametrize(
    ("further", "message"),
    [
        ({"slots": "x"}, "job 1: slots: expecting a number from 0"),
        ({"shared": 1}, "job 1: shared: expecting true or false, got '1'"),
        ({f"c{at}": 1 for at in range(64)}, "expecting at most 64 further columns, got 65"),
    ],
)
def test_a_wrong_value_of_a_column_with_a_meaning_is_named(tmp_path: Path, further: dict[str, object], message: str):
    job = {"id": "1", "subtime": 0, "res": 1, "profile": "p", **further}
    content = {"nb_res": 1, "jobs": [job], "profiles": {"p": {"type": "delay", "delay": 1}}}
    (tmp_path / "w.json").write_text(json.dumps(content))
    with pytest.raises(WorkloadError, match=message):
        read_workload(tmp_path / "w.json")


def test_columns_of_mixed_types_are_texts_and_missing_values_are_marked(tmp_path: Path):
    values = [{"a": 1, "b": 1, "c": True, "d": "x", "e": [1]}, {"a": 2.5, "b": "two"}, {}]
    jobs = [{"id": f"{at}", "subtime": at, "res": 1, "profile": "p", **more} for at, more in enumerate(values)]
    content = {"nb_res": 1, "jobs": jobs, "profiles": {"p": {"type": "delay", "delay": 1}}}
    (tmp_path / "w.json").write_text(json.dumps(content))
    read = read_workload(tmp_path / "w.json")
    assert read["a"].tolist()[:2] == [1, 2.5]
    assert np.isnan(read["a"][2])
    assert [read[word].tolist() for word in "bcd"] == [["1", "two", ""], [True, False, False], ["x", "", ""]]
    assert "e" not in read.columns


def test_sacct_s_fields_become_columns(tmp_path: Path):
    (tmp_path / "log").write_text(
        "JobID|User|Account|Partition|QOS|JobName|AllocCPUS|NNodes|Submit|Elapsed\n"
        "1|ann|phys|batch|normal|lu|12|2|2014-08-01T00:00:00|10:00\n"
        "1.batch|ann|phys|||batch|12|2|2014-08-01T00:00:00|10:00\n"
        "2|bob|chem|batch|high|mg|4|1|2014-08-01T00:00:09|10:00\n"
    )
    jobs = read_workload(tmp_path / "log")
    assert jobs.slots.tolist() == [12, 4]
    found = {word: jobs[word].tolist() for word in ("user_name", "account", "partition", "class", "program")}
    assert list(found.values()) == [["ann", "bob"], ["phys", "chem"], ["batch"] * 2, ["normal", "high"], ["lu", "mg"]]
    assert jobs.user.tolist() == [0, 1]


@examples(30)
@given(
    fields=st.lists(st.tuples(*[st.integers(-1, 2**31 - 1)] * 4), min_size=1, max_size=9),
    cores=st.integers(1, 9),
)
def test_the_fields_of_a_log_are_its_jobs(tmp_path_factory, fields, cores):
    path = tmp_path_factory.mktemp("swf") / "log"
    jobs = random_workload(len(fields), len(fields), 8)
    columns = [jobs[name].tolist() for name in ("number", "submit", "run", "nodes", "request", "user")]
    with path.open("w") as stream:
        for row, free in zip(zip(*columns, strict=True), fields, strict=True):
            number, submit, run, nodes, request, user = row
            group, program, queue, partition = free
            size, wanted = nodes * cores, request or -1
            more = f"{user} {group} {program} {queue} {partition}"
            stream.write(f"{number} {submit} -1 {run} {size} -1 -1 {size} {wanted} -1 -1 {more} -1 -1\n")
    again = read_swf(path, cores)
    for column in ("number", "submit", "run", "request", "nodes", "user"):
        assert (again[column] == jobs[column]).all()
    assert (
        list(zip(*(again[word].tolist() for word in ("group", "program", "queue", "partition")), strict=True)) == fields
    )
    assert (again.slots == cores * jobs.nodes).all()


def test_a_field_that_no_simulation_needs_never_refuses_a_log(tmp_path: Path):
    (tmp_path / "log").write_text("1 0 -1 9 4 -1 -1 4 -1 -1 0 16 x 64.5 1 99999999999 -1 -1\n")
    jobs = read_swf(tmp_path / "log")
    assert [jobs[word].tolist() for word in ("group", "program", "queue", "partition")] == [[-1], [-1], [1], [-1]]


def test_a_real_log_s_columns_are_its_fields():
    jobs = read_swf(shared_data("workloads/SDSC-SP2-1998-4.2-cln.swf.gz"))
    assert (jobs.slots == jobs.nodes).all()  # one processor per node
    assert len(np.unique(jobs["queue"])) > 2
    assert (jobs["group"] > 0).any()
