"""Tests outside of ``tests/mpi`` get no MPI library: neither its import nor a job."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import settings

from tests.support import examples

# A deadline would measure what else the machine does. The parent is the profile that Hypothesis has chosen itself.
settings.register_profile("patient", examples(100))
settings.load_profile("patient")

PLACE = "tests that need an MPI library stand in tests/mpi"
MPI = Path(__file__).parent / "mpi"
PROGRAMS = MPI.with_name("programs")  # collected inside of jobs


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., SimpleNamespace]:
    """Runs a command of ``topompi`` in this process; its words are the arguments."""
    from topompi.cli.app import main

    def run(*words: object) -> SimpleNamespace:
        monkeypatch.setattr(sys, "argv", ["topompi", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return SimpleNamespace(code=ended.value.code or 0, out=said.out, err=said.err)

    return run


@pytest.fixture(scope="session")
def _no_mpi4py(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an ``mpi4py`` that cannot be imported."""
    folder = tmp_path_factory.mktemp("no_mpi4py")
    (folder / "mpi4py.py").write_text(f'raise ImportError("{PLACE}")\n')
    return folder


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    """A module outside of ``tests/mpi`` cannot import mpi4py when it is collected."""
    with pytest.MonkeyPatch.context() as patch:
        if isinstance(collector, pytest.Module) and not {MPI, PROGRAMS} & set(collector.path.parents):
            patch.setitem(sys.modules, "mpi4py", None)
        return (yield)


@pytest.fixture(autouse=True)
def _no_mpi_outside_its_folder(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, _no_mpi4py: Path
) -> Iterator[None]:
    """A test outside of ``tests/mpi`` cannot import mpi4py, here or in a program that it starts, nor start a job."""
    if request.node.get_closest_marker("needs_mpi") is not None:
        yield
        return
    start = subprocess.Popen.__init__

    def guarded(self: Any, args: Any, *more: Any, **options: Any) -> None:
        words = [args] if isinstance(args, str) else [str(word) for word in args]
        if Path(words[0]).name in ("mpirun", "mpiexec"):
            pytest.fail(PLACE)
        start(self, args, *more, **options)

    monkeypatch.setattr(subprocess.Popen, "__init__", guarded)
    monkeypatch.setenv("PYTHONPATH", str(_no_mpi4py))
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    yield
