"""The mappings that need no graph: the given order, and dealing ranks to hosts in turn."""

from __future__ import annotations

import numpy as np

from ..graph import CommunicationGraph
from ..machine import Machine
from ..mapping import Mapping, MappingError

__all__ = ["cyclic", "identity", "plane"]


def identity(graph: CommunicationGraph, machine: Machine, seed: int = 0) -> Mapping:
    """Map rank r to slot r, which is the given order.

    :param graph: communication graph, of which only the number of ranks is used.
    :param machine: hosts with their slots.
    :param seed: ignored, because nothing is random.
    """
    return Mapping.identity(machine, graph.size)


def cyclic(graph: CommunicationGraph, machine: Machine, seed: int = 0) -> Mapping:
    """Deal one rank to each host in turn; full hosts are skipped.

    :param graph: communication graph, of which only the number of ranks is used.
    :param machine: hosts with their slots.
    :param seed: ignored, because nothing is random.
    """
    return plane(graph, machine, seed, width=1)


def plane(graph: CommunicationGraph, machine: Machine, seed: int = 0, *, width: int = 2) -> Mapping:
    """Deal ``width`` ranks to each host in turn, as ``srun --distribution=plane=WIDTH``; full hosts are skipped.

    :param graph: communication graph, of which only the number of ranks is used.
    :param machine: hosts with their slots.
    :param seed: ignored, because nothing is random.
    :param width: number of consecutive ranks that a host gets at a time, at least 1.
    :raises MappingError: if the width is below 1, or there are fewer slots than ranks.
    """
    if width < 1:
        raise MappingError(f"plane: expecting a width of at least 1, got {width}")
    if graph.size > machine.num_slots:
        raise MappingError(f"mapping: expecting slots for {graph.size} ranks, got {machine.num_slots}")
    slot = np.arange(machine.num_slots)
    within = slot - machine.first_slot[machine.slot_host]
    order = np.lexsort((slot, within // width))
    return Mapping.of(order[: graph.size], machine.hosts, machine.slots)
