"""Sizes in processors, times with fractions, and the reason for which each job is rejected."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import command_line, examples, refusal, shared_data, text_of
from topompi.machine.jobs import (
    ALLOCATORS,
    Cluster,
    NodeStates,
    Workload,
    WorkloadError,
    read_swf,
    read_workload,
    simulate,
)

CASE = "cases/D12-swf-procs"


def line(job: int, *, submit: str = "0", run: str = "9", size: str = "1", request: str = "20") -> str:
    return f"{job} {submit} -1 {run} {size} -1 -1 {size} {request} -1 1 1 1 1 1 1 -1 -1\n"


def log(sizes: Sequence[int], *header: str) -> str:
    return "".join(f"; {one}\n" for one in header) + "".join(line(at, size=str(n)) for at, n in enumerate(sizes, 1))


@given(sizes=st.lists(st.integers(1, 300), min_size=1, max_size=5), nodes=st.integers(1, 40), cores=st.integers(1, 64))
def test_sizes_are_divided_by_the_headers_processors_of_a_node_and_the_notes_say_it(sizes, nodes, cores) -> None:
    text = log(sizes, f"MaxNodes: {nodes} (of 99)", f"MaxProcs:  {nodes * cores}")
    found, told = read_workload(text_of(text)), read_swf(text_of(text), cores)
    assert found.nodes.tolist() == told.nodes.tolist() == [-(-size // cores) for size in sizes]
    assert found.machine_cores == cores
    assert [f"{cores} a node by the header" in note for note in found.reading.notes] == [True] * (cores > 1)
    assert read_workload(text_of(text), 1).nodes.tolist() == sizes
    assert not told.reading.notes


@pytest.mark.parametrize(
    ("header", "notes"),
    [
        (("MaxNodes: 8", "MaxProcs: 100"), 1),
        (("MaxNodes: 8", "MaxProcs: 4"), 1),
        (("MaxNodes: 8", "MaxProcs: 8"), 0),
        (("MaxNodes: 8",), 0),
        (("MaxProcs: 128",), 0),
        (("MaxNodes: 0", "MaxProcs: 128"), 0),
    ],
)
def test_a_header_without_a_whole_number_of_processors_a_node_leaves_sizes_as_they_are(header, notes) -> None:
    found = read_workload(text_of(log([32, 5], *header)))
    assert found.nodes.tolist() == [32, 5]
    assert ["no whole number of processors" in note for note in found.reading.notes] == [True] * notes


@given(st.floats(0, 1e6, allow_nan=False), st.floats(0, 1e6, allow_nan=False), st.floats(0, 1e6, allow_nan=False))
def test_times_with_fractions_are_rounded_to_the_nearest_second_and_the_notes_say_it(submit, run, request_) -> None:
    texts = [f"{value:.3f}" for value in (submit, run, request_)]
    found = read_swf(text_of(line(1, submit=texts[0], run=texts[1], request=texts[2])))
    for told, text in zip((found.submit, found.run, found.request), texts, strict=True):
        assert abs(told[0] - float(text)) <= 0.5
    fractions = any(float(text) % 1 for text in texts)
    assert found.reading.notes == ["times with fractions of a second are rounded"] * fractions


@pytest.mark.parametrize(
    ("field", "text", "name"),
    [
        ("size", "8.5", "processors"), ("run", "1.e400", "run time"), ("submit", "0.x", "submit time"),
        ("request", "nan.", "requested time"), ("run", "1.0.0", "run time"),
    ],
)  # fmt: skip
def test_a_count_with_a_fraction_and_what_is_no_number_are_refused_by_field(field: str, text: str, name: str) -> None:
    told = refusal(read_swf, text_of(line(1, **{field: text})), error=WorkloadError)
    assert name in told
    assert repr(text) in told


CLUSTER = Cluster.parse("leaves=4x2x2")


@given(
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=8),
    policy=st.sampled_from(sorted(ALLOCATORS)),
    down=st.booleans(),
)
@examples(40)
def test_each_rejected_job_has_one_reason(sizes: list[int], policy: str, down: bool) -> None:
    jobs = Workload.of("w", submit=range(len(sizes)), run=[9] * len(sizes), nodes=sizes)
    gone = NodeStates.of(CLUSTER, [(0, "drained", [0, 1, 2])]) if down and policy != "counts" else None
    found = simulate(jobs, CLUSTER, allocator=policy, node_states=gone)
    assert sum(found.rejections.values()) == len(found.rejected)
    larger = sum(size > 16 for size in sizes)
    assert found.rejections.get("more than the machine's 16 nodes", 0) == larger
    assert ("too few nodes that are up" in found.rejections) <= (gone is not None)


def test_a_policy_that_never_gives_the_nodes_and_parts_that_no_links_join_are_named() -> None:
    apart = replace(Cluster.of("m", [2, 2], [1, 1]), part=np.array([0, 0, 1, 1]))
    jobs = Workload.of("w", submit=[0, 0, 0], run=[9] * 3, nodes=[2, 3, 5])
    reasons = simulate(jobs, apart, allocator="first").rejections
    assert reasons == {"more than the machine's 4 nodes": 1, "more than the 2 nodes that links join": 1}


def test_commands_say_why_jobs_are_rejected_in_text_and_in_json(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    path.write_text(log([32, 128, 4], "MaxNodes: 8"))
    words = (path, "--topology", "leaves=4x2")
    reason = "more than the machine's 8 nodes"
    for more in (("-p", "first"), ("-p", "first,contiguous"), ("-p", "first", "--segments", 3)):
        text = command_line("jobs", "simulate", *words, *more).stdout
        assert f"first: 2 rejected: {reason}" in text
        assert "if the log counts processors, --cores N divides them" in text
        told = json.loads(command_line("jobs", "simulate", *words, *more, "--json").stdout)
        found = told.get("summary") or told.get("first") or {"rejected_because": told["rejected_because"]["first"]}
        assert found["rejected_because"] == {reason: 2}
        assert "rejected:" not in command_line("jobs", "simulate", *words, *more, "--cores", 16).stdout


def test_the_logs_of_the_case_are_read_by_their_headers() -> None:
    folder = shared_data(CASE)
    words = ("--topology", folder / "topo.conf", "--json")
    told = command_line("jobs", "simulate", folder / "procs.swf", *words)
    assert "16 a node by the header (MaxProcs 128, MaxNodes 8)" in told.stderr
    summary = json.loads(told.stdout)["summary"]
    assert (summary["jobs"], summary["rejected"], summary["makespan"]) == (2, 0, 200)
    assert read_swf(folder / "float.swf").run.tolist() == [100, 61, 50]
