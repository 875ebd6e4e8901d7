"""A mark for tests that need an MPI library, found from their text, and a guard that keeps it from all other tests."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

STARTERS = {"run_mpi", "mpi_job", "pytest_on_ranks", "mpirun", "mpi4py", "MPI"}
IN_TEXT = re.compile(r"\b(from mpi4py|import mpi4py|mpirun -n)\b")  # programs in strings
JOBS_OF = {"tests.examples", "tests.emulation"}  # modules whose functions start jobs


@cache
def needing_mpi(path: Path) -> frozenset[str]:
    """Names of a module's functions, classes and constants whose text leads to an MPI library, through its others."""
    tree = ast.parse(path.read_text())
    uses: dict[str, set[str]] = {}
    starters = set(STARTERS)
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module in JOBS_OF:
            starters |= {one.name for one in node.names}
        words: set[str] = set()
        for one in ast.walk(node):
            if isinstance(one, ast.Name | ast.arg):
                words.add(one.id if isinstance(one, ast.Name) else one.arg)
            elif isinstance(one, ast.Attribute):
                words.add(one.attr)
            elif isinstance(one, ast.Constant) and isinstance(one.value, str):
                words |= {"mpi4py"} if IN_TEXT.search(one.value) else set()
        for name in _defined(node):
            uses.setdefault(name, set()).update(words)
    found = {name for name, words in uses.items() if words & starters}
    while more := {name for name, words in uses.items() if words & found} - found:
        found |= more
    return frozenset(found)


def _defined(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    return [one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)]


@pytest.hookimpl(tryfirst=True)  # before pytest selects by marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs an MPI library."""
    for item in items:
        if item.path.parent != Path(__file__).parent:
            continue  # tests/programs: inside a job
        names = needing_mpi(item.path)
        whole = "pytestmark" in names
        if whole or getattr(item, "originalname", item.name) in names or names & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.needs_mpi)


@pytest.fixture(scope="session")
def _no_mpi4py(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an ``mpi4py`` that cannot be imported."""
    folder = tmp_path_factory.mktemp("no_mpi4py")
    (folder / "mpi4py.py").write_text('raise ImportError("this test is to be marked with needs_mpi")\n')
    return folder


@pytest.fixture(autouse=True)
def _only_marked_tests_use_mpi(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, _no_mpi4py: Path
) -> Iterator[None]:
    """A test without the mark cannot import mpi4py, here or in a program that it starts, and cannot start a job."""
    if request.node.get_closest_marker("needs_mpi") is not None:
        yield
        return
    start = subprocess.Popen.__init__

    def guarded(self: Any, args: Any, *more: Any, **options: Any) -> None:
        words = [args] if isinstance(args, str) else [str(word) for word in args]
        if Path(words[0]).name in ("mpirun", "mpiexec"):
            pytest.fail("this test starts an MPI job and is to be marked with needs_mpi")
        start(self, args, *more, **options)

    monkeypatch.setattr(subprocess.Popen, "__init__", guarded)
    monkeypatch.setenv("PYTHONPATH", str(_no_mpi4py))
    if "mpi4py" not in sys.modules:
        monkeypatch.setitem(sys.modules, "mpi4py", None)
    yield
