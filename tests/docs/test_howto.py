"""The architecture page and the how-to pages: their picture, the walk of a call, and their steps are true.

``test_readme.py`` runs the pages' consoles.
"""

import os
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest

from tests.support import ROOT, command_line
from topompi.schedules.proof import check

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
HOWTO = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "howto").glob("*.md")}
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

    rooms = {room.rpartition(".")[2] for layer in layers() for room in layer} - {"__main__"}
    named = re.findall(r"`([\w/]+)`", "".join(re.findall(r"^\| [^|]+ \| ([^|]+) \|", SECTIONS["Rooms"], re.MULTILINE)))
    assert rooms - set(named) == {"inputs", "errors", "guard", "visible"}  # below all
    assert set(named) - rooms == {"topology/service"}


@pytest.mark.parametrize("file", sorted(set(re.findall(r"`([\w/]+/\w+\.(?:py|c))`", PAGE))))
def test_files_that_the_page_names_exist(file):
    assert (ROOT / file).exists() or (ROOT / "topompi" / file).exists()


def test_the_allocator_of_the_page_is_proved_and_gives_neighbouring_nodes_last(tmp_path, monkeypatch):
    from topompi.machine.jobs import Cluster, Workload, check_allocator, simulate

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


def test_the_algorithms_of_the_page_do_what_mpi_defines_from_every_root():
    found = {}
    exec(re.search(r"^```python file=mine.py\n(.*?)^```", HOWTO["algorithm"], re.M | re.S)[1], found)
    for name in ("star", "chain"):
        for root in range(5):
            check(found[name](SimpleNamespace(num_ranks=5), root))


def _path(folder):
    return os.environ | {"PYTHONPATH": str(folder), "COLUMNS": "120"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["topology", "show", "toys:nothing"], "toys:nothing: expecting a function 'nothing' in toys, got none"),
        (["topology", "show", "toys:number"], "toys:number: expecting a Fabric or a Discovery, got int"),
        (["topology", "show", "toys:fails"], "toys:fails: KeyError: 'x'"),
        (["topology", "show", "toys:empty"], "toys:empty: empty: no switch found"),
        (["topology", "show", "nowhere:read"], "nowhere:read: expecting module:function, such as mine:ring"),
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
    more = ["graph", "--topology", "tree=2:2@1:10"] if words[0] == "map" else []
    done = command_line(*words, *more, folder=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"topompi: {message}")
    assert done.stderr.count("\n") == 1
