"""Columns of lists of edges: their names in headings and options, and the words of a line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from ...inputs.csvtext import csv_fields
from ...inputs.sizes import unit_bytes
from .text import GraphFile, GraphFileError

__all__ = [
    "COUNT",
    "DST",
    "HOPS",
    "OTHER",
    "SRC",
    "VOLUME",
    "Columns",
    "cells",
    "heading",
    "named",
    "split",
    "volume_in",
]

SRC, DST, VOLUME, COUNT, HOPS = "src", "dst", "bytes", "count", "hops"
OTHER = "-"  # a column that is not read
# Names that are one word of one meaning; of several columns of a kind, that of the first name is read.
_NAMES = {
    SRC: "src source sender from u i row rank rank1 src1 srcrank sourcerank senderrank sendrank origin",
    DST: "dst dest destination target receiver to v j col column peer rank2 dst1 dstrank destrank recvrank",
    VOLUME: "bytes volume weight w data amount totalbytes sentbytes bytessent size",
    COUNT: "count counts messages msgs msg calls number n nummessages num",
    HOPS: "hops hop distance dist",
}
_KIND = {name: kind for kind, names in _NAMES.items() for name in names.split()}
# Words within longer names, by precedence: "sender bytes" are bytes, and "source number" is a sender.
_AGGREGATES = {"avg", "average", "mean", "max", "maximum", "min", "minimum", "median", "std", "rate", "time", "latency"}
_AGGREGATES |= {"bandwidth", "label"}
_VOLUMES = {"bytes", "byte", "volume", "volumes", "weight", "size", "data", "amount", "traffic", "payload", "load"}
_ENDS = (
    (SRC, {"src", "source", "sender", "send", "from", "origin"}),
    (DST, {"dst", "dest", "destination", "target", "receiver", "recv", "to"}),
)
_COUNTS = {"count", "counts", "messages", "message", "msgs", "msg", "calls"}
# Repetitions are bounded, so that the time stays linear in the length of a line.
_UNIT = re.compile(r"(.*?)[ _(\[]{0,3}([kmgt])i?b(?:ytes?)?[)\]]{0,3}")
_ATTRIBUTE = re.compile(r"([\w-]{1,60}+(?: [\w-]{1,60}+){0,4}+)[\"']?\s{0,9}+:\s{0,9}+[\"']?([^,\"'}]{1,200})")
_THOUSANDS = re.compile(r"[0-9]{1,3}(,[0-9]{3})+")
_NUMBER = re.compile(r"[0-9]+|[1-9][0-9]{0,2}(,[0-9]{3})+")  # as a word between blanks
_ARROW = re.compile(r"\s{0,9}(?:->|=>|→)\s{0,9}")
_NAME = re.compile(r"[\w .()/#%\[\]\"'-]{0,60}")
_MARKS = "|;,\t"
_MARKED = re.compile(r"[|;,{\"'>→A-Za-z]|\t\t")  # what makes a line more than words between blanks


class Columns(NamedTuple):
    """The columns of a list of edges.

    :param kinds: kind of each column: SRC, DST, VOLUME, COUNT, HOPS or OTHER.
    :param factor: bytes of a unit in which the volumes are.
    :param base: number of the first rank, 0 or 1; None if it is not told.
    :param unread: names of columns of volumes, or of unknown meaning, that are not read.
    """

    kinds: tuple[str, ...]
    factor: int = 1
    base: int | None = None
    unread: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return len(self.kinds) > 0


def split(line: str) -> list[str]:
    """Split a line as `cells` does, without an empty cell at its end."""
    words = cells(line)
    return words[:-1] if words and not words[-1] else words


def cells(line: str) -> list[str]:
    """Split a line at bars, semicolons, commas or tabs, else at blanks; beside semicolons a comma is a decimal point.

    Attributes of an edge as networkx writes them (``{'weight': 5}``) become one word, their volume, or none. Empty
    cells stay. A unit behind a number belongs to it.
    """
    if not _MARKED.search(line):
        return line.split("\t") if _is_of_tabs(line) else line.split()
    if line.endswith("}") and "{" in line:
        ends, _, attributes = line.rpartition("{")
        volume = volume_in(dict(_ATTRIBUTE.findall(attributes)))
        return [word for word in split(ends) if word] + ([volume] if volume else [])
    if "->" in line or "→" in line or "=>" in line:
        line = re.sub(r"(?<=[0-9])\s{0,9}:", " ", _ARROW.sub(" ", line))
    mark = next((mark for mark in _MARKS if mark in line), "")
    if not mark:
        return _with_units(line.split())
    if mark == "," and all(_NUMBER.fullmatch(word) for word in line.split()[:3]) and len(line.split()) > 2:
        return [_without_commas(word) for word in line.split()]
    if mark == ";":
        line = line.replace(",", ".")
    words = _of_quotes(line, mark) if '"' in line else line.split(mark)
    words = [word.strip(" \t'") for word in words]
    full = words if words[-1] else words[:-1]
    if any(" " in word or "\t" in word for word in full) and all(word[:1].isdigit() for word in full):
        words = [part for word in full for part in _with_units(word.split())]  # commas and blanks mixed
    return [_without_commas(word) for word in words]


def _of_quotes(line: str, mark: str) -> list[str]:
    try:
        return csv_fields(line, "", GraphFileError, mark)
    except GraphFileError:
        return line.split(mark)  # the reader refuses these words later, and names file and line


def _is_of_tabs(line: str) -> bool:
    """Whether a line begins or ends with an empty cell between tabs."""
    return "\t" in (line[:1], line[-1:]) and " " not in line


def _without_commas(word: str) -> str:
    return word.replace(",", "") if _THOUSANDS.fullmatch(word) else word


def _with_units(words: list[str]) -> list[str]:
    if len(words) > 2 and unit_bytes(words[-1]) and words[-2][-1:].isdigit():
        return [*words[:-2], words[-2] + words[-1]]
    return words


def volume_in(attributes: dict[str, str]) -> str:
    """Return the volume among the attributes of an edge; empty if there is none."""
    found = {_kind_of(name)[0]: value.strip() for name, value in reversed(attributes.items())}
    return found.get(VOLUME, "")


def heading(words: Sequence[str]) -> Columns:
    """Return the columns of a heading; none if the words are no heading with sender and receiver.

    :param words: words of a line.
    """
    if not all(_NAME.fullmatch(word) for word in words):
        return Columns(())
    told = [_kind_of(word) for word in words]
    chosen = {kind: min((rank, at) for at, (one, rank, _) in enumerate(told) if one == kind)[1] for kind, _, _ in told}
    if not {SRC, DST} <= set(chosen):
        return Columns(())
    kinds = tuple(kind if chosen[kind] == at else OTHER for at, (kind, _, _) in enumerate(told))
    unread = [at for at, (kind, _, _) in enumerate(told) if kind == VOLUME and chosen[kind] != at]
    if VOLUME not in chosen:
        unread = [at for at, (kind, _, _) in enumerate(told) if kind == OTHER and words[at].strip()]
    base = {_compact(words[chosen[kind]]) for kind in (SRC, DST)} == {"src1", "dst1"}
    factor = told[chosen[VOLUME]][2] if VOLUME in chosen else 1
    return Columns(kinds, factor, 1 if base else None, tuple(words[at] for at in unread))


def _compact(word: str) -> str:
    return re.sub(r"[^a-z0-9]", "", re.sub(r"[(\[].*", "", word.lower()))


def _kind_of(word: str) -> tuple[str, int, int]:
    """Return the kind of a column by its name, the place of the name among those of the kind, and its unit."""
    unit = _UNIT.fullmatch(word.strip("\"' ").lower())
    factor = unit_bytes(unit[2]) or 1 if unit else 1
    compact = _compact(unit[1] if unit else word)
    if compact in _KIND and (not unit or _KIND[compact] == VOLUME):
        return _KIND[compact], _NAMES[_KIND[compact]].split().index(compact), factor
    parts = set(re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", word).lower()))
    if parts & _AGGREGATES:
        return OTHER, 0, 1
    if unit or parts & _VOLUMES:
        return VOLUME, 20 - 10 * ("total" in parts), factor
    if parts & _COUNTS:
        return COUNT, 20, 1
    ends = [kind for kind, words in _ENDS if parts & words]
    return (ends[0], 20 - 10 * ("rank" in parts), 1) if len(ends) == 1 else (OTHER, 0, 1)


def named(file: GraphFile) -> Columns:
    """Return the columns that the caller names for a file; none if it names none.

    :raises GraphFileError: if they do not have one sender and one receiver.
    """
    if not file.columns:
        return Columns(())
    columns = heading(file.columns)
    if not columns or any(columns.kinds.count(kind) > 1 for kind in _NAMES):
        got = ",".join(file.columns)[:60]
        raise GraphFileError(f"{file.name}: expecting columns such as src,dst,count,bytes, got {got!r}")
    return columns._replace(base=columns.base or 0)
