"""Rates of a tree's links from streams: of a pair alone its hosts' links, of many together the link that they share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from .levels import FloatArray, IntArray, Level
from .search import Instrument
from .tournament import Pair, Round, cut, tournament

__all__ = ["Rates", "measure_rates"]

SHARED = 0.8  # of what the hosts' links carry: with less together, the streams share a link
ROUNDS = 2  # peers with which a host is measured
LONGEST, SHORTEST = 0.2, 0.02  # seconds of a stream


@dataclass(frozen=True, eq=False)
class Rates:
    """Bytes/s each way.

    :param host: of each host's link, shape (H,); NaN where there was no time to measure.
    :param uplink: a level below the top -> of the links above each of its clusters; NaN likewise.
    :param shared: a level below the top -> whether that link was what held the streams up; else it carries at least so
        much.
    """

    host: FloatArray
    uplink: Sequence[FloatArray]
    shared: Sequence[Sequence[bool]]


def measure_rates(
    levels: Sequence[Level], width: int, instrument: Instrument, progress: Callable[[str], None] = lambda words: None
) -> Rates:
    """Measure the hosts' links, then the link above every cluster by streams from many of its hosts at once.

    :param levels: from the leaves up.
    :param width: pairs of one leaf each that may be measured at the same time.
    :param instrument: measures.
    :param progress: is told what goes on.
    """
    alone = cut(_within(levels), width)
    clusters = [(above, number) for above in range(len(levels) - 1) for number in range(levels[above].num_clusters)]
    together = {key: pairs for key in clusters if (pairs := _across(levels, *key))}
    seconds = float(np.clip(instrument.left() / (2 * (len(alone) + len(together)) or 1), SHORTEST, LONGEST))
    progress(f"rates: {len(alone)} times pairs alone, {len(together)} times pairs together, {seconds:.2f} s each")
    host = np.full(len(levels[0].cluster), np.nan)
    for pairs in alone:
        for pair, rate in zip(pairs, instrument.streams(pairs, seconds), strict=True):
            host[list(pair)] = np.fmax(host[list(pair)], rate or np.nan)
    uplink = [np.full(level.num_clusters, np.nan) for level in levels[:-1]]
    shared = [[False] * level.num_clusters for level in levels[:-1]]
    for (above, number), pairs in together.items():
        total = float(instrument.streams(pairs, seconds).sum())
        able = sum(np.fmin(host[first], host[second]) for first, second in pairs)
        uplink[above][number] = total or np.nan
        shared[above][number] = bool(0 < total < SHARED * able)
    return Rates(host, uplink, shared)


def _within(levels: Sequence[Level]) -> list[Round]:
    """Rounds of pairs inside the leaves, all leaves at the same time: their paths do not meet.

    A host without another on its leaf is measured with one of another leaf, alone.
    """
    rounds: list[list[Pair]] = [[] for _ in range(ROUNDS)]
    lonely: list[Round] = []
    leaf = levels[0].cluster
    for number in range(levels[0].num_clusters):
        members = np.flatnonzero(leaf == number).tolist()
        if len(members) == 1:
            lonely.append([(members[0], int(np.flatnonzero(leaf != number)[0]))])
        for into, pairs in zip(rounds, tournament(len(members)), strict=False):
            into += [(members[first], members[second]) for first, second in pairs]
    return [pairs for pairs in rounds if pairs] + lonely


def _across(levels: Sequence[Level], above: int, number: int) -> Round:
    """Disjoint pairs of a cluster's hosts with others below the same switch, each side spread over what is below it."""
    inside = levels[above].cluster == number
    below_same = levels[above + 1].cluster == levels[above + 1].cluster[inside][0]
    return list(zip(_spread(levels, inside), _spread(levels, below_same & ~inside), strict=False))


def _spread(levels: Sequence[Level], chosen: IntArray) -> list[int]:
    """The chosen hosts such that successive ones are in different leaves as long as there are any."""
    hosts = np.flatnonzero(chosen)
    leaf = levels[0].cluster[hosts]
    turn = np.array([int((leaf[:place] == of).sum()) for place, of in enumerate(leaf)], dtype=np.int64)
    return [int(host) for host in hosts[np.lexsort((leaf, turn))]]
