"""``topompi colocate pair``: pairs from files of profiles and speed-ups, and one line for each wrong file."""

import json
from pathlib import Path

import pytest

from tests.support import command_line
from topompi.machine.colocation.profiles.files import write_profiles
from topompi.machine.colocation.profiles.record import Profile
from topompi.machine.colocation.speedups.files import HEADER

HEAT = "application,a,b,c,d\na,1,1.5,0.9,1\nb,1.1,1,1,1.2\nc,0.9,1,1,1.3\nd,1,1,1.2,1\n"
PROFILES = [
    Profile("mg", 16, 1, 60.0, flops=2, memory=9, mpi=0.1, hits=1, misses=1),
    Profile("ep", 16, 1, 60.0, flops=9, memory=0.5, mpi=0.0, hits=1, misses=0.1),
]


@pytest.fixture
def heat(tmp_path: Path) -> Path:
    (tmp_path / "heat.csv").write_text(HEAT)
    return tmp_path / "heat.csv"


def _told(*words: object) -> dict:
    done = command_line("colocate", "pair", *words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _refused(*words: object) -> str:
    done = command_line("colocate", "pair", *words)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr.removeprefix("topompi: ").rstrip()


def test_a_matrix_gives_the_pairs_of_least_machine_time(heat: Path):
    found = _told(heat)
    assert (found["by"], found["method"]) == ("speedups", "optimal")
    assert [one["programs"] for one in found["pairs"]] == [["a", "b"], ["c", "d"]]
    assert found["pairs"][0]["speedups"] == [1.5, 1.1]
    assert found["gain"] == pytest.approx(4 / (1 / 1.5 + 1 / 1.1 + 1 / 1.3 + 1 / 1.2))


def test_a_pool_may_have_several_jobs_of_a_program(heat: Path):
    found = _told(heat, "--pool", "a=2,b=1")
    assert [one["programs"] for one in found["pairs"]] == [["a", "b"]]
    assert [one["program"] for one in found["alone"]] == ["a"]
    assert "expecting PROGRAM or PROGRAM=NUMBER, got 'a=x'" in _refused(heat, "--pool", "a=x")


def test_profiles_alone_give_pairs_by_labels_or_score(tmp_path: Path):
    write_profiles(tmp_path / "p.json", PROFILES)
    found = _told(tmp_path / "p.json")
    assert (found["by"], found["gain"]) == ("labels", None)
    assert (
        found["pairs"][0]["reason"] == "memory-bound with irregular accesses: good; heavily compute-bound: stationary"
    )
    assert "most in memory" in _told(tmp_path / "p.json", "--by", "score")["pairs"][0]["reason"]
    shown = command_line("colocate", "pair", tmp_path / "p.json").stdout
    assert "bounds are those of these profiles" in shown


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("a,a,b\na,1,2\nb,1,-2\n", "line 3: b: expecting a positive number, got '-2'"),
        (
            "a,a,b\na,1,2\nb,1\n",
            "line 3: expecting a program of the first line, once, and 2 cells, got 'b' and 1",
        ),
        ("a,a,b\na,1,2\na,1,2\n", "line 3: expecting a program of the first line, once, and 2 cells, got 'a' and 2"),
        ("a,a,b\na,1,2\nb,,1\n", "expecting the speed-ups of all pairs, got none of b beside a"),
        ("a,a,b\na,1,\n", "expecting the speed-ups of all pairs, got none of a beside b and 1 others"),
        ("not a matrix", "expecting a matrix with a row and a column of names, got no matrix"),
        (json.dumps(HEADER), "programs: expecting a list of objects, got None"),
        (json.dumps({"format": "topompi speedups", "version": 9}), "expecting an object with"),
        ("{", "expecting JSON"),
    ],
)
def test_a_wrong_matrix_and_missing_cells_are_one_line_that_names_the_file(tmp_path: Path, content: str, problem: str):
    path = tmp_path / "heat"
    path.write_text(content)
    said = _refused(path)
    assert said.startswith(str(path))
    assert problem in said


def test_unmeasured_pairs_can_be_left_out(tmp_path: Path):
    path = tmp_path / "heat"
    path.write_text("a,a,b,c\na,1,,1.2\nb,1,1,\nc,1.2,1,1\n")
    assert [one["programs"] for one in _told(path, "--known")["pairs"]] == [["a", "c"]]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"kind": "C_HEAVY"}, "mg: kind: expecting M_IRR, as its metrics imply, got C_HEAVY"),
        ({"kind": "heavy"}, "mg: kind: expecting one of C_HEAVY"),
        ({"shares": {"Recv": 0.7, "Send": 0.7}}, "mg: shares: expecting shares that add up to at most 1"),
        ({"mpi": 1.4}, "mg: mpi: expecting a share in [0, 1], got 1.4"),
        ({"memory": -1}, "mg: memory: expecting a number from 0, got -1"),
        ({"program": "ep"}, "programs: expecting each program once, got 'ep' twice"),
        ({"bandwidth": 3}, "programs[0]: expecting fields of a profile, got 'bandwidth'"),
        ({"misses": "many"}, "programs[0]: misses: expecting a number, got 'many'"),
    ],
)
def test_contradictory_tags_are_one_line_that_names_the_file(tmp_path: Path, change: dict, problem: str):
    path = tmp_path / "p.json"
    write_profiles(path, PROFILES)
    content = json.loads(path.read_text())
    content["programs"][0] |= change
    path.write_text(json.dumps(content))
    said = _refused(path)
    assert said.startswith(str(path))
    assert problem in said


def test_profiles_of_two_files_complete_each_other_or_contradict(tmp_path: Path):
    paths = [tmp_path / name for name in ("one", "two", "other")]
    write_profiles(paths[0], [PROFILES[1], Profile("mg", 16, flops=2, mpi=0.1)])
    write_profiles(paths[1], [Profile("mg", 16, memory=9, hits=1, misses=1)])
    write_profiles(paths[2], [Profile("mg", 16, memory=8)])
    assert len(_told(*paths[:2])["pairs"]) == 1
    assert "mg: memory: expecting one value, got 9.0 and 8.0" in _refused(*paths)


def test_two_matrices_a_missing_file_and_an_unknown_program_are_refused(heat: Path, tmp_path: Path):
    assert "expecting one file of speed-ups, got a second one" in _refused(heat, heat)
    assert "nothing.csv" in _refused(tmp_path / "nothing.csv")
    assert "expecting one of a, b, c, d, got 'x'" in _refused(heat, "--pool", "a,x")
    assert "expecting one of speedups, labels, score, got 'luck'" in _refused(heat, "--by", "luck")
    assert "a: expecting a program with a profile (no program), got none" in _refused(heat, "--by", "labels")
