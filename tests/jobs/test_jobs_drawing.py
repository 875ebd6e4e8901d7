"""Pictures of outcomes show the whole of them, with the log's name, and waits of 0 as 0."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import examples
from tests.workloads import random_workload
from topompi.inputs.figures import bare_name, cut_middle, size_name
from topompi.machine.jobs import Cluster, JobsError, Outcome, Workload, gantt, simulate
from topompi.machine.jobs.drawing import draw, draw_comparison

pytest.importorskip("matplotlib")
CLUSTER = Cluster.regular(24, 4, 3)


def outcome_of(allocator: str = "first", jobs: int = 150) -> Outcome:
    return simulate(random_workload(5, jobs, 20), CLUSTER, allocator=allocator)


def texts(path: Path) -> list[str]:
    """The texts of an SVG file that matplotlib wrote."""
    return re.findall(r">([^<>]+)</(?:text|tspan)>", path.read_text())


def axes_of(outcome: Outcome):
    """The chart of nodes over time of an outcome."""
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    gantt.draw_nodes(axes, outcome, int(outcome.workload.submit[0]))
    return axes


def test_an_outcome_of_many_jobs_is_drawn_to_its_end():
    outcome = outcome_of(jobs=4000)
    (image,) = axes_of(outcome).images
    first, last = int(outcome.workload.submit[0]), int(outcome.end.max())
    assert image.get_extent() == pytest.approx([0, (last - first) / 86_400, 0, 24])
    shown, moments = image.get_array(), first + (np.arange(gantt.COLUMNS) + 0.5) * (last - first) / gantt.COLUMNS
    for column in (3, 700, 1500, gantt.COLUMNS - 1):
        running = [job for job in outcome.ran.tolist() if outcome.start[job] <= moments[column] < outcome.end[job]]
        held = np.zeros(24, dtype=bool)
        held[[node for job in running for node in outcome.held_by(job).tolist()]] = True
        assert ((shown[:, column] < 1).any(axis=1) == held).all()


def test_the_title_has_the_name_of_the_log_and_of_the_policy(tmp_path: Path):
    jobs = random_workload(5, 60, 20)
    named = Workload.of("/some/folder/KTH-SP2.swf.gz", submit=jobs.submit, run=jobs.run, nodes=jobs.nodes)
    outcome = simulate(named, CLUSTER, allocator="contiguous")
    draw(outcome, tmp_path / "a.svg")
    draw_comparison({"contiguous": outcome}, tmp_path / "b.svg")
    for name in ("a.svg", "b.svg"):
        assert any(f"KTH-SP2, 60 jobs on {CLUSTER.name}" in text for text in texts(tmp_path / name))
    assert any("allocator contiguous" in text for text in texts(tmp_path / "a.svg"))


def test_waits_of_0_are_drawn_at_0(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from matplotlib.axes import Axes

    drawn = []
    plain = Axes.boxplot
    monkeypatch.setattr(Axes, "boxplot", lambda axes, data, **how: (drawn.extend(data), plain(axes, data, **how))[1])
    jobs = Workload.of("idle", submit=[0, 5000], run=[10, 10], nodes=[2, 2])
    draw_comparison({"first": simulate(jobs, CLUSTER, allocator="first")}, tmp_path / "a.svg")
    assert [wait.tolist() for wait in drawn] == [[0, 0]]
    assert {"0", "1 min"} <= set(texts(tmp_path / "a.svg"))


@given(st.text(max_size=40), st.integers(1, 40))
def test_a_cut_name_keeps_both_ends_and_fits(text: str, most: int):
    cut = cut_middle(text, most)
    assert len(cut) == min(len(text), most)
    head, _, tail = cut.partition("…") if len(text) > most else (text, "", "")
    assert text.startswith(head)
    assert text.endswith(tail)


@pytest.mark.parametrize(
    ("nbytes", "name"), [(1, "1"), (1023, "1023"), (1024, "1K"), (65536, "64K"), (3 << 19, "1.5M")]
)
def test_sizes_are_written_as_benchmarks_write_them(nbytes: int, name: str):
    assert size_name(nbytes) == name


@given(
    st.from_regex(r"[a-z]{1,8}(-[0-9]\.[0-9])?", fullmatch=True), st.sampled_from(["", ".swf", ".swf.gz", ".json.xz"])
)
@examples(30)
def test_a_log_is_called_by_its_name_without_folder_and_packing(name: str, suffix: str):
    assert bare_name(f"/a/b.c/{name}{suffix}") == name


def test_the_same_outcome_is_drawn_the_same(tmp_path: Path):
    outcomes = {one: outcome_of(one) for one in ("first", "isolated")}
    for name in ("a.svg", "b.svg"):
        draw(outcomes["first"], tmp_path / name)
        draw_comparison(outcomes, tmp_path / f"compare-{name}")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert (tmp_path / "compare-a.svg").read_bytes() == (tmp_path / "compare-b.svg").read_bytes()
    draw(outcome_of("counts"), tmp_path / "counts.png")
    with pytest.raises(JobsError, match=r"\.svg or \.png"):
        draw(outcomes["first"], tmp_path / "a.gif")


def test_a_picture_does_not_change_with_the_second_of_the_first_arrival(tmp_path: Path):
    for name, first in (("a.svg", 0), ("b.svg", 10**6)):
        jobs = Workload.of("late", submit=[first, first + 50], run=[100, 100], nodes=[6, 20])
        draw(simulate(jobs, CLUSTER, allocator="first"), tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
