"""The program in C that measures choices of algorithms in one job of Open MPI."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.jobs import compiled
from tests.support import mpirun
from topompi.tuning.ompi_rules import write_classic


def test_each_side_runs_by_its_own_parameters(tmp_path):
    """The allgather for two ranks (6) refuses four: so one sees which side runs it, by the rules file or forced."""
    if "--allow-run-as-root" not in mpirun():
        pytest.skip("this Python runs with MPICH")
    if not (shutil.which("mpicc") or (Path(sys.executable).parent / "mpicc").exists()) or not shutil.which("gcc"):
        pytest.skip("no mpicc with a C compiler is here")
    (tmp_path / "rules").write_text(write_classic({"Allgather": {4: [(0, 6, 0)]}}, []))
    sides = {(-1, 0): False, (0, 0): True, (4, 0): False, (6, 0): True}
    lines = [
        "moved bcast",
        "method Allgather",
        *(f"side {number} {segment}" for number, segment in sides),
        "size 1024 10",
    ]
    lines += ["method Bcast", "side -1 0", "side 0 0", "side 3 8192", "size 8192 10", "size 65536 10"]
    (tmp_path / "plan").write_text("\n".join([*lines, ""]))
    variables = {"use_dynamic_rules": "1", "dynamic_rules_filename": str(tmp_path / "rules")}
    environment = os.environ | {f"OMPI_MCA_coll_tuned_{name}": value for name, value in variables.items()}
    words = [*mpirun(), "-n", "4", str(compiled("choice_loops", tmp_path)), str(tmp_path / "plan")]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    first, short, long = map(json.loads, done.stdout.splitlines())
    assert {(one["number"], one["segment"]): one["seconds"] is None for one in first["sides"]} == sides
    assert [one["number"] for one in short["sides"]] == [-1, 0]  # two segments have to fit
    assert [one["number"] for one in long["sides"]] == [-1, 0, 3]
    for one in (first, short, long):
        assert all(3 <= len(side["seconds"]) <= 64 for side in one["sides"] if side["number"] < 0)
