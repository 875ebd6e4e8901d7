"""Improving a mapping by swaps on the true objective: downhill, and kicks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..distances import Tree
from ..evaluate import doubled_hop_bytes
from ..graph import CommunicationGraph, Undirected
from ..machine import Machine
from ..mapping import Mapping
from ..partition import subgraph
from .multilevel import with_empty
from .places import host_of_all
from .search import TOLERANCE, descend, kick
from .swaps import make_state

__all__ = ["Effort", "refine"]

Integers = NDArray[np.int64]
# Prices of all ranks on all places, 8 bytes each, that are held at once.
LARGEST_TABLE = 2**24


@dataclass(frozen=True)
class Effort:
    """How much to try, counted in work, so that one seed gives one mapping however fast the machine.

    :param kicks: disturbances in all.
    :param swaps: swaps downhill before them at most, None for as many as there are.
    """

    kicks: int = 100
    swaps: int | None = None


def refine(
    graph: CommunicationGraph,
    machine: Machine,
    seed: int = 0,
    *,
    start: Mapping | None = None,
    effort: Effort | None = None,
) -> Mapping:
    """A mapping improved by swaps; never worse than its start in hop-bytes, which are compared exactly.

    :param graph: the ranks' communication; its size is the number of ranks.
    :param machine: the hosts with their slots and distances.
    :param seed: starts the random numbers; one seed gives one mapping.
    :param start: the given order by default.
    :param effort: 5,000 swaps downhill and 10 kicks by default.
    Cost: memory for ranks x hosts prices. Where that is too much, the coarsest clusters of a tree are refined one by
        one, without exchanges between them, and a machine that is no tree keeps the start.
    """
    given = start or Mapping.identity(machine, graph.size)
    effort, rng = effort or Effort(kicks=10, swaps=5000), np.random.default_rng(seed)
    full = with_empty(graph, machine)
    host = host_of_all(given, machine)
    for hosts in _neighbourhoods(machine):
        ranks = np.flatnonzero(np.isin(host, hosts)) if len(hosts) < machine.num_hosts else np.arange(len(host))
        host[ranks] = hosts[
            _improve(subgraph(full, ranks), np.searchsorted(hosts, host[ranks]), machine, hosts, effort, rng)
        ]
    improved = Mapping.on_hosts(host[: graph.size], machine)
    better = doubled_hop_bytes(improved, graph, machine) < doubled_hop_bytes(given, graph, machine)
    return improved if better else given


def _neighbourhoods(machine: Machine) -> list[Integers]:
    """Hosts with slots that are refined together."""
    used = np.flatnonzero(machine.slots)
    if len(used) * machine.num_slots <= LARGEST_TABLE:
        return [used]
    if not isinstance(machine.distances, Tree) or not len(machine.distances.clusters):
        return []
    return [used[machine.distances.clusters[0][used] == one] for one in np.unique(machine.distances.clusters[0][used])]


def _improve(
    graph: Undirected, place: Integers, machine: Machine, hosts: Integers, effort: Effort, rng: np.random.Generator
) -> Integers:
    """The place of each rank after the searches, as the number of its host among some."""
    distance = machine.distance(hosts[:, None], hosts[None, :]).astype(np.float64)
    state = make_state(graph, place, distance)
    least = state.total * TOLERANCE
    descend(state, least, limit=effort.swaps and max(effort.swaps * len(place) // machine.num_slots, 1))
    kick(state, effort.kicks, rng)
    return state.place
