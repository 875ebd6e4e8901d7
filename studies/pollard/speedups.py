"""Speed-ups of isolated over oblivious placements by pattern: ``python -m studies pollard network``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ..tables import Table, show_many
from .network import PLACEMENTS, Machine, Setting, machine, slowdowns

__all__ = ["HEAD", "PUBLISHED", "SETTINGS", "lost", "main", "measured", "row_of"]

PUBLISHED = {"Unstr-mesh": 1.68, "Stencil": 1.58, "Sub-a2a": 1.14, "Pairs": 1.06, "all": 1.36}
OBLIVIOUS = PLACEMENTS[1:]
HEAD = ("setting, mixes", "TO is", *PUBLISHED, "sd of mixes", "order")
CHOSEN = "as chosen"
SETTINGS: dict[str, Setting] = {
    CHOSEN: Setting(),
    "each rank sends as much": Setting(share="each"),
    "alltoalls at once": Setting(at_once=True),
    "the two together": Setting(share="each", at_once=True),
    "messages of 1 MiB": Setting(nbytes=1 << 20, share="message"),
    "routes drawn": Setting(random_routes=True),
    "1 iteration": Setting(iterations=1),
    "fragments up to 32 nodes": Setting(fragment=32),
    "fragments up to 1,024": Setting(fragment=1024),
    "half of the time computes": Setting(compute=1.0),
}
FEW = 5  # mixes of each setting but the chosen one
LETTERS = {"Unstr-mesh": "U", "Stencil": "St", "Sub-a2a": "Su", "Pairs": "P"}

Slowdowns = list[tuple[int, str, dict[str, float]]]  # mix, pattern and T / T(crossbar) by placement of each job


def measured(where: Machine, setting: Setting, seeds: Sequence[int]) -> Slowdowns:
    """Simulate mixes, and collect the slow-downs of their jobs.

    :param where: the machine.
    :param setting: the open parameters.
    :param seeds: seed of each mix.
    """
    return [(seed, pattern, slow) for seed in seeds for pattern, slow in slowdowns(where, seed, setting)]


def row_of(name: str, found: Slowdowns, how: str) -> list[str]:
    """The row of a setting: mean T(TO) / T(TA) of the jobs of each pattern and of all, and the spread of the mixes.

    :param name: name of the setting.
    :param found: slow-downs of all jobs.
    :param how: oblivious placement.
    """
    by_mix, by_pattern = dict[int, list[float]](), dict[str, list[float]]()
    for seed, pattern, slow in found:
        ratio = slow[how] / slow["isolated"]
        by_mix.setdefault(seed, []).append(ratio)
        for key in (pattern, "all"):
            by_pattern.setdefault(key, []).append(ratio)
    means = {key: float(np.mean(by_pattern[key])) if key in by_pattern else float("nan") for key in PUBLISHED}
    spread = np.std([np.mean(one) for one in by_mix.values()], ddof=1) if len(by_mix) > 1 else float("nan")
    order = " ".join(LETTERS[one] for one in sorted(LETTERS, key=means.__getitem__, reverse=True))
    return [f"{name}, {len(by_mix)}", how, *(f"{one:.2f}" for one in means.values()), f"{spread:.2f}", order]


def lost(found: Slowdowns) -> Iterator[list[str]]:
    """Yield a row per placement: mean T / T(crossbar) of each pattern, the loss to the network with and without others.

    :param found: slow-downs of all jobs.
    """
    for how in PLACEMENTS:
        of_pattern = [[slow[how] for _, name, slow in found if name == pattern] for pattern in LETTERS]
        yield [how, *(f"{np.mean(one):.2f}" if one else "-" for one in of_pattern)]


def tables(quick: bool) -> Iterator[Table]:
    """Simulate all mixes under all settings, and yield the tables of gains and of losses.

    :param quick: whether to simulate two mixes on 512 nodes under one setting.
    """
    where = machine(8, (96, 128, 192)) if quick else machine(22)
    chosen: Slowdowns = []

    def rows() -> Iterator[list[str]]:
        yield ["the paper (packets), 15", "not named", *(f"{one:.2f}" for one in PUBLISHED.values()), "", "U St Su P"]
        for name, setting in SETTINGS.items():
            if quick and name != CHOSEN:
                return
            found = measured(where, setting, range(1, 3 if quick else 16 if name == CHOSEN else FEW + 1))
            chosen.extend(found if name == CHOSEN else ())
            yield from (row_of(name, found, how) for how in OBLIVIOUS)

    print(f"model: flows; {where.cluster.num_nodes:,} nodes; mixes of seeds from 1; means over jobs")
    yield "pollard network", HEAD, rows()
    yield "pollard lost", ("placement", *LETTERS), lost(chosen)


def main(arguments: Sequence[str]) -> int:
    """Print the tables.

    :param arguments: arguments after ``network``.
    """
    return show_many("pollard network", "sharing.md", tables, arguments)
