"""``topompi export launch-kit`` and the exports by the cost model for MPICH and Intel MPI."""

import json
import os
import re
import subprocess

import pytest

from tests.support import command_line
from tests.tuning.test_mpich_tables import LIBRARY

FABRIC = ("--topology", "xgft:4,2;1,2", "--hosts", "all")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "libmpi.so").write_bytes(LIBRARY)
    (tmp_path / "app.txt").write_text("".join(f"{i} {(i + 4) % 8} 100000\n" for i in range(8)))
    return tmp_path


def topompi(folder, *words):
    return command_line(*words, folder=folder)


@pytest.mark.parametrize(
    ("mpi", "line"),
    [
        (
            "openmpi",
            "-n 8 --map-by rankfile:file={kit}/app.map --mca coll_tuned_use_dynamic_rules 1 "
            "--mca coll_tuned_dynamic_rules_filename {kit}/rules.conf ./app 1",
        ),
        ("mpich", "-n 8 -f {kit}/app.map -rankmap "),
        ("intel", "-n 8 -machine {kit}/app.map ./app 1"),
    ],
)
def test_the_script_runs_the_program_with_the_files(folder, mpi, line):
    done = topompi(
        folder,
        "export",
        "launch-kit",
        "app.txt",
        *FABRIC,
        "--mpi",
        mpi,
        "-o",
        "kit",
        "--json",
        "--mpich-library",
        "libmpi.so",
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert sorted(told["files"]) == sorted(os.listdir(folder / "kit"))
    assert (told["ranks"], told["run"]) == (8, "sh kit/run.sh ./app")
    (folder / "mpirun").write_text('#!/bin/sh\nprintf "%s\\n" "$*"\nenv | grep -e ^I_MPI_ -e ^MPIR_CVAR_\n')
    (folder / "mpirun").chmod(0o755)
    environment = {"PATH": f"{folder}:{os.environ['PATH']}"}
    ran = subprocess.run(
        ["sh", "kit/run.sh", "./app", "1"], cwd=folder, env=environment, capture_output=True, text=True
    )
    kit = folder / "kit"
    assert ran.stdout.startswith(line.format(kit=kit)), ran.stdout
    if mpi == "mpich":
        assert f"MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE={kit}/tuning.json" in ran.stdout
        assert "-rankmap 4,1,6,2,5,0,7,3 ./app 1" in ran.stdout


def test_without_a_profile_ranks_fill_hosts_and_several_take_a_second_file(folder):
    done = topompi(
        folder,
        "export",
        "launch-kit",
        *FABRIC,
        "--ppn",
        "2",
        "--mpi",
        "mpich",
        "-o",
        "kit",
        "--mpich-library",
        "libmpi.so",
    )
    assert done.returncode == 0, done.stderr
    assert sorted(os.listdir(folder / "kit")) == ["run.sh", "tuning.ch4.json", "tuning.json"]
    assert 'exec mpirun -n 16 -ppn 2 "$@"' in done.stdout


def test_open_mpi_runs_by_rules_what_gains_by_them_and_leaves_the_rest_to_han(folder):
    done = topompi(folder, "export", "launch-kit", *FABRIC, "--ppn", "2", "-o", "kit")
    script = (folder / "kit" / "run.sh").read_text()
    moved = set(re.findall(r"--mca coll_han_(\w+)_dynamic_global_communicator_module tuned", script))
    assert moved < {"allgather", "allreduce", "bcast", "gather", "reduce", "scatter"}
    assert "bcast" in moved
    assert moved == set(re.findall(r"coll_han_(\w+)_dynamic", done.stdout))


def test_exports_say_how_to_use_them(folder):
    done = topompi(folder, "export", "mpich-tuning", *FABRIC, "-o", "a.json", "--mpich-library", "libmpi.so")
    assert done.returncode == 0, done.stderr
    assert f"export MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE={folder}/a.json" in done.stdout
    done = topompi(folder, "export", "intel-adjust", *FABRIC, "-o", "-")
    assert done.returncode == 0, done.stderr
    assert all(line.startswith(("# ", "export I_MPI_ADJUST_")) for line in done.stdout.splitlines())


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        (("export", "launch-kit", *FABRIC, "--mpi", "other", "-o", "kit"), "--mpi: expecting one of openmpi"),
        (
            ("export", "launch-kit", *FABRIC, "--mpi", "mpich", "-o", "kit", "--mpich-library", "app.txt"),
            "app.txt: expecting a library",
        ),
        (("export", "launch-kit", *FABRIC, "--mpi", "mpich", "-o", "kit", "--mpich-library", "no.so"), "no.so"),
        (("export", "launch-kit", "--topology", "no.json", "-o", "kit"), "no.json"),
        (
            ("export", "launch-kit", "app.txt", "--topology", "xgft:4,2;1,2", "--hosts", "h0000,h0001", "-o", "kit"),
            "a slot for each of 8",
        ),
        (("export", "launch-kit", "--topology", "xgft:4,2;1,2", "--hosts", "h0000", "-o", "kit"), "one host"),
    ],
)
def test_errors_are_one_line(folder, words, wrong):
    done = topompi(folder, *words)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert wrong in done.stderr
