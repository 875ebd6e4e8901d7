"""The least versions of dependencies in pyproject.toml: commands run on them."""

from __future__ import annotations

import re
import subprocess
import tomllib
import venv
from pathlib import Path

import pytest

from tests.support import ROOT

COMMANDS = (
    ("topology", "show", "xgft:4,4;1,2"),
    ("schedule", "allreduce", "--topology", "xgft:4,4;1,2", "--ppn", "2", "--bytes", "65536"),
    ("map", "--graph", "pairs.txt", "--topology", "xgft:4,4;1,2", "--slots", "2"),
    ("why", "bcast", "1M", "--topology", "xgft:4,4;1,2", "--ppn", "4"),
    ("jobs", "--help"),
)


def least() -> list[str]:
    """The dependencies, each pinned to the least version that it is allowed to have."""
    named = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    found = [re.fullmatch(r"([\w-]+)>=([\w.]+)", one) for one in named]
    assert all(found), f"expecting NAME>=VERSION of each, got {named}"
    return [f"{match[1]}=={match[2]}" for match in found if match]


@pytest.mark.long
def test_commands_run_on_the_least_versions(tmp_path: Path) -> None:
    home = tmp_path / "env"
    venv.create(home, with_pip=True)
    python = str(home / "bin" / "python")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run([*pip, "--only-binary", ":all:", *least()], capture_output=True, text=True, timeout=400)
    if "No matching distribution" in done.stderr:
        pytest.skip(f"a least version is not to be had here: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    subprocess.run([*pip, "--no-deps", str(ROOT)], check=True, capture_output=True, timeout=400)
    (tmp_path / "pairs.txt").write_text("0 1 100\n2 3 100\n1 2 1\n")
    for words in COMMANDS:
        done = subprocess.run(
            [python, "-P", "-m", "topompi", *words], capture_output=True, text=True, timeout=100, cwd=tmp_path
        )
        assert done.returncode == 0, f"topompi {' '.join(words)}: {done.stderr[-2000:]}"
