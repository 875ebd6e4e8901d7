"""Chapter 5 with packets, at a scale that two processors carry: jobs on one lane and on lanes of their own.

``python -m studies jokanovic lanes``. The source has 256 ranks per job on XGFT(3;16,16,2;1,4,4) and (3;16,16,4;1,4,4),
and 7.5 s of computation. Here a job has 64 ranks, on XGFT(3;8,8,2;1,2,2) and (3;8,8,4;1,2,2), which have the same 4:1
and 16:1 at the levels. Messages have the source's sizes. Computation per iteration shrinks as the bytes that a rank
sends do, and iterations are as many as compute for 1.85 s.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from topompi.machine.interference.kernels.nas import COMPUTE
from topompi.machine.interference.network import SharedNetwork
from topompi.machine.interference.placement import place
from topompi.machine.jobs import Cluster
from topompi.netsim import Program, Tables
from topompi.netsim.packets import Arbitration, Settings

from ..routing import fat_tree
from ..sessions import first_runs
from ..tables import Table
from .applications import bt, cg, ft

__all__ = ["JOBS", "Lanes", "job", "lanes", "total"]

Floats = NDArray[np.float64]

RANKS, TOTAL = 64, 65536  # bytes of a port's buffer, over all lanes
LATENCY = 1e-7  # seconds of each link
JOBS = ("FT", "CG", "BT")
SHARE = {"FT": 63 / 255, "CG": 4 / 5, "BT": 8.5 / 12.87}  # bytes of one of 64 ranks over those of one of 256
ITERATIONS = {"FT": 5, "CG": 104, "BT": 8}


@dataclass(frozen=True)
class Lanes:
    """The lane of each job, and the packets that each lane sends per turn."""

    lane: tuple[int, ...]
    weights: tuple[int, ...]

    def settings(self) -> Settings:
        """Settings of packets whose lanes divide the whole buffer."""
        return Settings(
            buffer=TOTAL, lanes=len(self.weights), arbitration=Arbitration(low=tuple(enumerate(self.weights)))
        )


ONE = {2: Lanes((0, 0), (1,)), 3: Lanes((0, 0, 0), (1,))}
APART = {2: Lanes((0, 1), (1, 1)), 3: Lanes((0, 1, 2), (1, 1, 1, 1))}


@cache
def job(name: str, part: float = 1.0) -> Program:
    """FT, CG or BT on 64 ranks.

    :param name: name of the job.
    :param part: part of the iterations to run, for quick cases.
    """
    turns, compute = max(1, round(ITERATIONS[name] * part)), COMPUTE[name.lower()] * SHARE[name]
    if name == "FT":
        return ft(RANKS, 512 << 10, compute, turns)
    if name == "CG":
        return cg(RANKS, 1_500_000 / 16 * 8, compute, turns)
    return bt(RANKS, (780_300, 156_060, 26_010), compute, turns)


@cache
def tree(jobs: int, seed: int) -> tuple[Cluster, Tables]:
    """The tree of two or three jobs, with random static routes."""
    cluster, _, drawn = fat_tree(f"XGFT(3; 8,8,{2 if jobs == 2 else 4}; 1,2,2)@rate=1xFDR10", LATENCY, seed)
    return cluster, drawn


def programs(names: Sequence[str], part: float, seed: int) -> list[Program]:
    """The jobs on their nodes: two have half of each leaf switch (F4), three a quarter (F2).

    :param names: the jobs.
    :param part: part of the iterations.
    :param seed: seed of the routes.
    """
    sizes = {f"{name}-{number}": RANKS for number, name in enumerate(names)}
    nodes = place(tree(len(names), seed)[0], sizes, "F4" if len(names) == 2 else "F2")
    return [replace(job(name, part), hosts=nodes[key], name=key) for name, key in zip(names, sizes, strict=True)]


@cache
def alone(names: tuple[str, ...], number: int, part: float, seed: int) -> float:
    """T_alone of a job on its nodes, with one lane of half the buffer (a quarter for three jobs), as in table 5.3."""
    settings = Settings(buffer=TOTAL // (2 if len(names) == 2 else 4))
    session = SharedNetwork(tree(len(names), seed)[1], "packet", settings=settings).session()
    return float(first_runs(session, [programs(names, part, seed)[number]])[0])


def lost(names: tuple[str, ...], how: Lanes, part: float, seed: int) -> Floats:
    """T_sharing - T_alone of each job, in seconds (5.1)."""
    placed = [replace(one, lane=lane) for one, lane in zip(programs(names, part, seed), how.lane, strict=True)]
    session = SharedNetwork(tree(len(names), seed)[1], "packet", settings=how.settings()).session()
    base = np.array([alone(names, number, part, seed) for number in range(len(names))])
    taken: Floats = first_runs(session, placed) - base
    return taken


def total(names: tuple[str, ...], how: Lanes, part: float = 1.0, seeds: Sequence[int] = (1,)) -> Floats:
    """T_total of (5.2) under each seed of the routes, in seconds, shape (seeds,).

    :param names: names of the jobs.
    :param how: lane of each job, and the lanes' weights and buffer.
    :param part: part of the iterations that are simulated.
    :param seeds: seeds of the routes.
    """
    return np.array([lost(names, how, part, seed).sum() for seed in seeds])


PAIRS: Mapping[tuple[str, ...], str] = {
    ("FT", "FT"): "-7 %",
    ("CG", "CG"): "both gain",
    ("BT", "BT"): "not in the text",
    ("FT", "CG"): "CG -8 % of its time, FT +1 %",
    ("FT", "BT"): "-59 %",
    ("CG", "BT"): "worse",
}
WEIGHTS = {("FT", "CG"): "best at 1:2, -7 %", ("FT", "BT"): "best at 1:4", ("CG", "BT"): "best at 1:8, small"}
THREE = ("FT", "CG", "BT")
SEEDS = (1, 2, 3)


def lanes(quick: bool) -> Iterator[Table]:
    """The tables of section 5.3: pairs, weights, and three jobs.

    :param quick: whether to run FT beside BT alone, an eighth of the iterations.
    """
    part, seeds = (0.125, (1,)) if quick else (1.0, SEEDS)
    print(f"model: packets; seeds {seeds[0]} to {seeds[-1]} of the routes; T_total is the sum of T_sharing - T_alone")
    head = (
        "pair",
        "T_total, one lane of 64 KB",
        "two lanes of 32 KB",
        "change",
        "first job",
        "second job",
        "the source",
    )
    yield "jokanovic pairs of lanes", head, _pairs([("FT", "BT")] if quick else list(PAIRS), part, seeds)
    if not quick:
        columns = tuple(f"1:{weight}" for weight in (1, 2, 4, 8))
        yield "jokanovic weights", ("pair", *columns, "2:1", "the source"), _weights(seeds[:1])
        yield "jokanovic three", ("FT, CG and BT", "weights", "T_total", "change", "the source"), _three(seeds[:1])


def _pairs(pairs: Sequence[tuple[str, ...]], part: float, seeds: Sequence[int]) -> Iterator[list[str]]:
    for names in pairs:
        each = [np.array([lost(names, how[2], part, seed) for seed in seeds]) for how in (ONE, APART)]
        one, two = (of_seed.sum(axis=1) for of_seed in each)
        change = two / one - 1
        base = [np.mean([alone(names, number, part, seed) for seed in seeds]) for number in range(2)]
        jobs = [f"{(each[1] - each[0]).mean(axis=0)[number] / base[number]:+.1%} of its time" for number in range(2)]
        spread = f" ± {change.std(ddof=1):.0%}" if len(seeds) > 1 else ""
        cells = f"{one.mean():.3f} s", f"{two.mean():.3f} s", f"{change.mean():+.0%}{spread}"
        yield [" + ".join(names), *cells, *jobs, PAIRS[names]]


def _weights(seeds: Sequence[int]) -> Iterator[list[str]]:
    for names, source in WEIGHTS.items():
        found = [
            total(names, Lanes((0, 1), weights), seeds=seeds).mean()
            for weights in ((1, 1), (1, 2), (1, 4), (1, 8), (2, 1))
        ]
        yield [" + ".join(names), f"{found[0]:.3f} s", *(f"{one / found[0] - 1:+.0%}" for one in found[1:]), source]


def _three(seeds: Sequence[int]) -> Iterator[list[str]]:
    reference = total(THREE, ONE[3], seeds=seeds).mean()
    cases = {
        "one lane": (ONE[3], "-"),
        "a lane each": (APART[3], "-22 % against one lane"),
        "a lane each, FT least": (Lanes((0, 1, 2), (1, 2, 4, 1)), "9 % better than 1:1:1"),
        "a lane each, FT most": (Lanes((0, 1, 2), (4, 2, 1, 1)), "23 % worse than 1:2:4"),
        "FT, CG + BT": (Lanes((0, 1, 1), (1, 1)), "the best of two lanes, 23 % better than the next"),
        "FT + CG, BT": (Lanes((0, 0, 1), (1, 1)), "23 % worse than FT, CG + BT"),
        "FT + BT, CG": (Lanes((0, 1, 0), (1, 1)), "-"),
        "FT, CG + BT, FT less": (Lanes((0, 1, 1), (1, 2)), "more weight to CG + BT: 8 % better"),
    }
    for name, (how, source) in cases.items():
        found = total(THREE, how, seeds=seeds).mean()
        weights = ":".join(map(str, how.weights[: max(how.lane) + 1]))
        yield [name, weights, f"{found:.3f} s", f"{found / reference - 1:+.0%}", source]
