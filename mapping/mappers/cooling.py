"""Annealing from high temperatures, in C, with swaps evaluated along the machine's axes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..distances import Axes
from ..evaluate import doubled_hop_bytes
from ..graph import CommunicationGraph, Undirected
from ..machine import Machine
from ..mapping import Mapping
from .annealing import CoolingSchedule, anneal
from .multilevel import with_empty
from .places import host_of_all
from .swaps import make_state

try:
    from ._annealing import anneal as _compiled
except ImportError:  # installed without a compiler
    _compiled = None  # type: ignore[assignment]

__all__ = ["COLD", "HOT", "WARM", "WARM_DENSE", "Cooling", "cool", "cooled_between", "cost_at_random"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

STEP, GROUP = 512, 4  # proposals per temperature, and columns evaluated together, as in _annealing.c
MOST_PLACES = 4096  # most places whose distances may be stored as a table
# Limits up to which swaps are evaluated along `Axes`, for which the cost of each rank at each coordinate is stored: the
# sum of the extents of all axes, and how many coordinates have another distance from a rank's new place than from its
# old one. If one of them is larger, swaps are evaluated edge by edge, because it would take longer to update the costs.
MOST_COLUMNS, MOST_CHANGED = 128, 64
NEAREST = (6, 12)  # least and most places stored as near to a place; between them, as many as have the least distance
ROWS = 64  # places whose distances to all places are in memory at once
PILOT = 0.3  # fraction of the proposals made in the pilot run, which shows at which temperatures the cost falls
# Fractions of the total fall of the cost in the pilot run. The second run cools from the temperature at which the first
# fraction was reached to that of the second: at higher temperatures ranks stay in disorder, and at lower ones hardly a
# swap is accepted.
FALLEN = (0.8, 0.993)
BINS = 60
# Seconds on a usual processor: per proposal, and per axis of the proposal; if proposals are evaluated edge by edge, per
# proposal, and per edge of a rank.
PROPOSAL, AN_AXIS = 10e-9, 0.6e-9
BY_EDGES, AN_EDGE = 19e-9, 1.3e-9
IN_NUMPY = 16  # divisor of the number of proposals if they are evaluated in numpy, to take about the time of those in C


@dataclass(frozen=True)
class Cooling:
    """The first and last temperature of annealing, in units of the mean cost of a rank if all are placed at random.

    :param hot: first temperature; if it is 0.2 or more, the result does not depend on the order at the start.
    :param cold: last temperature.
    :param pilot: whether a short first run finds the temperatures at which the cost falls, and a second run spends its
        time between these.
    """

    hot: float
    cold: float
    pilot: bool = False


HOT = Cooling(0.2, 0.012, pilot=True)
WARM = Cooling(0.05, 0.004)  # for trees: most of the cuts that METIS found at the start survive these temperatures
WARM_DENSE = Cooling(0.1, 0.0003)  # for trees if the graph is dense
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
    """Anneal a mapping by swaps of ranks; the result is never worse than the start in exact hop-bytes.

    Swaps are accepted by the rule of Metropolis et al. 1953. With a pilot run (see `Cooling`), the second run continues
    from the result of the pilot run, between the temperatures at which that had made 80 % and 99.3 % of its
    improvement.

    :param graph: communication graph, with a vertex per rank.
    :param machine: hosts with their slots and distances; if more than 4,096 have slots, the start is returned.
    :param seed: seed of the random numbers; equal seeds give equal mappings.
    :param start: mapping to improve; by default rank r on slot r.
    :param cooling: first and last temperature.
    :param seconds: amount of work, as seconds on a usual processor; the time is not measured.
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
    """The mean cost of a rank with edges if all ranks are placed at random: the unit of a `Cooling`.

    :param graph: symmetric graph with edges.
    :param axes: distances between places.
    """
    per_column = axes.far.mean(axis=0)
    mean = float(per_column[axes.column].sum(axis=1).mean())
    return float(graph.weight.sum()) / len(np.unique(graph.targets)) * mean


