"""A wheel installs two names."""

import os
import subprocess
import sys
import zipfile

import pytest

from tests.support import ROOT


@pytest.mark.long
def test_a_wheel_installs_two_names(tmp_path):
    """``topompi/schedules`` and ``topompi/mapping`` are links in the repository and folders in the wheel."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(tmp_path), str(ROOT)]
    without_compiler = os.environ | {"CC": "false"}  # what is compiled has no names that count here
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=without_compiler)
    if done.returncode:
        pytest.skip(f"no wheel can be built here: {done.stderr[-200:]}")
    names = zipfile.ZipFile(next(tmp_path.glob("*.whl"))).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == {"topompi", "osu_like_bench"}
    assert {"topompi/schedules/registry.py", "topompi/mapping/graph.py", "topompi/py.typed"} <= set(names)
