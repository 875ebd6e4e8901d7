"""Hot annealing: ranks start anywhere and cool down; swaps are priced by the edges of two ranks, in C."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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

__all__ = ["COOL", "HOT", "Cooling", "cool", "cooled_between"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

STEP = 512  # proposals at one temperature, as in _annealing.c
MOST_PLACES = 4096  # whose distances are held as a table
NEAREST = (6, 12)  # places, of which one is proposed: as many as are equally near, within these
PILOT = 0.3  # the part of the proposals that finds out at which temperatures the cost falls
FALLEN = (0.8, 0.993)  # the parts of the fall between which the others cool: what is hotter melts, what is colder stays
BINS = 60
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
COOL = (Cooling(0.1, 0.0003), Cooling(0.01, 0.0003))


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
    :param seconds: sets the number of proposals, by their price on a usual processor; no clock is looked at.
    """
    given, full = start or Mapping.identity(machine, graph.size), with_empty(graph, machine)
    used = np.flatnonzero(machine.slots)
    place = np.searchsorted(used, host_of_all(given, machine))
    found = _annealed(full, _table(machine, used), place, cooling, _proposals_for(full, seconds), seed)
    annealed = Mapping.on_hosts(used[found][: graph.size], machine)
    better = doubled_hop_bytes(annealed, graph, machine) < doubled_hop_bytes(given, graph, machine)
    return annealed if better else given


def cooled_between(
    graph: Undirected, distance: Floats, place: Integers, heat: tuple[float, float], proposals: int, seed: int
) -> Integers | None:
    """The places after annealing from one temperature to another, in units of weight times distance; None without C.

    :param graph: symmetric.
    :param distance: between places, shape (n, n).
    :param place: of each vertex.
    :param heat: first and last temperature, above 0.
    :param proposals: swaps proposed.
    :param seed: of the random numbers.
    """
    if _compiled is None:
        return None
    steps = max(proposals // STEP, 1)
    return _Search.of(graph, distance, seed).run(place, _geometric(*heat, steps), seed)[0]


def _table(machine: Machine, used: Integers) -> Floats:
    """Distances between hosts; empty where there are too many hosts for a table."""
    if len(used) > MOST_PLACES:
        return np.zeros((0, 0))
    return machine.distance(used[:, None], used[None, :]).astype(np.float64)


def _annealed(
    graph: Undirected, distance: Floats, place: Integers, cooling: Cooling, proposals: int, seed: int
) -> Integers:
    """The place of each rank, in the start's number a place, after annealing; the start itself where nothing moves."""
    if len(distance) < 2 or not len(graph.targets) or distance.max() == distance.min():
        return place
    rank = float(graph.weight.sum()) / len(np.unique(graph.targets)) * float(distance.mean())
    hot, cold = cooling.hot * rank, cooling.cold * rank
    if _compiled is None:
        state = make_state(graph, place, distance)
        accepted = 0.3 if cooling.pilot else 0.01
        anneal(state, Schedule(proposals // IN_NUMPY, accepted, cold / hot), np.random.default_rng(seed))
        return state.place
    search = _Search.of(graph, distance, seed)
    steps = max(proposals // STEP, 16)
    if not cooling.pilot:
        return search.run(place, _geometric(hot, cold, steps), seed)[0]
    heat = _geometric(hot, cold, max(int(PILOT * steps), 2))
    first, trace = search.run(place, heat, seed)
    second, _ = search.run(first, _geometric(*_telling(heat, trace), steps - len(heat)), seed + 1)
    return second


@dataclass(frozen=True, eq=False)
class _Search:
    """What the annealing in C reads, in its types.

    :param weight: of the edges; ``distance`` between places; ``near`` some places near each, shape (n, 6 .. 12).
    :param movable: ranks that have edges.
    :param least: distance that two ranks can have.
    """

    offsets: NDArray[np.int32]
    targets: NDArray[np.int32]
    weight: NDArray[np.float32]
    distance: NDArray[np.float32]
    near: NDArray[np.int32]
    movable: NDArray[np.int32]
    least: float

    @classmethod
    def of(cls, graph: Undirected, distance: Floats, seed: int) -> _Search:
        """The search on a graph and a table of distances."""
        alone = len(graph.offsets) - 1 == len(distance)  # one rank a place: none has a neighbour on its own
        return cls(
            graph.offsets.astype(np.int32),
            graph.targets.astype(np.int32),
            np.ascontiguousarray(graph.weight, dtype=np.float32),
            np.ascontiguousarray(distance, dtype=np.float32),
            _nearest(distance, np.random.default_rng(seed)),
            np.flatnonzero(np.diff(graph.offsets)).astype(np.int32),
            float(distance[~np.eye(len(distance), dtype=bool)].min() if alone else distance.min()),
        )

    def run(self, place: Integers, heat: Floats, seed: int) -> tuple[Integers, Floats]:
        """The best places found, and what was saved after each temperature."""
        assert _compiled is not None
        at, rank_at = place.astype(np.int32), np.argsort(place, kind="stable").astype(np.int32)
        slot_of = np.empty_like(rank_at)
        slot_of[rank_at] = np.arange(len(place), dtype=np.int32)
        first = np.r_[0, np.cumsum(np.bincount(place, minlength=len(self.distance)))].astype(np.int32)
        trace = np.empty(len(heat))
        graph = self.offsets, self.targets, self.weight, self.distance, self.near, first, self.movable
        _compiled(*graph, rank_at, slot_of, at, heat, trace, seed % 2**64, self.least)
        return at.astype(np.int64), trace

    def cost(self, place: Integers) -> float:
        """The sum of weight times distance."""
        source = np.repeat(place, np.diff(self.offsets))
        return float((self.weight * self.distance[source, place[self.targets]]).sum())


def _proposals_for(graph: Undirected, seconds: float) -> int:
    """Proposals that take about so many seconds of a processor: 19 ns each, and 1.3 for each edge of a rank."""
    ranks = max(len(graph.offsets) - 1, 1)
    return int(seconds / (19e-9 + 1.3e-9 * len(graph.targets) / ranks))


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


def _nearest(distance: Floats, rng: np.random.Generator) -> NDArray[np.int32]:
    """Some of the nearest other places of each, among equals drawn by lot, shape (n, 6 .. 12); a row at a time."""
    closest = np.sort(distance[0, 1:])
    equal = int(np.searchsorted(closest, closest[0], "right"))
    count = min(max(equal, NEAREST[0]), NEAREST[1], len(distance) - 1)
    near = np.empty((len(distance), count), dtype=np.int32)
    for row, far in enumerate(distance):
        lot = far + rng.random(len(far)) * 1e-3
        lot[row] = np.inf
        near[row] = np.argpartition(lot, count - 1)[:count]
    return near
