"""The walks of three new users, step by step: the output of each command, and no traceback."""

import os
import re
import shutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

from tests.support import ROOT

WALKS = ROOT / "tests" / "walks"
STEP = re.compile(r"^\$ (.*)\n((?:[>!=].*\n?)*)", re.MULTILINE)
FILE = re.compile(r"^FILE (\S+)\n(.*?)(?=^FILE |^\$ |^# |\Z)", re.MULTILINE | re.DOTALL)


def walked(name: str, folder: Path, launcher: list[str]) -> None:
    """Take every step of a walk in a folder of its own."""
    text = (WALKS / f"{name}.walk").read_text(encoding="utf-8")
    for file, content in FILE.findall(text):
        (folder / file).write_text(content.rstrip() + "\n", encoding="utf-8")
    for suffix in ("ibnetdiscover.xz", "lfts.xz"):
        shutil.copy(str(files("osu_like_bench") / "fabrics" / f"fattree64.{suffix}"), folder / f"fabric.{suffix}")
    for command, demands in STEP.findall(text):
        _step(command, demands.splitlines(), folder, launcher)


def _step(command: str, demands: list[str], folder: Path, launcher: list[str]) -> None:
    start = {"topompi": [sys.executable, "-m", "topompi"], "mpirun": launcher}
    words = [part for word in command.split(" ") for part in start.get(word, [word])]
    words = [sys.executable if word == "python" else word for word in words]
    if command.startswith("mpirun"):  # the word behind python -m is no command of ours
        words = [*launcher, *(sys.executable if word == "python" else word for word in command.split(" ")[1:])]
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("TOPOMPI_", "SLURM_"))}
    environment = kept | {"PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(folder / "cache")}
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, cwd=folder, env=environment)
    said = done.stdout + done.stderr
    codes = [demand[1:] for demand in demands if demand.startswith("=")] or ["0"]
    assert codes == ["any"] or str(done.returncode) in codes, f"{command}: exit code {done.returncode}\n{said}"
    for demand in demands:
        if demand.startswith(">"):
            assert re.search(demand[2:], said, re.MULTILINE), f"{command}: no {demand[2:]!r} in\n{said}"
        elif demand.startswith("!"):
            assert not re.search(demand[2:], said, re.MULTILINE), f"{command}: {demand[2:]!r} in\n{said}"
    assert "Traceback" not in said, f"{command}\n{said}"


@pytest.mark.long
@pytest.mark.parametrize("name", ["administrator", "researcher"])
def test_a_user_without_mpi_gets_through(name, tmp_path):
    walked(name, tmp_path, ["no-launcher"])


def test_walks_fail_where_a_command_prints_something_else(tmp_path):
    with pytest.raises(AssertionError, match="no 'nowhere' in"):
        _step("topompi --version", ["> nowhere"], tmp_path, [])
    with pytest.raises(AssertionError, match="exit code 0"):
        _step("topompi --version", ["=1"], tmp_path, [])
