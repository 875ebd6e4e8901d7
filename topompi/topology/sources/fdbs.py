"""Reader of OpenSM's ``opensm.fdbs``, which its ``dump_ucast_routes`` writes: unicast routes and hops by LID."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...errors import SourceError
from ...inputs import InputFile
from ..discovery import Report
from .infiniband import guid
from .lft import SwitchTable

__all__ = ["NAME", "read_tables", "recognise"]

NAME = "OpenSM's unicast routes with hops (opensm.fdbs)"

_HEADER = re.compile(r"\S*dump_ucast_routes: Switch 0x([0-9a-f]{1,16})\s*$", re.IGNORECASE)
_HEAD = re.compile(r"^\S*dump_ucast_routes: Switch 0x", re.MULTILINE)
_ENTRY = re.compile(
    r"0x([0-9a-f]{1,4})\s*:\s*(?:UNREACHABLE|(\d{1,3})\s*:\s*\d{1,3}\s*:\s*(?:yes|No .*)\s*$)", re.IGNORECASE
)


def recognise(head: str) -> bool:
    """Whether the beginning of a text is that of an ``opensm.fdbs`` file."""
    return _HEAD.search(head) is not None


def read_tables(text: InputFile, report: Report) -> Iterator[SwitchTable]:
    """Read the table of each switch, with entries in the form of ``ibroute``; they identify destinations by LID alone.

    A table has no footer, but every table lists all LIDs of the subnet. Therefore a table that ends at a lower LID than
    the others is truncated.

    :param text: the text of the routes.
    :param report: receiver of problems.
    :raises SourceError: (a partial report only records it) for malformed lines and truncated tables.
    """
    tables: list[SwitchTable] = []
    for number, line in text.lines():
        if match := _HEADER.match(line):
            tables.append(SwitchTable(text.name, number, "", guid(match[1]), 0))
        elif not line.strip() or line.startswith("LID "):
            continue
        elif (match := _ENTRY.match(line)) and tables:
            tables[-1].top = int(match[1], 16)
            if match[2] is not None:
                tables[-1].numbers.append(number)
                tables[-1].lines.append(f"0x{match[1].lower()} {match[2]}")
        else:
            wanted = "LID : Port : Hops : Optimal" if tables else "dump_ucast_routes: Switch 0x.."
            report.problem(SourceError(f"{text.name}:{number}: expecting {wanted!r}, got {line.strip()[:80]!r}"))
    last = max((table.top for table in tables), default=0)
    for table in tables:
        if table.top < last:
            message = f"is truncated: expecting LIDs up to {last}, as other switches have, got up to {table.top}"
            report.problem(SourceError(f"{table.place(-1)}: {table} {message}"))
        yield table
