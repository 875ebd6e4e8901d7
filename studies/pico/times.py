"""Predicted times of measured algorithms, and how they depend on the parameters of the cost model.

The cost model is piecewise linear in its parameters, and twice the parameters give twice the time. A time is therefore
the sum of its derivatives times the parameters. A derivative says how often a parameter stands on the critical path.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topompi.schedules import Network, Schedule
from topompi.schedules.analysis.cost import cost
from topompi.schedules.analysis.model import Model

from .algorithms import Described, described
from .data import Row
from .machines import Allocation, Machine, network_on

__all__ = ["NAMES", "START", "Calibration", "Times", "layer_of", "seconds_of"]

Floats = NDArray[np.float64]
# Parameters: seconds of a call; start-up inside a host, on one leaf switch, what a group and another group add to it;
# processor time of a further message; seconds per byte inside a host and between hosts, of reductions and of copies.
NAMES = ("call", "host", "near", "group", "far", "message", "inside", "adapter", "reduce", "copy")
_PLACE = {name: place for place, name in enumerate(NAMES)}
STEP = 1e-3  # relative step of derivatives
SAMPLED = 1 << 13  # messages of a long series of steps that are evaluated
MORE = 1 << 16  # the same for collectives whose root is busy for long
KEPT = 8  # schedules that are kept
VECTORS = ("bcast", "reduce", "allreduce")  # collectives whose schedules divide the whole vector
# Switches crossed by messages on one leaf switch, in one group, and between groups; on a torus by next neighbours, one
# place further on, and eleven switches, from which costs go on in a line.
LEVELS = {"fugaku": (2, 3, 11), "mare_nostrum": (1, 3, 5)}


@dataclass(frozen=True)
class Calibration:
    """Parameters of the cost model for a machine, in seconds and seconds per byte.

    :param values: a value for each of `NAMES`.
    """

    values: tuple[float, ...]

    def __getitem__(self, name: str) -> float:
        return self.values[_PLACE[name]]

    def with_value(self, name: str, value: float) -> Calibration:
        """A copy with another value of a parameter."""
        values = list(self.values)
        values[_PLACE[name]] = value
        return Calibration(tuple(values))

    def model(self, system: str) -> Model:
        """The cost model on a machine's network."""
        near = self["near"]
        starts = (self["host"], near, near + self["group"], near + self["group"] + self["far"])
        costs = (self["inside"], *(self["adapter"],) * 3)
        return Model((0, *LEVELS.get(system, (1, 3, 4))), starts, costs, self["message"], t_r=self["reduce"])


# Where every fit begins, and what it is held to where the data say nothing.
START = Calibration((5e-6, 1e-6, 2e-6, 0.3e-6, 0.5e-6, 0.5e-6, 1 / 8e9, 1 / 20e9, 1 / 8e9, 1 / 8e9))


def layer_of(row: Row) -> str:
    """The name of the calibration that a row belongs to: the machine, and ``utofu`` if the messages are not MPI's."""
    return f"{row.system}-utofu" if row.implementation == "libbine_utofu" else row.system


