"""Slurm's ``topology.conf``: switches with their nodes or child switches, or blocks of nodes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ...errors import FabricError, SourceError
from ...inputs import InputFile, current_limits
from ..builder import FabricBuilder
from ..discovery import Discovery, Report
from ..hostlist import expand
from .groups import add_cables

__all__ = ["BLOCK_TOP", "NAME", "SwitchRow", "build_tree", "counted", "join_blocks", "read", "recognise"]

NAME = "Slurm topology.conf or what scontrol show topology prints"
BLOCK_TOP = "topology/block"  # the switch above all blocks; the slash keeps it apart from names that files give

_FIRST_KEY = re.compile(r"^[ \t]*(?:switchname|blockname)\s*=", re.IGNORECASE | re.MULTILINE)
_PAIR = re.compile(r'([A-Za-z]+)\s*=\s*(?:"([^"]*)"|([^\s"]+))(?:\s+|$)')
_KEYS = {
    "switchname": {"nodes", "switches", "linkspeed", "level"},
    "blockname": {"nodes", "blockindex", "blocksize"},
    "aggregatedblock": {"nodes", "blockindex", "blocksize"},
    "blocksizes": set(),
    "allowemptyswitch": set(),
}
_KEYS_SHOWN = {
    "switchname": "SwitchName, Nodes, Switches or LinkSpeed",
    "blockname": "BlockName or Nodes",
}


@dataclass(frozen=True)
class SwitchRow:
    """One switch as a Slurm file defines it.

    :param name: its name, which is its id.
    :param nodes: hosts at the switch.
    :param switches: names of the switches below it.
    :param place: ``file:line`` of the definition.
    """

    name: str
    nodes: tuple[str, ...]
    switches: tuple[str, ...]
    place: str


def recognise(head: str) -> bool:
    """Whether a line starts with ``SwitchName=`` or ``BlockName=``."""
    return _FIRST_KEY.search(head) is not None


def read(texts: Sequence[InputFile], report: Report) -> Discovery:
    """The fabric of a ``topology.conf`` (several texts are read as one file).

    ``LinkSpeed`` has a unit of the site's own choice (Slurm's manual: "arbitrary"), so every rate stays NaN.
    A block is one leaf switch, and several blocks hang below one switch named ``topology/block``;
    ``BlockSizes`` and ``AggregatedBlock`` only say how Slurm may aggregate neighbouring blocks. What
    ``scontrol show topology`` prints is read too: there a switch with ``Level`` names all nodes below it beside its
    child switches, and only these count.

    :raises SourceError, FabricError: with file and line, for what Slurm refuses, and for a host at two leaf
        switches, which Slurm lets pass with a warning.
    """
    lines = [(place, _parse_line(place, line, report)) for text in texts for place, line in _logical_lines(text)]
    rows, blocks = (list(counted(_rows_of(kind, lines, report))) for kind in ("switchname", "blockname"))
    allow_empty = any(values.get("allowemptyswitch", "").lower() in ("yes", "true", "1") for _, values in lines)
    if rows and blocks:
        report.problem(SourceError(f"{blocks[0].place}: expecting SwitchName as in the lines before, got BlockName"))
    rows += join_blocks(blocks)
    if not rows:
        raise SourceError(f"{texts[0].name}: expecting SwitchName or BlockName lines, got none")
    return build_tree(texts[0].name, rows, report, allow_empty)


def _logical_lines(text: InputFile) -> Iterator[tuple[str, str]]:
    """Lines without comments; one that ends with a backslash goes on in the next, and keeps its own place."""
    start, joined = 0, ""
    for number, line in text.lines():
        start = start or number
        line = line.partition("#")[0].rstrip()
        continued = line.endswith("\\")
        joined += line[:-1] + " " if continued else line
        if not continued:
            if joined.strip():
                yield f"{text.name}:{start}", joined.strip()
            start, joined = 0, ""
    if joined.strip():
        yield f"{text.name}:{start}", joined.strip()


def _parse_line(place: str, line: str, report: Report) -> dict[str, str]:
    """The line's values by lower-case key; what does not belong there is reported and left out."""
    values: dict[str, str] = {}
    position = 0
    while position < len(line):
        match = _PAIR.match(line, position)
        if not match:
            report.problem(SourceError(f"{place}: expecting KEY=VALUE, got {line[position : position + 40]!r}"))
            break
        key, position = match[1].lower(), match.end()
        if key in values:
            report.problem(SourceError(f"{place}: expecting {match[1]} once, got it twice"))
        else:
            values[key] = match[2] if match[2] is not None else match[3]
    _check_keys(place, values, report)
    return values


def _check_keys(place: str, values: dict[str, str], report: Report) -> None:
    first = next((key for key in _KEYS if key in values), None)
    for key in [key for key in values if first is None or key not in {first} | _KEYS[first]]:
        shown = _KEYS_SHOWN.get(first or "", "a line with SwitchName or BlockName")
        report.problem(SourceError(f"{place}: expecting {shown}, got {key}"))
        del values[key]


def _rows_of(kind: str, lines: Iterable[tuple[str, dict[str, str]]], report: Report) -> Iterator[SwitchRow]:
    return (row for place, values in lines if kind in values for row in _make_rows(place, values, report))


