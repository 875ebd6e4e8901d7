"""``python -m studies records``: what the cost model chooses in the measured cells of ``tests/records``.

Every algorithm was measured in each cell. *Gain* is the library's time over that of the choice, *regret* the time of
the choice over that of the fastest algorithm.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from benchmarks.paths import ROOT
from benchmarks.predictions import Scores, cells_in, emulated_model, read
from topompi.mpi.execution.specs import NATIVE
from topompi.mpi.prediction.untuned import predict

from ..tables import Table, show_many

__all__ = ["main"]

FOLDER = ROOT / "tests" / "records"
RECORDS = ("emulated", "hosts", "uneven", "packets")
WORTH = (
    "cells",
    "gain",
    "least gain",
    "regret, median",
    "regret, 90 %",
    "rank correlation",
    "default set's best, 90 %",
)
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
PROPOSAL_HEADS = ("collective, 64 KiB", "by", "cells", "least gain", "most", "share of the best's speed, median")
ALLTOALL_HEADS = ("network", "uplinks", "order", "bytes", "chosen", "gain", "fastest measured", "its gain")
PROPOSED = 64 << 10  # bytes of the calls of the source's proposals


def _worth(scores: Sequence[Scores]) -> list[str]:
    """Return the cells of ``WORTH``."""
    gains, regrets = (np.array([getattr(one, name) for one in scores]) for name in ("gain", "regret"))
    return [
        str(len(scores)),
        f"{np.exp(np.log(gains).mean()):.2f}",
        f"{gains.min():.2f}",
        f"{np.median(regrets):.3f}",
        f"{np.quantile(regrets, 0.9):.3f}",
        f"{np.median([one.correlation for one in scores]):.2f}",
        f"{np.quantile([one.least_regret for one in scores], 0.9):.3f}",
    ]


def _grouped(keys: Iterable[tuple[object, ...]], scores: Iterable[Scores]) -> Iterator[list[str]]:
    """Yield a row for each key, over the scores that have it."""
    groups: dict[tuple[object, ...], list[Scores]] = {}
    for key, one in zip(keys, scores, strict=True):
        groups.setdefault(key, []).append(one)
    for key, some in groups.items():
        yield [*map(str, key), *_worth(some)]


def _proposals(scores: Sequence[Scores]) -> Iterator[list[str]]:
    """Yield the gains of each of the source's proposals over the library, and their shares of the best's speed."""
    for method, names in PROPOSALS.items():
        for name in names:
            some = [one.cell.seconds for one in scores if (one.cell.method, one.cell.nbytes) == (method, PROPOSED)]
            some = [seconds for seconds in some if name in seconds]
            if some:
                gains = [seconds[NATIVE] / seconds[name] for seconds in some]
                share = np.median([min(seconds.values()) / seconds[name] for seconds in some])
                yield [method, f"`{name}`", str(len(some)), f"{min(gains):.2f}", f"{max(gains):.2f}", f"{share:.2f}"]


def _alltoalls() -> Iterator[list[str]]:
    """Yield the choice in each cell of the record of long alltoalls, in which not every algorithm was measured."""
    for cell in cells_in(FOLDER / "alltoalls.json"):
        chosen = predict(cell.predictor(), cell.method, cell.nbytes, 0, lambda name: True).algorithm
        best = min(cell.seconds, key=cell.seconds.__getitem__)
        gains = [
            f"{cell.seconds[NATIVE] / cell.seconds[name]:.2f}" if name in cell.seconds else "-"
            for name in (chosen, best)
        ]
        yield [
            cell.network,
            cell.uplinks,
            cell.order,
            f"{cell.nbytes:,}",
            f"`{chosen}`",
            gains[0],
            f"`{best}`",
            gains[1],
        ]


def _tables(quick: bool) -> Iterator[Table]:
    names = RECORDS[3:] if quick else RECORDS
    found = {name: read(FOLDER / f"{name}.json") for name in names}
    every = [(name, one) for name, scores in found.items() for one in scores]
    of_all = [one for _, one in every]
    yield "records", ("record", *WORTH), _grouped([(name,) for name, _ in every], of_all)
    jobs = [(name, *one.cell.job[:5]) for name, one in every]
    yield (
        "records jobs",
        ("record", "network", "uplinks", "order", "ranks a host", "library", *WORTH),
        _grouped(jobs, of_all),
    )
    first = found[names[0]]
    sizes = sorted(first, key=lambda one: one.cell.nbytes)
    told = read(FOLDER / f"{names[0]}.json", emulated_model())
    told.sort(key=lambda one: one.cell.nbytes)
    rows = [*((one.cell.nbytes, "of jobs") for one in sizes), *((one.cell.nbytes, "told the burst") for one in told)]
    yield "records sizes", ("bytes", "model", *WORTH), _grouped(rows, [*sizes, *told])
    yield "records proposals", PROPOSAL_HEADS, _proposals(first)
    yield "records alltoalls", ALLTOALL_HEADS, _alltoalls()


def main(arguments: Sequence[str]) -> int:
    """Print the tables, and put them into docs/lab/untuned.md.

    :param arguments: arguments after the source's name.
    :returns: exit code.
    """
    return show_many("records", "untuned.md", _tables, arguments)