class Times:
    """Predicted times on the allocations of all machines.

    :param places: allocation of each run and number of ranks.
    :param machines: rates and assumptions by machine, where they are not the default ones.
    """

    def __init__(
        self, places: Mapping[tuple[str, int], Allocation], machines: Mapping[str, Machine] | None = None
    ) -> None:
        self._places, self._machines = places, machines or {}
        self._networks: dict[tuple[str, int], Network] = {}
        self._schedules: dict[tuple[Any, ...], Schedule] = {}

    def network(self, run: str, ranks: int) -> Network:
        """The network of a run's job."""
        key = (run, ranks)
        if key not in self._networks:
            place = self._places[key]
            self._networks = {key: network_on(place, self._machines.get(place.system))}
        return self._networks[key]

    def _schedule(self, row: Row, found: Described) -> Schedule:
        key = (row.run, row.ranks, found.structure)
        if key not in self._schedules:
            if len(self._schedules) >= KEPT:
                self._schedules.clear()
            self._schedules[key] = found.schedule(self.network(*key[:2]), self._places[key[:2]].grid)
        return self._schedules[key]

    def _evaluate(self, row: Row, found: Described, calibration: Calibration) -> float:
        """The predicted seconds of the messages and reductions."""
        schedule = self._schedule(row, found)
        nbytes = row.nbytes if row.collective in VECTORS else row.block
        most = max(MORE if row.collective in ("gather", "scatter") else SAMPLED, 2 * row.ranks)
        network, model = self.network(row.run, row.ranks), calibration.model(row.system)
        return cost(schedule, network, model, nbytes / schedule.blocks, slices=found.slices, most=most).seconds

    def _wanted(self, row: Row) -> list[str]:
        """The parameters on which the time of a row's messages may depend."""
        spread = self.network(row.run, row.ranks).num_hosts < row.ranks
        unused = {"call", "copy"} | ({"reduce"} if row.kind != "reductions" else set())
        return [name for name in NAMES if name not in unused | (set() if spread else {"host", "inside"})]

    def _terms(self, row: Row, found: Described, calibration: Calibration, every: bool) -> Floats:
        """The derivatives of the time of messages and reductions.

        If not every derivative is wanted, that of ``message`` stands for all but the reductions'.
        """
        terms, base = np.zeros(len(NAMES)), self._evaluate(row, found, calibration)
        if every:
            for name in self._wanted(row):
                moved = calibration.with_value(name, calibration[name] * (1 + STEP))
                terms[_PLACE[name]] = (self._evaluate(row, found, moved) - base) / (STEP * calibration[name])
            return terms
        bare = base
        if row.kind == "reductions":
            bare = self._evaluate(row, found, calibration.with_value("reduce", 0.0))
        terms[_PLACE["reduce"]] = (base - bare) / calibration["reduce"]
        terms[_PLACE["message"]] = bare / calibration["message"]
        return terms

    def terms(self, rows: Sequence[Row], calibrations: Mapping[str, Calibration], *, every: bool = True) -> Floats:
        """The derivatives of the times of described rows, shape (rows, parameters).

        :param rows: rows that schedules describe.
        :param calibrations: parameters at which the derivatives are taken, by layer.
        :param every: False for the sum of all but the reductions in place of each derivative, which is faster.
        Cost: one evaluation of ``schedules.analysis.cost`` for each different message and parameter.
        """
        found, known = np.zeros((len(rows), len(NAMES))), dict[tuple[Any, ...], Floats]()
        words = [described(row) for row in rows]

        def key(place: int) -> tuple[Any, ...]:
            row, word = rows[place], words[place]
            assert word is not None  # the caller's part
            return row.run, row.ranks, str(word.structure), row.nbytes, word.slices, layer_of(row)

        for place in sorted(range(len(rows)), key=key):
            row, word = rows[place], words[place]
            assert word is not None  # the caller's part
            if key(place) not in known:
                known = {key(place): self._terms(row, word, calibrations[layer_of(row)], every)}
            found[place] = known[key(place)]
            found[place, _PLACE["call"]] = 1.0
            found[place, _PLACE["near"]] += word.waits
            found[place, _PLACE["message"]] += word.starts
            found[place, _PLACE["copy"]] = word.copies * row.nbytes
        return found

    def seconds(self, rows: Sequence[Row], calibrations: Mapping[str, Calibration]) -> Floats:
        """The predicted seconds of described rows, shape (rows,).

        :param rows: rows that schedules describe.
        :param calibrations: parameters by layer.
        """
        values = np.array([calibrations[layer_of(row)].values for row in rows]).reshape(-1, len(NAMES))
        return seconds_of(rows, self.terms(rows, calibrations, every=False), values)


def seconds_of(rows: Sequence[Row], terms: Floats, values: Floats) -> Floats:
    """The seconds of described rows from derivatives; segments hide the shorter of messages and reductions.

    :param rows: the rows.
    :param terms: derivatives, shape (rows, parameters).
    :param values: parameters, shape (parameters,) or (rows, parameters).
    """
    overlaps = np.array([found.overlaps if (found := described(row)) else 1 for row in rows])
    parts = terms * values
    combined = parts[:, _PLACE["reduce"]]
    others = parts.sum(axis=1) - combined
    hidden = np.maximum(others, combined) + np.minimum(others, combined) / overlaps
    seconds: Floats = np.where(overlaps == 1, others + combined, hidden)
    return seconds
