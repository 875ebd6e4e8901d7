"""Bills of the jobs of one node: from the shutter's records and the runs to prices, and into a ledger."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ....inputs.csvtext import csv_rows
from ....inputs.files import read_text
from ..errors import ColocationError
from ..estimates.estimators import NOTHING, Estimate
from ..estimates.nodes import estimate_nodes, stopped_on
from ..estimates.records import Records, groups_of
from .accounts import Ledger
from .rules import Price, Run, price

__all__ = ["Bill", "bill", "charge_all", "is_list", "read_runs"]

_HEAD = 65_536  # characters that are looked at to recognise a list
_NEEDED = ("job", "seconds", "cores")
_COLUMNS = (*_NEEDED, "project", "user", "solo_seconds")


@dataclass(frozen=True)
class Bill:
    """The bill of a job.

    :param run: the run, with the share of time in which the shutter stopped it.
    :param found: estimate of its performance; ``NOTHING`` if it never ran alone in a shutter.
    :param price: what is charged.
    :param usual: price as usual, for comparison.
    """

    run: Run
    found: Estimate
    price: Price
    usual: Price

    @property
    def basis(self) -> dict[str, object]:
        """Facts that the price rests on, in JSON's types."""
        facts: dict[str, object] = {"seconds": self.run.seconds, "stopped": self.run.stopped, "cores": self.run.cores}
        facts |= {"performance": self.price.performance, "raw": self.price.raw}
        facts |= {"price_low": self.price.low, "price_high": self.price.high}
        facts |= {"usual": self.usual.amount, "alone": self.price.undisturbed}
        facts |= {"low": self.found.low, "high": self.found.high}
        facts |= {"estimator": self.found.method, "kept": self.found.kept, "shutters": self.found.total}
        doubt = self.found.doubt if self.found.total else f"{self.found.doubt}, full price"
        why = "; ".join(filter(None, (self.found.fallback, doubt)))
        return facts | ({"why": why} if why else {})


def bill(
    records: Records | Sequence[Records],
    runs: Iterable[Run],
    rate: float,
    rule: str = "poppa",
    method: str = "balanced",
    *,
    seed: int = 0,
) -> list[Bill]:
    """Price each run by the records of its job.

    :param records: log of the shutter of the runs' node, or one log per node; a job may be in several.
    :param runs: completed runs.
    :param rate: service units per core and second.
    :param rule: rule of the price, as in `price`.
    :param method: estimator, as in `estimate`.
    :param seed: seed of the intervals.
    :raises ColocationError: if two runs have one name, or a rule or an estimator is unknown.
    """
    logs = [records] if isinstance(records, Records) else list(records)
    bills, names = list[Bill](), set[str]()
    for run in runs:
        if run.job in names:
            wanted = "one run per job (of an array: JobIDRaw in place of JobID)"
            raise ColocationError(f"job {run.job}: expecting {wanted}, got several")
        names.add(run.job)
        found = NOTHING
        nodes = [groups_of(log, run.job) for log in logs if run.job in log.jobs]
        if nodes:
            found, run = estimate_nodes(nodes, method, seed=seed), replace(run, stopped=stopped_on(nodes))
        bills.append(Bill(run, found, price(run, rate, found, rule), price(run, rate, found, "as-usual")))
    return bills


def charge_all(ledger: Ledger, bills: Sequence[Bill]) -> int:
    """Charge bills to their projects; return the number of those that were not in the ledger yet.

    A crash in between leaves the rest for the next attempt, which charges nothing twice.
    """
    done = 0
    for one in bills:
        run = one.run
        done += ledger.charge(
            run.project, run.job, one.price.rule, one.price.amount, user=run.user, basis=one.basis
        )  # fmt: skip
    return done


def is_list(text: str) -> bool:
    """Return whether a text is a list of runs: CSV whose first line names the columns job, seconds and cores."""
    first = next(iter(csv_rows(text[:_HEAD].splitlines()[:1], "jobs", ColocationError)), (1, []))[1]
    return set(_NEEDED) <= {name.strip() for name in first}


def read_runs(path: str | os.PathLike[str]) -> list[Run]:
    """Read a list of runs: CSV with the columns job, seconds, cores and, if known, project, user and solo_seconds.

    :raises ColocationError: if a line is malformed; the message names file, line and field.
    """
    (first, names), *rows = csv_rows(
        read_text(path, ColocationError, "a list of jobs").splitlines(), str(path), ColocationError
    )
    if len(set(names)) < len(names) or not set(_NEEDED) <= set(names) <= set(_COLUMNS):
        raise ColocationError(f"{path}:{first}: expecting columns of {', '.join(_COLUMNS)}, got {names!r:.200}")
    return [_run(f"{path}:{number}", names, row) for number, row in rows]


def _run(where: str, names: list[str], fields: list[str]) -> Run:
    if len(fields) != len(names):
        raise ColocationError(f"{where}: expecting {len(names)} fields with commas between them, got {len(fields)}")
    row = dict(zip(names, fields, strict=True))
    numbers: dict[str, Any] = {}
    for name, kind in (("seconds", float), ("cores", int), ("solo_seconds", float)):
        text = row.get(name, "").strip()
        if not text and name == "solo_seconds":
            continue
        try:
            numbers[name] = kind(text)
        except ValueError:
            raise ColocationError(f"{where}: {name}: expecting a number, got {text!r}") from None
    try:
        return Run(row["job"].strip(), **numbers, project=row.get("project", ""), user=row.get("user", ""))
    except ColocationError as problem:
        raise ColocationError(f"{where}: {problem}") from problem
