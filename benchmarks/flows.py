"""The speed of the flow model: alltoalls of several jobs on whole fat trees, on one core.

Run python -m benchmarks.flows on an otherwise idle processor, because it measures elapsed time.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

import numpy as np

from topompi.netsim import RECEIVE, SEND, Program, Tables, run
from topompi.topology import load
from topompi.views.tables import tables_of

RATE, LATENCY = 6.75e9, 0.35e-6  # bytes/s and seconds of a link
NBYTES = 65536.0

# Name, fabric, number of jobs, ranks of each (one per host), steps of a shift.
CASES = {
    "8 alltoalls on 2,048 hosts, 40 steps": ("XGFT(3; 16,16,8; 1,16,16)", 8, 256, 40),
    "8 alltoalls on 2,048 hosts, 40 steps, half the links above": ("XGFT(3; 16,16,8; 1,8,8)", 8, 256, 40),
    "128 jobs of 10 shifts on 10,648 hosts": ("XGFT(3; 22,22,22; 1,22,22)", 128, 64, 10),
    "128 jobs of 10 shifts on 10,648 hosts, half the links above": ("XGFT(3; 22,22,22; 1,11,11)", 128, 64, 10),
}


def jobs_of(hosts: int, jobs: int, ranks: int, steps: int, window: int) -> list[Program]:
    """Make jobs on hosts in random order, in each of which rank r sends to r + 1, r + 2 and so on, one per step."""
    order = np.random.default_rng(0).permutation(hosts)[: jobs * ranks].reshape(jobs, ranks)
    rank, step = (axis.ravel() for axis in np.meshgrid(np.arange(ranks), np.arange(steps), indexing="ij"))
    return [
        Program(
            of_job,
            rank=np.tile(rank, 2),
            step=np.tile(step, 2),
            kind=np.repeat([SEND, RECEIVE], len(rank)),
            peer=np.concatenate(((rank + step + 1) % ranks, (rank - step - 1) % ranks)),
            amount=np.full(2 * len(rank), NBYTES),
            window=window,
        )
        for of_job in order
    ]


def tables(source: str) -> Tables:
    """Return the fabric's tables, with one rate and one latency for all links."""
    routes = load(source).routes
    assert routes is not None  # every XGFT has routes
    found = tables_of(routes, rate=RATE, latency=LATENCY)
    return replace(found, rate=np.full(len(found.rate), RATE), latency=np.full(len(found.rate), LATENCY))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tolerance", type=float, default=0.0)
    parser.add_argument("--window", type=int, default=1, help="steps in flight, 0 for all")
    options = parser.parse_args()
    for name, (source, jobs, ranks, steps) in CASES.items():
        network = tables(source)
        programs = jobs_of(network.num_hosts, jobs, ranks, steps, options.window)
        begin = time.perf_counter()
        found = run(network, programs, tolerance=options.tolerance)
        seconds = time.perf_counter() - begin
        flows = jobs * ranks * steps
        last, over = found.job_seconds.max() * 1e3, (found.job_seconds / found.bounds).max()
        print(f"{name}: {flows:,} flows in {seconds:.2f} s, {flows / seconds:,.0f} a second;", end=" ")
        print(f"the last job takes {last:.3f} ms, the slowest {over:.2f} x its bound", flush=True)


if __name__ == "__main__":
    main()
