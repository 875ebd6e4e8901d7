"""What the command line asks of the mappers."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...inputs.settings import map_quality
from ...mapping.graph import CommunicationGraph
from ...mapping.machine import Machine
from ...mapping.mappers import mapper
from ...mapping.mappers.links import tree_routes
from ...mapping.mappers.multilevel import scheme1, scheme2, single_step
from ...mapping.mappers.portfolio import best
from ...mapping.mapping import Mapping, MappingError
from ...mapping.partition import PartitionError, partitioner
from .sources import MapCommandError

__all__ = ["OBJECTIVES", "PARTITIONERS", "WEIGHTS", "Search", "routed", "solve"]

OBJECTIVES = {"hop-bytes": "hop-bytes", "link": "busiest link"}
WEIGHTS = {"bytes": "volume", "messages": "count", "log": "log"}  # of the edges that a partitioner cuts
PARTITIONERS = ("metis", "kahip", "scotch")
CUTTING: dict[str, Callable[..., Mapping]] = {
    "best": best,
    "single-step": single_step,
    "scheme1": scheme1,
    "scheme2": scheme2,
}


@dataclass(frozen=True)
class Search:
    """The options that say how a map is looked for.

    :param algorithm: what ``mapper`` takes.
    :param objective: a key of ``OBJECTIVES``; only ``best`` takes another than hop-bytes.
    :param seed: starts the random numbers.
    :param budget: seconds that ``best`` may take; None for no limit.
    :param effort: so many times the usual annealing, of ``best``.
    :param partitioner: one of ``PARTITIONERS``, for the mappers that cut; ``best`` cuts by METIS as well.
    :param weight: a key of ``WEIGHTS``, for the mappers that cut; ``best`` cuts by bytes as well.
    """

    algorithm: str
    objective: str
    seed: int
    budget: float | None
    effort: float
    partitioner: str | None
    weight: str | None

    def check(self) -> None:
        """Refuse options that there are not, or that the mapper does not take, before any long work.

        :raises MapCommandError: for another name, or an option that the mapper does not take.
        """
        try:
            mapper(self.algorithm)
        except MappingError as error:
            raise MapCommandError(f"--algorithm: {error}") from error
        for option, value, known in (
            ("objective", self.objective, OBJECTIVES),
            ("partitioner", self.partitioner, PARTITIONERS),
            ("weight", self.weight, WEIGHTS),
        ):
            if value is not None and value not in known:
                raise MapCommandError(f"expecting --{option} {', '.join(known)}, got {value!r}")
        if self.algorithm != "best" and (self.objective != "hop-bytes" or self.budget is not None or self.effort != 1):
            wanted = "--algorithm best beside --objective, --budget and --effort"
            raise MapCommandError(f"expecting {wanted}, got {self.algorithm}")
        if self.algorithm not in CUTTING and (self.partitioner or self.weight):
            wanted = f"--algorithm {', '.join(CUTTING)} beside --partitioner and --weight"
            raise MapCommandError(f"expecting {wanted}, got {self.algorithm}")
        map_quality(os.environ, MapCommandError)
        self.cutting()

    def cutting(self) -> dict[str, Any]:
        """The partitioner and the weight, as mappers that cut take them.

        :raises MapCommandError: where the partitioner is not installed.
        """
        options: dict[str, Any] = {} if self.weight is None else {"weight": WEIGHTS[self.weight]}
        if self.partitioner not in (None, "metis"):
            try:
                options["partitioner"] = partitioner(str(self.partitioner))
            except PartitionError as error:
                raise MapCommandError(f"--partitioner: {error}") from error
        return options


def solve(search: Search, graph: CommunicationGraph, machine: Machine, progress: Callable[[str], None]) -> Mapping:
    """The map of one mapper; ``best`` stops at the budget in seconds, or at ``TOPOMPI_MAP_QUALITY``.

    :param search: the mapper and what it is to minimise.
    :param graph: the ranks' communication; its size is the number of ranks.
    :param machine: the hosts with their slots and distances.
    :param progress: ``best`` tells it, in words, what it tries.
    :raises ValueError: what the mapper raises.
    """
    options = search.cutting()
    if search.algorithm != "best":
        made = partial(CUTTING[search.algorithm], **options) if options else mapper(search.algorithm)
        return made(graph, machine, search.seed)
    return best(
        graph,
        machine,
        search.seed,
        objective=OBJECTIVES[search.objective],
        seconds=search.budget,
        effort=search.effort,
        quality=map_quality(os.environ),
        progress=progress,
        **options,
    )


def routed(machine: Machine, objective: str) -> Machine:
    """The machine with routes where the objective needs them: along its tree, where the true ones are unknown.

    :raises MappingError: where there is no tree either.
    """
    return tree_routes(machine) if objective == "link" and machine.links is None else machine
