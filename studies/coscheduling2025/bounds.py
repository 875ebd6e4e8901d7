"""Classes that our model of speed-ups finds for left-out cells, and classes that repeated measurements give."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.paths import SHARED_DATA
from topompi.machine.colocation.prediction.cells import choose_terms, left_out
from topompi.machine.colocation.prediction.model import fit
from topompi.machine.colocation.speedups.bands import classes, edges
from topompi.machine.colocation.speedups.files import read_speedups
from topompi.machine.colocation.speedups.matrix import Speedups

from .matrices import marconi
from .rules import measured
from .trained import family

__all__ = ["NEAR", "left_out_rows", "repeated", "repeated_classes", "without_sizes"]

NEAR = 0.02  # of the logarithm
Reals = NDArray[np.float64]


def without_sizes(speedups: Speedups) -> Reals:
    """Return each known cell's speed-up as predicted without all pairs of the same two benchmarks, whatever their size.

    The number of interaction terms is chosen without all rows of the program's benchmark.

    :param speedups: the matrix.
    """
    names = np.array([family(one) for one in speedups.programs])
    logs, found = np.log(speedups.ratio), np.full(speedups.ratio.shape, np.nan)
    for one in sorted(set(names)):
        rows, others = names == one, sorted(set(names))
        terms = choose_terms(speedups.ratio, speedups.known & ~rows[:, None])
        blocks = np.array([rows[:, None] & (names == other)[None] for other in others])
        means = fit(logs, speedups.known & ~blocks, terms).mean
        for block, mean in zip(blocks, means, strict=True):
            found[block] = np.exp(mean[block])
    return np.where(speedups.known, found, np.nan)


def left_out_rows(with_all: bool = True) -> Iterator[list[object]]:
    """Yield a row per matrix and way to leave out cells: cells, share of right classes, and misses near a border.

    :param with_all: whether the 33 NAS programs have rows, which take most of the time.
    """
    spec, nas = read_speedups(SHARED_DATA / "colocation/aris-spec.csv"), measured("NAS")
    own = "{}, from its other cells"
    matrices = {"NAS 13 x 13": nas, "SPEC 7 x 7": measured("SPEC"), "SPEC 8 x 8": spec, "Marconi 8 x 8": marconi()}
    answers = [(own.format(name), one.ratio, left_out(one).label) for name, one in matrices.items()]
    if with_all:
        whole = read_speedups(SHARED_DATA / "colocation/aris-nas.csv")
        at = np.ix_(*[[whole.number[name] for name in nas.programs]] * 2)
        label, other = left_out(whole).label, classes(without_sizes(whole)[at]).astype(np.int64)
        answers += [
            ("NAS 13 x 13, from all other cells of 33 x 33", nas.ratio, label[at]),
            ("NAS 13 x 13, from 33 x 33 without all sizes of the pair", nas.ratio, other),
            (own.format("NAS 33 x 33"), whole.ratio, label),
        ]
    for name, ratio, label in answers:
        known = np.isfinite(ratio)
        right = (label == classes(ratio))[known]
        gap = np.min([np.abs(np.log(ratio) - edge) for edge in edges()], axis=0)[known]
        yield [name, len(right), f"{right.mean():.1%}", int((~right).sum()), int((gap[~right] < NEAR).sum())]


def repeated(programs: Sequence[str]) -> tuple[Reals, Reals]:
    """Return speed-ups by the last run group and by each earlier one of the same cells, two of shape (k,).

    :param programs: names of NAS programs.
    """
    groups: dict[tuple[str, str], dict[str, list[float]]] = {}
    with (SHARED_DATA / "colocation/aris-nas.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            key = row["application"], row["beside"]
            groups.setdefault(key, {}).setdefault(row["group"], []).append(float(row["seconds"]))
    medians = {key: [float(np.median(times)) for times in one.values()] for key, one in groups.items()}
    alone = {one: times[-1] for (one, beside), times in medians.items() if beside == "compact"}
    found = [
        (alone[one] / times[-1], alone[one] / earlier)
        for (one, beside), times in medians.items()
        if one in programs and beside in programs
        for earlier in times[:-1]
    ]
    last, before = np.array(found).T
    return last, before


def repeated_classes() -> Iterator[list[object]]:
    """Yield how often a second measurement has the class of the last: as it happened, and expected for all cells.

    The expectation applies every observed change between run groups, in both directions, to every cell.
    """
    whole = read_speedups(SHARED_DATA / "colocation/aris-nas.csv")
    last, before = repeated(whole.programs)
    change = np.log(before / last)
    for name, speedups in (("NAS 13 x 13", measured("NAS")), ("NAS 33 x 33", whole)):
        one, other = repeated(speedups.programs)
        ratio = speedups.ratio[speedups.known]
        again = ratio[:, None] * np.exp(np.concatenate((change, -change)))
        expected = (classes(again) == classes(ratio)[:, None]).mean()
        yield [name, len(one), f"{(classes(one) == classes(other)).mean():.1%}", len(ratio), f"{expected:.1%}"]
