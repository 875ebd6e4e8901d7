"""Limits on the size of inputs, by name, with defaults that an option or ``TOPOMPI_LIMITS`` changes."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from functools import lru_cache

from ..errors import SettingError, TopompiError
from .sizes import size_in

__all__ = ["VARIABLE", "Limits", "current_limits", "parse_limits", "raise_limits"]

VARIABLE = "TOPOMPI_LIMITS"
_WORDS = {
    "routes": "entries in tables of routes",
    "ratio": "times its size when unpacked",
    "answer": "bytes of an answer",
}


@dataclass(frozen=True)
class Limits:
    """Upper limits on the size of one input.

    :param bytes: bytes read from one source, unpacked.
    :param ratio: size of an unpacked file divided by its packed size, checked for files of more than 16 MiB; reports
        and tables of real fabrics, packed with xz, reach at most 120.
    :param members: number of files in a directory or archive.
    :param hosts: number of hosts of a fabric or a host list; Fugaku has 158,976.
    :param ranks: number of ranks of a communication graph or a mapping; Fugaku has 7,630,848 cores.
    :param routes: number of entries of one of these: forwarding tables (alternative routes x switches x adapters),
        computed routes (links between switches x groups of leaf switches with the same neighbours), a job's host pairs
        (hosts x hosts).
    :param rows: number of rows (transfers) of a schedule; an alltoall of 4,096 ranks with one row per message just
        reaches the limit.
    :param seconds: seconds for reading one source.
    :param answer: bytes of one answer of a topology service; the same default limits the memory that a service uses for
        the answers and requests of all of its clients together.
    """

    bytes: int = 4 << 30
    ratio: int = 500
    members: int = 16_384
    hosts: int = 262_144
    ranks: int = 8_388_608
    routes: int = 1 << 29
    rows: int = 1 << 24
    seconds: int = 600
    answer: int = 1 << 28

    def check(self, name: str, amount: int, place: str, error: type[TopompiError]) -> None:
        """Raise ``error`` if a source needs more than a limit allows; the message tells how to raise the limit.

        :param name: name of the limit.
        :param amount: amount that the source needs.
        :param place: the file, or file and line, for the message.
        :param error: class of the error that is raised.
        """
        most: int = getattr(self, name)
        if amount > most:
            shown = f"{amount:,}" if amount < 10**18 else "more"
            what = _WORDS.get(name, name)
            raise error(
                f"{place}: expecting at most {most:,} {what}, got {shown}; raise this with --limit {name}=NUMBER"
            )


def parse_limits(text: str, where: str = VARIABLE) -> dict[str, int]:
    """Parse limits in the notation of users, ``hosts=1M,bytes=8G``, with units of powers of 1,024.

    :raises SettingError: if a name is unknown or a number is malformed.
    """
    found: dict[str, int] = {}
    names = [one.name for one in fields(Limits)]
    for entry in filter(str.strip, text.split(",")):
        name, _, number = map(str.strip, entry.partition("="))
        amount = size_in(number)
        if amount is None or name not in names or name in found:
            wanted = f"NAME=NUMBER with a name of {', '.join(names)}, each once"
            raise SettingError(f"{where}: expecting {wanted}, got {entry:.60}")
        found[name] = amount
    return found


_raised: dict[str, int] = {}


def raise_limits(entries: Iterable[str]) -> None:
    """Set limits of this process, which override those of the environment; without entries, remove all set limits."""
    wanted = [parse_limits(entry, "--limit") for entry in entries]
    _raised.clear()
    for one in wanted:
        _raised.update(one)


def current_limits() -> Limits:
    """Return the limits that hold now, from defaults, environment and ``raise_limits``.

    :raises SettingError: if ``TOPOMPI_LIMITS`` is malformed.
    """
    return _made(os.environ.get(VARIABLE, ""), tuple(_raised.items()))


@lru_cache(maxsize=8)  # cached because readers ask again for each line
def _made(environment: str, raised: tuple[tuple[str, int], ...]) -> Limits:
    return replace(Limits(), **{**parse_limits(environment), **dict(raised)})
