"""Reader of Slurm's trees of switches, from a ``topology.conf`` or the output of ``scontrol show topology``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ...errors import FabricError, SourceError
from ...inputs import InputFile
from ...inputs.slurm.switches import SwitchRow
from ...inputs.slurm.topologyconf import NAME, read_switches, recognise
from ..builder import FabricBuilder
from ..discovery import Discovery, Report
from .groups import add_cables

__all__ = ["NAME", "build_tree", "read", "recognise"]


def read(texts: Sequence[InputFile], report: Report) -> Discovery:
    """Read the fabric of a ``topology.conf``; all link rates are unknown (NaN).

    :param texts: the files, which are read as one.
    :param report: receiver of problems.
    :raises SourceError: if Slurm would refuse a line, with file and line.
    :raises FabricError: if definitions of switches contradict each other, or a host is at two leaf switches (which
        Slurm accepts with a warning), with file and line.
    """
    rows, allow_empty = read_switches(texts, report.problem, report.note)
    return build_tree(texts[0].name, rows, report, allow_empty)


def build_tree(name: str, rows: Iterable[SwitchRow], report: Report, allow_empty: bool = False) -> Discovery:
    """Make the fabric of some switch definitions, with cables from each switch to its hosts and its child switches.

    Each host has one adapter of its own name. Ports count from 1 on each switch in the order of the definitions; a
    definition's hosts come before its children. A switch may have several parents, and the fabric several components.

    :param name: name of the fabric.
    :param rows: definitions of the switches, each with its hosts and child switches.
    :param report: receiver of problems.
    :param allow_empty: whether switches may have neither hosts nor child switches; if not, the report gets a note that
        names them.
    :raises FabricError: if a host or switch is repeated, a child is unknown, or switches form a cycle.
    Cost: linear in switches, hosts and cables.
    """
    checked = _unique_switches(rows, report)
    if not allow_empty:
        _note_empty(checked, report)
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


def _note_empty(rows: Rows, report: Report) -> None:
    """Note switches and blocks that have nothing below them, which sites keep for nodes to come."""
    empty = [row for row in rows.values() if not row.nodes and not row.switches]
    if empty:
        some = ", ".join(row.name for row in empty[:5]) + (", ..." if len(empty) > 5 else "")
        what = f"switch {some} has" if len(empty) == 1 else f"{len(empty):,} switches have"
        listed = "" if len(empty) == 1 else f": {some}"
        report.note(f"{empty[0].place}: {what} neither nodes nor child switches{listed}")


def _check_hosts(rows: Rows, report: Report) -> None:
    """Report and remove hosts that are already at another switch, or that have the name of a switch."""
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
    """Report and remove child switches that are not defined, and repeated ones."""
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
    """Report each cycle of switches, and remove the child that closes it.

    The search is depth first without recursion, because chains of switches may be long.
    """
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
