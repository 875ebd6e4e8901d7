"""Whole hosts change places: the ranks of a host stay together while annealing looks for its best place."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..distances import Axes
from ..graph import CommunicationGraph
from ..machine import Machine
from ..mapping import Mapping, MappingError
from .annealing import Schedule, anneal, first_temperature
from .cooling import cooled_between
from .multilevel import contract, with_empty
from .places import host_of_all
from .refine import Effort, refine
from .swaps import SwapState, make_state

__all__ = ["exchange_hosts"]

# Hotter than for single ranks: hosts are fewer, and a good order of the start outlives it.
ACCEPTED, COOLING = 0.03, 0.25
PROPOSALS_A_HOST, SWAPS_A_HOST = 16000, 150
MOST_PROPOSALS = 2**22
MOST_HOSTS = 4096


def exchange_hosts(
    graph: CommunicationGraph, machine: Machine, seed: int = 0, *, start: Mapping | None = None, tries: int = 2
) -> Mapping:
    """A mapping whose hosts' contents have changed places, its ranks swapped downhill before and after.

    On a torus or a table of distances this finds in a second what swaps of single ranks take ten for.

    :param graph: the ranks' communication; its size is the number of ranks.
    :param machine: the hosts with their slots and distances.
    :param seed: starts the random numbers; one seed gives one mapping.
    :param start: the given order by default.
    :param tries: exchanges of the same start, of which the best is taken: annealing ends differently each time.
    :raises MappingError: where hosts have unequal slots, fewer than two have any, or more than 4,096.
    Cost: 16,000 proposals a host, 4 million at most, for each try.
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
    """The host of each rank and empty slot after the exchange."""
    used = np.flatnonzero(machine.slots)
    group = np.searchsorted(used, host)
    together = contract(with_empty(graph, machine), group, len(used))
    axes = machine.distances.axes(used)
    distance = machine.distance(used[:, None], used[None, :]).astype(np.float64)
    proposals = min(PROPOSALS_A_HOST * len(used), MOST_PROPOSALS)
    schedule = Schedule(proposals, ACCEPTED, COOLING, SWAPS_A_HOST * len(used))
    states = [make_state(together, np.arange(len(used)), distance) for _ in range(tries)]
    for state in states:
        _anneal(state, axes, schedule, rng)
    place: NDArray[np.int64] = used[min(states, key=lambda one: one.total).place[group]]
    return place


def _anneal(state: SwapState, axes: Axes, schedule: Schedule, rng: np.random.Generator) -> None:
    """Anneal in C, where it was compiled, from the same temperature to the same."""
    hot = first_temperature(state, schedule.accepted, rng) if len(state.graph.targets) else 0.0
    if hot <= 0:
        return
    heat, seed = (hot, schedule.cooling * hot), int(rng.integers(2**62))
    found = cooled_between(state.graph, axes, state.place, heat, schedule.proposals, seed)
    if found is None:
        anneal(state, schedule, rng)
    else:
        state.restore(found)
