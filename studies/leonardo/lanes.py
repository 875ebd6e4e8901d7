"""Virtual lanes on Leonardo: a job that suffers most gets a lane of its own, beside all jobs that share its links."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from topompi.machine.interference.lanes import Lanes, Trials
from topompi.machine.interference.network import SharedNetwork
from topompi.machine.interference.replay import replay
from topompi.netsim.packets import PRESETS

from .traffic import BY_TURNS, programs

__all__ = ["HEAD", "rows", "suffering"]

Nodes = NDArray[np.int64]

OWN = {"1:1": (1, 1), "1:4": (1, 4)}  # packets per turn: the lane of all others first
HEAD = (
    "job",
    "jobs beside it",
    "loses, flows",
    "one lane, packets",
    "own lane 1:1",
    "1:4",
    "T_total saved, 1:1",
    "1:4",
)
NBYTES = 4 << 20  # bytes that a node sends per run: packets take their time
DRAWS, SEED = 4, 1


def suffering(network: SharedNetwork, jobs: Mapping[str, Nodes], count: int) -> list[tuple[list[int], float]]:
    """The jobs that lose the largest part of their time alone, each after all jobs that share links with it.

    :param network: network of flows.
    :param jobs: nodes of each job.
    :param count: number of suffering jobs.
    :returns: numbers of the jobs, the suffering one last, and the part of its time alone that it loses.
    """
    made = programs(jobs, BY_TURNS)
    outcome, uses = replay(network, made), np.array([network.uses(one) for one in made])
    lost = outcome.inter / outcome.alone
    found = []
    for job in np.argsort(-lost, kind="stable")[:count].tolist():
        beside = np.flatnonzero((uses & uses[job]).any(axis=1))
        found.append(([*(other for other in beside.tolist() if other != job), job], float(lost[job])))
    return found


def rows(network: SharedNetwork, jobs: Mapping[str, Nodes], count: int) -> Iterator[list[str]]:
    """The suffering jobs on one lane and on lanes of their own, simulated with packets.

    :param network: network of flows.
    :param jobs: nodes of each job.
    :param count: number of suffering jobs.
    """
    packets = replace(network, model="packet", settings=PRESETS["fdr"].settings)
    made, sizes = programs(jobs, BY_TURNS, NBYTES), [len(nodes) for nodes in jobs.values()]
    for group, flows in suffering(network, jobs, count):
        trials = Trials(packets, [made[job] for job in group], DRAWS, SEED)
        one, others = Lanes.together(len(group)), (0,) * (len(group) - 1)
        own = [Lanes((*others, 1), weights) for weights in OWN.values()]
        lost = [float(trials.contention(lanes)[-1] / trials.alone[-1]) for lanes in (one, *own)]
        saved = [1 - trials.total(lanes) / trials.total(one) for lanes in own]
        about = (f"{sizes[group[-1]]} nodes", str(len(others)))
        yield [*about, *(f"{part:+.0%}" for part in (flows, *lost)), *(f"{part:.0%}" for part in saved)]
