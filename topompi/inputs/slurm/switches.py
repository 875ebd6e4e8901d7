"""Definitions of switches, the common form of all of Slurm's texts about topologies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from ...errors import SourceError, TopompiError
from ..limits import current_limits

__all__ = ["Note", "Problem", "SwitchRow", "counted", "no_note"]

Problem = Callable[[TopompiError], None]  # function that raises an error, or records it and returns
Note = Callable[[str], None]  # function that records a remark on input that is complete but unusual


def no_note(message: str) -> None:
    """Do nothing with a remark, for callers that do not want remarks."""


@dataclass(frozen=True)
class SwitchRow:
    """The definition of one switch in a Slurm file.

    :param name: name of the switch, which is also its id.
    :param nodes: names of the hosts at the switch.
    :param switches: names of the switches below it.
    :param place: ``file:line`` of the definition.
    """

    name: str
    nodes: tuple[str, ...]
    switches: tuple[str, ...]
    place: str


def counted(rows: Iterable[SwitchRow]) -> Iterator[SwitchRow]:
    """Yield the definitions, and raise an error if their hosts and children together exceed the limit ``hosts``.

    The check is needed because a few bytes, for example ``n[1-99999]``, can stand for many names.

    :raises SourceError: if the limit is exceeded, with file and line.
    """
    names = 0
    for row in rows:
        names += len(row.nodes) + len(row.switches)
        current_limits().check("hosts", names, row.place, SourceError)
        yield row
