"""A search for a mapping, with mapper, objective and effort given as words and checked before any long work."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..inputs.settings import map_quality
from .graph import CommunicationGraph
from .machine import Machine
from .mappers import mapper
from .mappers.links import tree_routes
from .mappers.multilevel import scheme1, scheme2, single_step
from .mappers.portfolio import best
from .mapping import Mapping, MappingError
from .partition import PartitionError, partitioner
from .work import Work

__all__ = ["OBJECTIVES", "PARTITIONERS", "WEIGHTS", "Search", "routed", "solve"]

OBJECTIVES = {"hop-bytes": "hop-bytes", "link": "busiest link"}
WEIGHTS = {"bytes": "volume", "messages": "count", "log": "log"}  # weights of the edges that a partitioner cuts
PARTITIONERS = ("metis", "kahip", "scotch")
CUTTING: dict[str, Callable[..., Mapping]] = {
    "best": best,
    "single-step": single_step,
    "scheme1": scheme1,
    "scheme2": scheme2,
}


@dataclass(frozen=True)
class Search:
    """The settings of a search for a mapping.

    :param algorithm: name of a mapper, or ``module:function``, as for `mapper`.
    :param objective: a key of ``OBJECTIVES``; mappers other than ``best`` accept hop-bytes only.
    :param seed: seed of the random numbers.
    :param effort: factor on the work of annealing in ``best``.
    :param partitioner: one of ``PARTITIONERS``, for mappers that partition; ``best`` uses it in addition to METIS.
    :param weight: a key of ``WEIGHTS``, for mappers that partition; ``best`` uses it in addition to bytes.
    """

    algorithm: str = "best"
    objective: str = "hop-bytes"
    seed: int = 0
    effort: float = 1.0
    partitioner: str | None = None
    weight: str | None = None

    def check(self) -> None:
        """Refuse unknown options, and options that the mapper does not accept, before any long work.

        :raises MappingError: if a name is unknown, or the mapper does not accept an option.
        """
        try:
            mapper(self.algorithm)
        except MappingError as error:
            raise MappingError(f"algorithm: {error}") from error
        for option, value, known in (
            ("objective", self.objective, OBJECTIVES),
            ("partitioner", self.partitioner, PARTITIONERS),
            ("weight", self.weight, WEIGHTS),
        ):
            if value is not None and value not in known:
                raise MappingError(f"{option}: expecting one of {', '.join(known)}, got {value!r}")
        if self.algorithm != "best" and (self.objective != "hop-bytes" or self.effort != 1):
            wanted = "best beside an objective or an effort"
            raise MappingError(f"algorithm: expecting {wanted}, got {self.algorithm}")
        if self.algorithm not in CUTTING and (self.partitioner or self.weight):
            wanted = f"one of {', '.join(CUTTING)} beside a partitioner or a weight"
            raise MappingError(f"algorithm: expecting {wanted}, got {self.algorithm}")
        map_quality(os.environ, MappingError)
        self.cutting()

    def cutting(self) -> dict[str, Any]:
        """The partitioner and the weight as keyword arguments of mappers that partition.

        :raises MappingError: if the partitioner is not installed.
        """
        options: dict[str, Any] = {} if self.weight is None else {"weight": WEIGHTS[self.weight]}
        if self.partitioner not in (None, "metis"):
            try:
                options["partitioner"] = partitioner(str(self.partitioner))
            except PartitionError as error:
                raise MappingError(str(error)) from error
        return options


def solve(
    search: Search,
    graph: CommunicationGraph,
    machine: Machine,
    progress: Callable[[str], None] = lambda words: None,
    *,
    given: Mapping | None = None,
    work: Work | None = None,
) -> Mapping:
    """Run one mapper.

    The mapper ``best`` stops when the objective is at most the fraction of the given order's that the environment
    variable TOPOMPI_MAP_QUALITY contains.

    :param search: mapper, objective and further settings.
    :param graph: communication graph, with a vertex per rank.
    :param machine: hosts with their slots and distances.
    :param progress: function that ``best`` calls with a description of its next step.
    :param given: order of the ranks that ``best`` has to beat; by default rank r on slot r.
    :param work: counter of the work of ``best``, which also says whether its search was cut.
    :raises ValueError: if the mapper raises it.
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
        given=given,
        work=work,
        effort=search.effort,
        quality=map_quality(os.environ),
        progress=progress,
        **options,
    )


def routed(machine: Machine, objective: str) -> Machine:
    """The machine, to which routes from the tree of clusters are added if the objective needs routes and it has none.

    :raises MappingError: if routes are unknown and there is no tree.
    """
    return tree_routes(machine) if objective == "link" and machine.routes is None else machine
