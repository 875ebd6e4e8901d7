"""The seven applications of chapter 3 as programs of ours; the source's traces are not public.

FT, CG and BT have the phases and message sizes of NPB 3.3-MPI, class D, on 256 ranks (table 5.3), and as many
iterations as fill the source's times on a crossbar (table 3.2). Of WRF, CGPOP, GROMACS and MILC the text has only these
times and the classes: they are halo exchanges of ours, with messages of the size that brings the class's load.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache
from math import isqrt
from typing import Any

import numpy as np

from topompi.machine.interference import Character, characterise, crossbar, levels_of
from topompi.machine.interference.kernels import Kernel, make_kernel, trace_of
from topompi.machine.interference.kernels.halo import Halo, Stencil3D, Stencil4D
from topompi.machine.interference.kernels.kernel import Burst, Phase
from topompi.machine.interference.kernels.pcg import PCG
from topompi.machine.interference.placement import place
from topompi.netsim import COMPUTE, Program
from topompi.topology import load
from topompi.views.cluster import cluster_of

__all__ = ["APPLICATIONS", "BASE", "CLASSES", "RATE", "TREE", "application", "bt", "cg", "character", "ft"]

RATE = 1.25e9  # bytes/s of each link
TREE = "XGFT(3; 16,16,8; 1,{0},{0})@rate=1xFDR10"
BASE = {  # seconds on a crossbar, table 3.2
    "FT": 0.211964,
    "CG": 0.086342,
    "MILC": 0.586126,
    "GROMACS": 0.425134,
    "BT": 0.685480,
    "CGPOP": 0.127269,
    "WRF": 0.123653,
}
APPLICATIONS = tuple(BASE)
CLASSES = {"FT": "extreme", "CG": "moderate", "MILC": "moderate"} | dict.fromkeys(
    ("GROMACS", "BT", "CGPOP", "WRF"), "low"
)
USAGE = {"low": 0.045, "moderate": 0.3}  # of our own kernels: half of the limit of low, and the middle of moderate
HALOS: dict[str, Halo] = {  # by classes, because a name may mean another kernel later
    "WRF": Stencil3D((16, 16, 1), periodic=True),
    "CGPOP": PCG((16, 16), periodic=False),
    "GROMACS": Stencil3D((8, 8, 4), periodic=True),
    "MILC": Stencil4D((8, 4, 4, 4), periodic=True),
}
ITERATIONS = 10  # of our own kernels


@dataclass(frozen=True)
class _Given(Kernel):
    """A given phase as a kernel."""

    phase: Phase | None = None

    name, title, message = "given", "a given phase", "bytes"
    dimensions = (1,)
    stencil = False

    def phases(self, nbytes: int) -> tuple[Phase, ...]:
        """Return the phase; its sizes are its own."""
        return (self.phase,) if self.phase is not None else ()


def sequence(name: str, ranks: int, steps: Iterable[tuple[float, Phase]], iterations: int) -> Program:
    """Make a program of bursts and phases, one after the other on each rank, without barriers.

    :param name: name of the job.
    :param ranks: number of ranks.
    :param steps: seconds of computation before each phase, and the phase.
    :param iterations: number of repetitions of all of them.
    """
    parts, begin = [], 0
    once = [(burst, phase) for burst, phase in steps]
    for burst, phase in once * iterations:
        one = trace_of(_Given((ranks,), phase=phase), 1, burst=burst).ranks
        parts.append((one, begin))
        begin += int(one.step.max()) + 1
    rows: dict[str, Any] = {
        key: np.concatenate([getattr(one, key) for one, _ in parts])
        for key in ("rank", "kind", "peer", "amount", "tag")
    }
    step = np.concatenate([one.step + at for one, at in parts])
    return Program(np.arange(ranks), step=step, **rows, name=name)


def to(target: np.ndarray, nbytes: float) -> Burst:
    """A message from each rank r to ``target[r]``; none to itself."""
    source = np.arange(len(target))
    apart = source != target
    count = int(apart.sum())
    return Burst(source[apart], target[apart], np.full(count, round(nbytes)), np.zeros(count, dtype=np.int64))


def ft(ranks: int, nbytes: float, compute: float, iterations: int) -> Program:
    """FT: computation, then an alltoall of ``nbytes`` for each other rank, in pairwise steps.

    :param ranks: number of ranks.
    :param nbytes: bytes of a message.
    :param compute: seconds of computation per iteration.
    :param iterations: number of iterations.
    """
    return _benchmark("ft", ranks, nbytes, compute, iterations)


def cg(ranks: int, nbytes: float, compute: float, iterations: int) -> Program:
    """CG: computation, sums along the rows of a square grid by recursive doubling, exchange with the transpose.

    :param ranks: number of ranks, a square.
    :param nbytes: bytes of a message.
    :param compute: seconds of computation per iteration.
    :param iterations: number of iterations.
    """
    return _benchmark("cg", ranks, nbytes, compute, iterations)


def _benchmark(name: str, ranks: int, nbytes: float, compute: float, iterations: int) -> Program:
    made = trace_of(make_kernel(name, range(ranks)), round(nbytes), iterations=iterations, burst=compute)
    return replace(made.ranks, name=name.upper())


def bt(ranks: int, sizes: tuple[float, float, float], compute: float, iterations: int) -> Program:
    """BT: faces to six neighbours of a multi-partition, then for each direction the solver's blocks there and back.

    The kernel ``bt`` computes its messages from the problem's size; this one has those of table 5.3.

    :param ranks: number of ranks, a square.
    :param sizes: bytes of a message of faces, of a block there, and of a block back.
    :param compute: seconds of computation per iteration, equal parts before each phase.
    :param iterations: number of iterations.
    """
    side = isqrt(ranks)
    row, column = np.divmod(np.arange(ranks), side)
    ways = [
        ((column + a) % side + side * ((row + d) % side), (column - a) % side + side * ((row - d) % side))
        for a, d in ((1, 0), (0, 1), (-1, 1))
    ]
    faces = [to(target, sizes[0]) for way in ways for target in way]
    source, target, nbytes = (
        np.concatenate([getattr(one, key) for one in faces]) for key in ("source", "target", "nbytes")
    )
    tags = np.repeat(np.arange(len(faces)), [len(one.source) for one in faces])
    together = Burst(source, target, nbytes, tags)
    phases: list[Phase] = [together]
    for there, back in ways:
        phases += [to(there, sizes[1])] * (side - 1) + [to(back, sizes[2])] * (side - 1)
    return sequence("BT", ranks, [(compute / len(phases), phase) for phase in phases], iterations)


def character(program: Program, seconds: float, width: int, placement: str) -> Character:
    """The loads of a job on the source's tree.

    :param program: the job.
    :param seconds: its time on a crossbar.
    :param width: S, parents of each switch.
    :param placement: F2, F4 and so on.
    """
    routes = load(TREE.format(width)).routes
    assert routes is not None  # load() computes missing routes
    nodes = place(cluster_of(routes), {"job": program.num_ranks}, placement)["job"]
    return characterise(crossbar.graph_of(program), seconds, nodes, levels_of(routes.fabric))


@cache
def application(name: str) -> Program:
    """One of the seven, with rank r on host r, whose time on a crossbar is the source's.

    :param name: key of ``BASE``.
    """
    if name in HALOS:
        return _halo(name)
    makers: dict[str, Callable[[float], Program]] = {
        "FT": lambda compute: ft(256, 512 << 10, compute, 2),
        "CG": lambda compute: cg(256, 1_500_000 / 16 * 8, compute, 4),
        "BT": lambda compute: bt(256, (780_300, 156_060, 26_010), compute, 2),
    }
    made = makers[name]
    turns = {"FT": 2, "CG": 4, "BT": 2}[name]
    left = BASE[name] - crossbar.seconds(made(0.0), RATE)
    return made(max(left, 0.0) / turns)


def _halo(name: str) -> Program:
    """A halo exchange of ours that has its class's usage on S2 and F2 (MILC on F4; it does not fit on F2)."""
    made = trace_of(HALOS[name], 1 << 20, iterations=ITERATIONS).ranks
    load_of_one = character(made, BASE[name], 2, "F4" if name == "MILC" else "F2").usage
    large = (made.kind != COMPUTE) & (made.amount > 8)  # not the sums of one double
    made = replace(
        made, amount=np.where(large, made.amount * USAGE[CLASSES[name]] / load_of_one, made.amount), name=name
    )
    burst = max(BASE[name] - crossbar.seconds(made, RATE), 0.0) / ITERATIONS
    return replace(made, amount=np.where(made.kind == COMPUTE, burst, made.amount))
