"""The best of several mappers: none is best for all graphs, and the given order is always among them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial

import numpy as np

from ..distances import Tree
from ..evaluate import doubled_hop_bytes, evaluate
from ..graph import CommunicationGraph
from ..machine import Machine
from ..mapping import Mapping, MappingError
from ..partition import Metis, Partitioner
from .blocks import on_blocks
from .busiest import relieve
from .cartesian import block_shapes, cartesian
from .cooling import COLD, HOT, WARM, WARM_DENSE, cool
from .exchange import exchange_hosts
from .isometric import isometric
from .links import tree_routes
from .multilevel import scheme1, scheme2, single_step
from .plain import cyclic, identity, plane
from .pool import Pool
from .refine import Effort, refine

__all__ = ["best"]

# Top-down mappings in turn: cuts of each cluster, bisections tried within each cut. Many bisections find regular
# cuts, many cuts find irregular ones; which of the two a graph wants is not known beforehand. None: as scheme1 does.
AS_SCHEME1 = (None, 4)
ROUNDS: tuple[tuple[int | None, int], ...] = ((1, 16), (16, 1), AS_SCHEME1, (24, 1))
DEFAULT_ROUNDS = 3
QUICK = (1, 1)  # of a dense graph one cut is little worse than the best of many, and there at once
FEW_PARTS = 2500  # ranks, up to which there are so many
EDGES_A_RANK = 24
SEED_STRIDE = 64
TIE_HOSTS = 256
# Seconds of annealing, on a usual processor, for each start: cold, and so many times as many before, warm.
ANNEALING_A_RANK, ANNEALING_AN_EDGE, WARM_TIMES = 5e-5, 5e-7, 4
HOT_ANNEALING_A_RANK = 0.0025
ON_BLOCKS = 0.9  # of the time, where blocks divide the torus
LONGEST = 10.0  # times the usual, up to which one longer run was seen to find more; beyond are several runs
FEW_RANKS, MANY_RANKS = 256, 10000
STARTS = 2  # to anneal, where edges are many; a second one of few edges saves 0.2 % at most

Step = tuple[str, Callable[[Pool], Iterator[Mapping]]]


def best(
    graph: CommunicationGraph,
    machine: Machine,
    seed: int = 0,
    *,
    objective: str = "hop-bytes",
    given: Mapping | None = None,
    rounds: int | None = None,
    effort: float = 1.0,
    seconds: float | None = None,
    quality: float = 0.0,
    partitioner: Partitioner | None = None,
    weight: str = "volume",
    progress: Callable[[str], None] | None = None,
) -> Mapping:
    """The best mapping that a portfolio finds: never worse than the given order, nor than any other mapper.

    Every mapper of ours takes part with this seed, and all are compared exactly.

    :param graph: the ranks' communication; its size is the number of ranks.
    :param machine: the hosts with their slots and distances.
    :param seed: starts the random numbers; one seed gives one mapping.
    :param objective: ``hop-bytes``, or ``busiest link``: bytes over capacity of the busiest link of the routes, on a
        tree without routes of the busiest cluster boundary.
    :param given: the order that is to be beaten; rank r on slot r by default.
    :param rounds: top-down mappings, by default as many as take about half a second for 1,000 ranks. Work is counted,
        not timed: one seed gives one mapping, however fast the machine.
    :param effort: so many times as long as by default ranks are annealed, which is most of the time on a torus.
    :param seconds: an upper limit, looked at between candidates; where it takes effect the clock has its say.
    :param quality: stop as soon as the objective is at most this part of the given order's.
    :param partitioner: used in addition to METIS, for one more top-down mapping.
    :param weight: of the edges that are cut, see `CommunicationGraph.undirected`; what is not ``volume`` is tried in
        addition, in one more top-down mapping.
    :param progress: is told, in words, what is tried.
    :raises MappingError: for another objective, or too few slots.
    """
    began = time.monotonic()
    pool = Pool(
        _objective(objective, graph, machine), _tie(graph, machine), given or Mapping.identity(machine, graph.size)
    )
    rounds_of = _rounds(graph, machine, rounds)
    for name, step in _steps(graph, machine, seed, objective, rounds_of, (partitioner, weight), effort):
        if pool.least <= pool.first * quality or (seconds is not None and time.monotonic() - began > seconds):
            break
        if progress:
            progress(f"{name}; {pool.least / pool.first:.4f} of the given order so far")
        for found in step(pool):
            pool.offer(found)
    return pool.best


def _objective(objective: str, graph: CommunicationGraph, machine: Machine) -> Callable[[Mapping], float]:
    """What a mapping costs: exact hop-bytes (whole numbers), or seconds of the busiest link."""
    if objective == "hop-bytes":
        return lambda mapping: doubled_hop_bytes(mapping, graph, machine)
    if objective != "busiest link":
        raise MappingError(f"best: expecting the objective hop-bytes or busiest link, got {objective!r}")
    routed = machine if machine.routes is not None else tree_routes(machine)
    return lambda mapping: evaluate(mapping, graph, routed).link_seconds or 0.0


def _tie(graph: CommunicationGraph, machine: Machine) -> Callable[[Mapping], float]:
    """What decides between mappings of equal cost: the busiest cluster boundary, on trees of some hosts."""
    if not isinstance(machine.distances, Tree) or machine.num_hosts > TIE_HOSTS:
        return lambda mapping: 0.0
    routed = tree_routes(machine)
    return lambda mapping: evaluate(mapping, graph, routed).link_seconds or 0.0


def _rounds(graph: CommunicationGraph, machine: Machine, rounds: int | None) -> list[tuple[int | None, int]]:
    """Cuts and bisections of each top-down mapping; by default as many as take about half a second."""
    if rounds is not None:
        return [ROUNDS[number % len(ROUNDS)] for number in range(rounds)]
    if not isinstance(machine.distances, Tree):
        return [AS_SCHEME1]
    if graph.size <= FEW_PARTS and block_shapes(graph, machine):
        return [AS_SCHEME1, (2, 4)]  # where blocks divide a grid little is enough, to tell whether they are beaten
    # Graphs of more edges than that take as long as those of so many more ranks.
    work = max(graph.size, graph.num_edges // EDGES_A_RANK)
    if work <= FEW_PARTS:
        return list(ROUNDS[:DEFAULT_ROUNDS])
    return [QUICK, AS_SCHEME1] if graph.size <= FEW_PARTS else [AS_SCHEME1, (2, 1)]


def _steps(
    graph: CommunicationGraph,
    machine: Machine,
    seed: int,
    objective: str,
    rounds: list[tuple[int | None, int]],
    asked: tuple[Partitioner | None, str],
    effort: float,
) -> Iterator[Step]:
    """What is tried in turn: mappers that need no start, the quickest of a dense graph first, and improvements."""
    laid = None if isinstance(machine.distances, Tree) else _laid(graph, machine)
    if laid is not None:
        yield "laid on the hosts' own graph", lambda _: iter((laid,))
        if objective == "hop-bytes":
            return  # no order costs less
    down: list[Step] = []
    for number, (tries, cuts) in enumerate(rounds):
        again = seed + SEED_STRIDE * number * (tries is not None)  # scheme1's own seed, where it is the mapper
        down.append((f"top down {number + 1}", partial(_top_down, graph, machine, again, Metis(cuts), tries)))
    early = rounds[:1].count(QUICK)
    yield from down[:early]
    yield "plain orders", lambda _: iter((identity(graph, machine), cyclic(graph, machine), plane(graph, machine)))
    yield "blocks", lambda _: _blocks(graph, machine)
    yield "given order, swaps", lambda _: iter((refine(graph, machine, seed),))
    yield from down[early:]
    yield "one cut", lambda _: iter((single_step(graph, machine, seed),))
    yield "hosts first", lambda _: iter((scheme2(graph, machine, seed),))
    by, weight = asked
    if by is not None or weight != "volume":
        yield "top down as asked for", partial(_top_down, graph, machine, seed, by or Metis(), 1, weight=weight)
    yield from _improvements(graph, machine, seed, objective, effort)


def _improvements(
    graph: CommunicationGraph, machine: Machine, seed: int, objective: str, effort: float
) -> Iterator[Step]:
    """What begins with the best mappings found."""
    if isinstance(machine.distances, Tree):
        yield "best so far, swaps", partial(_swaps, graph, machine, seed)
        if effort > 1 and graph.size <= MANY_RANKS:
            yield "hot annealing", partial(_hot, graph, machine, seed, effort - 1)
    else:
        yield "hosts exchanged", partial(_exchanged, graph, machine, seed)
        yield "hot annealing", partial(_hot, graph, machine, seed, effort)
    starts = STARTS if isinstance(machine.distances, Tree) and not _few_edges(graph) else 1
    for number in range(starts if graph.size <= MANY_RANKS else 0):
        yield f"annealing {number + 1}", partial(_annealed, graph, machine, seed, effort, number)
    if objective == "busiest link":
        yield "busiest link", lambda pool: iter((relieve(graph, machine, seed, start=pool.best),))


def _swaps(graph: CommunicationGraph, machine: Machine, seed: int, pool: Pool) -> Iterator[Mapping]:
    """Swaps with kicks."""
    yield refine(graph, machine, seed, start=pool.best, effort=Effort(kicks=20))


def _few_edges(graph: CommunicationGraph) -> bool:
    return graph.size <= FEW_PARTS and graph.num_edges <= EDGES_A_RANK * FEW_PARTS


def _annealed(
    graph: CommunicationGraph, machine: Machine, seed: int, effort: float, number: int, pool: Pool
) -> Iterator[Mapping]:
    """One of the best mappings, annealed."""
    kept, on_tree = pool.start(number), isinstance(machine.distances, Tree)
    seconds = effort * (ANNEALING_A_RANK * graph.size + ANNEALING_AN_EDGE * graph.num_edges)
    warm = WARM if _few_edges(graph) else WARM_DENSE
    pays = graph.size <= FEW_PARTS and not block_shapes(graph, machine)
    for cooling, times in ((warm, WARM_TIMES if pays else 1), (COLD, 1)) if on_tree else ((COLD, 1),):
        again = seed + SEED_STRIDE * number
        kept = cool(graph, machine, again, start=kept, cooling=cooling, seconds=times * seconds)
        yield kept
    if on_tree:
        yield refine(graph, machine, seed, start=kept, effort=Effort(kicks=0))


def _hot(graph: CommunicationGraph, machine: Machine, seed: int, effort: float, pool: Pool) -> Iterator[Mapping]:
    """Annealed from parts on blocks of a torus, and from a temperature at which no order is left."""
    shared = machine.slots.max(initial=0) > 1  # where exchanged hosts have led already
    seconds = effort * HOT_ANNEALING_A_RANK * min(graph.size, MANY_RANKS) / (1 + shared)
    runs = int(np.ceil(effort / LONGEST))
    seconds /= max(runs, 1)
    for number in range(3 * runs if graph.size <= FEW_RANKS else runs):
        left, again = seconds, seed + SEED_STRIDE * number
        with suppress(MappingError):
            yield on_blocks(graph, machine, again, seconds=ON_BLOCKS * seconds)
            left = (1 - ON_BLOCKS) * seconds
        yield cool(graph, machine, again, start=pool.best, cooling=HOT, seconds=left)


def _exchanged(graph: CommunicationGraph, machine: Machine, seed: int, pool: Pool) -> Iterator[Mapping]:
    """The given order and the best mapping with hosts exchanged, where they have equally many slots of several."""
    if machine.slots.max(initial=0) < 2:
        return
    with suppress(MappingError):
        yield exchange_hosts(graph, machine, seed, start=pool.given)
        yield exchange_hosts(graph, machine, seed, start=pool.best)


def _laid(graph: CommunicationGraph, machine: Machine) -> Mapping | None:
    """The ranks on an equal graph of hosts, where the graph is one."""
    try:
        return isometric(graph, machine)
    except MappingError:
        return None


def _blocks(graph: CommunicationGraph, machine: Machine) -> Iterator[Mapping]:
    """Blocks of the grid, where the graph is one."""
    with suppress(MappingError):
        yield cartesian(graph, machine)


def _top_down(
    graph: CommunicationGraph,
    machine: Machine,
    seed: int,
    by: Partitioner,
    tries: int | None,
    pool: Pool,
    weight: str = "volume",
) -> Iterator[Mapping]:
    found = scheme1(graph, machine, seed, partitioner=by, tries=tries, weight=weight)
    yield found
    if isinstance(machine.distances, Tree):  # elsewhere hot annealing forgets it
        yield refine(graph, machine, seed, start=found, effort=Effort(kicks=0))
