"""Speeds of jobs in random mixes: the model ``links`` beside a simulation of all messages as flows.

In the simulation each job repeats a compute burst and the steps of its pattern. Its speed is the time of a repetition
alone over that beside the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from topompi.machine.interference.contention import speeds
from topompi.machine.interference.network import shared_network
from topompi.machine.interference.streams import PATTERNS, Demands, Stream, network_of, steps_of, stream_of
from topompi.machine.jobs import Cluster
from topompi.netsim import BACKGROUND, COMPUTE, RECEIVE, SEND, FlowSession, Program, Tables

__all__ = ["Mix", "draw", "modelled", "simulated"]

Floats = NDArray[np.float64]
Nodes = NDArray[np.int64]
SIZES = (2, 4, 6, 8, 12, 16, 24)
PERIOD = (0.5e-3, 2e-3)  # seconds of a repetition alone
SPAN, SETTLING = 60e-3, 3  # simulated seconds; repetitions that are not counted
LATENCY = 1e-7


@dataclass(frozen=True, eq=False)
class Mix:
    """Jobs on different nodes of a cluster.

    :param cluster: the cluster.
    :param nodes: nodes of each job.
    :param demands: traffic of the jobs.
    :param rng: generator of the periods and phases.
    """

    cluster: Cluster
    nodes: Sequence[Nodes]
    demands: Demands
    rng: np.random.Generator


def draw(cluster: Cluster, seed: int, used: float, swapped: float) -> Mix:
    """Draw jobs of 2 to 24 nodes, their nodes and their traffic.

    :param cluster: the cluster.
    :param seed: seed of the draw.
    :param used: share of the nodes that the jobs use.
    :param swapped: pairs of nodes that change places in the machine's order, as a share of the nodes; 0 to place jobs
        side by side.
    """
    rng, count = np.random.default_rng(seed), cluster.num_nodes
    sizes = [int(rng.choice(SIZES))]
    while sum(sizes) + max(SIZES) <= used * count:
        sizes.append(int(rng.choice(SIZES)))
    place = np.arange(count)
    for one, other in rng.integers(count, size=(int(swapped * count), 2)):
        place[[one, other]] = place[[other, one]]
    nodes = [np.sort(part) for part in np.split(place[: sum(sizes)], np.cumsum(sizes)[:-1])]
    rate = network_of(cluster).capacity.max()
    demands = Demands(
        rng.integers(len(PATTERNS), size=len(sizes)),
        rng.uniform(0.1, 0.5, len(sizes)),
        rate * rng.choice((0.25, 0.5, 1.0), len(sizes)),
        rng.integers(2**31, size=len(sizes)),
    )
    return Mix(cluster, nodes, demands, rng)


def modelled(mix: Mix) -> Floats:
    """Return the speed of each job by the model, shape (jobs,)."""
    network, found = network_of(mix.cluster), np.ones(len(mix.nodes))
    made = [stream_of(network, nodes, mix.demands, job) for job, nodes in enumerate(mix.nodes)]
    streams: dict[int, Stream] = {job: stream for job, stream in enumerate(made) if stream is not None}
    found[list(streams)] = speeds(list(streams.values()), network.capacity)
    return found


def simulated(mix: Mix) -> Floats:
    """Return the speed of each job by a simulation of its messages, shape (jobs,).

    A node's own link has the rate of its job's injection, because a simulated message takes all that it gets.
    """
    network, tables = network_of(mix.cluster), shared_network(mix.cluster, latency=LATENCY)
    rate = tables.rate.copy()
    for nodes, injection in zip(mix.nodes, mix.demands.injection, strict=True):
        rate[network.up[nodes]] = injection
    tables = replace(tables, rate=rate)
    programs = [_program(mix, tables, job) for job in range(len(mix.nodes))]
    alone = np.array([_alone(tables, program) for program in programs])
    session = FlowSession(tables)
    for program in programs:
        session.add(replace(program, repeat=BACKGROUND), at=float(mix.rng.uniform(0, PERIOD[1])))
    session.advance(SPAN)
    ends = [session.runs(job).ends for job in range(len(programs))]
    beside = np.array([(one[-1] - one[SETTLING - 1]) / (len(one) - SETTLING) for one in ends])
    found: Floats = alone / beside
    return found


def _program(mix: Mix, tables: Tables, job: int) -> Program:
    """Return a repetition of a job: a burst that gives it its share of communication, and its messages."""
    demands, share = mix.demands, mix.demands.communication[job]
    period = mix.rng.uniform(*PERIOD)
    nbytes = demands.injection[job] * share * period
    messages = _repetition(mix, job, nbytes, 0.0)
    return _repetition(mix, job, nbytes, _alone(tables, messages) * (1 - share) / share)


def _repetition(mix: Mix, job: int, nbytes: float, burst: float) -> Program:
    nodes, demands = mix.nodes[job], mix.demands
    steps = steps_of(int(demands.pattern[job]), len(nodes), int(demands.seed[job]))
    every = np.arange(len(nodes))
    rows = [(every, 0 * every, COMPUTE, every, burst)]
    for number, (source, target) in enumerate(steps, 1):
        rows += [(source, 0 * source + number, SEND, target, nbytes / len(steps))]
        rows += [(target, 0 * target + number, RECEIVE, source, nbytes / len(steps))]
    rank, step, kind, peer, amount = (
        np.concatenate([np.broadcast_to(row[at], len(row[0])) for row in rows]) for at in range(5)
    )
    return Program(nodes, rank, step, kind, peer, amount, name=f"job {job}")


def _alone(tables: Tables, program: Program) -> float:
    session = FlowSession(tables)
    handle = session.add(program)
    while session.waiting:
        session.advance()
    return float(session.runs(handle).seconds[0])
