"""The mappings that need no graph: the given order, and dealing ranks out in turn."""

from __future__ import annotations

import numpy as np

from ..graph import CommunicationGraph
from ..machine import Machine
from ..mapping import Mapping, MappingError

__all__ = ["cyclic", "identity", "plane"]


def identity(graph: CommunicationGraph, machine: Machine, seed: int = 0) -> Mapping:
    """The given order: rank r on slot r.

    :param graph: the ranks' communication; its size is the number of ranks.
    :param machine: the hosts with their slots and distances.
    :param seed: not used; the order is given.
    """
    return Mapping.identity(machine, graph.size)


def cyclic(graph: CommunicationGraph, machine: Machine, seed: int = 0) -> Mapping:
    """Hosts in turn get one rank each; a full host is passed over.

    :param graph: the ranks' communication; its size is the number of ranks.
    :param machine: the hosts with their slots and distances.
    :param seed: not used; the order is given.
    """
    return plane(graph, machine, seed, width=1)


def plane(graph: CommunicationGraph, machine: Machine, seed: int = 0, *, width: int = 2) -> Mapping:
    """Hosts in turn get ``width`` ranks each, as ``srun --distribution=plane=WIDTH``; a full host is passed over.

    :param graph: the ranks' communication; its size is the number of ranks.
    :param machine: the hosts with their slots and distances.
    :param seed: not used; the order is given.
    :param width: number of consecutive ranks that a host gets at a time, from 1.
    :raises MappingError: for a width below 1, or fewer slots than ranks.
    """
    if width < 1:
        raise MappingError(f"plane: expecting a width of at least 1, got {width}")
    if graph.size > machine.num_slots:
        raise MappingError(f"mapping: expecting slots for {graph.size} ranks, got {machine.num_slots}")
    slot = np.arange(machine.num_slots)
    within = slot - machine.first_slot[machine.slot_host]
    order = np.lexsort((slot, within // width))
    return Mapping.of(order[: graph.size], machine.hosts, machine.slots)
