"""Options of the choice of lanes of ``topompi jobs lanes``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from ..quantities import COUNT, FACTOR, SEED

__all__ = ["WAYS", "Choosing"]

WAYS = ("rules", "classes", "search")


@dataclass(frozen=True)
class Choosing:
    """Options that define how lanes and weights are chosen.

    :param lanes: largest number of lanes.
    :param buffer: size of the buffer of each port, for all lanes together.
    :param by: ``rules``, ``classes`` or ``search``.
    :param weights: packets per turn of each lane, with commas, in place of those of rules or classes; None for these.
    :param high: names of the jobs whose lanes have high priority.
    :param sweep: packets per turn, with commas, that a lane may have in the sweep and in the search; None for no sweep.
    :param limit: largest number of choices that a search simulates.
    :param draws: number of draws of the times at which jobs begin; 0 if all begin at once.
    :param seed: seed of draws and search.
    :param moderate: least usage of a moderate job; None for the default.
    :param extreme: least usage of an extreme job; None for the default.
    """

    lanes: Annotated[int, COUNT("--lanes", help="Lanes at most; ports have 1, 2, 4, 8 or 15.", max=15)] = 4
    buffer: Annotated[str, typer.Option("--buffer", help="Buffer of each port, for all lanes together.")] = "64K"
    by: Annotated[str, typer.Option("--by", help=f"How lanes are chosen: {', '.join(WAYS)}.")] = "rules"
    weights: Annotated[
        str | None, typer.Option("--weights", help="1,4: packets per turn of each lane, for those of --by.")
    ] = None
    high: Annotated[
        list[str] | None, typer.Option("--high", metavar="JOB", help="A job whose lane has high priority; several.")
    ] = None
    sweep: Annotated[str | None, typer.Option("--sweep", help="1,2,4,8: T_total of every ratio of these weights.")] = (
        None
    )
    limit: Annotated[int, COUNT("--limit", help="Choices that a search simulates at most.")] = 200
    draws: Annotated[
        int, COUNT("--draws", help="Number of random starts to average over; 0: jobs start together.", min=0)
    ] = 0
    seed: Annotated[int, SEED("--seed", help="Of the draws and of the search.")] = 0
    moderate: Annotated[float | None, FACTOR("--moderate", help="Least usage of a moderate job; 0.09 by default.")] = (
        None
    )
    extreme: Annotated[float | None, FACTOR("--extreme", help="Least usage of an extreme job; 1 by default.")] = None
