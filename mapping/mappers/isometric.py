"""A graph that is the machine's own graph of nearest hosts is laid on it, so that each byte goes the least distance."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..graph import CommunicationGraph, Undirected
from ..machine import Machine
from ..mapping import Mapping, MappingError
from .multilevel import with_empty

__all__ = ["isometric"]

Integers = NDArray[np.int64]
MOST_HOSTS = 4096


def isometric(graph: CommunicationGraph, machine: Machine, seed: int = 0) -> Mapping:
    """The ranks of a torus (or of any regular graph) on the hosts of an equal one, whatever the order of the ranks.

    Colours of vertices are refined by those of their neighbours until nothing changes; then one rank and one host of
    equal colour get a new one (Weisfeiler, Lehman 1968). Choices are not taken back, so that some graphs are missed.

    :param graph: the ranks' communication; its size is the number of ranks.
    :param machine: one slot a host, at most 4,096 hosts.
    :param seed: not used; nothing is left to chance.
    :raises MappingError: where no such mapping is found.
    """
    if not 2 <= graph.size == machine.num_hosts <= MOST_HOSTS or (machine.slots != 1).any():
        raise MappingError(f"isometric: expecting a rank for each of 2 .. {MOST_HOSTS} hosts, got {graph.size} ranks")
    ours = with_empty(graph, machine)
    theirs, least = _nearest_hosts(machine)
    if len(ours.targets) == len(theirs.targets):
        place = _matched(ours, theirs)
        found = None if place is None else Mapping.on_hosts(place, machine)
        if found is not None and _all_at(least, found, graph, machine):
            return found
    raise MappingError("isometric: expecting the graph of nearest hosts, got another one")


def _all_at(least: int, mapping: Mapping, graph: CommunicationGraph, machine: Machine) -> bool:
    """Whether all edges join hosts at this distance."""
    host, plain = mapping.host_of_rank, graph.undirected()
    source = np.repeat(np.arange(graph.size), np.diff(plain.offsets))
    return bool((machine.distance(host[source], host[plain.targets]) == least).all())


def _nearest_hosts(machine: Machine) -> tuple[Undirected, int]:
    """The graph of hosts at the least distance, and this distance."""
    hosts = np.arange(machine.num_hosts)
    far = machine.distance(hosts[:, None], hosts[None, :])
    np.fill_diagonal(far, far.max() + 1)
    source, target = np.nonzero(far == far.min())
    offsets = np.searchsorted(source, np.arange(len(hosts) + 1)).astype(np.int64)
    return Undirected(offsets, target.astype(np.int64), np.ones(len(target))), int(far.min())


def _matched(ours: Undirected, theirs: Undirected) -> Integers | None:
    """The vertex of the second graph for each of the first; None where colours differ."""
    size = len(ours.offsets) - 1
    both = Undirected(
        np.r_[ours.offsets, theirs.offsets[1:] + ours.offsets[-1]],
        np.r_[ours.targets, theirs.targets + size],
        np.r_[ours.weight, theirs.weight],
    )
    colour = np.zeros(2 * size, dtype=np.int64)
    while True:
        colour = _refined(both, colour)
        first, second = colour[:size], colour[size:]
        if (np.sort(first) != np.sort(second)).any():
            return None
        count = np.bincount(first)
        if count.max() == 1:
            place: Integers = np.argsort(second)[first]
            return place
        chosen = int(np.argmax(np.where(count > 1, -count, -size - 1)))  # of the smallest class that is not alone
        colour[np.argmax(first == chosen)] = colour[size + np.argmax(second == chosen)] = len(count)


def _refined(graph: Undirected, colour: Integers) -> Integers:
    """The colours, numbered from 0, when they and the sums of neighbours' random marks tell no more vertices apart."""
    source, rng = np.repeat(np.arange(len(colour)), np.diff(graph.offsets)), np.random.default_rng(0)
    while True:
        mark = rng.integers(1, 2**40, int(colour.max()) + 1)
        near = np.zeros(len(colour), dtype=np.int64)
        np.add.at(near, source, mark[colour[graph.targets]])
        finer = np.unique(np.stack([colour, near]), axis=1, return_inverse=True)[1].reshape(-1).astype(np.int64)
        if finer.max() == np.unique(colour).size - 1:
            return finer
        colour = finer
