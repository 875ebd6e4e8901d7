"""Where tests stand: those with an MPI library in ``tests/mpi``, and all at the paths by which others name them."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import ROOT

NAMING = ("Makefile", ".ci/run", "pyproject.toml", "CONTRIBUTING.md", "SECURITY.md")


def test_paths_and_modules_of_tests_that_files_name_are_there() -> None:
    for file in (*map(ROOT.joinpath, NAMING), *(ROOT / "docs").rglob("*.md")):
        text = file.read_text(encoding="utf-8")
        paths = {found.rstrip("./") for found in re.findall(r"(?<![\w/.])tests/[\w./-]*", text)}
        paths |= {f"{found.replace('.', '/')}*" for found in re.findall(r"-m (tests\.[\w.]+)", text)}
        assert [path for path in sorted(paths) if not list(ROOT.glob(path))] == [], file


def test_every_test_stands_in_a_folder() -> None:
    assert list((ROOT / "tests").glob("test_*.py")) == []


def test_a_test_gets_no_mpi_library_here() -> None:
    with pytest.raises(ImportError):
        import mpi4py  # noqa: F401
    done = subprocess.run([sys.executable, "-c", "import mpi4py"], capture_output=True, text=True, timeout=60)
    assert "tests that need an MPI library stand in tests/mpi" in done.stderr
    with pytest.raises(pytest.fail.Exception):
        subprocess.run(["mpirun", "--version"], check=True)


def test_a_module_gets_one_in_its_folder_alone_and_all_there_is_marked(tmp_path: Path) -> None:
    (tmp_path / "mpi4py.py").touch()  # the library
    for folder in ("tests", "tests/mpi"):
        (tmp_path / folder).mkdir()
        shutil.copy(ROOT / folder / "conftest.py", tmp_path / folder)
        (tmp_path / folder / f"test_{Path(folder).name}.py").write_text("import mpi4py\n\ndef test_nothing(): ...\n")
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", "-m", "needs_mpi"]
    environment = os.environ | {"PYTHONPATH": f"{tmp_path}:{ROOT}"}  # the copies import tests.support
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    assert re.findall(r"^(?:ERROR \S+|\S+::\S+)$", done.stdout, re.MULTILINE) == [
        "tests/mpi/test_mpi.py::test_nothing",
        "ERROR tests/test_tests.py",
    ], done.stdout + done.stderr
