"""Reader of the nodes that take no job now, from ``sinfo``, ``scontrol show nodes`` or a host list."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ...errors import SourceError, TopompiError
from ..files import InputFile, open_inputs
from ..hostlist import expand
from .answers import NODES, documents, entries, fields_of, is_answer
from .clusters import Clusters, cluster_heading
from .reports import cells, mark_of, records

__all__ = ["is_idle", "node_states", "read_closed"]

# Host list, its place in the file, and whether its nodes take no job; None in place of this if the nodes are idle but
# the line's partition is down, because another line may list them in a partition that is up.
Row = tuple[str, str, bool | None]

# States in which an idle node can still take a job; among them those of saving power, because Slurm starts the node for
# a job.
_HARMLESS = {
    *("IDLE", "PLANNED", "PLND", "CLOUD", "DYNAMIC_NORM", "POWER_DOWN", "POWERED_DOWN", "POWERING_DOWN", "POW_DN"),
    *("POWER_UP", "POWERING_UP", "POW_UP", "POWERED_UP", "POWER_SAVING"),
}
_STATES = _HARMLESS | {
    *("ALLOC", "ALLOCATED", "MIX", "MIXED", "COMP", "COMPLETING", "DOWN", "DRAIN", "DRAINED", "DRAINING", "DRNG"),
    *("FAIL", "FAILING", "FAILG", "FUTURE", "FUTR", "MAINT", "RESV", "RESERVED", "BLOCK", "BLOCKED", "INVAL"),
    *("REBOOT", "REBOOT_ISSUED", "PERFCTRS", "NPC", "UNK", "UNKNOWN", "NO_RESPOND", "ERROR", "ERR", "INACT"),
}
_SIGNS = "~#!%-*$@^"  # marks that sinfo may append to a state
# Number of columns -> their names, for output of sinfo without a heading (-h): of sinfo -o '%N %T', sinfo -N, and sinfo
# without options.
_BARE = {
    2: ("NODELIST", "STATE"),
    4: ("NODELIST", "NODES", "PARTITION", "STATE"),
    6: ("PARTITION", "AVAIL", "TIMELIMIT", "NODES", "STATE", "NODELIST"),
}
_HOSTS = ("NODELIST", "HOSTNAMES", "HOSTNAME", "NODEHOST", "NODE")


def is_idle(states: object) -> bool:
    """Return whether a node in these states could take a job: it is idle, and not drained, down or reserved.

    :param states: state as a text of sinfo or scontrol (``idle~``, ``IDLE+DRAIN``), or a list of states that apply
        together.
    """
    words = states if isinstance(states, list) else str(states).split("+")
    found = {str(word).strip().upper().rstrip("~#!%-") for word in words}
    return bool(found & {"IDLE", "PLANNED", "PLND"}) and found <= _HARMLESS


def read_closed(argument: str, error: type[TopompiError] = SourceError, cluster: str | None = None) -> tuple[str, ...]:
    """Return the names of the nodes that take no job, each once.

    In the output of ``sinfo`` or ``scontrol show nodes`` (text, JSON or YAML), a node takes no job if it is not idle,
    or if none of its partitions is up. In the output of ``sinfo -R``, and in a file with one host list per line, no
    node takes a job.

    :param argument: a host list such as ``n[5-6]``, or the path of a file, packed or not.
    :param error: class of the error that is raised.
    :param cluster: name of the cluster whose nodes are taken from a file; None if it must be of one cluster.
    :raises TopompiError: ``error``, if the file or a host list is malformed, with the file and line.
    """
    if os.path.exists(argument) or "/" in argument:
        return node_states(open_inputs(argument, error, "states of nodes"), error, cluster)[1]
    try:
        return tuple(dict.fromkeys(expand(argument)))
    except SourceError as problem:
        raise error(str(problem)) from problem


def node_states(
    texts: Iterable[InputFile], error: type[TopompiError] = SourceError, cluster: str | None = None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of the nodes that could take a job, and of those that could not, each once.

    :param texts: outputs of ``sinfo``, ``scontrol show nodes``, or lines with host lists, whose nodes take no job.
    :param error: class of the error that is raised.
    :param cluster: name of the cluster whose nodes are taken; None if each text must be of one cluster.
    :raises TopompiError: ``error``, if a text or a host list in it is malformed, or a text is of several clusters; with
        the file and line.
    """
    found: dict[bool | None, dict[str, None]] = {True: {}, False: {}, None: {}}
    rows = ((text, row) for text in texts for row in _rows(text, Clusters(cluster)))
    for source, (hosts, place, closed) in rows:
        try:
            found[closed].update(dict.fromkeys(expand(hosts)))
        except SourceError as problem:
            source.refuse_foreign()
            raise error(f"{place}: {problem}" if place else str(problem)) from problem
    shut = dict.fromkeys([*found[True], *(host for host in found[None] if host not in found[False])])
    return tuple(host for host in found[False] if host not in shut), tuple(shut)


