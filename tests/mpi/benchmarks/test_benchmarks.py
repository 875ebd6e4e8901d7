"""The programs of benchmarks/ that need an emulated network: whole runs, and the results in their tables."""

import json
import subprocess
import sys

import pytest

from tests.emulation import needs_root, private_state  # noqa: F401 - a fixture
from tests.support import ROOT, mpirun
from topompi.mpi.prediction.untuned import UNPROVEN

pytestmark = [needs_root, pytest.mark.usefixtures("private_state")]


def start(name: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """A program that has ended."""
    mpirun()  # skips where there is none
    command = [sys.executable, "-m", f"benchmarks.{name}", *arguments]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=200, cwd=ROOT)


def run(name: str, *arguments: object) -> str:
    """What a program prints."""
    done = start(name, "--network", "2x2", *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_applications_solve_alike_on_both_sides(tmp_path):
    kept = tmp_path / "runs.json"
    printed = run("applications", "--case", "cg", 1, "--grid 12x8x8", "--runs", 1, "--json", kept)
    runs = json.loads(kept.read_text())["runs"]
    assert [(one["side"], one["order"]) for one in runs] == [("original", "random:1"), ("topompi", "random:1")]
    assert runs[0]["result"] == runs[1]["result"] != []
    assert all(one["communication"] > 0 and 0 < one["seconds"] < one["job"] for one in runs)
    row = printed.splitlines()[2]
    assert "| cg `--grid 12x8x8` | 1 |" in row
    assert "| yes |" in row
    again = run("applications", "--runs", 0, "--join", kept)
    assert again.splitlines()[2].split("|")[:9] == row.split("|")[:9]


def test_emulated_goes_on_after_a_job_that_fails_and_times_only_what_its_file_has_not_got(tmp_path):
    kept, job = tmp_path / "cells.jsonl", ["2x2", "2:1", "random:1", 1]
    earlier = {"library": "?", "collective": "bcast", "size": 1024, "algorithms": [], "times": {}}
    earlier["times"] = {side: [1.0] for side in ("topompi", "library")}
    kept.write_text(json.dumps({"job": [*job, sys.executable], "cells": [earlier]}) + "\n")
    told = ("--networks", "2x2", "--uplink-rates", "2:1", "--orders", "random:1", "--ppn", 1, "--seconds", 0.1)
    cells = ("--collectives", "bcast,allgather", "--sizes", "1K,64K", "--limit", 0.01)
    done = start("emulated", *told, *cells, "--pythons", f"/no/such/python,{sys.executable}", "--json", kept)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "emulated: 2x2, 2:1, random:1, 1, /no/such/python: after 0 cells: " in done.stderr
    lines = {line["job"][-1]: line for line in map(json.loads, kept.read_text().splitlines()[1:])}
    found = lines[sys.executable]["cells"]
    assert {(cell["collective"], cell["size"]) for cell in found} == {("bcast", 65536), ("allgather", 1024)}
    assert all("cost model: " in reason or UNPROVEN in reason for cell in found for reason in cell["reasons"])
    assert [tuple(one[:2]) for one in lines[sys.executable]["left_out"]] == [("allgather", 65536)]
    assert sum(line.startswith("| 2x2 | 2:1 | random:1 | 1 | ") for line in done.stdout.splitlines()) == 3


ENDED = """
import os, signal
from benchmarks.jobs import one_line_errors

with one_line_errors("ended"):
    try:
        os.kill(os.getpid(), signal.SIGTERM)
        signal.pause()
    finally:
        print("taken down")
"""


def test_a_program_that_is_ended_takes_down_its_networks():
    done = subprocess.run([sys.executable, "-c", ENDED], cwd=ROOT, capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout, done.stderr) == (143, "taken down\n", "")
