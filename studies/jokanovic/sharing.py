"""Chapter 3 in the model of flows: seven applications alone on slimmed trees, and side by side.

``python -m studies jokanovic alone`` and ``... mixes``. The tree is XGFT(3;16,16,8;1,S,S) with 2,048 nodes and links of
10 Gbit/s; routes are drawn per switch and destination, once per tree. T_base is the time on a crossbar.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from topompi.machine.interference.network import SharedNetwork
from topompi.machine.interference.placement import draws_of, place
from topompi.machine.interference.replay import ReplayTimes, replay
from topompi.machine.jobs import Cluster
from topompi.netsim import Program

from ..routing import fat_tree
from ..sessions import first_runs
from ..tables import Table
from .applications import APPLICATIONS, BASE, CLASSES, TREE, application

__all__ = ["alone", "mixes", "outcomes", "tree"]

Floats = NDArray[np.float64]

LATENCY = 0.25e-6  # seconds of each link
RANDOM = "RF:1"
PUBLISHED_ALONE = {
    "CGPOP": "at most 3 %; sd at most 0.14 %",
    "WRF": "at most 2 %; sd at most 0.04 %",
    "GROMACS": "47 % at S1, at most 10 % from S16 to S2; sd below 5 %",
    "BT": "at most 14 %; sd 0.9 %",
    "FT": "S8 15 to 66 %, S1 2,555 %; sd 2 % (S16) to 214 % (S1)",
    "CG": "173 %; sd at most 5 %",
    "MILC": "295 %; sd at most 26 %",
}


@cache
def tree(width: int) -> tuple[Cluster, SharedNetwork]:
    """The tree of S = ``width`` parents per switch, with random static routes (seed 1)."""
    cluster, _, drawn = fat_tree(TREE.format(width), LATENCY, 1)
    return cluster, SharedNetwork(drawn)


def programs(jobs: Sequence[str], width: int, placement: str) -> list[Program]:
    """The applications of a mix on their nodes; several of one name are numbered.

    :param jobs: application of each job.
    :param width: S.
    :param placement: NF, F16, ..., RF:SEED.
    """
    names = [f"{name}-{number}" for number, name in enumerate(jobs)]
    made = dict(zip(names, map(application, jobs), strict=True))
    nodes = place(tree(width)[0], {name: one.num_ranks for name, one in made.items()}, placement)
    return [replace(one, hosts=nodes[name], name=name) for name, one in made.items()]


def outcomes(jobs: Sequence[str], width: int, placement: str, draws: int) -> list[ReplayTimes]:
    """Replay a mix under each draw of a placement.

    :param jobs: application of each job.
    :param width: S.
    :param placement: text of the placement.
    :param draws: number of draws of a random one.
    """
    return [replay(tree(width)[1], programs(jobs, width, one)) for one in draws_of(placement, draws)]


def seconds_alone(job: str, width: int, draws: int) -> Floats:
    """T_alone of an application on random nodes, shape (draws,)."""
    session = tree(width)[1].session
    return np.concatenate([first_runs(session(), programs([job], width, one)) for one in draws_of(RANDOM, draws)])


def alone(quick: bool) -> Iterator[Table]:
    """The table of section 3.3.1: T_alone on random nodes over that of S16, and the spread of the draws."""
    widths, draws = ((16, 2), 2) if quick else ((16, 8, 4, 2, 1), 10)
    head = ("job", "class", "T_base, s", *(f"S{width}" for width in widths), "the source: worst against S16")
    jobs = ("CG", "WRF") if quick else ("CGPOP", "WRF", "GROMACS", "BT", "FT", "CG", "MILC")

    def rows() -> Iterator[list[str]]:
        for job in jobs:
            taken = [seconds_alone(job, width, draws) for width in widths]
            full = taken[0].mean()
            cells = [f"{one.mean() / full - 1:+.1%} ± {one.std(ddof=1) / one.mean():.2%}" for one in taken]
            cells[0] = f"{full / BASE[job]:.3f} of T_base ± {taken[0].std(ddof=1) / full:.2%}"
            yield [job, CLASSES[job], f"{BASE[job]:.4f}", *cells, PUBLISHED_ALONE[job]]

    print(f"model: flows; {draws} draws of random nodes, seeds from 1; over S16's mean, ± standard deviation of draws")
    yield "jokanovic alone", head, rows()


def mixes(quick: bool) -> Iterator[Table]:
    """The tables of sections 3.3.2 and 3.4: all seven, eight of a kind, pairs on F8, and isolation."""
    draws = 2 if quick else 10
    print(f"model: flows; {draws} draws of random nodes, seeds from 1; ± standard deviation of draws")
    if not quick:
        head = ("job", "class", *(f"S{width}, {count} draws" for width, count in SEVEN.items()), "the source")
        yield "jokanovic seven", head, _seven()
    head = ("S", "placement", "T_sharing over T_alone", "T_sharing over T_base", "over RF", "the source")
    yield "jokanovic eight", head, _eight(draws, (8,) if quick else (8, 2))
    if not quick:
        yield "jokanovic pairs", ("S8, F8", "first job", "second job", "the source"), _pairs()
        yield "jokanovic isolation", ("S", "job", "time saved by NF", "the source"), _isolation()


SEVEN = {8: 10, 4: 3}  # draws by S; a draw on S2 takes minutes
PUBLISHED_SEVEN = {"FT": "at most 11 % at S8", "CG": "at most 11 %", "MILC": "at most 11 %", "GROMACS": "at most 11 %"}


def _seven() -> Iterator[list[str]]:
    """T_inter over T_alone of each application in the mix of all seven on random nodes."""
    found = {width: outcomes(APPLICATIONS, width, RANDOM, draws) for width, draws in SEVEN.items()}
    for number, job in enumerate(APPLICATIONS):
        cells = []
        for several in found.values():
            lost = np.array([one.inter[number] / one.alone[number] for one in several])
            cells.append(f"{lost.mean():+.1%} ± {lost.std(ddof=1):.1%}")
        yield [job, CLASSES[job], *cells, PUBLISHED_SEVEN.get(job, "at most 5 %")]


EIGHT = {
    "RF:1": "about 30 % lost at S8; sd at most 0.9 %",
    "F4": "13 % better than RF at S8",
    "F8": "18 %",
    "F16": "20 %",
}


def _eight(draws: int, widths: Sequence[int]) -> Iterator[list[str]]:
    """Eight CG: means over instances."""
    for width in widths:
        reference = 0.0
        for placement, source in EIGHT.items():
            several = outcomes(["CG"] * 8, width, placement, draws)
            lost = np.array([(one.sharing / one.alone).mean() for one in several])
            normal = np.array([one.normalised.mean() for one in several])
            reference = reference or float(normal.mean())
            spread = f" ± {lost.std(ddof=1):.1%}" if len(lost) > 1 else ""
            better = f"{1 - normal.mean() / reference:.1%} less" if placement != RANDOM else "-"
            cells = f"{lost.mean() - 1:+.1%}{spread}", f"{normal.mean():.3f}", better
            yield [f"S{width}", placement.partition(":")[0], *cells, source if width == 8 else ""]


PAIRS = {
    ("FT", "FT"): "47 % worse than alone",
    ("CGPOP", "CGPOP"): "negligible",
    ("WRF", "WRF"): "negligible",
    ("BT", "BT"): "negligible",
    ("FT", "CGPOP"): "FT 2 to 3 %, the other negligible",
    ("FT", "WRF"): "FT 2 to 3 %, the other negligible",
    ("FT", "BT"): "FT 2 to 3 %, the other negligible",
}


def _pairs() -> Iterator[list[str]]:
    """T_inter over T_alone of two jobs that share all their leaf switches."""
    for pair, source in PAIRS.items():
        (one,) = outcomes(pair, 8, "F8", 1)
        yield [" beside ".join(pair), *(f"{lost:+.1%}" for lost in one.inter / one.alone), source]


ISOLATION = {
    (8, "FT"): "FT may be better on F8",
    (8, "CGPOP"): "-",
    (4, "FT"): "22 %",
    (4, "CGPOP"): "13 %",
    (2, "FT"): "55 %",
    (2, "CGPOP"): "40 %",
}


def _isolation() -> Iterator[list[str]]:
    """Two FT and two CGPOP: the time saved by leaf switches of their own, against F8, where FT and CGPOP share."""
    jobs = ("FT", "CGPOP", "FT", "CGPOP")
    for width in (8, 4, 2):
        apart, together = (outcomes(jobs, width, how, 1)[0].sharing for how in ("NF", "F8"))
        for number, job in enumerate(jobs[:2]):
            saved = 1 - (apart[number] + apart[number + 2]) / (together[number] + together[number + 2])
            yield [f"S{width}", job, f"{saved:+.1%}", ISOLATION[width, job]]
