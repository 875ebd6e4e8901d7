"""A mapping for graphs that are isomorphic to the machine's graph of nearest hosts; no mapping has fewer hop-bytes."""

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
    """Map ranks to hosts if the graph of ranks and the graph that joins nearest hosts are isomorphic, for example tori.

    Colours of vertices are refined by the colours of their neighbours until nothing changes; then one rank and one host
    of equal colour get a new colour (Weisfeiler, Lehman 1968). Choices are never revised, so some graphs are not found.

    :param graph: communication graph, with a vertex per rank.
    :param machine: at most 4,096 hosts, with one slot each.
    :param seed: ignored, because nothing is random.
    :raises MappingError: if no mapping is found with all edges between nearest hosts.
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
    """Whether all edges of the graph join ranks on hosts at the distance ``least``."""
    host, plain = mapping.host_of_rank, graph.undirected()
    source = np.repeat(np.arange(graph.size), np.diff(plain.offsets))
    return bool((machine.distance(host[source], host[plain.targets]) == least).all())


def _nearest_hosts(machine: Machine) -> tuple[Undirected, int]:
    """The graph that joins hosts at the least distance, and this distance."""
    hosts = np.arange(machine.num_hosts)
    far = machine.distance(hosts[:, None], hosts[None, :])
    np.fill_diagonal(far, far.max() + 1)
    source, target = np.nonzero(far == far.min())
    offsets = np.searchsorted(source, np.arange(len(hosts) + 1)).astype(np.int64)
    return Undirected(offsets, target.astype(np.int64), np.ones(len(target))), int(far.min())


def _matched(ours: Undirected, theirs: Undirected) -> Integers | None:
    """The vertex of the second graph for each vertex of the first; None if the graphs get different colours."""
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
        chosen = int(np.argmax(np.where(count > 1, -count, -size - 1)))  # the smallest colour class of several vertices
        colour[np.argmax(first == chosen)] = colour[size + np.argmax(second == chosen)] = len(count)


def _refined(graph: Undirected, colour: Integers) -> Integers:
    """The finest colours that repeated refinement by sums of neighbours' random marks reaches, numbered from 0."""
    source, rng = np.repeat(np.arange(len(colour)), np.diff(graph.offsets)), np.random.default_rng(0)
    while True:
        mark = rng.integers(1, 2**40, int(colour.max()) + 1)
        near = np.zeros(len(colour), dtype=np.int64)
        np.add.at(near, source, mark[colour[graph.targets]])
        finer = np.unique(np.stack([colour, near]), axis=1, return_inverse=True)[1].reshape(-1).astype(np.int64)
        if finer.max() == np.unique(colour).size - 1:
            return finer
        colour = finer
