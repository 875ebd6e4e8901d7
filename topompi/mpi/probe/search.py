"""The search for the tree of hosts: all pairs are measured once, then doubtful pairs again until the tree is stable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from .levels import (
    RESOLUTION,
    STEP,
    FloatArray,
    HostClusters,
    IntArray,
    disagreeing,
    find_levels,
    joining_pairs,
    joining_times,
)
from .tournament import Pair, Round, cut, disjoint, tournament

__all__ = ["FoundClusters", "Instrument", "search"]

TRIPS = 60  # round trips of a pair in a round
# Before the search, rounds of many pairs are compared with rounds of one pair. If they take longer by more than this
# factor, the pairs disturb each other.
SLOWER = 2.0
ALONE, TURNS = 3, 4  # in this comparison, number of pairs measured alone, and number of repetitions
LONGER = 4  # in this comparison, factor on TRIPS, because a short round consists mostly of the barrier before it
# Consecutive sweeps (measurements of the doubtful pairs) in which neither the tree nor, noticeably, any time may change
# before the search ends.
CALM = 6
# Largest spread of the joining round trips of one level, in units of RESOLUTION; a larger spread hides a further level.
SPREAD = 2.0
STILL = 0.1  # largest mean change of the joining round trips in a sweep that counts for CALM, relative to RESOLUTION
MOST_SWEEPS = 100
SURE = 0.9  # least confidence that every level must have before the search may end
AGAIN = 8  # maximum number of pairs per host that a sweep measures again because they disagree
NEAREST = 2  # number of nearest pairs per host that every sweep measures again


class Instrument(Protocol):
    """An instrument that measures between hosts; each of its answers is the same on all ranks."""

    def round_trips(self, rounds: Sequence[Round], trips: int) -> FloatArray:
        """Seconds of each pair's shortest round trip, round by round; inf for a pair for which no time was left."""

    def streams(self, pairs: Round, seconds: float) -> FloatArray:
        """Rate of each pair in bytes/s per direction, all pairs sending for ``seconds``; 0 if no time was left."""

    def left(self) -> float:
        """Seconds left for measurements, counted at the end of the latest one; the same on all ranks."""


@dataclass(frozen=True, eq=False)
class FoundClusters:
    """The result of the search by round trips.

    :param levels: the levels of hosts, from the leaf switches up.
    :param round_trips: shortest round trip of each pair in seconds, shape (hosts, hosts); inf if it was not measured.
    :param width: maximum number of pairs that were measured at the same time.
    :param rounds: number of measured rounds.
    :param probes: number of measured pairs in all rounds.
    :param settled: True if the tree is sure and stayed the same while doubtful pairs were measured again.
    """

    levels: tuple[HostClusters, ...]
    round_trips: FloatArray
    width: int
    rounds: int
    probes: int
    settled: bool


def search(
    hosts: int, instrument: Instrument, reserve: float = 0.0, progress: Callable[[str], None] = lambda words: None
) -> FoundClusters:
    """Find by round trips which hosts are on one leaf switch, below one upper switch, and so on: the levels of hosts.

    :param hosts: number of hosts, at least 2.
    :param instrument: the instrument that measures.
    :param reserve: seconds of the instrument's time limit that the search leaves for other measurements.
    :param progress: function called with a line about the measurement under way.
    :raises ProbeError: if there is too little time to measure every host once.
    """
    sheet = _Sheet(hosts, instrument)
    sheet.width = _width(sheet)
    progress(f"{hosts} hosts, {sheet.width} pairs at a time, {hosts * (hosts - 1) // 2:,} pairs")
    sheet.measure(tournament(hosts))
    levels, calm, generator = find_levels(sheet.best), 0, np.random.default_rng(hosts)
    noise, sure = np.zeros(hosts - 1), False
    for sweep in range(MOST_SWEEPS):
        if not calm:
            sheet.lately.fill(np.inf)
        sure = _settled(sheet.best, levels, calm) and _confirmed(sheet, levels)
        if sure or instrument.left() <= reserve:
            break
        progress(f"sweep {sweep + 1}: {_counts(levels)}, {instrument.left():.1f} s left")
        before, times = levels, joining_times(sheet.best)
        sheet.measure(_again(sheet.best, levels, generator))
        now = joining_times(sheet.best)
        noise = np.maximum(times - now, noise / 2)
        levels = find_levels(sheet.best, noise)
        calm = calm + 1 if _same(before, levels) and noise.mean() < STILL * RESOLUTION * now.mean() else 0
    return FoundClusters(levels, sheet.best, sheet.width, sheet.rounds, sheet.probes, sure)


