"""Reader of node maps, text files with the leaf switch and the cell (or rack) of each node, one line per node."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ...errors import FabricError, SourceError
from ...inputs import InputFile
from ..discovery import Discovery, Report
from .groups import grouped_fabric

__all__ = ["NAME", "read", "recognise"]

NAME = "node map"
NO_CELL = "no cell"

_PAIRS = re.compile(r"[ \t]*[A-Za-z]+[ \t]+[\w.-]+(?:[ \t]+[A-Za-z]+[ \t]+[\w.-]+)+[ \t]*")


def recognise(head: str) -> bool:
    """Whether a text has a line of alternating keys and values with the keys ``NODE`` and ``SWITCH``."""
    lines = (line for line in head.splitlines() if _PAIRS.fullmatch(line))
    return any({"NODE", "SWITCH"} <= set(line.upper().split()[::2]) for line in lines)


def read(texts: Sequence[InputFile], report: Report) -> Discovery:
    """Read the fabric of a node map, which has lines as ``NODE 0001 RACK 1 CELL 1 SWITCH 10100``.

    Keys come in any order and case. Each node is a host below the leaf switch ``switch<SWITCH>``. The leaf is below
    ``cell<CELL>``, or below ``rack<RACK>`` if the line has no cell. `grouped_fabric` joins the cells pairwise;
    therefore a minimal path, as in a Dragonfly+, crosses 1 switch within a leaf, 3 within a cell, else 4. Hosts keep
    the map's names; `topompi.topology.hostnames` matches them to the names that jobs use.

    :param texts: the node maps.
    :param report: receiver of problems.
    :raises SourceError: if a line is malformed, with file and line.
    :raises FabricError: if a node is repeated or a leaf is in two cells, with file and line.
    """
    leaf_of: dict[str, str] = {}
    group_of: dict[str, str] = {}
    for place, line in (item for text in texts for item in _data_lines(text)):
        values = _parse_line(place, line, report)
        if not values:
            continue
        host, leaf = values["NODE"], f"switch{values['SWITCH']}"
        group = next((f"{key.lower()}{values[key]}" for key in ("CELL", "RACK") if key in values), "")
        if host in leaf_of:
            report.problem(FabricError(f"{place}: host {host} appears twice"))
        elif group_of.get(leaf, group) != group:
            report.problem(
                FabricError(f"{place}: {leaf} is in {group or NO_CELL}, but in {group_of[leaf] or NO_CELL} before")
            )
        else:
            leaf_of[host], group_of[leaf] = leaf, group
    if not leaf_of:
        raise SourceError(f"{texts[0].name}: expecting lines with NODE and SWITCH, got none")
    return Discovery(grouped_fabric(texts[0].name, leaf_of, group_of))


def _data_lines(text: InputFile) -> Iterator[tuple[str, str]]:
    for number, line in text.lines():
        line = line.partition("#")[0].strip()
        if line:
            yield f"{text.name}:{number}", line


def _parse_line(place: str, line: str, report: Report) -> dict[str, str]:
    """Parse one line into its values by upper-case key; empty if the line has a problem.

    :param place: place of the line, ``file:line``.
    :param line: the line without comment.
    :param report: receiver of problems.
    """
    words = line.split()
    values = {key.upper(): value for key, value in zip(words[::2], words[1::2], strict=False)}
    missing = [key for key in ("NODE", "SWITCH") if key not in values]
    if len(words) % 2:
        report.problem(SourceError(f"{place}: expecting pairs of key and value, got {len(words)} words"))
    elif 2 * len(values) < len(words):
        report.problem(SourceError(f"{place}: expecting each key once, got {line[:60]!r}"))
    elif missing:
        report.problem(SourceError(f"{place}: expecting {' and '.join(missing)}, got {line[:60]!r}"))
    else:
        return values
    return {}
