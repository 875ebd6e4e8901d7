"""Exchange of whole hosts: the ranks of a host stay together while annealing searches for its best place."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..distances import Axes
from ..graph import CommunicationGraph
from ..machine import Machine
from ..mapping import Mapping, MappingError
from .annealing import CoolingSchedule, anneal, first_temperature
from .cooling import cooled_between
from .multilevel import contract, with_empty
from .places import host_of_all
from .refine import Effort, refine
from .swaps import SwapState, make_state

__all__ = ["exchange_hosts"]

# Fraction of the proposals with a higher cost that the first temperature accepts, and ratio of the last temperature to
# the first. Both are hotter than for single ranks, because there are fewer hosts to exchange, but not so hot that a
# good order at the start is lost.
ACCEPTED, COOLING = 0.03, 0.25
PROPOSALS_A_HOST, SWAPS_A_HOST = 16000, 150
MOST_PROPOSALS = 2**22
MOST_HOSTS = 4096


def exchange_hosts(
    graph: CommunicationGraph, machine: Machine, seed: int = 0, *, start: Mapping | None = None, tries: int = 2
) -> Mapping:
    """Exchange all ranks of a host with all ranks of another by annealing.

    Before and after it, single ranks are swapped as long as this lowers the cost. On a torus or a table of distances
    this takes one second for results for which annealing of single ranks takes ten.

    :param graph: communication graph, with a vertex per rank.
    :param machine: hosts with their slots and distances.
    :param seed: seed of the random numbers; equal seeds give equal mappings.
    :param start: mapping to improve; by default rank r on slot r.
    :param tries: number of annealing runs from the same start, of which the best counts, because their results differ.
    :raises MappingError: if hosts have unequal slots, or fewer than two or more than 4,096 hosts have slots.
    Cost: 16,000 proposals per host, at most 4 million, for each try.
    """
    slots = machine.slots[machine.slots > 0]
    if not 2 <= len(slots) <= MOST_HOSTS or slots.min() != slots.max():
        raise MappingError(f"exchange: expecting 2 .. {MOST_HOSTS} hosts of equal slots, got {len(slots)}")
    near = refine(graph, machine, seed, start=start, effort=Effort(kicks=0))
    host = _exchanged(graph, machine, host_of_all(near, machine), np.random.default_rng(seed), tries)
    moved = Mapping.on_hosts(host[: graph.size], machine)
    return refine(graph, machine, seed, start=moved, effort=Effort(kicks=0))


def _exchanged(
    graph: CommunicationGraph, machine: Machine, host: NDArray[np.int64], rng: np.random.Generator, tries: int
) -> NDArray[np.int64]:
    """Exchange hosts by several annealing runs; return the host of each rank and empty slot after the best run.

    :param graph: communication graph, with a vertex per rank.
    :param machine: hosts with their slots and distances.
    :param host: host of each rank, then of each empty slot, at the start, shape (slots,).
    :param rng: random number generator.
    :param tries: number of annealing runs.
    """
    used = np.flatnonzero(machine.slots)
    group = np.searchsorted(used, host)
    together = contract(with_empty(graph, machine), group, len(used))
    axes = machine.distances.axes(used)
    distance = machine.distance(used[:, None], used[None, :]).astype(np.float64)
    proposals = min(PROPOSALS_A_HOST * len(used), MOST_PROPOSALS)
    schedule = CoolingSchedule(proposals, ACCEPTED, COOLING, SWAPS_A_HOST * len(used))
    states = [make_state(together, np.arange(len(used)), distance) for _ in range(tries)]
    for state in states:
        _anneal(state, axes, schedule, rng)
    place: NDArray[np.int64] = used[min(states, key=lambda one: one.total).place[group]]
    return place


def _anneal(state: SwapState, axes: Axes, schedule: CoolingSchedule, rng: np.random.Generator) -> None:
    """Anneal in C if it is compiled, else in numpy, between the same temperatures."""
    hot = first_temperature(state, schedule.accepted, rng) if len(state.graph.targets) else 0.0
    if hot <= 0:
        return
    heat, seed = (hot, schedule.cooling * hot), int(rng.integers(2**62))
    found = cooled_between(state.graph, axes, state.place, heat, schedule.proposals, seed)
    if found is None:
        anneal(state, schedule, rng)
    else:
        state.restore(found)
