"""The cost of Open MPI's monitoring: jobs with and without ``topompi profile`` that take turns.

    python -m benchmarks.monitoring

Needs Open MPI's ``mpicc`` and a C compiler. Three jobs run on the same processors, over shared memory: one without the
recording, one with it, and another without, which shows chance. One works while the others sleep, some hundredths of a
second in turn, so that all meet the same state of the machine. A new start of the three places their memory anew. The
ratio of a start is the median over its rounds of a job's time over that of the first job; the result is the median over
the starts, with the 95 % interval of a bootstrap that draws starts.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Timer

import numpy as np
from numpy.typing import NDArray

from topompi.errors import BenchmarkError

from .jobs import compiled
from .paths import ROOT

CASES = {"pingpong": ("ping-pong of 8 bytes, there and back", 2), "alltoall": ("alltoall of 64 KiB blocks", 8)}
SIDES = {"without": False, "recorded": True, "without, once more": False}
TRANSPORT = {"pml": "ob1,monitoring", "btl": "self,sm"}  # a list without monitoring turns the recording off
FIRST = 3  # first rounds of a start, which do not count
TIMEOUT = 120.0  # seconds of a start


class SteppedJob:
    """A job that works for one round at a time, when told.

    :param process: process that prints the seconds of each round.
    :param turns: write end of the pipe from which each rank reads one byte per round.
    :param ranks: number of ranks of the job.
    """

    def __init__(self, process: subprocess.Popen[str], turns: int, ranks: int) -> None:
        self.process, self.turns, self.ranks = process, turns, ranks

    def round(self) -> float:
        """Run one round; return the seconds of a call in it."""
        os.write(self.turns, b"." * self.ranks)
        assert self.process.stdout is not None  # because ``Popen`` was told to make a pipe
        line = self.process.stdout.readline()
        if not line:
            raise BenchmarkError(f"expecting seconds from {self.process.args!r}, got the end of the program")
        return float(line)


@contextmanager
def started(program: Path, case: str, folder: Path, *, recorded: bool) -> Iterator[SteppedJob]:
    """Start a job of a case, with its ranks bound to processors in turn; it ends with the context.

    :param program: the compiled program.
    :param case: name of the case.
    :param folder: an empty folder for its pipe and its profile.
    :param recorded: whether the job is recorded.
    """
    beside, ranks, pipe = Path(sys.executable).parent / "mpirun", CASES[case][1], folder / "turns"
    crowded = ranks > (os.cpu_count() or 1)
    words = [str(beside) if beside.exists() else "mpirun", "--allow-run-as-root"]
    words += ["--map-by", "core:oversubscribe", "--bind-to", "core:overload-allowed"]
    for name, value in {**TRANSPORT, "mpi_yield_when_idle": str(int(crowded))}.items():
        words += ["--mca", name, value]
    words += ["-n", str(ranks), str(program), case, str(pipe)]
    if recorded:
        words = [sys.executable, "-m", "topompi", "profile", "-o", str(folder / "run.topoprof"), "--", *words]
    os.mkfifo(pipe)
    turns = os.open(pipe, os.O_RDWR)  # read and write, so that it does not wait for the ranks to open it
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT)
    late = Timer(TIMEOUT, process.terminate)
    late.start()
    try:
        yield SteppedJob(process, turns, ranks)
    finally:
        os.close(turns)  # closes the job's input, which ends it
        process.communicate()
        late.cancel()
    if process.returncode:
        raise BenchmarkError(f"expecting {process.args!r} to end well, got exit code {process.returncode}")


def start(program: Path, case: str, rounds: int) -> NDArray[np.float64]:
    """Start all sides once; return the seconds of a call, shape (rounds, sides). The sides alternate in going first."""
    times = np.empty((FIRST + rounds, len(SIDES)))
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        jobs = []
        for number, recorded in enumerate(SIDES.values()):
            (folder := Path(name) / str(number)).mkdir()
            jobs.append(stack.enter_context(started(program, case, folder, recorded=recorded)))
        for at, row in enumerate(times):
            for side in np.roll(range(len(jobs)), at):
                row[side] = jobs[side].round()
    return times[FIRST:]


def ratios(times: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return median and 95 % interval, shape (3, sides), of the times over those of the first side.

    :param times: seconds, shape (starts, rounds, sides).
    """
    of_start = np.median(times / times[:, :, :1], axis=1)
    drawn = np.random.default_rng(0).integers(len(of_start), size=(2000, len(of_start)))
    low, high = np.quantile(np.median(of_start[drawn], axis=1), (0.025, 0.975), axis=0)
    return np.stack([np.median(of_start, axis=0), low, high])


def main() -> int:
    """Run the starts and print a line for each case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES), help="what to time (default all)")
    parser.add_argument("--starts", type=int, default=12, help="starts of the three jobs (default 12)")
    parser.add_argument("--rounds", type=int, default=40, help="rounds of a start (default 40)")
    given = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory() as name:
            program = compiled("monitored", Path(name))
            for case in given.cases:
                words, ranks = CASES[case]
                times = np.array([start(program, case, given.rounds) for _ in range(given.starts)])
                says = [
                    f"{name} {ratio:.3f} [{low:.3f}, {high:.3f}]"
                    for name, (ratio, low, high) in zip(SIDES, ratios(times).T, strict=True)
                ][1:]
                print(
                    f"{words}, {ranks} ranks: {1e6 * np.median(times[:, :, 0]):.2f} us; {'; '.join(says)}; "
                    f"{given.starts} starts of {given.rounds} rounds",
                    flush=True,
                )
    except BenchmarkError as error:
        print(f"monitoring: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
