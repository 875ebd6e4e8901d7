"""Hot annealing: ranks start anywhere and cool down; swaps are priced along the machine's axes, in C."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..distances import Axes
from ..evaluate import doubled_hop_bytes
from ..graph import CommunicationGraph, Undirected
from ..machine import Machine
from ..mapping import Mapping
from .annealing import Schedule, anneal
from .multilevel import with_empty
from .places import host_of_all
from .swaps import make_state

try:
    from ._annealing import anneal as _compiled
except ImportError:  # topompi was installed without a compiler
    _compiled = None  # type: ignore[assignment]

__all__ = ["COLD", "HOT", "WARM", "WARM_DENSE", "Cooling", "cool", "cooled_between", "cost_at_random"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

STEP, GROUP = 512, 4  # work at one temperature, in proposals, and columns priced together, as in _annealing.c
MOST_PLACES = 4096  # whose distances may be held as a table
# Coordinates in all, and those whose distance a move changes: where there are more, swaps are priced by edges.
MOST_COLUMNS, MOST_CHANGED = 128, 64
NEAREST = (6, 12)  # places, of which one is proposed: as many as are equally near, within these
ROWS = 64  # of distances, that are held at once
PILOT = 0.3  # the part of the proposals that finds out at which temperatures the cost falls
FALLEN = (0.8, 0.993)  # the parts of the fall between which the others cool: what is hotter melts, what is colder stays
BINS = 60
# Seconds of a proposal on a usual processor, for each axis, and where it is priced by edges for each edge of a rank.
PROPOSAL, AN_AXIS = 10e-9, 0.6e-9
BY_EDGES, AN_EDGE = 19e-9, 1.3e-9
IN_NUMPY = 16  # so many times fewer proposals without C, in about the same time


@dataclass(frozen=True)
class Cooling:
    """How hot annealing starts and ends: parts of what a rank costs on the average where all are placed at random.

    :param hot: first temperature; from 0.2 on no order of the start is left.
    :param cold: last temperature.
    :param pilot: whether a part of the proposals finds out which temperatures need the time.
    """

    hot: float
    cold: float
    pilot: bool = False


HOT = Cooling(0.2, 0.012, pilot=True)
WARM = Cooling(0.05, 0.004)  # on a tree most of what METIS divides stays divided
WARM_DENSE = Cooling(0.1, 0.0003)  # the same where edges are many
COLD = Cooling(0.01, 0.0003)


def cool(
    graph: CommunicationGraph,
    machine: Machine,
    seed: int = 0,
    *,
    start: Mapping | None = None,
    cooling: Cooling = HOT,
    seconds: float = 0.5,
) -> Mapping:
    """A mapping annealed by swaps of ranks; never worse than its start in hop-bytes, which are compared exactly.

    Metropolis et al. 1953. Where there is a pilot run, a second one goes on from what it found, between the
    temperatures at which the pilot's last differences arose.

    :param graph: the ranks' communication; its size is the number of ranks.
    :param machine: the hosts with their slots and distances; where more than 4,096 have slots, the start is returned.
    :param seed: starts the random numbers; one seed gives one mapping.
    :param start: the given order by default.
    :param cooling: from which temperature to which.
    :param seconds: sets the work, by its time on a usual processor; no clock is looked at.
    """
    given, full = start or Mapping.identity(machine, graph.size), with_empty(graph, machine)
    used = np.flatnonzero(machine.slots)
    if len(used) > MOST_PLACES:
        return given
    place = np.searchsorted(used, host_of_all(given, machine))
    found = _annealed(full, machine.distances.axes(used), place, cooling, seconds, seed)
    annealed = Mapping.on_hosts(used[found][: graph.size], machine)
    better = doubled_hop_bytes(annealed, graph, machine) < doubled_hop_bytes(given, graph, machine)
    return annealed if better else given


def cost_at_random(graph: Undirected, axes: Axes) -> float:
    """What a rank with edges costs on the average where all are placed at random: the unit of a `Cooling`.

    :param graph: symmetric, with edges.
    :param axes: distances between places.
    """
    per_column = axes.far.mean(axis=0)
    mean = float(per_column[axes.column].sum(axis=1).mean())
    return float(graph.weight.sum()) / len(np.unique(graph.targets)) * mean


def _annealed(graph: Undirected, axes: Axes, place: Integers, cooling: Cooling, seconds: float, seed: int) -> Integers:
    """The place of each rank, in the start's number a place, after annealing; the start itself where nothing moves."""
    if (axes.far == axes.far[:1]).all() or not len(graph.targets):
        return place
    rank = cost_at_random(graph, axes)
    hot, cold = cooling.hot * rank, cooling.cold * rank
    work = int(seconds / _seconds_of_a_proposal(graph, axes))
    if _compiled is None:
        state = make_state(graph, place, _one_axis(axes).far.astype(np.float64))
        accepted = 0.3 if cooling.pilot else 0.01
        anneal(state, Schedule(work // IN_NUMPY, accepted, cold / hot), np.random.default_rng(seed))
        return state.place
    search = _Search.of(graph, axes)
    steps = max(work // STEP, 16)
    if not cooling.pilot:
        return search.run(place, _geometric(hot, cold, steps), seed)[0]
    heat = _geometric(hot, cold, max(int(PILOT * steps), 2))
    first, trace = search.run(place, heat, seed)
    second, _ = search.run(first, _geometric(*_telling(heat, trace), steps - len(heat)), seed + 1)
    return second


def cooled_between(
    graph: Undirected, axes: Axes, place: Integers, heat: tuple[float, float], work: int, seed: int
) -> Integers | None:
    """The places after annealing from one temperature to another, in units of weight times distance; None without C.

    :param graph: symmetric.
    :param axes: distances between places.
    :param place: of each vertex.
    :param heat: first and last temperature, above 0.
    :param work: in proposals that are not accepted.
    :param seed: of the random numbers.
    """
    if _compiled is None:
        return None
    return _Search.of(graph, axes).run(place, _geometric(*heat, max(work // STEP, 1)), seed)[0]


def _by_edges(axes: Axes) -> bool:
    """Whether prices at all coordinates would be too many to be kept up to date."""
    changed = (axes.far != np.roll(axes.far, len(axes.far) // 2, axis=0)).sum(axis=1).mean()
    return bool(axes.far.shape[1] > MOST_COLUMNS or changed > MOST_CHANGED)


def _one_axis(axes: Axes) -> Axes:
    """The same distances with one axis, of all places."""
    far = np.stack([row[axes.column].sum(axis=1) for row in axes.far])
    return Axes(far, np.arange(len(far))[:, None])


def _seconds_of_a_proposal(graph: Undirected, axes: Axes) -> float:
    if _by_edges(axes):
        return BY_EDGES + AN_EDGE * len(graph.targets) / (len(graph.offsets) - 1)
    return PROPOSAL + AN_AXIS * float(axes.column.shape[1])


@dataclass(frozen=True, eq=False)
class _Search:
    """What the annealing in C reads, in its types.

    :param weight: of the edges; ``far`` and ``column`` are those of `Axes`; ``near`` some places near each, shape
        (n, 6 .. 12).
    :param movable: ranks that have edges.
    :param by_edges: how swaps are priced.
    """

    offsets: NDArray[np.int32]
    targets: NDArray[np.int32]
    weight: NDArray[np.float32]
    far: NDArray[np.float32]
    column: NDArray[np.int32]
    near: NDArray[np.int32]
    movable: NDArray[np.int32]
    by_edges: bool

    @classmethod
    def of(cls, graph: Undirected, axes: Axes) -> _Search:
        """The search on a graph and distances between places."""
        by_edges = _by_edges(axes)
        axes = _one_axis(axes) if by_edges else axes
        return cls(
            graph.offsets.astype(np.int32),
            graph.targets.astype(np.int32),
            np.ascontiguousarray(graph.weight, dtype=np.float32),
            np.pad(axes.far, ((0, 0), (0, -axes.far.shape[1] % GROUP))).astype(np.float32),
            np.ascontiguousarray(axes.column, dtype=np.int32),
            _nearest(axes),
            np.flatnonzero(np.diff(graph.offsets)).astype(np.int32),
            by_edges,
        )

    def run(self, place: Integers, heat: Floats, seed: int) -> tuple[Integers, Floats]:
        """The best places found, and what was saved after each temperature."""
        assert _compiled is not None
        at, rank_at = place.astype(np.int32), np.argsort(place, kind="stable").astype(np.int32)
        slot_of = np.empty_like(rank_at)
        slot_of[rank_at] = np.arange(len(place), dtype=np.int32)
        first = np.r_[0, np.cumsum(np.bincount(place, minlength=len(self.far)))].astype(np.int32)
        trace = np.empty(len(heat))
        graph = self.offsets, self.targets, self.weight, self.far, self.column, self.near, first, self.movable
        _compiled(*graph, rank_at, slot_of, at, heat, trace, seed % 2**64, self.by_edges)
        return at.astype(np.int64), trace


def _geometric(hot: float, cold: float, steps: int) -> Floats:
    heat: Floats = hot * (cold / hot) ** (np.arange(steps) / steps)
    return heat


def _telling(heat: Floats, trace: Floats) -> tuple[float, float]:
    """The temperatures between which the last of the cost fell in a pilot run, hotter first.

    :param heat: of the pilot run; ``trace``: what it had saved after each.
    """
    cuts = np.linspace(0, len(heat), min(BINS, len(heat)) + 1).astype(int)
    saved = np.add.reduceat(trace, cuts[:-1]) / np.diff(cuts)
    fallen = np.maximum.accumulate(saved - saved[: max(len(saved) // 8, 1)].mean())
    hot, cold = (int(np.argmax(fallen >= part * fallen[-1])) for part in FALLEN)
    return float(heat[cuts[hot]]), float(heat[cuts[cold]])


def _nearest(axes: Axes) -> NDArray[np.int32]:
    """Some of the nearest other places of each, among equals drawn by lot, shape (n, 6 .. 12); some rows at a time."""
    places, rng = len(axes.far), np.random.default_rng(0)
    closest = np.sort(axes.far[0, axes.column[1:]].sum(axis=1))
    equal = int(np.searchsorted(closest, closest[0], "right"))
    count = min(max(equal, NEAREST[0]), NEAREST[1], places - 1)
    near = np.empty((places, count), dtype=np.int32)
    for some in np.array_split(np.arange(places), places // ROWS + 1):
        lot = axes.far[some][:, axes.column].sum(axis=2) + rng.random((len(some), places)) * 1e-3
        lot[np.arange(len(some)), some] = np.inf
        near[some] = np.argpartition(lot, count - 1, axis=1)[:, :count]
    return near
