"""The last events of the bridge's log, newest first."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import islice

from ....errors import SourceError
from ....inputs import parse_json
from ....views.picture.names import cut
from .markup import LONG, bad, paragraph, text
from .words import LEFT, span_words

__all__ = ["events"]

MOST_EVENTS = 60  # lines of the log
LONGEST = 160  # letters of a field
_SENTENCES = ("why", "error", "words")  # fields that are understood without their names


def events(lines: Sequence[str], now: int) -> str:
    """Return a table of the events of a log as HTML.

    :param lines: lines of the log, the newest last.
    :param now: present time in seconds since 1970.
    """
    found = [_event(line, now) for line in lines if line.strip()]
    if not found:
        return paragraph("The bridge's log is empty.")
    written = "".join(islice(reversed(found), MOST_EVENTS))
    return f"<table><thead><tr><th>age<th>event<th>details</tr></thead><tbody>{written}</tbody></table>"


def _event(line: str, now: int) -> str:
    """Return a row of the log; a line that is no event of a daemon's log is shown as it is."""
    try:
        fields = parse_json(line, "log", SourceError)
        moment, level, event = (str(fields.pop(name)) for name in ("time", "level", "event"))
    except (SourceError, KeyError, TypeError, AttributeError):
        return f"<tr><td><td><td>{text(cut(line.strip(), LONGEST))}</tr>"
    others = {name: _plain(value) for name, value in fields.items() if name != "traceback"}
    words = (LEFT.get(value, value) if name in _SENTENCES else f"{name} {value}" for name, value in others.items())
    details = "; ".join(cut(one, LONGEST) for one in words)
    look = bad(level in ("warning", "error", "critical"))
    return f'<tr{look}><td title="{text(moment)}">{text(_ago(moment, now))}<td>{text(event)}<td>{text(details)}</tr>'


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _ago(moment: str, now: int) -> str:
    try:
        found = datetime.fromisoformat(moment)
        return span_words(now - int(found.replace(tzinfo=found.tzinfo or UTC).timestamp()))
    except (ValueError, OverflowError):
        return cut(moment, LONG)
