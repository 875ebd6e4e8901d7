"""Cells of Slurm's tables, fields of ``scontrol`` and values of YAML, for the readers of jobs and nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ..files import InputFile
from ..yamlvalues import parse_yaml

__all__ = ["MARKS", "cells", "mark_of", "records", "yaml_values"]

MARKS = "|;,"
DEEPEST = 8  # levels of YAML that are kept; nodes and jobs need four
# Marks outside of brackets, because those within them belong to a host list or to a reason.
_SPLIT = {mark: re.compile(rf"{re.escape(mark)}(?![^\[\]]*\])(?![^()]*\))") for mark in MARKS}


def mark_of(line: str) -> str:
    """Return the mark that separates the columns of a table by its first line; empty if blanks do."""
    return next((mark for mark in MARKS if _SPLIT[mark].search(line)), "")


def cells(line: str, mark: str) -> list[str]:
    """Split a line of a table at a mark outside of brackets, or at blanks, and strip quotes and blanks."""
    if not mark:
        return line.split()
    parts = [part.strip(" \t\"'") for part in _SPLIT[mark].split(line)]
    return parts[:-1] if len(parts) > 1 and line.rstrip().endswith(mark) and not parts[-1] else parts


def records(text: InputFile, first: str, others: tuple[str, ...]) -> Iterator[tuple[dict[str, str], str]]:
    """Yield the fields of each record of ``scontrol show`` and its place, whether it has one line or several.

    Of a field that occurs twice in a record the first value counts, because free texts follow the others.

    :param text: output of scontrol.
    :param first: name of the field that begins a record, and a line.
    :param others: names of further fields to return.
    """
    field = re.compile(rf"(?:^|(?<=\s))({'|'.join((first, *others))})=(\S*)")
    found, place = dict[str, str](), ""
    for number, line in text.lines():
        fields = field.findall(line)
        if line.lstrip().startswith(f"{first}="):
            if found:
                yield found, place
            found, place = dict(fields[:1]), f"{text.name}:{number}"
        if found:
            found = dict(reversed(fields)) | found
    if found:
        yield found, place


def yaml_values(text: InputFile) -> Any:
    """Return the YAML of a file as dictionaries, lists and texts; null becomes None, what lies too deep too."""
    return _plain(parse_yaml(text).node, DEEPEST)


def _plain(node: Any, depth: int) -> Any:
    if isinstance(node.value, str):
        return None if node.tag.endswith(":null") else node.value
    if depth == 0:
        return None
    if node.id == "mapping":
        return {str(key.value): _plain(value, depth - 1) for key, value in node.value}
    return [_plain(value, depth - 1) for value in node.value]
