"""Reports of a ledger: CSV of its charges, JSON of all, and an HTML page."""

from __future__ import annotations

import datetime
import html
import io
import json
from collections.abc import Iterable
from dataclasses import asdict
from itertools import chain

from ....inputs.csvtext import write_csv
from ....visible import visible
from .accounts import Charge, Ledger

__all__ = ["to_csv", "to_html", "to_json"]

_COLUMNS = ("job", "rule", "project", "user", "amount", "refunded", "at", "basis")
_STYLE = "body{font-family:sans-serif}td,th{padding:.2em .8em;text-align:right}td:first-child{text-align:left}"


def to_csv(ledger: Ledger, project: str | None = None) -> str:
    """Write the charges of a project, or of all, one per line; ``basis`` is JSON.

    Words that a spreadsheet would take for a formula begin with an apostrophe.
    """
    stream = io.StringIO()
    rows = (
        (one.job, one.rule, one.project, one.user, f"{one.amount:.6f}", f"{one.refunded:.6f}", _time(one), basis)
        for one in ledger.charges(project)
        if (basis := json.dumps(dict(one.basis)))
    )
    write_csv(stream, chain([_COLUMNS], rows))
    return stream.getvalue()


def to_json(ledger: Ledger, project: str | None = None) -> str:
    """Write balances and charges of a project, or of all, with the number of entries and the last digest."""
    entries, digest = ledger.verify()
    balances = [asdict(one) | {"left": one.left} for one in ledger.balances() if project in (None, one.project)]
    charges = [asdict(one) for one in ledger.charges(project)]
    head = {"format": "topompi ledger", "version": 1, "entries": entries, "digest": digest}
    return json.dumps(head | {"projects": balances, "charges": charges})


def to_html(ledger: Ledger, project: str | None = None) -> str:
    """Write a page with the balances and the charges of a project, or of all, without scripts or links."""
    entries, digest = ledger.verify()
    balances = [
        (one.project, *(f"{value:,.2f}" for value in (one.budget, one.charged, one.refunded, one.left)))
        for one in ledger.balances()
        if project in (None, one.project)
    ]
    charges = [
        (one.job, one.project, one.user, one.rule, f"{one.amount:,.2f}", f"{one.refunded:,.2f}", _why(one), _time(one))
        for one in ledger.charges(project)
    ]
    tables = _table(("project", "budget", "charged", "refunded", "left"), balances)
    tables += _table(("job", "project", "user", "rule", "charged", "refunded", "rests on", "at"), charges)
    head = f'<meta charset="utf-8"><title>Accounts</title><style>{_STYLE}</style>'
    body = (
        f"<h1>Accounts, in service units</h1>{tables}<p>Entries: {entries:,}. Digest of the last entry: {digest or '-'}"
    )
    return f"<!DOCTYPE html><html lang=en><head>{head}</head><body>{body}</body></html>\n"


def _why(charge: Charge) -> str:
    facts = charge.basis.items()
    return ", ".join(f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}" for key, value in facts)


def _time(charge: Charge) -> str:
    return datetime.datetime.fromtimestamp(charge.at, datetime.UTC).isoformat(timespec="seconds")


def _table(names: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
    lines = ("".join(f"<td>{html.escape(visible(cell))}</td>" for cell in row) for row in rows)
    return f"<table><tr>{head}</tr>" + "".join(f"<tr>{line}</tr>" for line in lines) + "</table>"
