"""T_base, the time of a job alone on a crossbar, in which only the hosts' own links are busy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ... import network
from ...mapping.graph import CommunicationGraph
from ...netsim import COMPUTE, ONCE, Program, Tables
from .network import SharedNetwork

__all__ = ["bound", "computation", "graph_of", "seconds"]

LATENCY = 1e-6  # seconds; Jokanovic 2014, table 3.1


def bound(graph: CommunicationGraph, rate: float, hosts: NDArray[np.integer] | None = None) -> float:
    """The least time in seconds in which a crossbar carries all bytes of a job: those of the busiest host's link.

    It is reached if no message waits for another one, because each crossbar has a schedule in which the busiest link
    never rests (D. König's theorem on edge colourings of bipartite graphs).

    :param graph: bytes between ranks.
    :param rate: bandwidth of each host's link in bytes/s, in each direction.
    :param hosts: host of each rank, shape (p,); by default each rank has its own.
    """
    host = np.arange(graph.size) if hosts is None else np.unique(hosts, return_inverse=True)[1]
    source, target = host[graph.sources], host[graph.targets]
    nbytes = np.where(source != target, graph.volume, 0).astype(np.float64)
    ends = (np.bincount(end, nbytes, minlength=1) for end in (source, target))
    return max(float(end.max(initial=0.0)) for end in ends) / rate


def seconds(program: Program, rate: float, latency: float = LATENCY) -> float:
    """The simulated time in seconds of a program on a crossbar with equal links, in the model of flows.

    ``SharedNetwork.base_seconds`` takes the links of a fabric, and any model.

    :param program: the job; its compute bursts and phases count.
    :param rate: bandwidth of each host's link in bytes/s, in each direction.
    :param latency: latency in seconds between two hosts.
    Cost: a simulation.
    """
    hosts = np.unique(program.hosts, return_inverse=True)[1]
    one = network.Tables.one_switch(int(hosts.max()) + 1).filled(rate, latency / 2)
    tables = Tables(one.source, one.target, one.rate, one.latency, one.next_link, one.names, one.adapters)
    return SharedNetwork(tables).seconds(replace(program, hosts=hosts, start=0.0, repeat=ONCE))


def computation(program: Program) -> float:
    """The seconds for which the rank computes that computes longest."""
    burst = program.kind == COMPUTE
    return float(np.bincount(program.rank[burst], program.amount[burst], program.num_ranks).max(initial=0.0))


def graph_of(program: Program) -> CommunicationGraph:
    """The bytes that the ranks of a program send to each other in one run, rounded to whole bytes per pair."""
    messages, size = program.messages, program.num_ranks
    pair, which = np.unique(messages.source * size + messages.destination, return_inverse=True)
    nbytes = np.bincount(which, messages.nbytes, len(pair))
    return CommunicationGraph.from_arrays(size, pair // size, pair % size, np.rint(nbytes))
