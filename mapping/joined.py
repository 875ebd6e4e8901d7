"""Mappings for programs whose small messages from host to host are joined to one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import mul

import numpy as np
from numpy.typing import NDArray

from .exact import exact_sums
from .graph import CommunicationGraph
from .machine import Machine
from .mapping import Mapping
from .work import Work

__all__ = ["Joining", "best_joined", "joined_cost"]

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Joining:
    """The messages of a program in which small edges between two hosts share one message.

    :param start: bytes that a host sends in the time in which a message starts.
    :param limit: bytes of the largest edge that shares a message; a larger one has its own.
    """

    start: int
    limit: int


def joined_cost(mapping: Mapping, graph: CommunicationGraph, machine: Machine, joining: Joining) -> int:
    """Bytes times distance of all hosts, and as many times that of the busiest host as there are hosts; exact.

    Each message counts as further ``start`` bytes. All small edges from one host to another are one message. The
    busiest host is that which sends or receives the most; without it, hosts with few neighbours would pay for others.

    :param mapping: host of each rank.
    :param graph: bytes that each rank sends to each other in one exchange.
    :param machine: distances between hosts.
    :param joining: the terms on which edges share a message.
    """
    proper = (graph.sources != graph.targets) & (graph.volume > 0)
    host, volume = mapping.host_of_rank, graph.volume[proper]
    here, there, own = host[graph.sources[proper]], host[graph.targets[proper]], volume > joining.limit
    far, group = np.unique(machine.distance(here, there), return_inverse=True)
    message = np.unique(np.where(own, -1 - np.arange(len(own)), here * machine.num_hosts + there), return_index=True)[1]
    costs = []
    for end in (here, there):
        cell, cells = end * len(far) + group, machine.num_hosts * len(far)
        sums = exact_sums(cell, volume, cells)
        counts = np.bincount(cell[message], minlength=cells).tolist()
        units = [amount + joining.start * number for amount, number in zip(sums, counts, strict=True)]
        costs.append([sum(map(mul, far.tolist(), units[at : at + len(far)])) for at in range(0, cells, len(far) or 1)])
    busiest = max(max(one, default=0) for one in costs)
    return int(sum(costs[0]) + machine.num_hosts * busiest)


def best_joined(
    graph: CommunicationGraph,
    machine: Machine,
    joining: Joining,
    seed: int = 0,
    *,
    given: Mapping | None = None,
    quality: float = 0.0,
    work: Work | None = None,
) -> Mapping:
    """The mapping with the least `joined_cost` of all that `best` tries, so that it is never worse than the given one.

    The mappers, which know weights of edges alone, get bytes and a start-up for each edge.

    :param graph: bytes that each rank sends to each other in one exchange.
    :param machine: hosts with their slots and distances.
    :param joining: the terms on which edges share a message.
    :param seed: seed of the random numbers; equal seeds give equal mappings.
    :param given: mapping to beat; by default rank r on slot r.
    :param quality: fraction of the given order's cost at which the search stops.
    :param work: counter of the work, with its limit; None for no limit.
    Cost: a run of `best`.
    """
    from .mappers.portfolio import best  # not at the top: imports all mappers and METIS

    weighted = replace(graph, volume=graph.volume + np.where(graph.volume > 0, joining.start, 0))
    return best(
        weighted,
        machine,
        seed,
        objective=lambda mapping: joined_cost(mapping, graph, machine, joining),
        given=given,
        quality=quality,
        work=work,
    )
