"""A ledger of projects: budgets, charges with what they rest on, and refunds, in one SQLite file.

Amounts are kept in millionths of a service unit, as whole numbers. A charge is one transaction with a unique key of job
and rule, so that repeated and concurrent charges of a job count once. Entries are never changed or deleted.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from ..errors import ColocationError

__all__ = ["Balance", "Charge", "Ledger"]

VERSION = 1
UNIT = 1_000_000  # of a service unit
PATIENCE = 60.0  # seconds that a writer waits for the others
LARGEST = 2**62
_TABLES = """
CREATE TABLE project (name TEXT PRIMARY KEY) STRICT;
CREATE TABLE budget (
    project TEXT NOT NULL REFERENCES project, key TEXT NOT NULL, amount INTEGER NOT NULL, at REAL NOT NULL,
    UNIQUE (project, key)) STRICT;
CREATE TABLE charge (
    id INTEGER PRIMARY KEY, project TEXT NOT NULL REFERENCES project, job TEXT NOT NULL, rule TEXT NOT NULL,
    user TEXT NOT NULL, amount INTEGER NOT NULL CHECK (amount >= 0), basis TEXT NOT NULL, at REAL NOT NULL,
    UNIQUE (job, rule)) STRICT;
CREATE TABLE refund (
    charge INTEGER NOT NULL REFERENCES charge, key TEXT NOT NULL, amount INTEGER NOT NULL CHECK (amount > 0),
    reason TEXT NOT NULL, at REAL NOT NULL, UNIQUE (charge, key)) STRICT;
"""
_CHARGE = "INSERT OR IGNORE INTO charge (project, job, rule, user, amount, basis, at) VALUES (?, ?, ?, ?, ?, ?, ?)"
_CHARGES = """
SELECT job, rule, project, user, amount, basis, at,
    (SELECT COALESCE(SUM(amount), 0) FROM refund WHERE charge = charge.id)
FROM charge WHERE (?1 IS NULL OR project = ?1) ORDER BY id
"""
_BALANCES = """
SELECT name,
    (SELECT COALESCE(SUM(amount), 0) FROM budget WHERE project = name),
    (SELECT COALESCE(SUM(amount), 0) FROM charge WHERE project = name),
    (SELECT COALESCE(SUM(refund.amount), 0) FROM refund JOIN charge ON charge.id = refund.charge WHERE project = name)
