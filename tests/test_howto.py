"""The architecture page and the how-to pages: their picture, the walk of a call, and their steps are true.

``test_readme.py`` runs the pages' consoles.
"""

import os
import re
import shutil
import subprocess
import sys

import pytest

from tests.support import ROOT, command_line, run_mpi

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
HOWTO = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "howto").glob("*.md")}

# What there is of Exscan; without it the rest knows nothing of the operation.
WITHOUT = (
    ("topompi/execution/specs.py", '        CallSpec("Exscan", _OP, "exscan", Form.REDUCTION, sized_by=1),\n', ""),
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
    ("schedules/registry.py", '(("scan", True), ("exscan", False))', '(("scan", True),)'),
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
TOYS = """
from topompi.mapping import Mapping
from topompi.topology import FabricBuilder

def number(*given):
    return 1

def fails(*given):
    return {}["x"]

def empty():
    return FabricBuilder("empty").build()

def fewer(graph, machine, seed):
    return Mapping.of([0, 1, 2], machine.hosts, machine.slots)

def elsewhere(graph, machine, seed):
    return Mapping.of([0, 1, 2, 3], ["other", "hosts"], machine.slots)

def twice(graph, machine, seed):
    return Mapping.of([0, 0, 1, 2], machine.hosts, machine.slots)
"""
RULES = '{"format": "topompi rules", "version": 1, "rules": [{"methods": "Allreduce", "algorithm": "ring"}]}'


def test_the_picture_shows_the_contract_and_the_imports():
    """After a change of either: python -m docs.make_architecture."""
    pytest.importorskip("grimp", reason="the extra lint is not installed")
    from docs.make_architecture import PICTURE, render

    assert PICTURE.read_text(encoding="utf-8") == render()


def test_every_import_that_the_linter_ignores_has_its_own_reason():
    lines = re.findall(r'^ +"[\w.*]+ -> [\w.*]+",?(.*)$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert len(lines) >= 4
    assert all(re.fullmatch(r" +# .{20,}", reason) and "likewise" not in reason for reason in lines), lines


def test_the_page_says_of_every_room_in_which_half_it_is():
    pytest.importorskip("grimp", reason="the extra lint is not installed")
    from docs.make_architecture import layers

    rooms = {room.removeprefix("topompi.") for layer in layers() for room in layer} - {"__main__"}
    named = re.findall(r"`([\w/]+)`", "".join(re.findall(r"^\| [^|]+ \| ([^|]+) \|", SECTIONS["Rooms"], re.MULTILINE)))
    assert rooms - set(named) == {"inputs", "extensions", "errors", "guard", "visible"}  # below all
    assert set(named) - rooms == {"topology/service"}


@pytest.mark.parametrize("file", sorted(set(re.findall(r"`([\w/]+/\w+\.(?:py|c))`", PAGE))))
def test_files_that_the_page_names_exist(file):
    assert (ROOT / file).exists() or (ROOT / "topompi" / file).exists()


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
    files = dict.fromkeys(file for file, _ in second if file != "dispatch/calls.py")  # which is C where it is built
    assert list(files) == [f"execution/{name}.py" for name in ("running", "keys", "lru")]


def test_the_allocator_of_the_page_is_proved_and_gives_neighbouring_nodes_last(tmp_path, monkeypatch):
    from topompi.jobs import Cluster, Workload, check_allocator, simulate

    code = re.search(r"^```python file=spread.py\n(.*?)^```", HOWTO["allocator"], re.MULTILINE | re.DOTALL)[1]
    (tmp_path / "spread.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert check_allocator("spread:Spread") > 100
    jobs = Workload.of("one", submit=[0], run=[1], nodes=[5])
    assert simulate(jobs, Cluster.regular(6, 2), allocator="spread:Spread").held_by(0).tolist() == [0, 2, 4, 1, 3]


@pytest.mark.parametrize("kind", ["algorithm", "source", "mapper"])
def test_what_one_adds_from_outside_works_through_the_command_line(kind):
    blocks = re.findall(r"^```(\w+)", HOWTO[kind], re.MULTILINE)
    assert (blocks[0], blocks[-1]) == ("python", "console")  # which test_readme.py runs
    added = HOWTO[kind].partition("```console")[0]
    assert added.count("\n") <= 30


@pytest.mark.skipif(shutil.which("smpirun") is None, reason="smpirun is not here: nothing is simulated")
def test_an_added_algorithm_is_simulated(tmp_path):
    (tmp_path / "mine.py").write_text(
        re.search(r"^```python file=mine.py\n(.*?)^```", HOWTO["algorithm"], re.M | re.S)[1]
    )
    words = ["osu_like_bench", "simulate", "bcast", "-a", "mine:star", "--topology", "xgft:4,2;1,1", "-m", "1K"]
    done = subprocess.run(
        [sys.executable, "-m", *words], capture_output=True, text=True, timeout=120, cwd=tmp_path, env=_path(ROOT)
    )
    assert done.returncode == 0, done.stderr
    assert "mine:star" in done.stdout


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


def _path(folder):
    return os.environ | {"PYTHONPATH": str(folder), "COLUMNS": "120"}


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


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["topology", "show", "toys:nothing"], "toys:nothing: expecting a function 'nothing' in toys, got none"),
        (["topology", "show", "toys:number"], "toys:number: expecting a Fabric or a Discovery, got int"),
        (["topology", "show", "toys:fails"], "toys:fails: KeyError: 'x'"),
        (["topology", "show", "toys:empty"], "toys:empty: empty: no switch found"),
        (["topology", "show", "nowhere:read"], "nowhere:read: cannot be imported: ModuleNotFoundError: "),
        (["map", "-a", "toys:nothing"], "algorithm: toys:nothing: expecting a function 'nothing' in toys, got none"),
        (["map", "-a", "toys:fails"], "toys:fails: KeyError: 'x'"),
        (["map", "-a", "toys:number"], "toys:number: expecting a Mapping, got int"),
        (["map", "-a", "toys:fewer"], "toys:fewer: ranks: expecting 4, got 3"),
        (["map", "-a", "toys:elsewhere"], "toys:elsewhere: allocation: expecting "),
        (["map", "-a", "toys:twice"], "toys:twice: mapping: slot 0 is given to more than one rank"),
    ],
)
def test_what_is_wrong_with_a_function_is_one_line(tmp_path, words, message):
    (tmp_path / "toys.py").write_text(TOYS)
    (tmp_path / "graph").write_text("0 1 5\n2 3 5\n")
    more = ["--graph", "graph", "--machine", "2:2", "--distances", "1:10"] if words[0] == "map" else []
    done = command_line(*words, *more, folder=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"topompi: {message}")
    assert done.stderr.count("\n") == 1
