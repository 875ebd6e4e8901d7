"""Rows of switches, as all of Slurm's texts about topologies define them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ...errors import SourceError, TopompiError
from ..limits import current_limits

__all__ = ["BLOCK_TOP", "Problem", "SwitchRow", "counted", "join_blocks"]

BLOCK_TOP = "topology/block"  # the switch above all blocks; the slash keeps it apart from names that files give
Problem = Callable[[TopompiError], None]  # raises an error, or keeps it and goes on


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


def counted(rows: Iterable[SwitchRow]) -> Iterator[SwitchRow]:
    """The rows, while their hosts and children together are within the limit of hosts.

    :raises SourceError: beyond it, with file and line; a few bytes, such as ``n[1-99999]``, stand for many names.
    """
    names = 0
    for row in rows:
        names += len(row.nodes) + len(row.switches)
        current_limits().check("hosts", names, row.place, SourceError)
        yield row


def join_blocks(blocks: Sequence[SwitchRow]) -> list[SwitchRow]:
    """The blocks as leaf switches, and where there are several one switch above them all."""
    if len(blocks) < 2:
        return list(blocks)
    names = dict.fromkeys(block.name for block in blocks)
    return [*blocks, SwitchRow(BLOCK_TOP, (), tuple(names), blocks[0].place)]