FROM project ORDER BY name
"""


@dataclass(frozen=True)
class Charge:
    """A charge in the ledger.

    :param job: name of the job.
    :param rule: rule that gave the price.
    :param project: project that paid.
    :param user: user who ran the job.
    :param amount: service units.
    :param refunded: service units given back so far.
    :param basis: facts that the price rests on.
    :param at: second since 1970 of the charge.
    """

    job: str
    rule: str
    project: str
    user: str
    amount: float
    refunded: float
    basis: Mapping[str, Any]
    at: float


@dataclass(frozen=True)
class Balance:
    """The account of a project, in service units.

    :param project: name of the project.
    :param budget: sum of its budgets.
    :param charged: sum of its charges.
    :param refunded: sum of its refunds.
    """

    project: str
    budget: float
    charged: float
    refunded: float

    @property
    def left(self) -> float:
        """Budget that is left; negative if more was charged."""
        return round(UNIT * (self.budget - self.charged + self.refunded)) / UNIT


class Ledger:
    """An open ledger; a context that closes it.

    Writers in other processes wait for each other, up to a minute. A transaction is on disk when a method returns, and
    a process that dies in one leaves no part of it.

    :param path: path of the file, which is made if it does not exist.
    :raises ColocationError: if the file is not a ledger, or has another version.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        try:
            self._base = sqlite3.connect(self.path, timeout=PATIENCE, isolation_level=None)
            self._write_ahead()
            self._base.execute("PRAGMA synchronous = FULL")
            self._base.execute("PRAGMA foreign_keys = ON")
            self._prepare()
        except sqlite3.Error as problem:
            raise ColocationError(f"{self.path}: expecting a ledger, got {problem}") from problem

    def _write_ahead(self) -> None:
        """Switch a new file to a write-ahead log; SQLite does not wait by itself for another that switches it."""
        until = time.monotonic() + PATIENCE
        while True:
            try:
                self._base.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as problem:
                if problem.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                    raise
            time.sleep(0.01)

    def _prepare(self) -> None:
        with self._transaction() as base:
            version = base.execute("PRAGMA user_version").fetchone()[0]
            if version == 0 and not base.execute("SELECT COUNT(*) FROM sqlite_schema").fetchone()[0]:
                for statement in _TABLES.split(";"):
                    base.execute(statement)
                base.execute(f"PRAGMA user_version = {VERSION}")
            elif version != VERSION:
                raise ColocationError(f"{self.path}: expecting a ledger of version {VERSION}, got {version}")

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Hold the lock of all writers from the first statement on; write all or nothing."""
        self._base.execute("BEGIN IMMEDIATE")
        try:
            yield self._base
        except BaseException:
            self._base.execute("ROLLBACK")
            raise
        self._base.execute("COMMIT")

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._base.close()

    def grant(self, project: str, key: str, amount: float) -> bool:
        """Give a project a budget, and make the project if it is new; return False if the key was granted before.

        :param project: name of the project.
        :param key: name of the budget, unique in the project, for example ``2027``.
        :param amount: service units; negative to take a part back.
        :raises ColocationError: if the key was granted with another amount.
        """
        with self._transaction() as base:
            base.execute("INSERT OR IGNORE INTO project VALUES (?)", (project,))
            row = (project, key, _whole(amount), time.time())
            if base.execute("INSERT OR IGNORE INTO budget VALUES (?, ?, ?, ?)", row).rowcount:
                return True
            before = base.execute("SELECT amount FROM budget WHERE project = ? AND key = ?", row[:2]).fetchone()[0]
            return _repeated(f"budget {key} of {project}", before, row[2])

    def charge(
        self,
        project: str,
        job: str,
        rule: str,
        amount: float,
        *,
        user: str = "",
        basis: Mapping[str, Any] = MappingProxyType({}),
    ) -> bool:
        """Charge a job; return False, and change nothing, if the job was charged by this rule before.

        A project may go below zero: the job has run.

        :param project: name of the project that pays.
        :param job: name of the job, unique for all time: Slurm's numbers start again after a reset of its database.
        :param rule: rule that gave the price.
        :param amount: service units, 0 or more.
        :param user: user who ran the job.
        :param basis: facts that the price rests on, in JSON's types.
        :raises ColocationError: if the project is unknown, the amount negative, or the job was charged to another
            project or with another amount.
        """
        units = _whole(amount)
        if units < 0:
            raise ColocationError(f"charge of job {job}: expecting 0 or more, got {amount!r}")
        text = json.dumps(dict(basis), sort_keys=True, allow_nan=False)
        with self._transaction() as base:
            self._known(project)
            row = (project, job, rule, user, units, text, time.time())
            if base.execute(_CHARGE, row).rowcount:
                return True
            key = "SELECT project, amount FROM charge WHERE job = ? AND rule = ?"
            before = base.execute(key, (job, rule)).fetchone()
            return _repeated(f"charge of job {job} by {rule}", before, (project, units))

    def _known(self, project: str) -> None:
        if not self._base.execute("SELECT 1 FROM project WHERE name = ?", (project,)).fetchone():
            raise ColocationError(f"{self.path}: expecting a project with a budget, got {project!r}")

    def refund(self, job: str, rule: str, key: str, amount: float, reason: str) -> bool:
        """Give back a part of a charge; return False if the key was refunded before.

        :param job: name of the job.
        :param rule: rule of the charge.
        :param key: name of the refund, unique for the charge.
        :param amount: service units; all refunds together at most the charge.
        :param reason: words for the user.
        :raises ColocationError: if there is no charge, it is smaller than its refunds, or the key has another amount.
        """
        units, what = _whole(amount), f"refund {key} of job {job} by {rule}"
        with self._transaction() as base:
            found = base.execute("SELECT id, amount FROM charge WHERE job = ? AND rule = ?", (job, rule)).fetchone()
            if found is None:
                raise ColocationError(f"{what}: expecting a charge, got none")
            number, charged = found
            before = dict(base.execute("SELECT key, amount FROM refund WHERE charge = ?", (number,)).fetchall())
            if key in before:
                return _repeated(what, before[key], units)
            left = charged - sum(before.values())
            if not 0 < units <= left:
                raise ColocationError(f"{what}: expecting above 0 and at most {left / UNIT:g}, got {amount!r}")
            base.execute("INSERT INTO refund VALUES (?, ?, ?, ?, ?)", (number, key, units, reason, time.time()))
            return True

    def balances(self) -> list[Balance]:
        """Return the account of each project, by name."""
        rows = self._base.execute(_BALANCES).fetchall()
        return [Balance(name, *(value / UNIT for value in values)) for name, *values in rows]

    def charges(self, project: str | None = None) -> list[Charge]:
        """Return the charges of a project, or of all, in the order in which they were made."""
        rows = self._base.execute(_CHARGES, (project,)).fetchall()
        return [
            Charge(job, rule, of, user, amount / UNIT, refunded / UNIT, json.loads(basis), at)
            for job, rule, of, user, amount, basis, at, refunded in rows
        ]


def _whole(amount: float) -> int:
    """Return millionths of a service unit, rounded."""
    if not abs(amount) < LARGEST / UNIT:  # false for NaN, too
        raise ColocationError(f"amount: expecting a number of service units, got {amount!r}")
    return round(amount * UNIT)


def _repeated(what: str, before: object, now: object) -> bool:
    """Return False if an entry is there already; a different one under its key is an error."""
    if before != now:
        raise ColocationError(f"{what}: expecting the entry that is there, {before!r} (millionths), got {now!r}")
    return False
