"""The best of several mappers, because none is best for all graphs; the given order is always among the candidates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial

import numpy as np

from ..distances import TreeDistances
from ..evaluate import doubled_hop_bytes, evaluate
from ..graph import CommunicationGraph
from ..machine import Machine
from ..mapping import Mapping, MappingError
from ..partition import Metis, Partitioner
from ..work import Work
from .blocks import on_blocks
from .branches import branches
from .busiest import relieve
from .cartesian import block_shapes, cartesian
from .cooling import COLD, HOT, WARM, WARM_DENSE, cool
from .exchange import exchange_hosts
from .grids import RankGrid, coordinates_of, grid_of_strides
from .isometric import isometric
from .links import tree_routes
from .multilevel import scheme1, scheme2, single_step
from .plain import cyclic, identity, plane
from .pool import Pool
from .refine import Effort, refine

__all__ = ["best"]

# Top-down mappings in turn: tries per cluster, and bisections per try. Many bisections find regular cuts, many tries
# find irregular ones, and which kind a graph has is unknown. None: the number of tries that scheme1 uses.
AS_SCHEME1 = (None, 4)
ROUNDS: tuple[tuple[int | None, int], ...] = ((1, 16), (16, 1), AS_SCHEME1, (24, 1))
DEFAULT_ROUNDS = 3
QUICK = (1, 1)  # for dense graphs, because one cut is little worse than the best of many, and quickly found
FEW_PARTS = 2500  # most ranks for which many partitions are tried, because each takes long with more
EDGES_A_RANK = 24
SEED_STRIDE = 64
TIE_HOSTS = 256
# Seconds of cold annealing per start on a usual processor, per rank and per edge; warm annealing before it takes
# ``WARM_TIMES`` as long.
ANNEALING_A_RANK, ANNEALING_AN_EDGE, WARM_TIMES = 5e-5, 5e-7, 4
HOT_ANNEALING_A_RANK = 0.0025
HOT_ON_GRID = 0.8  # factor on hot annealing if folds of a grid have been tried, which take the rest
ON_BLOCKS = 0.9  # fraction of the time of hot annealing for ``on_blocks``, if the torus can be divided into blocks
LONGEST = 10.0  # largest effort of one annealing run; more effort gives more runs, because longer runs find no more
FEW_RANKS, MANY_RANKS = 256, 10000
STARTS = 2  # mappings annealed for dense graphs on trees
# For sparse graphs on trees, mappings from different mappers are annealed for a short time each, and the best one for
# longer, because annealing does not leave the basin in which it starts.
SHORT_STARTS, SHORT_TIMES = 3, 1
HOT_SHARE = 0.8  # fraction of more effort on a tree that is annealed hot; new cuts are annealed in the rest

Step = tuple[str, Callable[[Pool], Iterator[Mapping]]]


def best(
    graph: CommunicationGraph,
    machine: Machine,
    seed: int = 0,
    *,
    objective: str | Callable[[Mapping], float] = "hop-bytes",
    given: Mapping | None = None,
    rounds: int | None = None,
    effort: float = 1.0,
    work: Work | None = None,
    quality: float = 0.0,
    partitioner: Partitioner | None = None,
    weight: str = "volume",
    progress: Callable[[str], None] | None = None,
) -> Mapping:
    """The best mapping that a portfolio of mappers finds: never worse than the given order, nor than any single mapper.

    Every mapper of ours takes part with this seed, and all results are compared exactly.

    :param graph: communication graph, with a vertex per rank.
    :param machine: hosts with their slots and distances.
    :param seed: seed of the random numbers; equal seeds give equal mappings.
    :param objective: ``hop-bytes``, or ``busiest link`` for bytes over capacity of the busiest link of the routes.
        Without routes, on a tree, the borders of clusters count as links. A function of a mapping is the cost by which
        the results of all mappers are compared, while each of them lowers hop-bytes.
    :param given: mapping to beat; by default rank r on slot r.
    :param rounds: number of top-down mappings; by default as many as take about half a second for 1,000 ranks. Work is
        counted, not timed, so that the result does not depend on the speed of the computer.
    :param effort: factor on the time of annealing, which is most of the time on a torus.
    :param work: counter of the work, whose limit is checked between steps; None for no limit.
    :param quality: fraction of the given order's objective at which the search stops.
    :param partitioner: partitioner for one further top-down mapping, in addition to METIS.
    :param weight: weight of the edges to cut, see `CommunicationGraph.undirected`; if it is not ``volume``, it is used
        in one further top-down mapping.
    :param progress: function that is called with a description of each step.
    :raises MappingError: if the objective is unknown, or there are too few slots.
    """
    work = work or Work()
    pool = Pool(
        _objective(objective, graph, machine), _tie(graph, machine), given or Mapping.identity(machine, graph.size)
    )
    grid = coordinates_of(graph)
    few, exact = graph.size <= FEW_PARTS, grid is not None and grid.exact
    divided = few and exact and block_shapes(graph, machine, grid) is not None
    rounds_of = _rounds(graph, machine, rounds, divided)
    asked = partitioner, weight
    for name, step in _steps(graph, machine, seed, objective, rounds_of, asked, effort, grid, divided):
        if not pool.least or not work.goes_on(good_enough=pool.least <= pool.first * quality):
            break
        if progress:
            progress(f"{name}; {pool.least / pool.first:.4f} of the given order so far")
        for found in step(pool):
            pool.offer(found)
            work.compared(graph)
    return pool.best


def _objective(
    objective: str | Callable[[Mapping], float], graph: CommunicationGraph, machine: Machine
) -> Callable[[Mapping], float]:
    """The function that computes the cost of a mapping: exact hop-bytes (doubled), or seconds of the busiest link."""
    if callable(objective):
        return objective
    if objective == "hop-bytes":
        return lambda mapping: doubled_hop_bytes(mapping, graph, machine)
    if objective != "busiest link":
        raise MappingError(f"best: expecting the objective hop-bytes or busiest link, got {objective!r}")
    routed = machine if machine.routes is not None else tree_routes(machine)
    return lambda mapping: evaluate(mapping, graph, routed).link_seconds or 0.0


def _tie(graph: CommunicationGraph, machine: Machine) -> Callable[[Mapping], float]:
    """The function that decides between mappings of equal cost: the busiest cluster border, on trees of few hosts."""
    if not isinstance(machine.distances, TreeDistances) or machine.num_hosts > TIE_HOSTS:
        return lambda mapping: 0.0
    routed = tree_routes(machine)
    return lambda mapping: evaluate(mapping, graph, routed).link_seconds or 0.0


def _rounds(
    graph: CommunicationGraph, machine: Machine, rounds: int | None, divided: bool
) -> list[tuple[int | None, int]]:
    """The tries and bisections of each top-down mapping; by default those that take about half a second."""
    if rounds is not None:
        return [ROUNDS[number % len(ROUNDS)] for number in range(rounds)]
    if not isinstance(machine.distances, TreeDistances):
        return [AS_SCHEME1]
    if divided:
        return [AS_SCHEME1, (2, 4)]  # if blocks divide a grid, little work shows whether they can be beaten
    # A graph with more edges per rank takes as long as one with proportionally more ranks.
    work = max(graph.size, graph.num_edges // EDGES_A_RANK)
    if work <= FEW_PARTS:
        return list(ROUNDS[:DEFAULT_ROUNDS])
    return [QUICK, AS_SCHEME1] if graph.size <= FEW_PARTS else [AS_SCHEME1, (2, 1)]


def _steps(
    graph: CommunicationGraph,
    machine: Machine,
    seed: int,
    objective: str | Callable[[Mapping], float],
    rounds: list[tuple[int | None, int]],
    asked: tuple[Partitioner | None, str],
    effort: float,
    grid: RankGrid | None,
    divided: bool,
) -> Iterator[Step]:
    """Yield the steps of the search in turn.

    First come mappers that need no mapping to start from (on dense graphs the quickest is the first), then mappers that
    improve the best mappings found.

    :param graph: communication graph, with a vertex per rank.
    :param machine: hosts with their slots and distances.
    :param seed: seed of the random numbers.
    :param objective: ``hop-bytes``, ``busiest link``, or a function that computes the cost.
    :param rounds: numbers of tries and of bisections of each top-down mapping, see ``_rounds``.
    :param asked: partitioner (None for METIS) and weight that the caller requests in addition.
    :param effort: factor on the time of annealing.
    :param grid: grid that the ranks form, if one is recognised.
    :param divided: whether blocks of ranks for hosts and clusters divide the grid, and there are no other edges.
    """
    laid = None if isinstance(machine.distances, TreeDistances) else _laid(graph, machine)
    if laid is not None:
        yield "laid on the hosts' own graph", lambda _: iter((laid,))
        if objective == "hop-bytes":
            return  # no mapping can cost less
    down: list[Step] = []
    for number, (tries, cuts) in enumerate(rounds):
        # Without a number of tries the call is that of the mapper scheme1, and keeps its seed to be never worse.
        again = seed + SEED_STRIDE * number * (tries is not None)
        down.append((f"top down {number + 1}", partial(_top_down, graph, machine, again, Metis(cuts), tries)))
    early = rounds[:1].count(QUICK)
    yield from down[:early]
    yield "plain orders", lambda _: iter((identity(graph, machine), cyclic(graph, machine), plane(graph, machine)))
    yield "blocks", lambda _: _blocks(graph, machine, grid)
    yield "given order, swaps", lambda _: iter((refine(graph, machine, seed),))
    yield from down[early:]
    yield "one cut", lambda _: iter((single_step(graph, machine, seed),))
    yield "hosts first", lambda _: iter((scheme2(graph, machine, seed),))
    by, weight = asked
    if by is not None or weight != "volume":
        yield "top down as asked for", partial(_top_down, graph, machine, seed, by or Metis(), 1, weight=weight)
    yield from _improvements(graph, machine, seed, objective, effort, grid, divided)


def _improvements(
    graph: CommunicationGraph,
    machine: Machine,
    seed: int,
    objective: str | Callable[[Mapping], float],
    effort: float,
    grid: RankGrid | None,
    divided: bool,
) -> Iterator[Step]:
    """Yield the steps that start from the best mappings found, with the parameters of ``_steps``."""
    on_tree, few = isinstance(machine.distances, TreeDistances), _few_edges(graph)
    if not on_tree:
        yield "hosts exchanged", partial(_exchanged, graph, machine, seed)
        times = HOT_ON_GRID if grid is not None and graph.size == machine.num_slots else 1
        yield "hot annealing", partial(_hot, graph, machine, seed, times * effort)
    elif few and not divided:
        yield "short annealing", partial(_shortly, graph, machine, seed)
    else:
        yield "best so far, swaps", partial(_swaps, graph, machine, seed)
    if on_tree and effort > 1 and graph.size <= MANY_RANKS:
        yield "hot annealing", partial(_hot, graph, machine, seed, HOT_SHARE * (effort - 1))
        for number in range(1, int(np.ceil(effort))):
            yield (
                f"new start {number}",
                partial(_restarted, graph, machine, seed + SEED_STRIDE * (len(ROUNDS) + number)),
            )
    starts = STARTS if on_tree and not few else 1
    for number in range(starts if graph.size <= MANY_RANKS else 0):
        yield f"annealing {number + 1}", partial(_annealed, graph, machine, seed, effort, divided, number)
    if objective == "busiest link":
        yield "busiest link", lambda pool: iter((relieve(graph, machine, seed, start=pool.best),))


def _swaps(graph: CommunicationGraph, machine: Machine, seed: int, pool: Pool) -> Iterator[Mapping]:
    """Improve the best mapping by swaps and kicks."""
    yield refine(graph, machine, seed, start=pool.best, effort=Effort(kicks=20))


def _shortly(graph: CommunicationGraph, machine: Machine, seed: int, pool: Pool) -> Iterator[Mapping]:
    """Anneal each of the few best mappings for a short time."""
    for number, start in enumerate(pool.starts(SHORT_STARTS)):
        seconds = SHORT_TIMES * _usual_seconds(graph)
        yield cool(graph, machine, seed + SEED_STRIDE * number, start=start, cooling=WARM, seconds=seconds)


def _restarted(graph: CommunicationGraph, machine: Machine, seed: int, _: Pool) -> Iterator[Mapping]:
    """Map top down with another seed, and anneal the result."""
    start, warm = scheme1(graph, machine, seed), WARM if _few_edges(graph) else WARM_DENSE
    yield cool(graph, machine, seed, start=start, cooling=warm, seconds=WARM_TIMES * _usual_seconds(graph))


def _usual_seconds(graph: CommunicationGraph) -> float:
    return ANNEALING_A_RANK * graph.size + ANNEALING_AN_EDGE * graph.num_edges


def _few_edges(graph: CommunicationGraph) -> bool:
    return graph.size <= FEW_PARTS and graph.num_edges <= EDGES_A_RANK * FEW_PARTS


def _annealed(
    graph: CommunicationGraph, machine: Machine, seed: int, effort: float, divided: bool, number: int, pool: Pool
) -> Iterator[Mapping]:
    """Anneal the mapping of index ``number`` in the order of cost, 0 for the best, among those found."""
    kept, on_tree = pool.start(number), isinstance(machine.distances, TreeDistances)
    seconds = effort * _usual_seconds(graph)
    warm = WARM if _few_edges(graph) else WARM_DENSE
    pays = graph.size <= FEW_PARTS and not divided
    for cooling, times in ((warm, WARM_TIMES if pays else 1), (COLD, 1)) if on_tree else ((COLD, 1),):
        again = seed + SEED_STRIDE * number
        kept = cool(graph, machine, again, start=kept, cooling=cooling, seconds=times * seconds)
        yield kept
    if on_tree:
        yield refine(graph, machine, seed, start=kept, effort=Effort(kicks=0))


def _hot(graph: CommunicationGraph, machine: Machine, seed: int, effort: float, pool: Pool) -> Iterator[Mapping]:
    """Anneal in two ways: from parts of the graph on blocks of a torus, and from temperatures that leave no order.

    The first way is taken only if the torus can be divided into blocks.
    """
    shared = machine.slots.max(initial=0) > 1  # then the exchange of hosts has already found a good start
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
    """Exchange whole hosts in the given mapping and in the best one, if hosts have several slots, all equally many."""
    if machine.slots.max(initial=0) < 2:
        return
    with suppress(MappingError):
        yield exchange_hosts(graph, machine, seed, start=pool.given)
        yield exchange_hosts(graph, machine, seed, start=pool.best)


def _laid(graph: CommunicationGraph, machine: Machine) -> Mapping | None:
    """The mapping of the graph to the graph that joins nearest hosts; None if none is found."""
    try:
        return isometric(graph, machine)
    except MappingError:
        return None


def _blocks(graph: CommunicationGraph, machine: Machine, grid: RankGrid | None) -> Iterator[Mapping]:
    """The mappings that the structure of the graph suggests: by blocks of a grid, or by branches of a tree."""
    supposed = grid or grid_of_strides(graph)
    if supposed is not None:
        yield cartesian(graph, machine, grid=supposed)
    with suppress(MappingError):
        yield branches(graph, machine)


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
    # On other machines than trees, hot annealing forgets the refinement.
    on_tree = isinstance(machine.distances, TreeDistances)
    yield refine(graph, machine, seed, start=found, effort=Effort(kicks=0)) if on_tree else found
