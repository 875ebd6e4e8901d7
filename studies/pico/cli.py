"""The command ``python -m studies pico``: the cost model beside measured collectives of four machines."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np

from studies.tables import Table, show_many
from topompi.inputs.figures import size_name
from topompi.mpi.prediction.machines import FOLDER

from .algorithms import described
from .data import Row, cells_of, kept, read_rows
from .defaults import told
from .fitting import fitted, halves, median_of
from .machinefiles import shipped, write_machines
from .machines import MACHINES, allocations
from .own import bands, gains
from .picture import draw_regrets
from .score import Contest, by_rule, contests, correlation, oracle, regrets, summary
from .sweeps import SWEEPS
from .times import START, Calibration, Times, layer_of

__all__ = ["main"]

DATA = Path(os.environ.get("TOPOMPI_SHARED_DATA", Path(__file__).resolve().parents[3] / "shared" / "data")) / "pico"
KINDS = ("long moves", "short moves", "reductions")
SIZES = (64 << 10, 1 << 20, 64 << 20)


class Study:
    """The data, the halves of the runs, and the fits to them, each made when it is first asked for.

    :param data: file of measured cells.
    :param places: file of allocations.
    """

    def __init__(self, data: Path, places: Path) -> None:
        self.every = read_rows(data)
        self.rows, self.dropped = kept(self.every)
        self.places = allocations(str(places))
        self.times = Times(self.places)
        self.seen, self.checked = halves(self.rows)
        self._contests: dict[object, list[Contest]] = {}

    @cached_property
    def described(self) -> list[Row]:
        """The rows that schedules describe."""
        return [row for row in self.rows if described(row) is not None]

    @cached_property
    def start(self) -> dict[str, Calibration]:
        """The parameters where fits begin, for each layer."""
        return dict.fromkeys(map(layer_of, self.described), START)

    @cached_property
    def terms(self) -> np.ndarray:
        """The derivatives of all described rows at `START`."""
        return self.times.terms(self.described, self.start)

    def fitted_to(self, runs: set[str]) -> dict[str, Calibration]:
        """The fit to some runs; layers without a run get the median of the others'."""
        some = [place for place, row in enumerate(self.described) if row.run in runs]
        found = fitted([self.described[place] for place in some], self.terms[some])
        return {layer: found.get(layer) or median_of(found, layer) for layer in self.start}

    @cached_property
    def half(self) -> dict[str, Calibration]:
        """The fit to the first half of the runs."""
        return self.fitted_to(self.seen)

    @cached_property
    def whole(self) -> dict[str, Calibration]:
        """The fit to all runs."""
        return self.fitted_to(self.seen | self.checked)

    def contests(self, calibrations: dict[str, Calibration], runs: set[str] | None = None) -> list[Contest]:
        """The contests of some runs, or of all; each is kept."""
        key = (tuple(calibrations.items()), frozenset(runs or ()))
        if key not in self._contests:
            cells = cells_of([row for row in self.rows if runs is None or row.run in runs])
            self._contests[key] = contests(cells, lambda rows: self.times.seconds(rows, calibrations))
        return self._contests[key]


def _mean(some: Sequence[Contest]) -> str:
    return str(summary(regrets([one.chosen for one in some], [one.best for one in some])))


def _data(study: Study) -> Iterator[list[str]]:
    for system in MACHINES:
        rows = [row for row in study.rows if row.system == system]
        every = [row for row in study.every if row.system == system]
        reasons = kept(every)[1]
        without = Counter(row.norm or row.algorithm for row in rows if described(row) is None and not row.is_default)
        yield [
            system.replace("_", " "),
            str(len({row.run for row in rows})),
            str(len(every)),
            "; ".join(f"{word} {number}" for word, number in reasons.items()) or "none",
            str(sum(described(row) is not None for row in rows)),
            "; ".join(f"{word} {number}" for word, number in sorted(without.items())) or "none",
        ]


