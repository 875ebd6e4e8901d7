"""Tables of the predictions' accuracy: by sizes, by networks, by cells, and of the reference's own proposals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from topompi.execution.specs import NATIVE

if TYPE_CHECKING:
    from .predictions import Scores

__all__ = ["by_networks", "by_sizes", "every", "proposals"]

# Subramoni 2013: leaders (3), broadcasts along re-ordered trees by hops and by rate (4, 5), alltoalls (6).
PROPOSALS = {
    "Bcast": ("leaders", "reordered", "dft", "bft", "dft_rate", "bft_rate"),
    "Gather": ("leaders",),
    "Scatter": ("leaders",),
    "Allgather": ("leaders",),
    "Reduce": ("leaders",),
    "Allreduce": ("leaders",),
    "Alltoall": ("tacs1", "tacs2"),
}


def by_networks(scores: Sequence[Scores]) -> Iterator[str]:
    """Yield the gains and regrets of the choices, by network."""
    yield "| network | uplinks | order | ranks a host | cells | gain | least | regret | 90th percentile | correlation |"
    yield f"|{'---|' * 10}"
    groups: dict[tuple[object, ...], list[Scores]] = {}
    for one in scores:
        groups.setdefault(one.cell.job[:4], []).append(one)
    for job, some in [*groups.items(), (("all", "", "", ""), list(scores))]:
        gains = np.array([one.gain for one in some])
        cells = [*map(str, job), str(len(some)), f"{np.exp(np.log(gains).mean()):.2f}", f"{gains.min():.2f}"]
        yield f"| {' | '.join([*cells, *worth(some)])} |"


def by_sizes(models: Mapping[str, Sequence[Scores]]) -> Iterator[str]:
    """Yield the regrets of each model's choices, by size, and the 90th percentile of the default set's own regret."""
    yield "| bytes | model | cells | regret | 90th percentile | correlation | default set's best |"
    yield f"|{'---|' * 7}"
    sizes = {one.cell.nbytes for scores in models.values() for one in scores}
    for size, (name, scores) in product(sorted(sizes), models.items()):
        some = [one for one in scores if one.cell.nbytes == size]
        least = f"{np.quantile([one.least_regret for one in some], 0.9):.3f}"
        yield f"| {' | '.join([f'{size:,}', name, str(len(some)), *worth(some), least])} |"


def worth(scores: Sequence[Scores]) -> list[str]:
    """Format median and 90th percentile of regrets, and the median correlation."""
    regrets = [one.regret for one in scores]
    numbers = f"{np.median(regrets):.3f}", f"{np.quantile(regrets, 0.9):.3f}"
    return [*numbers, f"{np.median([one.correlation for one in scores]):.2f}"]


def every(scores: Sequence[Scores]) -> Iterator[str]:
    """Yield every cell, the largest regret first."""
    names = "native | chosen | fastest: predicted / measured (ms)"
    yield f"| job | call | bytes | native is | {names} | gain | regret | default set's best |"
    yield f"|{'---|' * 10}"
    for one in sorted(scores, key=lambda one: -one.regret):
        cell, where = one.cell, ", ".join(map(str, one.cell.job[:4]))
        times = [
            f"{name} {1e3 * one.predicted.get(name, np.nan):.1f} / {1e3 * cell.seconds[name]:.1f}"
            for name in (NATIVE, one.chosen, one.best)
        ]
        words = f"{cell.method} | {cell.nbytes} | {one.native} | {' | '.join(times)}"
        yield f"| {where} | {words} | {one.gain:.2f} | {one.regret:.2f} | {one.least_regret:.2f} |"


def proposals(scores: Sequence[Scores], nbytes: int = 64 << 10) -> Iterator[str]:
    """Yield the reference's proposals' gains over native, least and most over cells, and against the best of all."""
    rates = sorted({one.cell.uplinks for one in scores})
    heads = " | ".join(f"uplinks of {rate}bit/s" for rate in rates)
    yield f"| {nbytes:,} bytes | {heads} | share of the best, median |"
    yield f"|---|{'---|' * (len(rates) + 1)}"
    for method, names in PROPOSALS.items():
        for name in names:
            some = [one.cell for one in scores if (one.cell.method, one.cell.nbytes) == (method, nbytes)]
            some = [cell for cell in some if name in cell.seconds]
            columns = []
            for rate in rates:
                gains = [cell.seconds[NATIVE] / cell.seconds[name] for cell in some if cell.uplinks == rate]
                columns.append(f"{min(gains):.2f} to {max(gains):.2f}" if gains else "")
            best = np.median([min(cell.seconds.values()) / cell.seconds[name] for cell in some])
            yield f"| {method} by `{name}` | {' | '.join(columns)} | {best:.2f} |"
