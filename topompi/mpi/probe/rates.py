"""The rates of a tree's links: of host links by streams of single pairs, of shared links by streams of many pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from .levels import FloatArray, HostClusters, IntArray
from .search import Instrument
from .tournament import Pair, Round, cut, tournament

__all__ = ["ProbedRates", "measure_rates"]

# Fraction of the sum of the host links' rates. Streams that together are slower than this must share a slower link.
SHARED = 0.8
ROUNDS = 2  # maximum number of hosts on its leaf switch with which a host is measured
LONGEST, SHORTEST = 0.2, 0.02  # seconds: bounds of a stream's duration


@dataclass(frozen=True, eq=False)
class ProbedRates:
    """The measured rates, in bytes/s in each direction.

    :param host: rate of each host's link, shape (hosts,); NaN if there was no time to measure it.
    :param uplink: rates of the links above the clusters, shape (clusters,) for each level below the top; NaN for a link
        that there was no time to measure.
    :param shared: True for each link of ``uplink`` that limited the streams; the rates of the other links are lower
        bounds.
    """

    host: FloatArray
    uplink: Sequence[FloatArray]
    shared: Sequence[Sequence[bool]]


def measure_rates(
    levels: Sequence[HostClusters],
    width: int,
    instrument: Instrument,
    progress: Callable[[str], None] = lambda words: None,
) -> ProbedRates:
    """Measure the hosts' links, then the link above each cluster by streams from many of its hosts at once.

    :param levels: the levels of hosts, from the leaf switches up.
    :param width: maximum number of pairs, each on one leaf switch, that are measured at the same time.
    :param instrument: the instrument that measures.
    :param progress: function called with a line about the measurement under way.
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
    return ProbedRates(host, uplink, shared)


def _within(levels: Sequence[HostClusters]) -> list[Round]:
    """The rounds in which the hosts' links are measured, by pairs of hosts on the same leaf switch.

    A round has pairs of all leaf switches, because pairs on different leaf switches share no link. A host that is alone
    on its leaf switch is measured with a host of another one, in a round of its own.
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


def _across(levels: Sequence[HostClusters], above: int, number: int) -> Round:
    """Disjoint pairs of a host of a cluster and a host outside the cluster, below the same upper switch.

    The hosts of the cluster are on as many different leaf switches as possible, and so are the hosts outside it.

    :param levels: the levels of hosts, from the leaf switches up.
    :param above: index of the cluster's level.
    :param number: number of the cluster.
    """
    inside = levels[above].cluster == number
    below_same = levels[above + 1].cluster == levels[above + 1].cluster[inside][0]
    return list(zip(_spread(levels, inside), _spread(levels, below_same & ~inside), strict=False))


def _spread(levels: Sequence[HostClusters], chosen: IntArray) -> list[int]:
    """The chosen hosts, ordered so that successive hosts are on different leaf switches as far as possible."""
    hosts = np.flatnonzero(chosen)
    leaf = levels[0].cluster[hosts]
    turn = np.array([int((leaf[:place] == of).sum()) for place, of in enumerate(leaf)], dtype=np.int64)
    return [int(host) for host in hosts[np.lexsort((leaf, turn))]]
