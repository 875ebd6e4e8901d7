"""The start of MPI jobs, and progress reports, for the programs of this package."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from topompi.errors import TopompiError

from .paths import ROOT

__all__ = ["network_parser", "one_line_errors", "progress", "run_ranks"]


def run_ranks(
    ranks: int, arguments: Sequence[object], *, variables: Mapping[str, str] | None = None, timeout: float = 300.0
) -> int:
    """Start ``python ARGUMENTS`` on some ranks of this machine, with the mpirun beside this Python or on the path.

    :param ranks: number of ranks, which may exceed the processors.
    :param arguments: arguments of the interpreter, for example ``-m benchmarks.overhead``; the ranks find the
        repository's packages.
    :param variables: environment variables of the ranks; this process's variables that begin with ``TOPOMPI_`` are not
        passed on.
    :param timeout: seconds after which the job is killed.
    :returns: the exit code of mpirun.
    :raises subprocess.TimeoutExpired: if the job takes longer.
    """
    beside = Path(sys.executable).parent / "mpirun"
    command = [str(beside) if beside.exists() else shutil.which("mpirun") or "mpirun"]
    version = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True).stdout
    if "Open MPI" in version:
        command += ["--allow-run-as-root", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TOPOMPI_")}
    environment |= {"PYTHONPATH": str(ROOT), **(variables or {})}
    words = [*command, "-n", str(ranks), sys.executable, *map(str, arguments)]
    return subprocess.run(words, env=environment, cwd=ROOT, timeout=timeout).returncode


def network_parser(words: str | None, rates: str = "of host links, bits/s") -> ArgumentParser:
    """Return a parser of a program that measures on an emulated network, with the options that describe its hosts.

    :param words: description of the program.
    :param rates: help text for the rate of the host links.
    """
    parser = ArgumentParser(description=words, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--network", default="4x4", help="what to emulate (default 4x4: 4 leaves x 4 hosts)")
    parser.add_argument("--host-rate", default="100M", help=rates)
    return parser


@contextmanager
def one_line_errors(program: str) -> Iterator[None]:
    """End the program if an error is raised, with exit code 1 and one line on standard error.

    SIGTERM and SIGHUP raise an exception meanwhile, so that emulated networks of this program are removed.

    :param program: name of the program, with which the line begins.
    """

    def leave(number: int, frame: object) -> None:
        sys.exit(128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, leave)
    try:
        yield
    except (TopompiError, OSError) as error:
        sys.exit(f"{program}: {' '.join(str(error).split())}")


def progress(text: str) -> None:
    """Print a line of progress on standard error, if that is a terminal."""
    if sys.stderr.isatty():
        print(text, file=sys.stderr, flush=True)