def _rows(text: InputFile, clusters: Clusters) -> list[Row]:
    rows = list(_form_of(text)(text, clusters))
    clusters.check(text.name, text.error)
    return rows


def _form_of(text: InputFile) -> Callable[[InputFile, Clusters], Iterator[Row]]:
    head = text.head()
    lines = [line for line in head.splitlines() if line.strip() and cluster_heading(line) is None]
    first = lines[0].strip() if lines else ""
    if is_answer(first):
        return _of_answer
    if "NodeName=" in head:
        return _of_scontrol
    is_table = not lines or any(_columns(line) for line in lines[:3]) or _bare(first)
    return _of_table if is_table else _of_lines


def _of_answer(text: InputFile, clusters: Clusters) -> Iterator[Row]:
    for node in entries(text, documents(text), NODES, clusters):
        with fields_of(text.name, NODES, text.error):
            hosts, states = _of_node(node)
        yield from ((host, f"{text.name}: node {host}", not is_idle(states)) for host in hosts)


def _of_node(node: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Return the hosts of an entry and their states, which older versions divide into ``state`` and ``state_flags``."""
    if "node" in node:
        return list(map(str, node["nodes"]["nodes"])), _listed(node["node"]["state"])
    name = str(node.get("name") or node["hostname"])
    return [name], _listed(node["state"]) + _listed(node.get("state_flags", []))


def _listed(states: object) -> list[str]:
    return states if isinstance(states, list) else str(states).split("+")


def _of_scontrol(text: InputFile, clusters: Clusters) -> Iterator[Row]:
    clusters.takes("")
    for node, place in records(text, "NodeName", ("State",)):
        yield node["NodeName"], place, not is_idle(node.get("State", ""))


def _columns(line: str) -> list[str]:
    """Return the names of the columns if a line is the heading of sinfo's table; else an empty list."""
    words = [word.upper() for word in cells(line, mark_of(line))]
    at = next((words.index(word) for word in _HOSTS if word in words), None)
    if at is None or (len(words) == 1 and words[0] != "NODELIST"):
        return []
    return [*words[:at], "NODELIST", *words[at + 1 :]]


def _bare(line: str) -> tuple[str, ...]:
    """Return the names of the columns of a line of sinfo without a heading; empty for other lines."""
    words = cells(line, mark_of(line))
    names = _BARE.get(len(words), ())
    if len(words) == 2 and _is_state(words[0]) and not _is_state(words[1]):
        return names[::-1]
    return names if names and _is_state(words[names.index("STATE")]) else ()


def _is_state(word: str) -> bool:
    return {part.rstrip(_SIGNS) for part in word.upper().split("+")} <= _STATES


def _of_table(text: InputFile, clusters: Clusters) -> Iterator[Row]:
    names, mark, heading = list[str](), "", ""
    for number, line in text.lines():
        if (name := cluster_heading(line)) is not None:
            heading = name
            clusters.takes(heading)
        elif columns := _columns(line):
            names, mark = columns, mark_of(line)
        elif line.strip():
            if not names:
                names, mark = list(_bare(line.strip())), mark_of(line)
            words = cells(line, mark)
            named = words[names.index("CLUSTER")] if "CLUSTER" in names[: len(words)] else heading
            if names and clusters.takes(named) and (row := _row(text, names, words, f"{text.name}:{number}")):
                yield row


def _row(text: InputFile, names: list[str], words: list[str], place: str) -> Row | None:
    """Parse a line of sinfo's table, given as its words; None if the line is a partition without nodes."""
    # The column REASON may contain blanks. Therefore columns before it are counted from the left, the last one from the
    # right.
    at = names.index("NODELIST")
    found = dict(zip(names, words, strict=False))
    if found.get("NODES") == "0":
        return None
    if len(words) < len(names) - ("REASON" in names):
        raise text.error(f"{place}: expecting {' '.join(names)}, got {' '.join(words)[:80]!r}")
    hosts = words[-1 if at == len(names) - 1 else at]
    if "STATE" not in names or not is_idle(found.get("STATE", "")):
        return hosts, place, True
    return hosts, place, False if found.get("AVAIL", "up") == "up" else None


def _of_lines(text: InputFile, clusters: Clusters) -> Iterator[Row]:
    clusters.takes("")
    for number, line in text.lines():
        if hosts := line.partition("#")[0].strip():
            yield hosts, f"{text.name}:{number}", True
