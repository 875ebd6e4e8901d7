"""``python -m topompi`` runs a program as Python does."""

import os
import subprocess
import sys

import pytest

from tests.support import ROOT

# What Python tells a program of itself.
ABOUT = """\
import sys
names = sorted(name for name in vars(sys.modules["__main__"]) if name != "sys")
print(globals().get("__file__"), sys.path[0], sys.argv, getattr(__spec__, "name", None), type(__loader__).__name__)
print(names)
if sys.argv[-1] == "fail":
    raise ValueError(sys.argv)
"""


@pytest.mark.parametrize(
    "program",
    [
        ("about.py", "a"),
        ("folder/../about.py",),
        ("link.py",),
        ("about.py", "fail"),
        ("folder",),
        (".",),
        ("-m", "about", "b"),
        ("-m", "about", "fail"),
        ("-c", ABOUT, "c"),
        ("-",),
        ("no_such.py/",),
    ],
)
def test_a_program_is_run_as_python_runs_it(tmp_path, program):
    """A program's view of itself, its printed exceptions without topompi's frames, and its exit status."""
    (tmp_path / "folder").mkdir()
    for name in ("about.py", "__main__.py", "folder/__main__.py"):
        (tmp_path / name).write_text(ABOUT)
    (tmp_path / "link.py").symlink_to("folder/__main__.py")

    def told(*start):
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        line = [sys.executable, *start, *program]
        done = subprocess.run(line, cwd=tmp_path, env=env, input=ABOUT, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout, done.stderr

    natively, ours = told(), told("-m", "topompi")
    if program[0] == "no_such.py/":
        assert (natively[0], ours[0]) == (2, 1)  # 1 as of python -m mpi4py
    else:
        assert ours == natively
