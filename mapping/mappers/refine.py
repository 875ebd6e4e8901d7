"""Improvement of a mapping by swaps of ranks that lower the hop-bytes: downhill, then with random kicks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..distances import TreeDistances
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
# Largest number of pairs of a slot and a host, because the cost of the rank on this host, 8 bytes, is kept in memory.
LARGEST_TABLE = 2**24


@dataclass(frozen=True)
class Effort:
    """The amount of work, counted so that equal seeds give equal mappings on any computer.

    :param kicks: number of kicks, each a random disturbance and a descent, undone if the cost is then higher.
    :param swaps: largest number of downhill swaps before the disturbances; None for no limit.
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
    """Improve a mapping by swaps; the result is never worse than the start in exact hop-bytes.

    :param graph: communication graph, with a vertex per rank.
    :param machine: hosts with their slots and distances.
    :param seed: seed of the random numbers; equal seeds give equal mappings.
    :param start: mapping to improve; by default rank r on slot r.
    :param effort: amount of work; by default 5,000 downhill swaps and 10 kicks.
    Cost: 8 bytes of memory for each pair of a rank and a host. Above a limit, the coarsest clusters of a tree are
    refined one by one, without swaps between them, and on other machines the start is returned.
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
    """The sets of hosts within which ranks are swapped: all hosts with slots, or those of each coarsest cluster.

    There is none if the machine is too large and no tree.
    """
    used = np.flatnonzero(machine.slots)
    if len(used) * machine.num_slots <= LARGEST_TABLE:
        return [used]
    if not isinstance(machine.distances, TreeDistances) or not len(machine.distances.clusters):
        return []
    return [used[machine.distances.clusters[0][used] == one] for one in np.unique(machine.distances.clusters[0][used])]


def _improve(
    graph: Undirected, place: Integers, machine: Machine, hosts: Integers, effort: Effort, rng: np.random.Generator
) -> Integers:
    """Swap ranks downhill, then with kicks; return the host of each rank, as an index into ``hosts``.

    :param graph: symmetric graph of the ranks.
    :param place: host of each rank at the start, as an index into ``hosts``.
    :param machine: hosts with their slots and distances.
    :param hosts: hosts that take part.
    :param effort: amount of work.
    :param rng: random number generator.
    """
    distance = machine.distance(hosts[:, None], hosts[None, :]).astype(np.float64)
    state = make_state(graph, place, distance)
    least = state.total * TOLERANCE
    descend(state, least, limit=effort.swaps and max(effort.swaps * len(place) // machine.num_slots, 1))
    kick(state, effort.kicks, rng)
    return state.place