def counted(rows: Iterable[SwitchRow]) -> Iterator[SwitchRow]:
    """The rows, while their hosts and children together are within the limit of hosts.

    :raises SourceError: beyond it, with file and line; a few bytes, such as ``n[1-99999]``, stand for many names.
    """
    names = 0
    for row in rows:
        names += len(row.nodes) + len(row.switches)
        current_limits().check("hosts", names, row.place, SourceError)
        yield row


def _make_rows(place: str, values: dict[str, str], report: Report) -> list[SwitchRow]:
    """One row, or none if its name or a list is malformed."""
    try:
        names = expand(values.get("switchname", values.get("blockname", "")))
        if len(names) != 1:
            raise SourceError(f"expecting one switch name, got {len(names)}")
        nodes, switches = expand(values.get("nodes", "")), expand(values.get("switches", ""))
        if "level" in values and switches:
            nodes = []
    except SourceError as error:
        report.problem(SourceError(f"{place}: {error}"))
        return []
    return [SwitchRow(names[0], tuple(nodes), tuple(switches), place)]


def join_blocks(blocks: Sequence[SwitchRow]) -> list[SwitchRow]:
    """The blocks as leaf switches, and where there are several one switch above them all."""
    if len(blocks) < 2:
        return list(blocks)
    names = dict.fromkeys(block.name for block in blocks)
    return [*blocks, SwitchRow(BLOCK_TOP, (), tuple(names), blocks[0].place)]


def build_tree(name: str, rows: Iterable[SwitchRow], report: Report, allow_empty: bool = False) -> Discovery:
    """The fabric of switch rows: cables from each switch to its hosts and to its child switches.

    Each host has one adapter of its own name. Ports count from 1 on each switch in the order of the rows: a
    row's hosts, then its children. A switch may have several parents, and the fabric several components.

    :param name: of the fabric.
    :param rows: switches with their hosts and child switches.
    :param report: takes the problems.
    :param allow_empty: a switch may have neither nodes nor child switches.
    :raises FabricError: for a host or switch that appears twice, an unknown child, a cycle.
    Cost: linear in switches, hosts and cables.
    """
    checked = _unique_switches(rows, report)
    if not allow_empty:
        _check_filled(checked, report)
    _check_hosts(checked, report)
    _check_children(checked, report)
    _check_cycles(checked, report)
    builder = FabricBuilder(name, cabled=False)
    for row in checked.values():
        builder.add_switch(row.name, where=row.place)
    for row in checked.values():
        for host in row.nodes:
            builder.add_adapter(host, host, where=row.place)
    add_cables(builder, ((row.name, end) for row in checked.values() for end in row.nodes + row.switches))
    return Discovery(builder.build())


Rows = dict[str, SwitchRow]


def _unique_switches(rows: Iterable[SwitchRow], report: Report) -> Rows:
    unique: Rows = {}
    for row in rows:
        if row.name in unique:
            first = unique[row.name].place
            report.problem(FabricError(f"{row.place}: switch {row.name} appears twice, first at {first}"))
        else:
            unique[row.name] = row
    return unique


def _check_filled(rows: Rows, report: Report) -> None:
    for row in rows.values():
        if not row.nodes and not row.switches:
            report.problem(
                SourceError(f"{row.place}: switch {row.name}: expecting nodes or child switches, got neither")
            )


def _check_hosts(rows: Rows, report: Report) -> None:
    """Leave out hosts that are at another switch already, or that have the name of a switch."""
    leaf: dict[str, SwitchRow] = {}
    for row in rows.values():
        kept = []
        for host in row.nodes:
            if host in rows:
                report.problem(
                    FabricError(f"{row.place}: host {host} has the name of the switch at {rows[host].place}")
                )
            elif host in leaf:
                other = leaf[host]
                report.problem(
                    FabricError(
                        f"{row.place}: host {host} is at switch {row.name},"
                        f" but at switch {other.name} already ({other.place});"
                        f" --partial of topompi topology show and export leaves it at {other.name}"
                    )
                )
            else:
                leaf[host] = row
                kept.append(host)
        rows[row.name] = replace(row, nodes=tuple(kept))


def _check_children(rows: Rows, report: Report) -> None:
    """Leave out child switches that no row defines, and repeated ones."""
    for row in rows.values():
        if row.nodes and row.switches:
            report.problem(SourceError(f"{row.place}: switch {row.name}: expecting nodes or child switches, got both"))
        kept: dict[str, None] = {}
        for child in row.switches:
            if child not in rows:
                report.problem(FabricError(f"{row.place}: child switch {child} of {row.name} is not defined"))
            elif child in kept:
                report.problem(FabricError(f"{row.place}: child switch {child} of {row.name} appears twice"))
            else:
                kept[child] = None
        rows[row.name] = replace(row, switches=tuple(kept))


def _check_cycles(rows: Rows, report: Report) -> None:
    """Leave out the child that closes a cycle: depth first, without recursion (chains may be long)."""
    done: set[str] = set()
    for start in rows:
        path = {start: iter(rows[start].switches)} if start not in done else {}
        while path:
            name, children = next(reversed(path.items()))
            child = next(children, None)
            if child is None:
                done.add(name)
                path.popitem()
            elif child in path:
                cycle = [*path][[*path].index(child) :]
                report.problem(
                    FabricError(f"{rows[name].place}: switches form a cycle: {' -> '.join([*cycle, child])}")
                )
                kept = tuple(other for other in rows[name].switches if other != child)
                rows[name] = replace(rows[name], switches=kept)
            elif child not in done:
                path[child] = iter(rows[child].switches)
