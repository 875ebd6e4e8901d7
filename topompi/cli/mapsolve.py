"""What the command line asks of the mappers."""

from __future__ import annotations

import os
from collections.abc import Callable

from ..inputs.settings import map_quality
from ..mapping.graph import CommunicationGraph
from ..mapping.machine import Machine
from ..mapping.mappers import mapper
from ..mapping.mappers.links import tree_routes
from ..mapping.mappers.portfolio import best
from ..mapping.mapping import Mapping, MappingError
from .mapsources import MapCommandError

__all__ = ["OBJECTIVES", "check_algorithm", "routed", "solve"]

OBJECTIVES = {"hop-bytes": "hop-bytes", "link": "busiest link"}


def check_algorithm(algorithm: str, objective: str, budget: float | None) -> None:
    """Refuse a mapper or an objective that there is not, before any long work.

    :param algorithm: what ``mapper`` takes.
    :param objective: a key of ``OBJECTIVES``.
    :param budget: seconds that ``best`` may take; None for no limit.
    :raises MapCommandError: for another name, or an objective or a budget that the mapper does not take.
    """
    try:
        mapper(algorithm)
    except MappingError as error:
        raise MapCommandError(f"--algorithm: {error}") from error
    if objective not in OBJECTIVES:
        raise MapCommandError(f"expecting --objective {', '.join(OBJECTIVES)}, got {objective!r}")
    if algorithm != "best" and (objective != "hop-bytes" or budget is not None):
        raise MapCommandError(f"expecting --algorithm best beside --objective and --budget, got {algorithm}")
    map_quality(os.environ, MapCommandError)


def solve(
    algorithm: str,
    graph: CommunicationGraph,
    machine: Machine,
    seed: int,
    objective: str,
    budget: float | None,
    progress: Callable[[str], None],
) -> Mapping:
    """The map of one mapper; ``best`` stops at the budget in seconds, or at ``TOPOMPI_MAP_QUALITY``.

    :param algorithm: what ``mapper`` takes.
    :param graph: the ranks' communication; its size is the number of ranks.
    :param machine: the hosts with their slots and distances.
    :param seed: starts the random numbers; one seed gives one mapping.
    :param objective: a key of ``OBJECTIVES``; only ``best`` takes another than hop-bytes.
    :param budget: seconds that ``best`` may take; None for no limit.
    :param progress: ``best`` tells it, in words, what it tries.
    :raises ValueError: what the mapper raises.
    """
    if algorithm != "best":
        return mapper(algorithm)(graph, machine, seed)
    aim = OBJECTIVES[objective]
    return best(graph, machine, seed, objective=aim, seconds=budget, quality=map_quality(os.environ), progress=progress)


def routed(machine: Machine, objective: str) -> Machine:
    """The machine with routes where the objective needs them: along its tree, where the true ones are unknown.

    :raises MappingError: where there is no tree either.
    """
    return tree_routes(machine) if objective == "link" and machine.links is None else machine