class _Sheet:
    """The measurements so far: the shortest round trips of pairs, and numbers of rounds and of measured pairs.

    ``best`` has the shortest of all round trips, ``lately`` the shortest since the tree last changed.
    """

    def __init__(self, hosts: int, instrument: Instrument) -> None:
        self.best, self.lately = np.full((2, hosts, hosts), np.inf)
        self.width = max(1, hosts // 2)
        self.rounds = self.probes = 0
        self._instrument, self.left = instrument, instrument.left

    def measure(self, rounds: Sequence[Round], width: int | None = None, trips: int = TRIPS) -> None:
        """Measure pairs, in rounds of at most ``width`` pairs, and keep each pair's shortest round trip."""
        rounds = cut(rounds, width or self.width)
        pairs = np.array([pair for one in rounds for pair in one]).reshape(-1, 2)
        times = self._instrument.round_trips(rounds, trips)
        first, second = pairs.T
        for kept in (self.best, self.lately):
            np.minimum.at(kept, (first, second), times)
            np.minimum.at(kept, (second, first), times)
        self.rounds += len(rounds)
        self.probes += len(pairs)


def _width(sheet: _Sheet) -> int:
    """The greatest number of pairs whose round takes hardly longer than a round of one pair."""
    pairs = tournament(len(sheet.best))[0]

    def seconds(width: int, count: int) -> float:
        before, rounds = sheet.left(), sheet.rounds
        sheet.measure([pairs[:count]] * TURNS, width, LONGER * TRIPS)
        return (before - sheet.left()) / (sheet.rounds - rounds)

    alone, width = seconds(1, ALONE), len(pairs)
    while width > 1 and seconds(width, width) > SLOWER * alone:
        width = max(1, width // 8)
    return width


def _again(best: FloatArray, levels: tuple[HostClusters, ...], generator: np.random.Generator) -> list[Round]:
    """Rounds that measure pairs again: the doubtful pairs, or, if all hosts look equally close, all pairs."""
    if levels[0].num_clusters == 1:
        return tournament(len(best))
    return disjoint(_doubtful(best, levels, generator))


def _doubtful(best: FloatArray, levels: tuple[HostClusters, ...], generator: np.random.Generator) -> list[Pair]:
    """The pairs to measure again, each once.

    They are the pairs that disagree with their level, each host with its nearest hosts, two pairs between any two leaf
    switches, and all pairs of a host that is alone on its leaf switch.
    """
    leaf = levels[0].cluster
    again = disagreeing(best, levels)[: AGAIN * len(best)].tolist()
    again += _borders(best, leaf, generator)
    alone = np.flatnonzero(np.bincount(leaf)[leaf] == 1).tolist()  # perhaps only by disturbed measurements
    again += [(min(host, peer), max(host, peer)) for host in alone for peer in range(len(best)) if peer != host]
    for host, nearest in enumerate(np.argsort(best, axis=1)[:, :NEAREST].tolist()):
        again += [(min(host, peer), max(host, peer)) for peer in nearest if peer != host]
    return list(dict.fromkeys((first, second) for first, second in again))


def _borders(best: FloatArray, leaf: IntArray, generator: np.random.Generator) -> list[Pair]:
    """For any two leaf switches, the pair of their hosts with the shortest round trip, and a random pair."""
    first, second = np.triu_indices(len(best), 1)
    apart = leaf[first] != leaf[second]
    first, second = first[apart], second[apart]
    low, high = np.minimum(leaf[first], leaf[second]), np.maximum(leaf[first], leaf[second])
    border = low * len(best) + high
    chosen: list[Pair] = []
    for key in (best[first, second], generator.random(len(first))):
        order = np.lexsort((key, border))
        nearest = order[np.unique(border[order], return_index=True)[1]]
        chosen += zip(first[nearest].tolist(), second[nearest].tolist(), strict=True)
    return chosen


def _settled(best: FloatArray, levels: tuple[HostClusters, ...], calm: int) -> bool:
    """Whether the tree is sure: it stayed the same, all levels are confident, and none seems to consist of two levels.

    :param best: shortest round trip of each pair in seconds, shape (hosts, hosts).
    :param levels: the levels, from the leaf switches up.
    :param calm: number of consecutive sweeps (measurements of the doubtful pairs) in which the tree stayed the same.
    """
    if calm < CALM or any(level.confidence < SURE for level in levels):
        return False
    times = joining_times(best)
    spread = SPREAD if len(levels) > 1 else 1.0
    ends = np.searchsorted(times, [level.limit for level in levels])
    parts = np.split(times, ends[:-1])
    return all(part.max() <= (1 + spread * RESOLUTION) * part.min() for part in parts if len(part))


def _confirmed(sheet: _Sheet, levels: tuple[HostClusters, ...]) -> bool:
    """Whether the gaps between levels also appear in round trips measured since the tree last changed.

    They do not if the machine was faster for a second in which only some pairs of a level were measured. In that case
    the earlier round trips of these pairs are replaced by the later ones.
    """
    first, second = joining_pairs(sheet.best).T
    level = np.sum([one.cluster[first] != one.cluster[second] for one in levels], axis=0)
    times = sheet.lately[first, second]
    times = np.where(np.isfinite(times), times, sheet.best[first, second])
    if all((1 + STEP) * times[level <= one].max() < times[level > one].min() for one in range(len(levels) - 1)):
        return True
    sheet.best[first, second] = sheet.best[second, first] = times
    return False


def _same(before: tuple[HostClusters, ...], after: tuple[HostClusters, ...]) -> bool:
    return len(before) == len(after) and all(
        np.array_equal(one.cluster, other.cluster) for one, other in zip(before, after, strict=True)
    )


def _counts(levels: tuple[HostClusters, ...]) -> str:
    """The numbers of clusters of the levels, in words."""
    return " in ".join(str(level.num_clusters) for level in levels) + " clusters"
