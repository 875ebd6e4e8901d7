"""The network study of section V-B: jobs under isolated (TA) and oblivious (TO) placements, in the model of flows.

``python -m studies pollard network``. The paper simulates packets (TraceR-CODES); message sizes, routing, iterations,
grids and the fragmentation of its machine are not in its text, and are parameters here (`Setting`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from studies.routing import fat_tree
from studies.sessions import first_runs
from topompi.machine.interference import InterferenceError, crossbar
from topompi.machine.interference.network import SharedNetwork, components
from topompi.machine.interference.placement import place
from topompi.machine.jobs import Cluster
from topompi.netsim import Program, Tables

from .patterns import trace

__all__ = ["Job", "Machine", "Setting", "fragments", "machine", "mix_of", "placed", "slowdowns"]

Nodes = NDArray[np.int64]

RATE = 4e9  # bytes/s of each link of a synthetic fat tree
SIZES = (512, 768, 1024, 1536, 2048, 3072, 4096)  # nodes of a job; between the paper's 512 and 4096
NAMES = ("Unstr-mesh", "Stencil", "Sub-a2a", "Pairs")
PLACEMENTS = ("isolated", "first", "random")


@dataclass(frozen=True)
class Setting:
    """The parameters that the paper's text leaves open.

    :param nbytes: bytes that a rank sends per iteration, or those of a message.
    :param share: division of the bytes among messages, see `trace`.
    :param at_once: whether Sub-a2a sends all messages at once, instead of pairwise steps.
    :param iterations: number of runs of each job whose mean counts; all jobs go on until each has as many.
    :param random_routes: whether links upwards are drawn, instead of d-mod-k.
    :param fragment: nodes of the largest of the small jobs that hold the nodes between those of a mix under ``first``.
    :param compute: share of computation in the time that a rank's own link needs for an iteration.
    """

    nbytes: int = 8 << 20
    share: str = "mean"
    at_once: bool = False
    iterations: int = 3
    random_routes: bool = False
    fragment: int = 256
    compute: float = 0.0


@dataclass(frozen=True)
class Job:
    """A job of a mix: its name, pattern, number of nodes and seed."""

    name: str
    pattern: str
    size: int
    seed: int

    def on(self, nodes: Nodes, setting: Setting) -> Program:
        """Place the job, rank by rank on the nodes in the order of their numbers."""
        burst = setting.compute * setting.nbytes / RATE
        pattern = "Sub-a2a at once" if setting.at_once and self.pattern == "Sub-a2a" else self.pattern
        made = trace(pattern, self.size, self.seed, setting.nbytes, share=setting.share, burst=burst)
        return made.on(nodes, name=self.name)


@dataclass(frozen=True, eq=False)
class Machine:
    """A fat tree with both routings, and the sizes of jobs that it runs."""

    cluster: Cluster
    routed: Tables
    drawn: Tables
    sizes: Sequence[int]

    def tables(self, setting: Setting) -> Tables:
        """The network under the setting's routing."""
        return self.drawn if setting.random_routes else self.routed


def machine(half: int, sizes: Sequence[int] = SIZES) -> Machine:
    """Make the three-level fat tree of full bandwidth with ``half``^3 nodes and as many pods as leaves have nodes.

    :param half: half of a switch's ports.
    :param sizes: numbers of nodes that jobs may have.
    """
    return Machine(*fat_tree(f"XGFT(3; {half},{half},{half}; 1,{half},{half})", 0.0, 1), sizes)


def mix_of(where: Machine, seed: int) -> list[Job]:
    """Draw jobs, each of a random size and pattern, until isolation would let one wait; that one is left out.

    :param where: the machine.
    :param seed: seed of the mix.
    """
    draw, jobs = np.random.default_rng(seed), list[Job]()
    while True:
        size, pattern = int(draw.choice(where.sizes)), str(draw.choice(NAMES))
        jobs.append(Job(f"{len(jobs)} {pattern}", pattern, size, seed * 1000 + len(jobs)))
        try:
            place(where.cluster, {job.name: job.size for job in jobs}, "isolated")
        except InterferenceError:
            return jobs[:-1]


def fragments(nodes: int, sizes: Sequence[int], largest: int, seed: int) -> list[Nodes]:
    """Place jobs on the lowest free nodes of a machine that small jobs fill, and of which random ones end.

    The small jobs have 1 to ``largest`` nodes, uniform in the logarithm, and lie side by side. Before each job starts,
    small jobs end until enough nodes are free. They send nothing.

    :param nodes: number of nodes of the machine.
    :param sizes: number of nodes of each job.
    :param largest: number of nodes of the largest small job.
    :param seed: seed of the small jobs and of their ends.
    """
    draw = np.random.default_rng(seed)
    drawn = np.exp(draw.uniform(0, np.log(largest + 1), nodes)).astype(np.int64)
    owner = np.repeat(np.arange(nodes), drawn)[:nodes]
    ending = draw.permutation(owner[-1] + 1).tolist()
    free, found = np.zeros(nodes, dtype=bool), []
    for size in sizes:
        while free.sum() < size:
            free |= owner == ending.pop()
        found.append(np.flatnonzero(free)[:size])
        free[found[-1]] = False
    return found


def placed(where: Machine, jobs: Sequence[Job], how: str, setting: Setting, seed: int) -> list[Program]:
    """The programs of a mix under ``isolated``, ``first`` (on a fragmented machine) or ``random``.

    :param where: the machine.
    :param jobs: jobs of the mix.
    :param how: name of the placement.
    :param setting: bytes, iterations and fragments.
    :param seed: seed of random nodes and of the fragments.
    """
    sizes = {job.name: job.size for job in jobs}
    if how == "first":
        nodes = fragments(where.cluster.num_nodes, list(sizes.values()), setting.fragment, seed)
    else:
        found = place(where.cluster, sizes, f"RF:{seed}" if how == "random" else how)
        nodes = [np.sort(found[job.name]) for job in jobs]
    return [job.on(of_job, setting) for job, of_job in zip(jobs, nodes, strict=True)]


def slowdowns(where: Machine, seed: int, setting: Setting) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield the pattern of each job of a mix, and its time under each placement over its time on a crossbar.

    Under ``isolated`` each job is simulated alone, because no two share a link.

    :param where: the machine.
    :param seed: seed of the mix and of its placements.
    :param setting: the open parameters.
    :raises InterferenceError: if isolated jobs share a link.
    """
    jobs, tables = mix_of(where, seed), where.tables(setting)
    programs = {how: placed(where, jobs, how, setting, seed) for how in PLACEMENTS}
    network = SharedNetwork(tables)
    groups = components(network, programs["isolated"])
    if len(groups) < len(jobs):
        raise InterferenceError(f"mix {seed}: expecting no shared link under isolated, got {len(groups)} groups")
    base = [crossbar.seconds(one, RATE, 0.0) for one in programs["isolated"]]
    taken = {how: first_runs(network.session(), programs[how], setting.iterations) for how in PLACEMENTS[1:]}
    taken["isolated"] = np.concatenate([first_runs(network.session(), [one]) for one in programs["isolated"]])
    for number, job in enumerate(jobs):
        yield job.pattern, {how: float(taken[how][number] / base[number]) for how in PLACEMENTS}
