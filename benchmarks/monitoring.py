"""What Open MPI's monitoring costs a program: runs with and without ``topompi profile`` by turns.

    python -m benchmarks.monitoring

Needs Open MPI's ``mpicc`` and a C compiler. A ratio is the time with the recording over that without, of two jobs one
after the other; the median over the pairs, with its 95 % interval by bootstrap.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from osu_like_bench.statistics import compare
from topompi.errors import BenchmarkError

from .paths import ROOT

CASES = {"pingpong": ("ping-pong of 8 bytes", 2), "alltoall": ("alltoall of 64 KiB blocks", 8)}


def built(folder: Path) -> Path:
    """The program in C, compiled; raises BenchmarkError where nothing compiles it."""
    beside = Path(sys.executable).parent / "mpicc"
    compiler = str(beside) if beside.exists() else shutil.which("mpicc")
    if compiler is None:
        raise BenchmarkError("expecting mpicc beside this Python or on the path, got none")
    source, program = ROOT / "benchmarks" / "monitored.c", folder / "monitored"
    done = subprocess.run([compiler, "-O2", source, "-o", program], capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchmarkError(f"{compiler}: expecting a program, got: {done.stderr[-500:]}")
    return program


def seconds(program: Path, case: str, folder: Path, *, recorded: bool) -> float:
    """Median seconds of a call in one job, recorded or not."""
    beside = Path(sys.executable).parent / "mpirun"
    words = [str(beside) if beside.exists() else "mpirun", "--allow-run-as-root", "--oversubscribe"]
    ranks = CASES[case][1]
    words += ["--mca", "mpi_yield_when_idle", "1"] if ranks > (os.cpu_count() or 1) else []
    words += ["-n", str(ranks), str(program), case]
    if recorded:
        words = [sys.executable, "-m", "topompi", "profile", "-o", str(folder / "run.topoprof"), "--", *words]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True, cwd=ROOT)
    return float(done.stdout.split()[0])


def main() -> int:
    """Run the pairs and print a line for each case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=15, help="pairs of jobs (default 15)")
    pairs = parser.parse_args().pairs
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            program = built(folder)
            for case, (words, ranks) in CASES.items():
                times = np.array(
                    [
                        [
                            seconds(program, case, folder, recorded=side)
                            for side in ((False, True), (True, False))[at % 2]
                        ]
                        for at in range(pairs)
                    ]
                )
                times[1::2] = times[1::2, ::-1]
                found = compare(times[:, 0], times[:, 1])
                says = f"{found.ratio:.3f} [{found.low:.3f}, {found.high:.3f}]"
                print(
                    f"{words}, {ranks} ranks: {1e6 * np.median(times[:, 0]):.2f} us, recorded {says}, {pairs} pairs",
                    flush=True,
                )
    except BenchmarkError as error:
        print(f"monitoring: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
