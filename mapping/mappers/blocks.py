"""A mapping to a torus that first places parts of the graph on blocks of hosts, and then anneals single ranks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..distances import TorusDistances
from ..graph import CommunicationGraph, Undirected
from ..machine import Machine
from ..mapping import Mapping, MappingError
from ..partition import Metis, partition
from .cooling import HOT, Cooling, cool, cost_at_random

__all__ = ["on_blocks"]

Integers = NDArray[np.int64]
# First and last temperature, in the unit that `_parts_stay` computes. At the first temperature ranks leave their
# blocks, but parts of the graph stay together.
HOT_SWING, COLD_SWING = 0.76, 0.41
COARSE = 0.05  # share of the time spent on the order of the blocks; the rest anneals single ranks


def on_blocks(graph: CommunicationGraph, machine: Machine, seed: int = 0, *, seconds: float = 0.5) -> Mapping:
    """Map parts of the graph, cut by METIS, to blocks two hosts wide along each axis, then anneal single ranks.

    :param graph: communication graph, with as many ranks as hosts.
    :param machine: complete torus with one slot per host and an even number of hosts along each axis, more than two
        along at least one.
    :param seed: seed of the random numbers; equal seeds give equal mappings.
    :param seconds: amount of work, as seconds on a usual processor; the time is not measured.
    :raises MappingError: if the machine is no such torus, or there are not as many ranks as hosts.
    """
    torus = machine.distances
    if not isinstance(torus, TorusDistances) or graph.size != machine.num_hosts or (machine.slots != 1).any():
        raise MappingError(f"blocks: expecting a torus of one slot a host and as many ranks, got {graph.size} ranks")
    dims = np.array(torus.dims)
    if machine.num_hosts != dims.prod() or (dims % 2).any() or (dims < 4).all():
        raise MappingError(f"blocks: expecting a whole torus of even extents, got {machine.num_hosts} of {torus.dims}")
    wide = np.where(dims > 2, 2, 1)
    block = np.ravel_multi_index(tuple((torus.coordinates // wide).T), tuple(dims // wide))
    coarse = Machine.torus(tuple(dims // wide), wrap=torus.wrap)
    start = _within(block, _blocks(graph, coarse, seed, COARSE * seconds), machine)
    return cool(
        graph,
        machine,
        seed,
        start=start,
        cooling=_parts_stay(graph.undirected(), torus),
        seconds=(1 - COARSE) * seconds,
    )


def _parts_stay(graph: Undirected, torus: TorusDistances) -> Cooling:
    """The temperatures at which parts of the graph stay together while their ranks move.

    They are proportional to the root of the sum of squares of a rank's edge weights, divided by the root of the number
    of axes. The dividend is the usual change of a rank's cost if each of its neighbours moves one link nearer or
    farther at random. The divisor is there because more axes offer more near places to move to. The unit of `Cooling`
    alone, the mean cost of a rank, would be wrong: it grows with the torus, but the temperature at which parts break up
    does not.
    """
    if not len(graph.targets):
        return HOT  # nothing moves without edges
    degree = np.diff(graph.offsets)
    squares = np.bincount(np.repeat(np.arange(len(degree)), degree), graph.weight**2, len(degree))
    swing = np.sqrt(squares[degree > 0]).mean() / np.sqrt(sum(extent > 1 for extent in torus.dims))
    unit = swing / cost_at_random(graph, torus.axes(np.arange(torus.num_hosts)))
    return Cooling(HOT_SWING * unit, COLD_SWING * unit)


def _blocks(graph: CommunicationGraph, coarse: Machine, seed: int, seconds: float) -> Integers:
    """The block of each rank: METIS's parts of the graph, put on blocks by annealing them as if each were one rank.

    :param graph: communication graph, with a vertex per rank.
    :param coarse: torus whose hosts stand for the blocks.
    :param seed: seed of the random numbers.
    :param seconds: amount of annealing, as seconds on a usual processor.
    """
    size = graph.size // coarse.num_hosts
    part = partition(graph.undirected(), np.full(coarse.num_hosts, size), seed, Metis(1), 1)
    parts = CommunicationGraph.from_arrays(coarse.num_hosts, part[graph.sources], part[graph.targets], graph.volume)
    return cool(parts, coarse, seed, cooling=HOT, seconds=seconds).host_of_rank[part]


def _within(block: Integers, wanted: Integers, machine: Machine) -> Mapping:
    """Put each rank on a host of its block; within a block, ranks and hosts ascend together.

    :param block: block of each host, shape (n,).
    :param wanted: block of each rank, shape (n,).
    :param machine: hosts with one slot each.
    """
    host = np.empty(len(block), dtype=np.int64)
    host[np.argsort(wanted, kind="stable")] = np.argsort(block, kind="stable")
    return Mapping.on_hosts(host, machine)