def _annealed(graph: Undirected, axes: Axes, place: Integers, cooling: Cooling, seconds: float, seed: int) -> Integers:
    """Anneal with or without a pilot run; return the place of each rank, shape (m,).

    The number of ranks on each place stays the same.

    :param graph: symmetric graph of all m ranks.
    :param axes: distances between places.
    :param place: place of each rank at the start, shape (m,).
    :param cooling: first and last temperature.
    :param seconds: amount of work, as seconds on a usual processor.
    :param seed: seed of the random numbers.
    """
    if (axes.far == axes.far[:1]).all() or not len(graph.targets):
        return place
    rank = cost_at_random(graph, axes)
    hot, cold = cooling.hot * rank, cooling.cold * rank
    work = int(seconds / _seconds_of_a_proposal(graph, axes))
    if _compiled is None:
        state = make_state(graph, place, _one_axis(axes).far.astype(np.float64))
        accepted = 0.3 if cooling.pilot else 0.01
        anneal(state, CoolingSchedule(work // IN_NUMPY, accepted, cold / hot), np.random.default_rng(seed))
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
    """The place of each vertex after annealing between two temperatures; None if the C code is not compiled.

    :param graph: symmetric graph.
    :param axes: distances between places.
    :param place: place of each vertex at the start, shape (n,).
    :param heat: first and last temperature, above 0, in units of weight times distance.
    :param work: amount of work, as a number of rejected proposals.
    :param seed: seed of the random numbers.
    """
    if _compiled is None:
        return None
    return _Search.of(graph, axes).run(place, _geometric(*heat, max(work // STEP, 1)), seed)[0]


def _by_edges(axes: Axes) -> bool:
    """Whether to evaluate swaps edge by edge, because the costs at all coordinates are too many to keep up to date."""
    changed = (axes.far != np.roll(axes.far, len(axes.far) // 2, axis=0)).sum(axis=1).mean()
    return bool(axes.far.shape[1] > MOST_COLUMNS or changed > MOST_CHANGED)


def _one_axis(axes: Axes) -> Axes:
    """The same distances on a single axis, with a coordinate per place."""
    far = np.stack([row[axes.column].sum(axis=1) for row in axes.far])
    return Axes(far, np.arange(len(far))[:, None])


def _seconds_of_a_proposal(graph: Undirected, axes: Axes) -> float:
    if _by_edges(axes):
        return BY_EDGES + AN_EDGE * len(graph.targets) / (len(graph.offsets) - 1)
    return PROPOSAL + AN_AXIS * float(axes.column.shape[1])


@dataclass(frozen=True, eq=False)
class _Search:
    """The input of the annealing in C, in its types.

    :param offsets: index of each rank's first neighbour in ``targets``, and the end, shape (m + 1,).
    :param targets: neighbours of each rank, shape (edges,).
    :param weight: weight of each edge, shape (edges,).
    :param far: distance from each place to each coordinate, as in `Axes`, padded to whole groups of columns.
    :param column: column of each place's coordinates, as in `Axes`.
    :param near: 6 to 12 near places of each place, to which ranks may be sent, shape (n, 6 .. 12).
    :param movable: ranks with edges, which may be moved.
    :param by_edges: whether swaps are evaluated edge by edge instead of along axes.
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
        """Make the input from a graph and distances between places."""
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
        """Anneal; return the place of each rank in the best state found, and the cost saved up to each temperature.

        :param place: place of each rank at the start, shape (m,).
        :param heat: temperatures in the order of their use, shape (steps,).
        :param seed: seed of the random numbers.
        """
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
    """The temperatures at which a pilot run had made the fractions ``FALLEN`` of its improvement, hotter first.

    :param heat: temperatures of the pilot run, shape (steps,).
    :param trace: saving after each temperature, shape (steps,).
    """
    cuts = np.linspace(0, len(heat), min(BINS, len(heat)) + 1).astype(int)
    saved = np.add.reduceat(trace, cuts[:-1]) / np.diff(cuts)
    fallen = np.maximum.accumulate(saved - saved[: max(len(saved) // 8, 1)].mean())
    hot, cold = (int(np.argmax(fallen >= part * fallen[-1])) for part in FALLEN)
    return float(heat[cuts[hot]]), float(heat[cuts[cold]])


def _nearest(axes: Axes) -> NDArray[np.int32]:
    """For each place, 6 to 12 of the nearest other places, chosen at random among equals, shape (n, 6 .. 12)."""
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
