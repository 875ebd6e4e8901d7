"""The walk of a call, and an operation that is added, are as the pages say."""

import re
import shutil
import subprocess
import sys

import pytest

from tests.docs.test_howto import HOWTO, SECTIONS, _path
from tests.support import ROOT, run_mpi

# What there is of Exscan; without it the rest knows nothing of the operation.
WITHOUT = (
    ("topompi/mpi/execution/specs.py", '        CallSpec("Exscan", _OP, "exscan", Form.REDUCTION, sized_by=1),\n', ""),
    ("schedules/schedule.py", '*("scan", "exscan"),', '"scan",'),
    ("schedules/schedule.py", '"allreduce", "scan", "exscan")  #', '"allreduce", "scan")  #'),
    ("schedules/proof/places.py", '"allreduce", "scan", "exscan")', '"allreduce", "scan")'),
    ("schedules/proof/places.py", 'schedule.size - 1 if schedule.collective == "exscan" else ranks', "ranks"),
    (
        "schedules/proof/places.py",
        '        if self.schedule.collective == "exscan":\n            return np.repeat(np.arange(1, size), blocks)\n',
        "",
    ),
    ("schedules/proof/places.py", '        "exscan": (same, same * (np.arange(schedule.size) > 0)),\n', ""),
    ("schedules/analysis/bounds.py", ' = out_in["exscan"]', ""),
    ("schedules/table.py", '(("scan", True), ("exscan", False))', '(("scan", True),)'),
    ("tests/programs/operations.py", '    Operation("Exscan", "exscan", OWN, OWN, reduces=True),\n', ""),
)
WALK = """
import sys
from pathlib import Path
import numpy as np
from mpi4py import MPI
import topompi
comm = topompi.Intracomm(MPI.COMM_WORLD, topology="xgft:2,2;1,1", hosts="h[0000-0003]")
send, receive = np.ones(1000), np.empty(1000)
here = Path(topompi.__file__).parent
for turn in ("first", "second"):
    seen = {}
    def note(frame, event, argument):
        path = Path(frame.f_code.co_filename)
        if event == "call" and here in path.parents and frame.f_code.co_name.isidentifier():  # no lambda
            seen.setdefault(f"{turn} {path.relative_to(here)} {frame.f_code.co_name}")
    sys.setprofile(note)
    comm.Allreduce(send, receive)
    sys.setprofile(None)
    if comm.rank == 0:
        print(*seen, sep="\\n", flush=True)
"""
RULES = '{"format": "topompi rules", "version": 1, "rules": [{"methods": "Allreduce", "algorithm": "ring"}]}'


def test_a_call_goes_the_way_that_the_page_says(tmp_path):
    program, rules = tmp_path / "walk.py", tmp_path / "rules.json"
    program.write_text(WALK)
    rules.write_text(RULES)
    done = run_mpi(4, program, env={"TOPOMPI_RULES": str(rules), "TOPOMPI_TUNE": "off"}, timeout=90)
    assert done.returncode == 0, done.stderr
    steps = [line.split() for line in done.stdout.splitlines()]
    first, second = ([step[1:] for step in steps if step[0] == turn] for turn in ("first", "second"))
    rows = re.findall(r"^\| `(\S+\.py)` \| `(\w+)` \|", SECTIONS["The walk of one call"], re.MULTILINE)
    places = [first.index([*row]) for row in rows]
    assert len(rows) > 10
    assert places == sorted(places)
    files = dict.fromkeys(file for file, _ in second if file != "mpi/dispatch/calls.py")  # which is C where it is built
    assert list(files) == [f"mpi/execution/{name}.py" for name in ("running", "keys", "lru")]


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """The sources without Exscan."""
    folder = tmp_path_factory.mktemp("copy") / "sources"
    skipped = shutil.ignore_patterns("__pycache__", "*.so", "data", ".hypothesis")
    for name in ("topompi", "schedules", "mapping", "tests"):
        shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=skipped)
    for file, old, new in WITHOUT:
        text = (folder / file).read_text(encoding="utf-8")
        assert text.count(old) == 1, (file, old)
        (folder / file).write_text(text.replace(old, new), encoding="utf-8")
    return folder


def _schedule(folder):
    words = ["topompi", "schedule", "exscan", "--topology", "xgft:3,2;1,1", "--ppn", "1", "--bytes", "1000", "--check"]
    return subprocess.run(
        [sys.executable, "-m", *words], capture_output=True, text=True, timeout=60, cwd=folder, env=_path(folder)
    )


def _apply(folder, edits):
    """Apply lines as the page writes them: context, then what stands behind it; or what goes and what comes instead."""
    file, at = None, 0
    for line in edits.splitlines():
        if line.startswith("--- "):
            file, at = folder / line[4:], 0
            lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        elif line.startswith("+"):
            lines.insert(at, line[1:])
            at += 1
            file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        else:
            assert lines.count(line[1:]) == 1, line
            at = lines.index(line[1:]) + 1
            if line.startswith("-"):
                at -= 1
                del lines[at]


@pytest.mark.long
def test_an_operation_is_added_by_the_lines_of_the_page(copy):
    missing = _schedule(copy)
    assert missing.returncode == 1
    assert "got 'exscan'" in missing.stderr
    edits = re.search(r"^```diff\n(.*?)^```", HOWTO["operation"], re.M | re.S)[1]
    _apply(copy, edits)
    proved = _schedule(copy)
    assert proved.returncode == 0, proved.stderr
    assert re.search(r"^later ", proved.stdout, re.MULTILINE)
    assert "proved: it does what MPI defines for exscan" in proved.stdout
    matrix = copy / "tests" / "programs" / "matrix.py"
    done = run_mpi(3, matrix, "--sparse", "--only", "Exscan", "3", env={"PYTHONPATH": str(copy)}, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert re.search(r"^columns Exscan exscan native .*later", done.stdout, re.MULTILINE), done.stdout
    assert re.search(r"[1-9]\d* cases on 3 ranks, 0 failures", done.stdout)