def _score_row(name: str, some: Sequence[Contest], seen: Sequence[Contest]) -> list[str]:
    best = [one.best for one in some]
    with_default = [one for one in some if one.cell.default is not None]
    over_all = [one.cell.best for one in with_default]
    known = np.array([correlation(one) for one in some])
    ranked = known[~np.isnan(known)]
    return [
        name,
        str(len(some)),
        _mean(some),
        f"{ranked.mean():.2f}" if len(ranked) else "",
        str(summary(regrets(by_rule(seen, some), best))),
        str(summary(regrets(oracle(some), best))),
        str(summary(regrets([np.exp(np.log(one.measured).mean()) for one in some], best))),
        str(len(with_default)),
        str(summary(regrets([one.chosen for one in with_default], over_all))),
        str(summary(regrets([one.cell.default or 0.0 for one in with_default], over_all))),
    ]


SCORE = (
    "cells of",
    "cells",
    "model",
    "correlation",
    "rule by size",
    "oracle",
    "mean algorithm",
    "cells with default",
    "model, of all",
    "default, of all",
)


def _score(study: Study, kept_back: bool) -> Iterator[list[str]]:
    some = study.contests(shipped() if kept_back else study.half, None if kept_back else study.checked)
    seen = some if kept_back else study.contests(study.half, study.seen)
    yield _score_row("all", some, seen)
    firsts = [one.cell.first for one in some]
    groups: dict[str, list[Contest]] = {}
    for system in MACHINES:
        groups[system.replace("_", " ")] = [one for one in some if one.cell.first.system == system]
    for implementation in sorted({first.implementation for first in firsts}):
        groups[implementation] = [one for one in some if one.cell.first.implementation == implementation]
    for kind in KINDS:
        groups[kind] = [one for one in some if one.cell.first.kind == kind]
    for collective in sorted({first.collective for first in firsts}):
        groups[collective] = [one for one in some if one.cell.first.collective == collective]
    for name, members in groups.items():
        if members:
            yield _score_row(name, members, seen)


def _checks(study: Study) -> Iterator[list[str]]:
    """Yield the regret with other parameters: none fitted, fitted to the first half, and with a machine left out."""
    systems = list(MACHINES)
    tables = {
        "none": study.start,
        "first half": study.half,
        "others' medians of the first half": {
            layer: median_of(study.half, layer.partition("-")[0]) for layer in study.start
        },
    }
    for name, calibrations in tables.items():
        some = study.contests(calibrations, study.checked)
        yield [name, "second half", *_by_system(some, systems)]
        if name == "first half":
            cells = cells_of([row for row in study.rows if row.run in study.checked])
            every = contests(cells, lambda rows: study.times.seconds(rows, study.half), variants=True)
            yield [f"{name}, each variant by itself", "second half", *_by_system(every, systems)]
    yield ["first half", "first half", *_by_system(study.contests(study.half, study.seen), systems)]
    left = {layer: median_of(study.whole, layer.partition("-")[0]) for layer in study.start}
    yield ["others' medians of all runs", "all", *_by_system(study.contests(left), systems)]
    yield ["all runs (the files)", "all", *_by_system(study.contests(study.whole), systems)]


def _by_system(some: Sequence[Contest], systems: Sequence[str]) -> list[str]:
    return [_mean(some), *(_mean([one for one in some if one.cell.first.system == system]) for system in systems)]


def _network(study: Study) -> Iterator[list[str]]:
    for system, name, changes in SWEEPS:
        rows = [row for row in study.rows if row.system == system and row.run in study.checked]
        cells = cells_of(rows)
        found = []
        for words, machine in changes:
            times = Times(study.places, {system: machine})
            some = contests(cells, lambda rows, times=times: times.seconds(rows, study.half))  # type: ignore[misc]
            found.append(f"{words}: {_mean(some)}")
        yield [system.replace("_", " "), name, *found]


def _parameters(study: Study) -> Iterator[list[str]]:
    for layer, one in study.half.items():
        whole = study.whole[layer]
        yield [
            layer.replace("_", " "),
            *(f"{1e6 * one[name]:.2f}" for name in ("call", "host", "near", "group", "far", "message")),
            *(f"{1e-9 / one[name]:.1f}" for name in ("inside", "adapter", "reduce", "copy")),
            f"{1e6 * whole['near']:.2f}, {1e-9 / whole['adapter']:.1f}",
        ]


