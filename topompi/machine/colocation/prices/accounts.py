"""A ledger of projects: budgets, charges with what they rest on, and refunds, in one SQLite file.

Amounts are kept in millionths of a service unit, as whole numbers. An entry is one transaction with a unique key, so
that repeated and concurrent charges of a job count once. Entries are never changed or deleted: each has a digest of its
content and of the digest before it, so that a later change of any entry is seen.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from ....guard import intrusion
from ....inputs.appending import open_growing
from ....inputs.jsontext import parse_json
from ..errors import ColocationError

__all__ = ["Balance", "Charge", "Ledger"]

VERSION = 2
UNIT = 1_000_000  # of a service unit
PATIENCE = 60.0  # seconds that a writer waits for the others
LARGEST = 2**62
LONGEST = 1000  # characters of a name
_TABLES = (
    """CREATE TABLE entry (
    number INTEGER PRIMARY KEY, kind TEXT NOT NULL CHECK (kind IN ('budget', 'charge', 'refund')),
    project TEXT NOT NULL, job TEXT NOT NULL, rule TEXT NOT NULL, key TEXT NOT NULL, user TEXT NOT NULL,
    amount INTEGER NOT NULL, basis TEXT NOT NULL, at REAL NOT NULL, digest TEXT NOT NULL) STRICT""",
    "CREATE UNIQUE INDEX once ON entry (kind, job, rule, key, CASE kind WHEN 'budget' THEN project ELSE '' END)",
    "CREATE TRIGGER keep BEFORE UPDATE ON entry BEGIN SELECT RAISE(ABORT, 'entries are never changed'); END",
    "CREATE TRIGGER hold BEFORE DELETE ON entry BEGIN SELECT RAISE(ABORT, 'entries are never deleted'); END",
)
_SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name"
_COLUMNS = "kind, project, job, rule, key, user, amount, basis, at, number, digest"
_ENTRIES = f"SELECT {_COLUMNS} FROM entry ORDER BY number"
_FOUND = "SELECT project, amount FROM entry WHERE kind = ? AND job = ? AND rule = ? AND key = ?"


class _Entry(NamedTuple):
    """An entry without its number and its digest. A budget has no job and no rule; a charge has no key."""

    kind: str
    project: str
    job: str
    rule: str
    key: str
    user: str
    amount: int
    basis: str
    at: float

    def digest(self, number: int, before: str) -> str:
        """The digest of this entry, its number, and the digest of the entry before it."""
        return hashlib.sha256(json.dumps([before, number, *self]).encode()).hexdigest()


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
    basis: Mapping[str, object]
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
    a process that dies in one leaves no part of it. Every transaction compares the file's whole schema first, so that
    no trigger of somebody else runs.

    :param path: path of the file, which is made, readable by its owner alone, if it does not exist.
    :raises ColocationError: if the file is not a ledger, has another version, is a link, or if other users may replace
        it.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        if self.path != ":memory:":
            _require_private(self.path)
        with self._translated():
            self._base = sqlite3.connect(self.path, timeout=PATIENCE, isolation_level=None)
        try:
            with self._translated():
                self._write_ahead()
                self._base.execute("PRAGMA synchronous = FULL")
            with self._transaction():
                pass
        except BaseException:
            self._base.close()
            raise

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Replace SQLite's errors, and those of words that it cannot hold, by our own."""
        try:
            yield
        except (sqlite3.Error, UnicodeError, OverflowError) as problem:
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

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Hold the lock of all writers from the first statement on; write all or nothing."""
        with self._translated():
            self._base.execute("BEGIN IMMEDIATE")
            try:
                self._prepare()
                yield self._base
            except BaseException:
                self._base.execute("ROLLBACK")
                raise
            self._base.execute("COMMIT")

    def _prepare(self) -> None:
        """Make the tables of a new file; refuse another version, and any table or trigger that is not the ledger's."""
        version = self._base.execute("PRAGMA user_version").fetchone()[0]
        found = self._base.execute(_SCHEMA).fetchall()
        if version == 0 and not found:
            for statement in _TABLES:
                self._base.execute(statement)
            self._base.execute(f"PRAGMA user_version = {VERSION}")
        elif version != VERSION:
            raise ColocationError(f"{self.path}: expecting a ledger of version {VERSION}, got {version}")
        elif found != _own_schema():
            foreign = ", ".join(f"{kind} {name}" for kind, name, *_ in sorted(set(found) ^ set(_own_schema()), key=str))
            raise ColocationError(f"{self.path}: expecting the tables of a ledger, got others: {foreign}")

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._base.close()

    @staticmethod
    def _append(base: sqlite3.Connection, entry: _Entry) -> None:
        """Add an entry with its number and digest."""
        last = base.execute("SELECT number, digest FROM entry ORDER BY number DESC LIMIT 1").fetchone()
        number, before = last or (0, "")
        base.execute(
            f"INSERT INTO entry ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*entry, number + 1, entry.digest(number + 1, before)),
        )

    def grant(self, project: str, key: str, amount: float) -> bool:
        """Give a project a budget, and make the project if it is new; return False if the key was granted before.

        :param project: name of the project.
        :param key: name of the budget, unique in the project, for example ``2027``.
        :param amount: service units; negative to take a part back.
        :raises ColocationError: if the key was granted with another amount.
        """
        units = _whole(amount)
        entry = _Entry("budget", _name(project, "project"), "", "", _name(key, "budget"), "", units, "", time.time())
        with self._transaction() as base:
            query = "SELECT amount FROM entry WHERE kind = 'budget' AND project = ? AND key = ?"
            before = base.execute(query, (project, key)).fetchone()
            if before is not None:
                return _repeated(f"budget {key} of {project}", before[0], units)
            self._append(base, entry)
            return True

    def charge(
        self,
        project: str,
        job: str,
        rule: str,
        amount: float,
        *,
        user: str = "",
        basis: Mapping[str, object] = MappingProxyType({}),
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
        for word, what in ((project, "project"), (job, "job"), (rule, "rule")):
            _name(word, what)
        words = (project, job, rule, "", _name(user, "user", least=0))
        entry = _Entry("charge", *words, units, _facts(job, basis), time.time())
        with self._transaction() as base:
            if not base.execute("SELECT 1 FROM entry WHERE kind = 'budget' AND project = ?", (project,)).fetchone():
                raise ColocationError(f"{self.path}: expecting a project with a budget, got {project!r}")
            before = base.execute(_FOUND, ("charge", job, rule, "")).fetchone()
            if before is not None:
                return _repeated(f"charge of job {job} by {rule}", before, (project, units))
            self._append(base, entry)
            return True

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
        words = _name(reason, "reason", least=0)
        with self._transaction() as base:
            charge = base.execute(_FOUND, ("charge", job, rule, "")).fetchone()
            if charge is None:
                raise ColocationError(f"{what}: expecting a charge, got none")
            query = "SELECT key, amount FROM entry WHERE kind = 'refund' AND job = ? AND rule = ?"
            before = dict(base.execute(query, (job, rule)).fetchall())
            if key in before:
                return _repeated(what, before[key], units)
            left = charge[1] - sum(before.values())
            if not 0 < units <= left:
                raise ColocationError(f"{what}: expecting above 0 and at most {left / UNIT:g}, got {amount!r}")
            entry = _Entry("refund", charge[0], job, rule, _name(key, "refund"), "", units, words, time.time())
            self._append(base, entry)
            return True

    def _entries(self) -> list[tuple[_Entry, int, str]]:
        """Return each entry with its number and digest, in the order in which they were made."""
        with self._transaction() as base:
            rows = base.execute(_ENTRIES).fetchall()
        return [(_Entry._make(values), number, digest) for *values, number, digest in rows]

    def verify(self) -> tuple[int, str]:
        """Recompute the digests of all entries; return the number of entries and the last digest.

        Whoever can write the file can write other entries with digests that fit. Their last digest then differs from
        the one that an earlier report shows.

        :raises ColocationError: if an entry is not as it was written, or one is missing; the message names the first.
        """
        count, before = 0, ""
        for entry, number, digest in self._entries():
            count += 1
            if number != count or entry.digest(number, before) != digest:
                wanted = f"entry {count} as it was written"
                raise ColocationError(f"{self.path}: expecting {wanted}, got one that was changed, moved or removed")
            before = digest
        return count, before

    def balances(self) -> list[Balance]:
        """Return the account of each project, by name."""
        kinds = ("budget", "charge", "refund")
        sums: dict[str, dict[str, int]] = {}
        for entry, *_ in self._entries():  # summed in Python, because SQLite's sums overflow at 64 bits
            sums.setdefault(entry.project, dict.fromkeys(kinds, 0))[entry.kind] += entry.amount
        return [Balance(name, *(sums[name][kind] / UNIT for kind in kinds)) for name in sorted(sums)]

    def charges(self, project: str | None = None) -> list[Charge]:
        """Return the charges of a project, or of all, in the order in which they were made."""
        refunded: dict[tuple[str, str], int] = {}
        charges = list[_Entry]()
        for entry, *_ in self._entries():
            if entry.kind == "refund":
                refunded[entry.job, entry.rule] = refunded.get((entry.job, entry.rule), 0) + entry.amount
            elif entry.kind == "charge" and project in (None, entry.project):
                charges.append(entry)
        return [self._charge(one, refunded.get((one.job, one.rule), 0)) for one in charges]

    def _charge(self, one: _Entry, refunded: int) -> Charge:
        basis = parse_json(one.basis, f"{self.path}: job {one.job}", ColocationError)
        amounts = (one.amount / UNIT, refunded / UNIT)
        return Charge(one.job, one.rule, one.project, one.user, *amounts, basis, one.at)


def _require_private(path: str) -> None:
    """Make the ledger's file if it is missing, and refuse one that another user could replace or write."""
    if who := intrusion(str(Path(path).absolute().parent)):
        raise ColocationError(f"{path}: expecting a folder in which nobody else can add or replace files, got {who}")
    os.close(open_growing(path, ColocationError))


@cache
def _own_schema() -> list[tuple[object, ...]]:
    """The rows of ``_SCHEMA`` of a new ledger."""
    base = sqlite3.connect(":memory:")
    for statement in _TABLES:
        base.execute(statement)
    rows = base.execute(_SCHEMA).fetchall()
    base.close()
    return rows


def _whole(amount: float) -> int:
    """Return millionths of a service unit, rounded."""
    if not abs(amount) < LARGEST / UNIT:  # false for NaN, too
        raise ColocationError(f"amount: expecting a number of service units, got {amount!r}")
    return round(amount * UNIT)


def _name(word: str, what: str, least: int = 1) -> str:
    """Return a name that SQLite can hold."""
    if not least <= len(word) <= LONGEST or any(sign == "\0" or "\ud800" <= sign <= "\udfff" for sign in word):
        raise ColocationError(f"{what}: expecting {least} to {LONGEST} characters of Unicode, got {word!r:.60}")
    return word


def _facts(job: str, basis: Mapping[str, object]) -> str:
    """Return the facts of a charge as JSON."""
    try:
        return json.dumps(dict(basis), sort_keys=True, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as problem:
        raise ColocationError(f"charge of job {job}: basis: expecting JSON's types, got others: {problem}") from problem


def _repeated(what: str, before: object, now: object) -> bool:
    """Return False if an entry is there already; a different one under its key is an error."""
    if before != now:
        raise ColocationError(f"{what}: expecting the entry that is there, {before!r} (millionths), got {now!r}")
    return False
