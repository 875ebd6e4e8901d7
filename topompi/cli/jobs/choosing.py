"""Options of the choice of lanes of ``topompi jobs lanes``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from ..quantities import COUNT, SEED

__all__ = ["WAYS", "Choosing"]

WAYS = ("rules", "classes", "search")


@dataclass(frozen=True)
class Choosing:
    """Options that define how lanes and weights are chosen.

    :param lanes: largest number of lanes.
    :param by: ``rules``, ``classes`` or ``search``.
    :param weights: packets per turn of each lane, with commas, in place of those of rules or classes; None for these.
    :param high: names of the jobs whose lanes have high priority.
    :param sweep: packets per turn, with commas, that a lane may have in the sweep and in the search; None for no sweep.
    :param draws: number of draws of the times at which jobs begin; 0 if all begin at once.
    :param seed: seed of draws and search.
    """

    lanes: Annotated[int, COUNT("--lanes", help="Lanes at most; ports have 1, 2, 4, 8 or 15.", max=15)] = 4
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
    draws: Annotated[
        int, COUNT("--draws", help="Number of random starts to average over; 0: jobs start together.", min=0)
    ] = 0
    seed: Annotated[int, SEED("--seed", help="Of the draws and of the search.")] = 0
