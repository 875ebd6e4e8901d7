"""Simulated times of our schedules beside those of the MPI libraries' patterns.

python -m benchmarks.goals                                 # all of the table in docs/schedules.md, half an hour
python -m benchmarks.goals --part alltoall --sizes 4,64    # alltoalls of 4 and 64 KiB alone

Alltoalls are given as time over the bound of the busiest link; broadcasts and gathers in microseconds, with the time of
the fastest library's pattern over that of our fastest. Jobs have 16 ranks per host of XGFT(2; 20,16; 1,16) with FDR
links, on its first 64 hosts or on hosts drawn at random, in random order. With flows, messages start without cost and
all at once; packets use the preset ``fdr``, also with 16 KiB per port. Each number is one run with seed 0.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from osu_like_bench.simulate.flowarena import LIBRARIES, METHODS, one_switch
from topompi.netsim import BACKGROUND, Hosts, Program
from topompi.netsim import run as flow
from topompi.netsim.packets import Tables, run
from topompi.prediction.libraries import Question
from topompi.schedules import Network, make
from topompi.views.program import program_of

from .packets import FDR, TOLERANCE, Case

KIB = 1024
PORTS = {"packets": FDR.settings.buffer, "16 KiB a port": 16 * KIB}
MODELS = ("flows", *PORTS)
OURS = {
    "alltoall": ("even", "shift"),
    "bcast": ("scatter_allgather_hosts", "scatter_allgather"),
    "gather": ("nodes", "leaders", "knomial"),
}


@dataclass(frozen=True)
class Task:
    """A collective of a size on a job.

    :param collective: name of the collective.
    :param nbytes: message size in bytes, as libraries count it.
    :param about: description of the job and its background, for people.
    :param job: network and tables of the job.
    :param beside: jobs in the background.
    """

    collective: str
    nbytes: int
    about: str
    job: tuple[Network, Tables]
    beside: tuple[Program, ...] = ()

    def programs(self) -> Iterator[tuple[str, Program]]:
        """Yield our algorithms, then each pattern that a library runs, with the name of the first library that does."""
        network = self.job[0]
        for name in OURS[self.collective]:
            schedule = make(self.collective, name, network)
            yield name, program_of(schedule, network, self.nbytes / schedule.blocks)
        had: set[str] = set()
        for library, model in LIBRARIES.items():
            choice = model.decide(Question(METHODS[self.collective], self.nbytes, network.rank_host))
            if choice is not None and choice.algorithm not in had:
                had.add(choice.algorithm)
                schedule = choice.schedule(one_switch(network))
                yield f"{library}: {choice.algorithm}", program_of(schedule, network, self.nbytes / schedule.blocks)

    def seconds(self, program: Program, model: str) -> tuple[float, float]:
        """Return the simulated seconds of a program, and the bound of its bytes in seconds."""
        tables = self.job[1]
        programs = [program, *self.beside]
        if model == "flows":
            done = flow(tables.wiring(), programs, hosts=Hosts(copy_rate=FDR.hosts.copy_rate), tolerance=TOLERANCE)
        else:
            settings = replace(FDR.settings, buffer=PORTS[model])
            done = run(tables, programs, hosts=FDR.hosts, settings=settings)
        return float(done.job_seconds[0]), float(done.bounds[0])


def alltoalls(sizes: Sequence[int]) -> Iterator[Task]:
    """Yield alltoalls on the first 64 hosts and on 64 hosts drawn from 160, for each size in KiB."""
    for random, about in ((0, "first 64 hosts"), (160, "64 of 160 hosts at random")):
        job = Case(16, KIB, random).job(0)
        for size in sizes:
            yield Task("alltoall", size * KIB, about, job)


def broadcasts() -> Iterator[Task]:
    """Yield broadcasts of 1 MiB from rank 0 of 512 and 1,024 ranks, on hosts drawn from all 320."""
    for hosts in (32, 64):
        job = Case(16, KIB, 320, hosts).job(0)
        yield Task("bcast", KIB * KIB, f"{hosts} of 320 hosts at random", job)


def gathers(sizes: Sequence[int]) -> Iterator[Task]:
    """Yield gathers to rank 0 on 64 hosts drawn from 320, beside an alltoall of 1 MiB, one rank per host.

    Sizes in bytes.
    """
    network, tables = Case(16, KIB, 320).job(0)
    alone = network.part(np.arange(0, network.num_ranks, 16))
    second = replace(program_of(make("alltoall", "shift", alone), alone, KIB * KIB), repeat=BACKGROUND, name="second")
    for size in sizes:
        yield Task("gather", size, "64 of 320 hosts at random, beside an alltoall", (network, tables), (second,))


def rows(task: Task, models: Sequence[str]) -> Iterator[str]:
    """Yield the table's rows of a task: one per schedule and, except for alltoalls, one with the gain."""
    size = f"{task.nbytes // KIB} KiB" if task.nbytes >= KIB else f"{task.nbytes} B"
    found: dict[str, list[float]] = {}
    for name, program in task.programs():
        times = [task.seconds(program, model) for model in models]
        found[name] = [seconds for seconds, _ in times]
        if task.collective == "alltoall":
            cells = [f"{seconds / bound:.3f}" for seconds, bound in times]
        else:
            cells = [f"{seconds * 1e6:,.0f} us" for seconds, _ in times]
        yield f"| {task.about} | {task.collective} {size} | {name} | {' | '.join(cells)} |"
    mine = OURS[task.collective]
    ours = np.min([times for name, times in found.items() if name in mine], axis=0)
    theirs = np.min([times for name, times in found.items() if name not in mine], axis=0)
    gains = " | ".join(f"{gain:.2f}x" for gain in theirs / ours)
    yield f"| {task.about} | {task.collective} {size} | **fastest of ours against fastest pattern** | {gains} |"


def main() -> None:
    """Print the selected parts of the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=OURS, action="append")
    parser.add_argument("--sizes", default="4,64,256", help="of alltoalls, KiB")
    parser.add_argument("--models", default=",".join(MODELS))
    given = parser.parse_args()
    models = given.models.split(",")
    parts = {
        "alltoall": alltoalls([int(size) for size in given.sizes.split(",")]),
        "bcast": broadcasts(),
        "gather": gathers((16, KIB, 16 * KIB)),
    }
    print(f"| 16 ranks a host | call | schedule | {' | '.join(models)} |\n" + "| --- " * (3 + len(models)) + "|")
    for part in given.part or parts:
        for task in parts[part]:
            for row in rows(task, models):
                print(row, flush=True)


if __name__ == "__main__":
    main()
