"""Common helpers of all tests: the places of real data, and a start of MPI jobs with a time limit."""

from __future__ import annotations

import contextlib
import io
import os
import random
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from topompi.errors import TopompiError
from topompi.inputs import InputFile
from topompi.topology.discovery import Discovery, Report

if TYPE_CHECKING:
    from hypothesis import settings

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared" / "data"
SIZES = (1, 2, 3, 4, 5, 8)
# What Open MPI takes on one host by itself, after it has looked for networks for half a second or more at every start.
TRANSPORT = {"OMPI_MCA_pml": "ob1,monitoring", "OMPI_MCA_btl": "self,sm"}
# MPICH's waiting ranks then sleep for 50 us; `sched_yield` often gives the processor to another rank that waits, too.
SLEEP = {"MPIR_CVAR_ENABLE_HEAVY_YIELD": "1"}
# Open MPI's launcher says this, now and then, before any rank has begun: a race of its own (open-mpi/ompi#1986).
NOT_STARTED = "The PMIx server's listener thread failed to start"

THOROUGH = os.environ.get("TOPOMPI_THOROUGH") == "1"


def examples(most: int, **more: Any) -> settings:
    """Settings of a property test: ``most`` examples in `make test-long` and with WHOLE=1, a third in `make test`."""
    from hypothesis import settings  # imported here, because environments of other packages have this module without it

    return settings(max_examples=most if THOROUGH else -(-most // 3), deadline=None, **more)


def shared_data(name: str) -> Path:
    """Path of a file of the shared data; skips the test where it is absent."""
    root = Path(os.environ.get("TOPOMPI_SHARED_DATA", SHARED))
    if not (root / name).exists():
        pytest.skip(f"shared data file {name} is not here")
    return root / name


def with_reasons(verbose: str) -> list[str]:
    """Lines that ``--verbose`` printed, with the reasons that stand below the table in the rows that name them."""
    note = re.compile(r"^(\[\d+\]) (.*(?:\n {4}.*)*)\n", re.MULTILINE)
    reasons = {mark: re.sub(r"\n +", " ", reason) for mark, reason in note.findall(verbose)}
    lines = note.sub("", verbose).splitlines()
    return [re.sub(r"\[\d+\]$", lambda mark: reasons.get(mark[0], mark[0]), line) for line in lines]


def text_of(content: str, name: str = "f") -> InputFile:
    """A source text with this content, called ``f`` in messages."""
    return InputFile(name, lambda: io.BytesIO(content.encode()))


def read_text(module: ModuleType, content: str, partial: bool = False) -> tuple[Discovery, list[str]]:
    """What a source module makes of a content, and the problems it reported."""
    report = Report(partial=partial)
    return module.read([text_of(content)], report), report.problems


def refusal(read: Callable[..., object], *given: Any, error: type[TopompiError] = TopompiError) -> str:
    """The message of the error of ours that a function raises."""
    with pytest.raises(error) as caught:
        read(*given)
    return str(caught.value)


def damaged(text: str, seed: int, number: int, characters: bytes) -> Iterator[bytes]:
    """Copies of a text, each with one to four of its places cut, overwritten or lengthened with ``characters``."""
    rng = random.Random(seed)
    for _ in range(number):
        data = bytearray(text.encode())
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(data))
            data[at : at + rng.randint(0, 3)] = bytes(rng.choices(characters, k=rng.randint(0, 3)))
        yield bytes(data)


def command_line(*words: object, folder: Path = ROOT, **variables: str) -> subprocess.CompletedProcess[str]:
    """What a command of topompi's prints, run in this process: a new one takes a second to start.

    :param words: of the command line, such as ``"map"`` and its options.
    :param folder: where it runs; the modules of a user that it loads from there are forgotten at its end.
    :param variables: of the environment, besides those of this process.
    """
    from topompi.cli import main

    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    code: object = 0
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        patch.setattr(sys, "argv", ["topompi", *map(str, words)])
        patch.setattr(sys, "path", list(sys.path))
        patch.chdir(folder)
        for name, value in variables.items():
            patch.setenv(name, value)
        try:
            main()
        except SystemExit as end:
            code = end.code
    if folder != ROOT:
        for name in [one for one, module in sys.modules.items() if _is_in(folder, module)]:
            del sys.modules[name]
    printed = (stream.detach().getvalue().decode() for stream in (out, err))
    return subprocess.CompletedProcess(sys.argv, int(code or 0), *printed)


def _is_in(folder: Path, module: object) -> bool:
    return folder in Path(getattr(module, "__file__", None) or "/").parents


def mpirun() -> list[str]:
    """The start of an mpirun command line of the MPI that this Python runs with."""
    beside = Path(sys.executable).parent / "mpirun"
    command = str(beside) if beside.exists() else shutil.which("mpirun")
    if command is None:
        pytest.skip("no mpirun beside this Python or on the PATH")
    if "Open MPI" in _version(command):
        # More ranks than cores: idle ranks must yield, or every test waits for time slices.
        return [command, "--allow-run-as-root", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]
    return [command]


@cache
def _version(command: str) -> str:
    return subprocess.run([command, "--version"], capture_output=True, text=True, timeout=30).stdout


def heed_interrupts() -> None:
    """For the child of a Popen: take SIGINT again where this process was started, in the background, to ignore it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def mpi_job(
    size: int, *args: str | Path, timeout: float, env: dict[str, str] | None = None, folder: Path = ROOT
) -> subprocess.CompletedProcess[str]:
    """Run ``python args...`` on ``size`` ranks; a run beyond ``timeout`` seconds is ended, with a negative status.

    A launcher that could not start itself is started once more.
    """
    done = _mpi_job(size, *args, timeout=timeout, env=env, folder=folder)
    if done.returncode and NOT_STARTED in done.stderr:
        done = _mpi_job(size, *args, timeout=timeout, env=env, folder=folder)
    return done


def _mpi_job(
    size: int, *args: str | Path, timeout: float, env: dict[str, str] | None, folder: Path
) -> subprocess.CompletedProcess[str]:
    command = [*mpirun(), "-n", str(size), sys.executable, *map(str, args)]
    # Buffered, a rank writes whole lines: without, another's text can come between a line and its end.
    whole_lines = {"PYTHONUNBUFFERED": ""}
    waiting = SLEEP if size > (os.cpu_count() or 1) else {}
    full_env = {**waiting, **os.environ, **TRANSPORT, **whole_lines, "PYTHONPATH": str(ROOT), **(env or {})}
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=full_env,
        cwd=folder,
        start_new_session=True,
    ) as process:
        try:
            out, err = process.communicate(timeout=timeout)
            return subprocess.CompletedProcess(command, process.returncode, out, err)
        except subprocess.TimeoutExpired:
            out, err = _end(process)
    return subprocess.CompletedProcess(command, -signal.SIGKILL, out, err)


def _end(process: subprocess.Popen[str]) -> tuple[str, str]:
    """End a job: its ranks are in process groups of their own, which mpirun ends where it is asked to end itself."""
    process.terminate()
    try:
        return process.communicate(timeout=10)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.communicate()


def run_mpi(
    size: int, *args: str | Path, timeout: float = 60, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run ``python args...`` on ``size`` ranks; a run beyond ``timeout`` seconds is ended and fails the test."""
    done = mpi_job(size, *args, timeout=timeout, env=env)
    if done.returncode == -signal.SIGKILL:
        pytest.fail(f"no end within {timeout} s: {' '.join(done.args)}\n{done.stdout}\n{done.stderr}")
    return done


def pytest_on_ranks(
    size: int, program: Path, *options: str, timeout: float = 90, env: dict[str, str] | None = None
) -> str:
    """What rank after rank printed when each of ``size`` ran the tests of ``program`` and all passed.

    The first failure on any rank ends the job. There are no fixtures of temporary folders: ranks that tidy up pytest's
    folder at the same time fail, now and then, over what another has removed.
    """
    plugins = [word for name in ("pytest_mpi", "no:tmpdir", "no:cacheprovider") for word in ("-p", name)]
    # Other plugins, and tests/conftest.py with Hypothesis, would take half of a rank's time until its first test.
    pytest_args = ["-m", "pytest", "-q", "-x", *plugins, "--with-mpi", "--confcutdir", program.parent]
    alone = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **(env or {})}
    done = run_mpi(size, "-m", "mpi4py", *pytest_args, *options, program, timeout=timeout, env=alone)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout
