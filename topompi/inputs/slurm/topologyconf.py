"""A reader of Slurm's ``topology.conf``: switches with their nodes or child switches, or blocks of nodes."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from ...errors import SourceError
from ..files import InputFile
from ..hostlist import expand
from .switches import Note, Problem, SwitchRow, counted, no_note
from .topologyblocks import Aggregate, aggregated, join_blocks

__all__ = ["NAME", "logical_lines", "read_switches", "recognise"]

NAME = "Slurm topology.conf or what scontrol show topology prints"

_FIRST_KEY = re.compile(r"^[ \t]*(?:switchname|blockname|ringname|torusname)\s*=", re.IGNORECASE | re.MULTILINE)
_KEY = r"[A-Za-z]+\s*="
# A value may be absent: sites write "Nodes=" for switches of nodes to come, and scontrol prints it.
_PAIR = re.compile(rf'([A-Za-z]+)\s*=\s*(?:"([^"]*)"|(?!{_KEY})([^\s"]+)|)(?:\s+|$|(?={_KEY}))')
_INCLUDE = re.compile(r"include\s+(\S+)", re.IGNORECASE)
_NOTHING = "(null)"  # scontrol's word for an empty list
_KEYS = {
    "switchname": {"nodes", "switches", "linkspeed", "level"},
    "blockname": {"nodes", "blockindex", "blocksize"},
    "aggregatedblock": {"nodes", "blockindex", "blocksize"},
    "blocksizes": set(),
    "allowemptyswitch": set(),
    "ringname": {"nodes", "ringsize"},
    "torusname": {"nodes", "dims", "placementdims", "anchors"},
}
Lines = Sequence[tuple[str, dict[str, str]]]  # ``file:line`` and the values of each line

_UNREAD = {"ringname": "a ring", "torusname": "a torus"}
_KEYS_SHOWN = {
    "switchname": "SwitchName, Nodes, Switches or LinkSpeed",
    "blockname": "BlockName or Nodes",
}


def recognise(head: str) -> bool:
    """Return whether a line of the text starts with the key of one of Slurm's topologies, such as ``SwitchName=``."""
    return _FIRST_KEY.search(head) is not None


def read_switches(texts: Sequence[InputFile], problem: Problem, note: Note = no_note) -> tuple[list[SwitchRow], bool]:
    """Read the switches of a ``topology.conf``; return them, and whether a switch may have no hosts and children.

    Several texts count as one file; ``Include`` names another of them. ``LinkSpeed`` is ignored, because its unit is
    the site's own choice (Slurm's manual: "arbitrary"). A block becomes a leaf switch, and several blocks are below one
    switch named ``topology/block``. Between them are the blocks that ``AggregatedBlock`` lists, or that Slurm makes by
    ``BlockSizes``. The output of ``scontrol show topology`` is read, too; in it, a switch with
    ``Level`` and child switches also lists all nodes below it, which are ignored. If the file defines other kinds of
    topologies besides switches, only the switches are read, and a note names the others, because ``slurm.conf`` decides
    which kind Slurm uses.

    :param texts: the files.
    :param problem: function that is called with each error, which names file and line.
    :param note: function that is called with remarks on lines that are left out.
    :raises SourceError: if there is no switch and no block.
    """
    names = {os.path.basename(text.name) for text in texts}
    lines = [
        (place, _parse_line(place, line, problem))
        for text in texts
        for place, line in logical_lines(text)
        if not _is_include(place, line, names, problem)
    ]
    rows, blocks = (list(counted(_rows_of(kind, lines, problem))) for kind in ("switchname", "blockname"))
    allow_empty = any(values.get("allowemptyswitch", "").lower() in ("yes", "true", "1") for _, values in lines)
    others = {kind: place for place, values in reversed(lines) for key, kind in _UNREAD.items() if key in values}
    if rows and blocks:
        others["blocks"], blocks = blocks[0].place, []
    if not rows and not blocks:
        raise SourceError(_nothing(texts[0].name, others))
    for kind, place in others.items():
        note(f"{place}: {kind}, left out, because the file has {'blocks' if blocks else 'a tree'}, too")
    rows += join_blocks(blocks, _aggregates(lines, [block.name for block in blocks], problem), problem)
    return rows, allow_empty


def _aggregates(lines: Lines, blocks: Sequence[str], problem: Problem) -> list[Aggregate]:
    """Return the aggregated blocks that the lines list; if they list none, those that ``BlockSizes`` makes."""
    found = []
    for place, values in lines:
        try:
            if "aggregatedblock" in values:
                found.append(Aggregate(tuple(expand(values["aggregatedblock"])), place))
        except SourceError as error:
            problem(SourceError(f"{place}: {error}"))
    sizes = next(((place, values["blocksizes"]) for place, values in lines if "blocksizes" in values), None)
    if sizes is None or found or not blocks:
        return found
    return list(aggregated(blocks, sizes[1].split(","), sizes[0], problem))


def _is_include(place: str, line: str, names: Collection[str], problem: Problem) -> bool:
    """Whether a line includes a file; a file that is not among those that are read is reported.

    :param place: ``file:line`` of the line.
    :param line: the line.
    :param names: names of the files that are read, without folders.
    :param problem: function that is called with the error.
    """
    match = _INCLUDE.fullmatch(line)
    if match is not None and os.path.basename(match[1]) not in names:
        message = f"expecting {match[1]}, which this file includes, got none: give a folder with both"
        problem(SourceError(f"{place}: {message}"))
    return match is not None


def _nothing(name: str, others: Mapping[str, str]) -> str:
    """Make the message that a file has no switches and no blocks.

    :param name: name of the file.
    :param others: kind -> ``file:line`` of the topologies that are not read.
    """
    if not others:
        return f"{name}: expecting SwitchName or BlockName lines, got none"
    kind, place = next(iter(others.items()))
    reason = "Slurm alone knows how to use: write its nodes as a tree (SwitchName)"
    if kind == _UNREAD["torusname"]:
        reason = "is printed without coordinates: give Slurm's topology.yaml"
    return f"{place}: expecting SwitchName or BlockName lines, got {kind}, which {reason}"


def logical_lines(text: InputFile) -> Iterator[tuple[str, str]]:
    """Yield the place, ``file:line``, and the text of each line without its comment.

    A line that ends with a backslash is joined with the next line, and has the place of the first of them. A blank
    separates the joined lines, except next to a comma, where it would split a list.
    """
    start, joined = 0, ""
    for number, line in text.lines():
        start = start or number
        line = line.partition("#")[0].rstrip()
        continued = line.endswith("\\")
        part = line[:-1] if continued else line
        joined += part if joined.endswith(",") or part.startswith(",") or not joined else f" {part}"
        if not continued:
            if joined.strip():
                yield f"{text.name}:{start}", joined.strip()
            start, joined = 0, ""
    if joined.strip():
        yield f"{text.name}:{start}", joined.strip()


def _parse_line(place: str, line: str, problem: Problem) -> dict[str, str]:
    """Parse a line into its values by lower-case key; keys that Slurm does not define are reported and left out."""
    values: dict[str, str] = {}
    position = 0
    while position < len(line):
        match = _PAIR.match(line, position)
        if not match:
            problem(SourceError(f"{place}: expecting KEY=VALUE, got {line[position : position + 40]!r}"))
            break
        key, position = match[1].lower(), match.end()
        if key in values:
            problem(SourceError(f"{place}: expecting {match[1]} once, got it twice"))
        else:
            value = match[2] if match[2] is not None else match[3]
            values[key] = "" if value in (None, _NOTHING) else value
    _check_keys(place, values, problem)
    return values


def _check_keys(place: str, values: dict[str, str], problem: Problem) -> None:
    first = next((key for key in _KEYS if key in values), None)
    for key in [key for key in values if first is None or key not in {first} | _KEYS[first]]:
        shown = _KEYS_SHOWN.get(first or "", "a line with SwitchName or BlockName")
        problem(SourceError(f"{place}: expecting {shown}, got {key}"))
        del values[key]


def _rows_of(kind: str, lines: Iterable[tuple[str, dict[str, str]]], problem: Problem) -> Iterator[SwitchRow]:
    return (row for place, values in lines if kind in values for row in _make_rows(place, values, problem))


def _make_rows(place: str, values: dict[str, str], problem: Problem) -> list[SwitchRow]:
    """Return a list of the one switch that a line defines; empty if its name or a list is malformed."""
    try:
        names = expand(values.get("switchname", values.get("blockname", "")))
        if len(names) != 1:
            raise SourceError(f"expecting one switch name, got {len(names)}")
        nodes, switches = expand(values.get("nodes", "")), expand(values.get("switches", ""))
        if "level" in values and switches:
            nodes = []
    except SourceError as error:
        problem(SourceError(f"{place}: {error}"))
        return []
    return [SwitchRow(names[0], tuple(nodes), tuple(switches), place)]
