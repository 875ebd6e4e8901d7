"""Cells of Slurm's tables, fields of ``scontrol`` and values of YAML, for the readers of jobs and nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ..files import InputFile
from ..yamlvalues import parse_yaml

__all__ = ["MARKS", "cells", "mark_of", "records", "yaml_values"]

MARKS = "|;,"
DEEPEST = 8  # levels of nesting of YAML that are kept, because memory is limited; nodes and jobs need four
# Mark -> pattern of the mark and of brackets.
_SIGNS = {mark: re.compile(rf"[{re.escape(mark)}\[\]()]") for mark in MARKS}


def mark_of(line: str) -> str:
    """Find the mark (one of MARKS) that separates columns in a table's first line; empty if blanks separate them."""
    return next((mark for mark in MARKS if len(_split(line, mark)) > 1), "")


def _split(line: str, mark: str) -> list[str]:
    """Split a line at a mark outside of brackets; a mark in brackets is part of a host list or of a reason."""
    parts, end, square, round_ = list[str](), len(line), "", ""
    for found in reversed([*_SIGNS[mark].finditer(line)]):
        if found[0] in "[]":
            square = found[0]
        elif found[0] in "()":
            round_ = found[0]
        elif square != "]" and round_ != ")":
            parts.append(line[found.end() : end])
            end = found.start()
    return [*parts, line[:end]][::-1]


def cells(line: str, mark: str) -> list[str]:
    """Split a line of a table into its cells at a mark outside of brackets, or at blanks if the mark is empty."""
    if not mark:
        return line.split()
    parts = [part.strip(" \t\"'") for part in _split(line, mark)]
    return parts[:-1] if len(parts) > 1 and line.rstrip().endswith(mark) and not parts[-1] else parts


def records(text: InputFile, first: str, others: tuple[str, ...]) -> Iterator[tuple[dict[str, str], str]]:
    """Yield each record of ``scontrol show``, of one or several lines: its fields, and ``file:line`` of its begin.

    If a field occurs twice in a record, its first value counts, because a later one may be part of a comment.

    :param text: output of scontrol.
    :param first: name of the field with which each record begins, at the beginning of a line.
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


def yaml_values(text: InputFile) -> object:
    """Parse YAML into dictionaries, lists and texts; null, and anything below DEEPEST levels, becomes None."""
    return _plain(parse_yaml(text).node, DEEPEST)


def _plain(node: Any, depth: int) -> object:
    if isinstance(node.value, str):
        return None if node.tag.endswith(":null") else node.value
    if depth == 0:
        return None
    if node.id == "mapping":
        return {str(key.value): _plain(value, depth - 1) for key, value in node.value}
    return [_plain(value, depth - 1) for value in node.value]