def _defaults(study: Study) -> Iterator[list[str]]:
    every = told(cells_of(study.rows))
    for collective in [*sorted({one.cell.first.collective for one in every}), "all"]:
        some = [one for one in every if collective in (one.cell.first.collective, "all")]
        telling = [one for one in some if one.agrees is not None]
        agreeing = sum(bool(one.agrees) for one in telling)
        others = Counter(
            f"{one.shown.norm} for {' '.join(filter(None, one.predicted))}"
            for one in telling
            if not one.agrees and one.shown is not None
        )
        yield [
            collective,
            str(len(some)),
            str(len(telling)),
            f"{agreeing / len(telling):.0%}" if telling else "",
            "" if collective == "all" else "; ".join(f"{word} {number}" for word, number in others.most_common(3)),
        ]


def _own(study: Study) -> Iterator[list[str]]:
    known = bands(study.contests(shipped()))
    largest: dict[str, tuple[str, str, int]] = {}
    for row in study.described:
        if row.ranks > largest.get(row.system, ("", "", 0))[2] and row.ranks <= 1024:
            largest[row.system] = (row.system, row.run, row.ranks)
    for one in gains(study.times, list(largest.values()), shipped(), known, SIZES):
        yield [
            one.system.replace("_", " "),
            one.collective,
            str(one.ranks),
            size_name(one.nbytes),
            one.library,
            one.own,
            f"{one.factor:.2f} ({one.low:.2f} .. {one.high:.2f})",
            "yes" if one.is_certain else "no",
        ]


def _tables(study: Study, kept_back: bool) -> Iterator[Table]:
    if kept_back:
        yield "pico score", SCORE, _score(study, True)
        return
    yield "pico data", ("machine", "runs", "rows", "dropped", "described", "without a schedule"), _data(study)
    yield "pico score", SCORE, _score(study, False)
    systems = [system.replace("_", " ") for system in MACHINES]
    yield "pico checks", ("parameters fitted to", "scored on", "all", *systems), _checks(study)
    units = ("call, us", "host", "near", "group", "far", "message", "inside, GB/s", "adapter", "reduce", "copy")
    yield "pico parameters", ("layer", *units, "near and adapter of the files"), _parameters(study)
    yield "pico network", ("machine", "unknown", "less", "as assumed", "more"), _network(study)
    yield "pico defaults", ("collective", "cells", "telling", "agree", "shown for predicted"), _defaults(study)
    head = ("machine", "collective", "ranks", "bytes", "library's", "topompi's", "gain (80 % band)", "above 1")
    yield "pico own", head, _own(study)


def _fit(study: Study, folder: Path) -> int:
    for path in write_machines(study.whole, study.described, folder):
        print(path)
    return 0


def main(arguments: Sequence[str]) -> int:
    """Print the tables, or with the word ``fit`` write the files of machines.

    :param arguments: arguments after the source's name.
    :returns: exit code; 0 with a note if the data are absent.
    """
    parser = argparse.ArgumentParser(prog="python -m studies pico", description=__doc__)
    parser.add_argument("--fit", action="store_true", help="write the files of machines")
    parser.add_argument("--data", type=Path, help="file of measured cells; scored with the files of all machines")
    parser.add_argument("--places", type=Path, default=DATA / "allocations.csv.xz", help="file of allocations")
    parser.add_argument("--machines", type=Path, default=FOLDER, help="folder into which fit writes")
    words = ["--fit", *arguments[1:]] if arguments[:1] == ["fit"] else arguments
    given, rest = parser.parse_known_args(words)
    data = given.data or DATA / "open.csv.xz"
    for path in (data, given.places):
        if not path.exists():
            print(f"studies pico: skipped: no data at {path}", file=sys.stderr)
            return 0
    study = Study(data, given.places)
    if given.fit:
        return _fit(study, given.machines)
    return show_many(
        "pico",
        "pico.md",
        lambda quick: _tables(study, given.data is not None),
        rest,
        lambda folder: draw_regrets(study.contests(study.half, study.checked), folder / "pico-regrets.svg"),
    )
