"""The jobs of the study: a drawn list, their messages, and the time that the links' rates allow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["BYTES", "COMPUTE", "KINDS", "Job", "bound", "drawn", "kinds_of", "messages", "rounds_for", "script"]

# Bytes of a message: below Open MPI's limit for messages that are sent at once (64 KiB), because the acknowledgement
# that a longer one waits for stands behind the data of the other direction.
BYTES = 60_000
COMPUTE = "compute"
# Kinds of jobs with their numbers among 30, and the sizes from which each is drawn, in nodes.
KINDS = {
    "alltoall": (12, (2, 2, 3, 4, 4, 6, 6, 8, 9)),
    "stencil": (10, (2, 3, 4, 4, 6, 6, 8, 9)),
    COMPUTE: (8, (1, 1, 2, 3, 4, 6)),
}
MINUTES = 2  # time limit that each job asks for; Slurm's limits are whole minutes


@dataclass(frozen=True)
class Job:
    """A job of the list.

    :param number: place in the list.
    :param kind: a key of ``KINDS``.
    :param nodes: number of nodes, with one rank each.
    :param rounds: number of rounds of its pattern; 0 for a compute job.
    :param seconds: time that a compute job sleeps, else the time that the rates allow on whole leaf switches.
    :param arrival: seconds from the first submission to this one.
    """

    number: int
    kind: str
    nodes: int
    rounds: int
    seconds: float
    arrival: float


def messages(kind: str, ranks: int) -> Iterator[tuple[int, int]]:
    """Yield sender and receiver of each message of a round; ``exchange.c`` sends the same.

    :param kind: ``alltoall`` or ``stencil``.
    :param ranks: number of ranks.
    """
    if kind == "alltoall":
        yield from ((a, b) for a in range(ranks) for b in range(ranks) if a != b)
        return
    rows = max(one for one in range(1, ranks + 1) if one * one <= ranks and ranks % one == 0)
    columns = ranks // rows
    for rank in range(ranks):
        row, column = divmod(rank, columns)
        sides = [(row, column + 1), (row, column - 1), (row + 1, column), (row - 1, column)]
        around = [a % rows * columns + b % columns for a, b in sides]
        yield from ((rank, other) for other in around if other != rank)


def bound(kind: str, hosts: Sequence[int], per_leaf: int, rate: float, uplink: float, nbytes: int = BYTES) -> float:
    """Return the seconds of a round in which the busiest link carries its bytes at full rate.

    :param kind: ``alltoall`` or ``stencil``.
    :param hosts: host of each rank; successive ``per_leaf`` hosts have the same leaf switch.
    :param per_leaf: number of hosts per leaf switch.
    :param rate: rate of a host's link, in bits/s.
    :param uplink: rate of the link above a leaf switch, in bits/s.
    :param nbytes: bytes of a message.
    """
    count: Counter[tuple[str, int]] = Counter()
    for source, target in messages(kind, len(hosts)):
        a, b = hosts[source], hosts[target]
        if a != b:
            count.update([("out", a), ("in", b)])
        if a // per_leaf != b // per_leaf:
            count.update([("up", a // per_leaf), ("down", b // per_leaf)])
    rates = {"out": rate, "in": rate, "up": uplink, "down": uplink}
    return max((8 * nbytes * number / rates[way] for (way, _), number in count.items()), default=0.0)


def rounds_for(kind: str, nodes: int, seconds: float, per_leaf: int, rate: float, uplink: float) -> int:
    """Return the number of rounds that take a time on successive hosts, at least 1.

    :param kind: kind of the program.
    :param nodes: number of hosts, from the first of a leaf switch on.
    :param seconds: the time in seconds.
    :param per_leaf: number of hosts of a leaf switch.
    :param rate: rate of a host's link, in bits/s.
    :param uplink: rate of the link above a leaf switch, in bits/s.
    """
    return max(1, round(seconds / bound(kind, range(nodes), per_leaf, rate, uplink)))


def drawn(
    seed: int, seconds: float, gap: float, per_leaf: int, rate: float, uplink: float, count: int = 30
) -> list[Job]:
    """Draw the list of jobs.

    :param seed: seed of the draw.
    :param seconds: seconds that each communicating job takes by the rates; compute jobs sleep half to all of it.
    :param gap: mean seconds between two submissions, which are exponentially distributed.
    :param per_leaf: number of hosts per leaf switch.
    :param rate: rate of a host's link, in bits/s.
    :param uplink: rate of the link above a leaf switch, in bits/s.
    :param count: number of jobs.
    """
    rng = np.random.default_rng(seed)
    every = [kind for kind, (share, _) in KINDS.items() for _ in range(share)]
    kinds = [every[at % len(every)] for at in rng.permutation(max(count, len(every)))[:count]]
    arrivals = np.cumsum(rng.exponential(gap, count))
    jobs = []
    for number, kind in enumerate(kinds):
        nodes, arrival = int(rng.choice(KINDS[kind][1])), round(float(arrivals[number] - arrivals[0]), 3)
        if kind == COMPUTE:
            jobs.append(Job(number, kind, nodes, 0, round(float(rng.uniform(0.5, 1)) * seconds, 2), arrival))
            continue
        rounds = rounds_for(kind, nodes, seconds, per_leaf, rate, uplink)
        alone = rounds * bound(kind, range(nodes), per_leaf, rate, uplink)
        jobs.append(Job(number, kind, nodes, rounds, round(alone, 3), arrival))
    return jobs


def kinds_of(jobs: Sequence[Job]) -> list[Job]:
    """Return one communicating job of each kind and size, in order."""
    return [*{(job.kind, job.nodes): job for job in sorted(jobs, key=_kind_and_size) if job.rounds}.values()]


def _kind_and_size(job: Job) -> tuple[str, int]:
    return job.kind, job.nodes


def script(job: Job, program: str, launch: str) -> str:
    """Return the batch script of a job, which prints when it starts and ends, and the seconds of its rounds.

    :param job: the job.
    :param program: path of the compiled ``exchange.c``.
    :param launch: mpirun with options; the last one is ``--map-by``.
    """
    work = f"sleep {job.seconds}"
    if job.rounds:
        work = f"{launch} ppr:1:node {program} {job.kind} {BYTES} {job.rounds}"
    return "\n".join(
        (
            "#!/bin/sh",
            f"#SBATCH --job-name=study{job.number} --nodes={job.nodes} --ntasks-per-node=1 --exclusive",
            f"#SBATCH --time={MINUTES}",
            "echo start $(date +%s.%N)",
            "echo hosts_list $SLURM_JOB_NODELIST",
            f"{work} || echo failed $?",
            "echo end $(date +%s.%N)",
            "",
        )
    )
