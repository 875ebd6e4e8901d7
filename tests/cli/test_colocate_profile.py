"""``topompi colocate profile``: profiles from reports, their bounds, and the spider plot."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.colocation.profiles.test_profiles import CSV, MPIP, TEXT
from tests.support import command_line
from topompi.machine.colocation.profiles.files import read_profiles, read_system, write_profiles
from topompi.machine.colocation.profiles.record import Profile
from topompi.mpi.profile.file import write_profile
from topompi.mpi.profile.recording import Profile as Recording


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "perf.0").write_text(TEXT)
    (tmp_path / "perf.1").write_text(TEXT)
    (tmp_path / "app.mpiP").write_text(MPIP)
    write_profiles(tmp_path / "ep.json", [Profile("ep", 4, 1, 9.0, 3e9, 1e6, 0.01, 1e6, 1e4)])
    return tmp_path


def _run(*words: object) -> str:
    done = command_line("colocate", "profile", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _refused(*words: object) -> str:
    done = command_line("colocate", "profile", *words)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    return done.stderr


def test_reports_of_one_run_become_a_profile(folder: Path):
    said = _run(folder / "perf.0", folder / "perf.1", folder / "app.mpiP", "--name", "ft", "-o", folder / "ft.json")
    assert "time in MPI: Alltoall 50.0%, Waitall 48.0%, Barrier 2.0%" in said
    assert "FP_COMP_OPS_EXE:SSE_FP_PACKED_DOUBLE: counted a part of the time, and scaled" in said
    (made,) = read_profiles(folder / "ft.json")
    assert (made.processes, made.nodes, made.seconds, made.mpi) == (3, 2, 67.394348, 0.4042)
    assert made.flops == pytest.approx(3e9 / (2 * 67.394348))
    assert made.memory == pytest.approx(5e7 * 64 / (2 * 67.394348))


def test_several_programs_are_compared_in_one_picture_with_frozen_bounds(folder: Path):
    _run(folder / "perf.0", folder / "app.mpiP", "--name", "ft", "-o", folder / "ft.json")
    both = [folder / "ft.json", folder / "ep.json"]
    _run(*both, "--set", "stream=69177.3", "--save-system", folder / "s.json", "--draw", folder / "s.svg")
    system = read_system(folder / "s.json")
    assert (system.memory, system.flops) == (69177.3e6, 1.05 * 3e9)
    texts = [one.text for one in ElementTree.parse(folder / "s.svg").iter() if one.tag.endswith("text")]
    assert {"FLOPS", "memory", "MPI time", "LLC hits", "LLC misses", "ft", "ep"} <= set(texts)
    facts = json.loads(_run(*both, "--system", folder / "s.json", "--json"))
    assert [one["kind"] for one in facts["programs"]] == [
        "communication-bound, waits", "heavily compute-bound",
    ]  # fmt: skip


def test_a_recording_gives_ranks_hosts_and_run_time(folder: Path):
    write_profile(Recording(4, "calls", "app", 12.5, ("n1", "n1", "n2", "n2")), folder / "app.topoprof")
    facts = json.loads(_run(folder / "app.topoprof", folder / "perf.0", "--name", "a", "--json"))
    (made,) = facts["programs"]
    assert (made["processes"], made["nodes"], made["seconds"]) == (4, 2, 12.5)
    assert made["flops"] == 1.5e9 / 25


def test_raw_events_need_a_map(folder: Path):
    (folder / "raw").write_text(" 7,000  r1a8\n 1.0 seconds time elapsed\n")
    (folder / "map.json").write_text('{"r1a8": "flops"}')
    words = (folder / "raw", "--name", "a", "--nodes", 1, "--json")
    assert "expecting events of known quantity, got r1a8; count by perf stat" in _refused(*words)
    assert json.loads(_run(*words, "--events", folder / "map.json"))["programs"][0]["flops"] == 7000
    (folder / "map.json").write_text('{"r1a8": "speed"}')
    assert "expecting an object of events with flops, hits, lines, misses, references" in _refused(
        *words, "--events", folder / "map.json"
    )


def test_missing_facts_are_named(folder: Path):
    (folder / "perf.csv").write_text(CSV)
    assert "--name: expecting the name of the program" in _refused(folder / "perf.0")
    assert "a: expecting the number of nodes, by which counts are divided" in _refused(folder / "perf.0", "--name", "a")
    assert "a: expecting the run time" in _refused(folder / "perf.csv", "--name", "a", "--nodes", 1)
    (folder / "other").write_text("hello\n")
    assert "expecting the output of perf stat or LIKWID, a report of mpiP" in _refused(folder / "other", "--name", "a")
    said = _run(folder / "perf.csv", "--name", "a", "--nodes", 1, "--seconds", 10)
    assert "LLC_MISSES: not counted by perf" in said
    assert "expecting two profiles or more with all metrics" in _refused(folder / "ep.json", "--draw", folder / "x.svg")


def test_one_run_has_one_number_of_nodes(folder: Path):
    write_profiles(folder / "ft.json", [Profile("ft", 3, 7)])
    assert "ft: nodes: expecting one value, got 7 and 2" in _refused(
        folder / "ft.json", folder / "app.mpiP", "--name", "ft"
    )
