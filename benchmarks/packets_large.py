"""The speed of the packet model on 10,648 hosts: 128 jobs of shifts in random order, with one and with eight lanes.

It measures the time of the processor, but jobs beside it take a part of the caches: run python -m
benchmarks.packets_large on an idle machine.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import time
from dataclasses import replace

import numpy as np

from benchmarks.flows import jobs_of, tables
from topompi.netsim.packets import PRESETS, PacketSession

FABRIC, JOBS, RANKS = "XGFT(3; 22,22,22; 1,22,22)", 128, 64


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lanes", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--ranks", type=int, default=RANKS, help="ranks of each of 128 jobs, one per host")
    parser.add_argument("--steps", type=int, default=4, help="shifts of 64 KiB")
    parser.add_argument("--window", type=int, default=1, help="steps in flight, 0 for all")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    network, fdr = tables(FABRIC), PRESETS["fdr"]
    network = replace(network, latency=np.full(network.num_links, fdr.latency))
    for lanes in options.lanes:
        programs = jobs_of(network.num_hosts, JOBS, options.ranks, options.steps, options.window)
        programs = [replace(one, lane=number % lanes) for number, one in enumerate(programs)]
        prepared, played = [], []
        for _ in range(options.runs):
            begin = time.process_time()
            session = PacketSession(network, hosts=fdr.hosts, settings=replace(fdr.settings, lanes=lanes))
            for one in programs:
                session.add(one)
            prepared.append(time.process_time() - begin)
            while session.waiting:
                session.advance()
            played.append(time.process_time() - begin - prepared[-1])
            found = session.result()
        hops, seconds = found.counts["hops"], statistics.median(played)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(
            f"{lanes} lane(s): {hops:,} hops, {found.counts['events']:,} events in {seconds:.2f} s "
            f"({min(played):.2f} to {max(played):.2f}), {hops / seconds / 1e6:.2f} million hops a second; "
            f"prepared in {statistics.median(prepared):.2f} s; {memory:.2f} GiB; "
            f"last {found.job_seconds.max() * 1e6:.6f} us, sum {found.rank_seconds.sum() * 1e6:.6f} us, "
            f"waits {found.lane_waits.sum() * 1e6:.6f} us",
            flush=True,
        )


if __name__ == "__main__":
    main()
