"""The best of several mappers: none is best for all graphs, and the given order is always among them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial

from ..distances import Tree
from ..evaluate import doubled_hop_bytes, evaluate
from ..graph import CommunicationGraph
from ..machine import Machine
from ..mapping import Mapping, MappingError
from ..partition import Metis, Partitioner
from .busiest import relieve
from .cartesian import block_shapes, cartesian
from .exchange import exchange_hosts
from .links import tree_routes
from .multilevel import scheme1, scheme2
from .plain import cyclic
from .refine import Effort, refine

__all__ = ["best"]

# Top-down mappings in turn: cuts of each cluster, bisections tried within each cut. Many bisections find regular
# cuts, many cuts find irregular ones; which of the two a graph wants is not known beforehand.
ROUNDS = ((1, 16), (16, 1), (8, 4), (24, 1))
DEFAULT_ROUNDS = ((1300, 3), (2500, 2))
EDGES_A_RANK = 24
SEED_STRIDE = 64
MOST_PROPOSALS = 2**23
TIE_HOSTS = 256

Step = tuple[str, Callable[[Mapping], Mapping]]


def best(
    graph: CommunicationGraph,
    machine: Machine,
    seed: int = 0,
    *,
    objective: str = "hop-bytes",
    given: Mapping | None = None,
    rounds: int | None = None,
    seconds: float | None = None,
    quality: float = 0.0,
    partitioner: Partitioner | None = None,
    progress: Callable[[str], None] | None = None,
) -> Mapping:
    """The best mapping that a portfolio finds; never worse than the given order, which is compared exactly.

    :param graph: the ranks' communication; its size is the number of ranks.
    :param machine: the hosts with their slots and distances.
    :param seed: starts the random numbers; one seed gives one mapping.
    :param objective: ``hop-bytes``, or ``busiest link``: bytes over capacity of the busiest link of the routes, on a
        tree without routes of the busiest cluster boundary.
    :param given: the order that is to be beaten; rank r on slot r by default.
    :param rounds: top-down mappings, by default as many as take about half a second for 1,000 ranks. Work is counted,
        not timed: one seed gives one mapping, however fast the machine.
    :param seconds: an upper limit, looked at between candidates; where it takes effect the clock has its say.
    :param quality: stop as soon as the objective is at most this part of the given order's.
    :param partitioner: used in addition to METIS, for one more top-down mapping.
    :param progress: is told, in words, what is tried.
    :raises MappingError: for another objective, or too few slots.
    """
    kept, began = given or Mapping.identity(machine, graph.size), time.monotonic()
    price, tie = _objective(objective, graph, machine), _tie(graph, machine)
    first = least = price(kept)
    for name, improve in _steps(graph, machine, seed, objective, _rounds(graph, machine, rounds), partitioner):
        if least <= first * quality or (seconds is not None and time.monotonic() - began > seconds):
            break
        if progress:
            progress(f"{name}; {least / first:.4f} of the given order so far")
        found = improve(kept)
        cost = price(found)
        if cost < least or (cost == least and tie(found) < tie(kept)):
            kept, least = found, cost
    return kept


def _objective(objective: str, graph: CommunicationGraph, machine: Machine) -> Callable[[Mapping], float]:
    """What a mapping costs: exact hop-bytes (whole numbers), or seconds of the busiest link."""
    if objective == "hop-bytes":
        return lambda mapping: doubled_hop_bytes(mapping, graph, machine)
    if objective != "busiest link":
        raise MappingError(f"best: expecting the objective hop-bytes or busiest link, got {objective!r}")
    routed = machine if machine.links is not None else tree_routes(machine)
    return lambda mapping: evaluate(mapping, graph, routed).link_seconds or 0.0


def _tie(graph: CommunicationGraph, machine: Machine) -> Callable[[Mapping], float]:
    """What decides between mappings of equal cost: the busiest cluster boundary, on trees of some hosts."""
    if not isinstance(machine.distances, Tree) or machine.num_hosts > TIE_HOSTS:
        return lambda mapping: 0.0
    routed = tree_routes(machine)
    return lambda mapping: evaluate(mapping, graph, routed).link_seconds or 0.0


def _rounds(graph: CommunicationGraph, machine: Machine, rounds: int | None) -> list[tuple[int, int]]:
    """Cuts and bisections of each top-down mapping; by default as many as take about half a second."""
    if rounds is not None:
        return [ROUNDS[number % len(ROUNDS)] for number in range(rounds)]
    if not isinstance(machine.distances, Tree):
        return [(1, 1)]
    if graph.size <= DEFAULT_ROUNDS[-1][0] and block_shapes(graph, machine):
        return [(1, 8), (2, 4)]  # where blocks divide a grid little is enough, to tell whether they are beaten
    # Graphs of more edges than that take as long as those of so many more ranks.
    work = max(graph.size, graph.num_edges // EDGES_A_RANK)
    return next((list(ROUNDS[:count]) for most, count in DEFAULT_ROUNDS if work <= most), [(1, 8), (2, 1)])


def _steps(
    graph: CommunicationGraph,
    machine: Machine,
    seed: int,
    objective: str,
    rounds: list[tuple[int, int]],
    partitioner: Partitioner | None,
) -> Iterator[Step]:
    """What is tried in turn: each step is given the best mapping so far."""
    yield "cyclic", lambda _: cyclic(graph, machine)
    yield "blocks", partial(_blocks, graph, machine)
    for number, (tries, cuts) in enumerate(rounds):
        again = seed + SEED_STRIDE * number
        yield f"top down {number + 1}", partial(_top_down, graph, machine, again, Metis(cuts), tries)
    if not isinstance(machine.distances, Tree):
        yield "hosts exchanged", partial(_exchanged, graph, machine, seed)
    elif graph.size <= 10000:
        yield "hosts first", lambda _: scheme2(graph, machine, seed)
    if partitioner is not None:
        yield "top down by another partitioner", partial(_top_down, graph, machine, seed, partitioner, 1)
    yield "best so far, swaps", partial(_swaps, graph, machine, seed, _last_effort(graph, machine))
    if objective == "busiest link":
        yield "busiest link", lambda kept: relieve(graph, machine, seed, start=kept)


def _last_effort(graph: CommunicationGraph, machine: Machine) -> Effort:
    """More annealing on tori and tables, where no clusters guide the cuts."""
    if not isinstance(machine.distances, Tree):
        return Effort(min(3000, MOST_PROPOSALS // max(graph.size, 1)), 0.006, kicks=0)
    return Effort(200, 0.0003, kicks=50) if graph.size <= 2500 else Effort(0, kicks=20)


def _swaps(graph: CommunicationGraph, machine: Machine, seed: int, effort: Effort, kept: Mapping) -> Mapping:
    return refine(graph, machine, seed, start=kept, effort=effort)


def _exchanged(graph: CommunicationGraph, machine: Machine, seed: int, kept: Mapping) -> Mapping:
    """The mapping with hosts exchanged, where they have equally many slots; else the mapping itself."""
    try:
        return exchange_hosts(graph, machine, seed, start=kept)
    except MappingError:
        return kept


def _blocks(graph: CommunicationGraph, machine: Machine, kept: Mapping) -> Mapping:
    """Blocks of the grid, where the graph is one."""
    try:
        return cartesian(graph, machine)
    except MappingError:
        return kept


def _top_down(
    graph: CommunicationGraph, machine: Machine, seed: int, by: Partitioner, tries: int, kept: Mapping
) -> Mapping:
    found = scheme1(graph, machine, seed, partitioner=by, tries=tries)
    return refine(graph, machine, seed, start=found, effort=Effort(kicks=0))
