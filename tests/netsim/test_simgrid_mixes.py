"""Flows beside SimGrid on random mixes of jobs that share a tree."""

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from studies.simgrid import Arena
from studies.simgrid.smpi import configuration
from studies.simgrid.traces import BYTE
from topompi.inputs.writing import write_text
from topompi.machine.interference.streams import PATTERNS, steps_of
from topompi.netsim import RECEIVE, SEND, FlowSession, Program
from topompi.topology import TopologyInterface, load
from topompi.views.network import network_of
from topompi.views.program import wiring_of

RATE, LATENCY = 1e9, 1e-7
SIZES = (4, 8, 16, 24, 32)  # nodes of a job


@dataclass(frozen=True)
class Job:
    """A job's hosts, the senders and receivers of each of its steps, by its own ranks, and the bytes of a message."""

    hosts: NDArray[np.int64]
    steps: list[tuple[NDArray[np.int64], NDArray[np.int64]]]
    nbytes: int

    def program(self) -> Program:
        """The job for flows."""
        rows = [
            (rank, step, kind, peer, self.nbytes)
            for step, (source, target) in enumerate(self.steps)
            for kind, ranks, peers in ((SEND, source, target), (RECEIVE, target, source))
            for rank, peer in zip(ranks.tolist(), peers.tolist(), strict=True)
        ]
        return Program(self.hosts, *np.array(rows, dtype=float).T)

    def actions(self, traces: list[list[str]]) -> None:
        """Append the job's messages to the traces of the hosts; each host waits for its step before the next."""
        for step, (source, target) in enumerate(self.steps):
            sender, receiver = self.hosts[source].tolist(), self.hosts[target].tolist()
            for one, other in zip(sender, receiver, strict=True):
                traces[other].append(f"irecv {one} {step} {self.nbytes} {BYTE}")
            for one, other in zip(sender, receiver, strict=True):
                traces[one].append(f"isend {other} {step} {self.nbytes} {BYTE}")
            for one, other in zip(sender, receiver, strict=True):
                traces[one].append(f"wait {one} {other} {step}")
                traces[other].append(f"wait {one} {other} {step}")


def draw(hosts: int, seed: int) -> list[Job]:
    """Jobs on nine tenths of the hosts, at random, with random patterns and sizes."""
    rng = np.random.default_rng(seed)
    left, jobs = rng.permutation(hosts)[: hosts * 9 // 10], []
    while len(left) >= SIZES[0]:
        size = min(int(rng.choice(SIZES)), len(left))
        steps = steps_of(int(rng.integers(len(PATTERNS))), size, int(rng.integers(1000)))
        jobs.append(Job(left[:size], steps * int(rng.integers(1, 3)), int(rng.integers(20_000, 400_000))))
        left = left[size:]
    return jobs


def both(hosts: int, seed: int) -> tuple[list[float], list[float]]:
    """The seconds of each job of a mix under flows and under SimGrid."""
    routes = load(f"XGFT(2; 16,{hosts // 16}; 1,8)").routes
    network = network_of(TopologyInterface.place(routes.fabric.hosts, routes))
    links = len(network.capacity)
    network = replace(network, capacity=np.full(links, RATE), latency=np.full(links, LATENCY))
    jobs, session = draw(hosts, seed), FlowSession(wiring_of(network))
    handles = [session.add(job.program()) for job in jobs]
    while session.waiting:
        session.advance()

    def write(folder: Path) -> Path:
        traces: list[list[str]] = [["compute 0"] for _ in range(hosts)]  # SimGrid prints no end of an idle rank
        for job in jobs:
            job.actions(traces)
        for rank, actions in enumerate(traces):
            lines = (f"{rank} {action}\n" for action in ("init", *actions, "finalize"))
            write_text(folder / f"rank-{rank}.txt", "".join(lines))
        write_text(folder / "all.list", "".join(f"{folder}/rank-{rank}.txt\n" for rank in range(hosts)))
        return folder / "all.list"

    with Arena(network, timeout=120) as arena, arena._replaying(write) as replay:
        ends = arena._simulator.ends(replay, configuration("flow"))
    assert isinstance(ends, list), ends
    theirs = [max(ends[host] for host in job.hosts) for job in jobs]
    return [float(session.runs(handle).seconds[0]) for handle in handles], theirs


@pytest.mark.long
@pytest.mark.skipif(shutil.which("smpirun") is None, reason="SimGrid is not installed")
@pytest.mark.parametrize("hosts", [64, 128, 256, 512])
def test_the_times_of_jobs_in_mixes_are_simgrids(hosts: int):
    for seed in range(5):
        ours, theirs = both(hosts, seed)
        assert ours == pytest.approx(theirs, rel=0.02)
