"""Reader of the nodes that take no job now, from ``sinfo``, ``scontrol show nodes`` or a host list."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from typing import Any

from ...errors import SourceError, TopompiError
from ..files import InputFile, open_inputs
from ..hostlist import expand
from ..jsontext import parse_json

__all__ = ["is_idle", "read_closed"]

Row = tuple[str, str]  # host list, and its place in the file

# States that do not keep an idle node from taking a job, because Slurm starts a node that saves power.
_HARMLESS = {
    *("IDLE", "PLANNED", "PLND", "CLOUD", "DYNAMIC_NORM", "POWER_DOWN", "POWERED_DOWN", "POWERING_DOWN", "POW_DN"),
    *("POWER_UP", "POWERING_UP", "POW_UP", "POWERED_UP", "POWER_SAVING"),
}
_FIELD = re.compile(r"(NodeName|State)=(\S+)")


def is_idle(states: object) -> bool:
    """Return whether a node in these states could take a job: it is idle, and not drained, down or reserved.

    :param states: state as a text of sinfo or scontrol (``idle~``, ``IDLE+DRAIN``), or a list of states that apply
        together.
    """
    words = states if isinstance(states, list) else str(states).split("+")
    found = {str(word).strip().upper().rstrip("~#!%-") for word in words}
    return bool(found & {"IDLE", "PLANNED", "PLND"}) and found <= _HARMLESS


def read_closed(argument: str, error: type[TopompiError] = SourceError) -> tuple[str, ...]:
    """Return the names of the nodes that take no job, each once.

    A file has the output of ``sinfo`` or ``scontrol show nodes`` (text or JSON), of which nodes that are not idle are
    taken, or of ``sinfo -R``, or lines with host lists, of which all are.

    :param argument: a host list such as ``n[5-6]``, or the path of a file, packed or not.
    :param error: class of the error that is raised.
    :raises TopompiError: ``error``, if a host list is malformed or the file is; with the file and line.
    """
    is_path = os.path.exists(argument) or "/" in argument
    texts = open_inputs(argument, error, "states of nodes") if is_path else []
    rows = (row for text in texts for row in _form_of(text)(text)) if is_path else iter([(argument, "")])
    found: dict[str, None] = {}
    for hosts, place in rows:
        try:
            found.update(dict.fromkeys(expand(hosts)))
        except SourceError as problem:
            raise error(f"{place}: {problem}" if place else str(problem)) from problem
    return tuple(found)


def _form_of(text: InputFile) -> Callable[[InputFile], Iterator[Row]]:
    head = text.head()
    if head.lstrip().startswith("{"):
        return _of_json
    if "NodeName=" in head:
        return _of_scontrol
    return _of_table if any("NODELIST" in line.split() for line in head.splitlines()[:3]) else _of_lines


def _of_json(text: InputFile) -> Iterator[Row]:
    content = parse_json(text.data(), text.name, text.error)
    try:
        for node in content["nodes"] if "nodes" in content else content["sinfo"]:
            hosts, states = _of_node(node)
            if not is_idle(states):
                yield from ((host, f"{text.name}: node {host}") for host in hosts)
    except (KeyError, TypeError, AttributeError) as problem:
        got = f"{type(problem).__name__}: {problem}"
        raise text.error(f"{text.name}: expecting sinfo --json or scontrol show nodes --json, got {got}") from problem


def _of_node(node: Any) -> tuple[list[str], list[str]]:
    """Return the hosts of an entry and their states, which older versions divide into ``state`` and ``state_flags``."""
    if "node" in node:
        return list(map(str, node["nodes"]["nodes"])), _listed(node["node"]["state"])
    name = str(node.get("name") or node["hostname"])
    return [name], _listed(node["state"]) + _listed(node.get("state_flags", []))


def _listed(states: Any) -> list[str]:
    return states if isinstance(states, list) else str(states).split("+")


def _of_scontrol(text: InputFile) -> Iterator[Row]:
    name, place = "", ""
    for number, line in text.lines():
        for word, value in _FIELD.findall(line):
            if word == "NodeName":
                name, place = value, f"{text.name}:{number}"
            elif name and not is_idle(value):
                yield name, place


def _of_table(text: InputFile) -> Iterator[Row]:
    names: list[str] = []
    for number, line in text.lines():
        words = line.split()
        if "NODELIST" in words:
            names = words
        elif names and words:
            # A reason may have blanks: columns before it are counted from the left, the last one from the right.
            at = names.index("NODELIST")
            if len(words) < len(names) - ("REASON" in names):
                raise text.error(f"{text.name}:{number}: expecting {' '.join(names)}, got {line.strip()[:80]!r}")
            if "STATE" not in names or not is_idle(words[names.index("STATE")]):
                yield words[-1 if at == len(names) - 1 else at], f"{text.name}:{number}"


def _of_lines(text: InputFile) -> Iterator[Row]:
    for number, line in text.lines():
        if hosts := line.partition("#")[0].strip():
            yield hosts, f"{text.name}:{number}"
