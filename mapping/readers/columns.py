"""Columns of lists of edges: their names in headings and options, and a guess for lists without names."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .text import GraphFile, GraphFileError

__all__ = ["COUNT", "DST", "HOPS", "SRC", "VOLUME", "heading", "named", "split"]

SRC, DST, VOLUME, COUNT, HOPS = "src", "dst", "bytes", "count", "hops"
OTHER = "-"  # a column that is not read
_NAMES = {
    SRC: "src source sender from u i row rank rank1 srcrank sourcerank senderrank sendrank origin",
    DST: "dst dest destination target receiver to v j col column peer rank2 dstrank destrank receiverrank recvrank",
    VOLUME: "bytes volume weight size w data amount totalbytes sentbytes bytessent",
    COUNT: "count counts messages msgs msg calls number n nummessages num",
    HOPS: "hops hop distance dist",
}
_KIND = {name: kind for kind, names in _NAMES.items() for name in names.split()}


def split(line: str) -> list[str]:
    """Split a line into words at blanks, commas or semicolons.

    In a line with semicolons a comma is a decimal point. Attributes of an edge as networkx writes them, ``{'weight':
    5}``, are replaced by the volume among them, if there is one.
    """
    if line.endswith("}") and "{" in line:
        ends, _, attributes = line.rpartition("{")
        pairs = (pair.partition(":")[::2] for pair in attributes[:-1].split(","))
        volumes = (value.strip() for name, value in pairs if _KIND.get(name.strip("'\" ").lower()) == VOLUME)
        return split(ends) + [volume for volume in volumes if volume][:1]
    if ";" in line:
        return [word for word in line.replace(",", ".").replace(";", " ").split() if word]
    return line.replace(",", " ").split()


def heading(words: Sequence[str]) -> tuple[str, ...]:
    """Return the kind of each column of a heading: sender, receiver, bytes, messages, hops or other.

    The result is empty if the words are no heading with one sender and one receiver.

    :param words: words of a line.
    """
    kinds = tuple(_KIND.get(re.sub(r"[^a-z0-9]", "", word.strip("\"'").lower()), OTHER) for word in words)
    return kinds if {SRC, DST} <= set(kinds) and all(kinds.count(one) < 2 for one in _NAMES) else ()


def named(file: GraphFile) -> tuple[str, ...]:
    """Return the kinds (sender, receiver, ...) of the columns that the caller names; empty if the caller names none.

    :raises GraphFileError: if they do not have one sender and one receiver.
    """
    kinds = heading(file.columns)
    if file.columns and not kinds:
        got = ",".join(file.columns)[:60]
        raise GraphFileError(f"{file.name}: expecting columns such as src,dst,count,bytes, got {got!r}")
    return kinds
