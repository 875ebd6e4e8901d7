"""The demo from a wheel, without rights, compilers, MPI and the system's programs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.cli.test_demo import PICTURES
from tests.support import ROOT

# What it starts ends with it, and its mounts too.
ALONE = ("unshare", "--mount", "--pid", "--fork", "--kill-child")


def may_mount() -> bool:
    """Whether this user may make a mount namespace, which a container's root may not."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return False
    trial = ["mount", "-t", "tmpfs", "none", "/mnt"]
    return subprocess.run([*ALONE, *trial], capture_output=True, timeout=30).returncode == 0


@pytest.fixture
def folder():
    """A folder that every user can reach, which pytest's own are not."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.long
@pytest.mark.skipif(not may_mount(), reason="needs root and mount namespaces, to hide the system's programs")
def test_the_demo_of_a_wheel_needs_no_rights_no_compiler_and_no_program_of_the_system(folder):
    made = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(folder), str(ROOT)]
    subprocess.run(made, check=True, capture_output=True, timeout=300)
    [wheel] = folder.glob("*.whl")
    bare = [sys.executable, str(ROOT / "tests" / "programs" / "bare.py"), str(wheel), str(folder)]
    done = subprocess.run([*ALONE, *bare], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    seconds = dict(re.findall(r"^([\w -]+): ([\d.]+) s$", done.stdout, re.MULTILINE))
    assert float(seconds["demo"]) < 60
    assert float(seconds["plain demo"]) < 60
    assert done.stdout.count("x as fast by simulation") == 2
    for pictures in ("topompi-demo", "plain"):
        assert sorted(one.name for one in (folder / "home" / pictures).iterdir()) == sorted(PICTURES)
