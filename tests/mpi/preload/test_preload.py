"""Programs in C run as natively when topompi runs their collectives, and in the cases that it leaves alone."""

import json
import os
import re
import subprocess
import sys
from functools import cache

import pytest

from tests.mpi.preload.jobs import NATIVE, OURS, PLACED, compiled, job
from topompi.mpi.preload import launching

FORCED = {
    **dict.fromkeys(("bcast", "gather", "scatter", "reduce"), "binomial"),
    **dict.fromkeys(("allgather", "allreduce", "reduce_scatter"), "ring"),
    **dict.fromkeys(("scan", "exscan"), "chain"),
    "barrier": "dissemination",
    "alltoall": "pairwise",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("compiled")


@pytest.fixture(scope="module")
def calls(folder):
    return compiled(folder, "calls.c")


@pytest.fixture(scope="module")
def misuse(folder):
    return compiled(folder, "misuse.c")


@pytest.fixture(scope="module")
def natively(calls):
    return cache(lambda size: job(size, *NATIVE, calls))


@pytest.fixture(scope="module")
def rules(folder):
    path = folder / "rules.json"
    listed = [{"collective": collective, "algorithm": algorithm} for collective, algorithm in FORCED.items()]
    listed += [{"collective": collective, "algorithm": "linear"} for collective in ("gather", "scatter")]  # with counts
    path.write_text(json.dumps({"format": "topompi rules", "version": 1, "rules": listed}))
    return path


def test_a_program_computes_the_same_by_planned_algorithms_which_run_every_kind_of_call(calls, natively, rules):
    done = job(4, *OURS, "--verbose", *PLACED, "--rules", rules, calls, TOPOMPI_NATIVE_CALLS="0")
    assert (done.returncode, done.stdout) == (0, natively(4).stdout), done.stderr[-2000:]
    rows = [line.split() for line in done.stderr.splitlines() if re.match(r"[A-Z]\w+ {2,}\S+ {2,}[\d,]+ ", line)]
    planned = {row[0] for row in rows if set(row) & {*FORCED.values(), "linear"}}
    assert len(planned) == 17, done.stderr


@pytest.mark.parametrize(
    ("size", "how"),
    [
        (5, "rules"),
        (4, "default"),
        pytest.param(4, "trials", marks=pytest.mark.long),
        pytest.param(5, "default", marks=pytest.mark.long),
        pytest.param(5, "trials", marks=pytest.mark.long),
    ],
)
def test_a_program_computes_the_same_however_algorithms_are_chosen(calls, natively, rules, tmp_path, size, how):
    options = {"rules": ("--rules", rules), "default": (), "trials": ("--tune", "again")}[how]
    done = job(size, *OURS, *PLACED, *options, calls, XDG_CACHE_HOME=str(tmp_path))
    assert (done.returncode, done.stdout) == (0, natively(size).stdout), done.stderr[-2000:]
    assert not [line for line in done.stderr.splitlines() if "topompi" in line]


def ended(done):
    """The exit status of a job, and the lines of its rank 0."""
    return done.returncode, [line for line in done.stdout.splitlines() if line.startswith("rank 0: ")]


@pytest.mark.parametrize(
    "what",
    [
        *("errors returned", "wrong root", "wrong count", "no communicator", "initialised twice", "aborted"),
        *("forks", "exits", "crashes", "not finalised", "executes itself", "looks around", "makes many"),
    ],
)
def test_misuses_and_unusual_programs_end_as_natively(misuse, rules, what):
    ours = job(2, *OURS, *PLACED, "--rules", rules, misuse, what)
    assert ended(ours) == ended(job(2, *NATIVE, misuse, what)), ours.stderr[-2000:]
    assert "topompi" not in ours.stderr
    assert "Traceback" not in ours.stderr


def test_a_communicator_with_a_process_that_runs_without_topompi_is_the_librarys(misuse, rules):
    ways = {"OMPI_MCA_btl": "self,sm,tcp"}  # between jobs Open MPI shares no memory
    done = job(2, *OURS, *PLACED, "--rules", rules, misuse, "spawns", **ways)
    assert (done.returncode, done.stdout.count("3 together")) == (0, 2), done.stderr


def test_one_rank_that_cannot_import_topompi_leaves_all_to_the_library_and_says_why(calls, natively, rules, tmp_path):
    (tmp_path / "numpy.py").write_text("raise ImportError('numpy is broken here')\n")
    code = (
        "import os, sys\n"
        "if '1' in (os.environ.get('OMPI_COMM_WORLD_RANK'), os.environ.get('PMI_RANK')):\n"
        f"    os.environ['PYTHONPATH'] = {str(tmp_path)!r} + ':' + os.environ['PYTHONPATH']\n"
        "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    )
    done = job(4, "-c", code, *OURS, *PLACED, "--rules", rules, calls)
    assert (done.returncode, done.stdout) == (0, natively(4).stdout), done.stderr
    told = [line for line in done.stderr.splitlines() if "topompi" in line]
    assert told == ["topompi: the MPI library runs all collectives: rank 1: numpy is broken here"]


def test_a_wrong_setting_leaves_all_to_the_library_and_says_why(misuse):
    done = job(2, *OURS, "--rules", "/no/such/rules", misuse, "nothing")
    assert ended(done) == (0, ["rank 0: 7"])
    assert "the MPI library runs all collectives: rank 0: " in done.stderr
    assert "/no/such/rules" in done.stderr


@pytest.mark.parametrize("what", ["threads", "Python"])
def test_programs_with_threads_or_a_python_are_left_alone_which_verbose_tells(misuse, what):
    program = misuse, what
    if what == "Python":
        code = "from mpi4py import MPI; print(f'rank {MPI.COMM_WORLD.rank}:', MPI.COMM_WORLD.allreduce(3) + 1)"
        program = sys.executable, "-c", code
    done = job(2, *OURS, "--verbose", *PLACED, *program)
    assert done.returncode == 0
    assert "0: 7\n" in done.stdout
    reason = {"threads": "the program asked for MPI_THREAD_MULTIPLE", "Python": "the program runs Python itself"}[what]
    assert done.stderr.count(f"topompi: the MPI library runs all collectives: rank 0: {reason}\n") == 1


@pytest.mark.parametrize("use", ["ENDS", "STARTS"])
def test_a_program_may_start_or_end_its_own_libpython_which_topompi_has_started(folder, rules, use):
    python = launching.preloaded({})["TOPOMPI_PRELOAD"]
    if not python.startswith("/"):
        pytest.skip(python)
    program = compiled(folder, "python.c", f"-D{use}", python, f"-Wl,-rpath,{os.path.dirname(python)}")
    done = job(2, *OURS, "--verbose", *PLACED, "--rules", rules, program)
    assert ended(done) == (0, ["rank 0: 1"]), done.stderr
    assert re.search(r"^Allreduce .* ring ", done.stderr, re.MULTILINE)


def test_a_program_with_another_python_is_left_alone_with_a_line(folder):
    done = job(2, *OURS, *PLACED, compiled(folder, "python.c", "-DOTHER_VERSION", "-rdynamic"))
    assert ended(done) == (0, ["rank 0: 1"])
    line = (
        "topompi: the MPI library runs all collectives: rank 0: the program has Python 3.5, and topompi another one\n"
    )
    assert done.stderr.count(line) == 1, done.stderr


def test_a_script_may_start_the_program(folder, misuse, rules):
    script = folder / "wrapper"
    script.write_text(f'#!/bin/sh\nexec {misuse} "$@"\n')
    script.chmod(0o755)
    done = job(2, *OURS, "--verbose", *PLACED, "--rules", rules, script, "nothing")
    assert ended(done) == (0, ["rank 0: 7"])
    assert re.search(r"^Allreduce .* ring ", done.stderr, re.MULTILINE), done.stderr


def test_a_tool_behind_topompi_sees_each_call_of_the_program_once(folder, misuse, rules):
    tool = compiled(folder, "tool.c", "-shared", "-fPIC")
    done = job(2, *OURS, *PLACED, "--rules", rules, misuse, "forks", LD_PRELOAD=str(tool))
    assert "tool: 1 begun, 3 reductions, 0 broadcasts, 0 freed" in done.stdout, done.stderr


def test_a_program_of_one_rank_starts_no_python(misuse, tmp_path):
    (tmp_path / "numpy.py").write_text("raise SystemExit('Python was started')\n")
    done = job(1, *OURS, misuse, "nothing", PYTHONPATH=f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}")
    assert (done.returncode, done.stdout, done.stderr) == (0, "rank 0: 3\n", "")


def test_a_static_program_runs_natively_with_a_line(folder):
    source = folder / "static.c"
    source.write_text('#include <stdio.h>\nint main(void) { puts("here"); return 0; }\n')
    built = subprocess.run(["gcc", "-static", str(source), "-o", str(folder / "static")], capture_output=True)
    if built.returncode:
        pytest.skip("no static C library")
    done = job(2, *OURS, folder / "static")
    assert (done.returncode, done.stdout.split()) == (0, ["here"] * 2)
    line = f"topompi: the MPI library runs all collectives: {folder / 'static'}: it is linked statically\n"
    assert done.stderr.count("topompi") == done.stderr.count(line) == 1
