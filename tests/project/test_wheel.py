"""A wheel: the names that it installs, its demo with nothing but Python, and the least versions that it needs."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from tests.cli.test_demo import PICTURES
from tests.support import ROOT

COMMANDS = (
    ("topology", "show", "xgft:4,4;1,2"),
    ("schedule", "allreduce", "--topology", "xgft:4,4;1,2", "--ppn", "2", "--bytes", "65536"),
    ("map", "pairs.txt", "--topology", "xgft:4,4;1,2", "--slots", "2"),
    ("why", "bcast", "1M", "--topology", "xgft:4,4;1,2", "--ppn", "4"),
    ("jobs", "--help"),
)

# What it starts ends with it, and its mounts too.
ALONE = ("unshare", "--mount", "--pid", "--fork", "--kill-child")


def may_mount() -> bool:
    """Whether this user may make a mount namespace, which a container's root may not."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return False
    trial = ["mount", "-t", "tmpfs", "none", "/mnt"]
    return subprocess.run([*ALONE, *trial], capture_output=True, timeout=30).returncode == 0


@pytest.fixture(scope="module")
def wheel():
    """The path of a wheel, in a folder that every user can reach, which pytest's own are not."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        # All tests take one wheel: two that are made at the same time would share the folder build.
        made = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, str(ROOT)]
        done = subprocess.run(made, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        yield next(Path(folder).glob("*.whl"))


@pytest.mark.long
def test_a_wheel_installs_two_names(wheel):
    """``topompi/schedules`` and ``topompi/mapping`` are links in the repository and folders in the wheel."""
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == {"topompi", "osu_like_bench"}
    assert {"topompi/schedules/registry.py", "topompi/mapping/graph.py", "topompi/py.typed"} <= set(names)


@pytest.mark.long
@pytest.mark.skipif(not may_mount(), reason="needs root and mount namespaces, to hide the system's programs")
def test_the_demo_of_a_wheel_needs_no_rights_no_compiler_and_no_program_of_the_system(wheel):
    bare = [sys.executable, str(ROOT / "tests" / "programs" / "bare.py"), str(wheel), str(wheel.parent)]
    done = subprocess.run([*ALONE, *bare], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("x as fast by simulation") == 2
    for pictures in ("topompi-demo", "plain"):
        assert sorted(one.name for one in (wheel.parent / "home" / pictures).iterdir()) == sorted(PICTURES)


def least() -> list[str]:
    """The dependencies, each pinned to the least version that it is allowed to have."""
    named = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    found = [re.fullmatch(r"([\w-]+)>=([\w.]+)", one) for one in named]
    assert all(found), f"expecting NAME>=VERSION of each, got {named}"
    return [f"{match[1]}=={match[2]}" for match in found if match]


@pytest.mark.long
def test_commands_run_on_the_least_versions(wheel, tmp_path):
    home = tmp_path / "env"
    venv.create(home, with_pip=True)
    python = str(home / "bin" / "python")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run([*pip, "--only-binary", ":all:", *least()], capture_output=True, text=True, timeout=400)
    if "No matching distribution" in done.stderr:
        pytest.skip(f"a least version is not to be had here: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    subprocess.run([*pip, "--no-deps", str(wheel)], check=True, capture_output=True, timeout=400)
    (tmp_path / "pairs.txt").write_text("0 1 100\n2 3 100\n1 2 1\n")
    for words in COMMANDS:
        done = subprocess.run(
            [python, "-P", "-m", "topompi", *words], capture_output=True, text=True, timeout=100, cwd=tmp_path
        )
        assert done.returncode == 0, f"topompi {' '.join(words)}: {done.stderr[-2000:]}"
