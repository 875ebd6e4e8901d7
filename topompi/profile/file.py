"""The file of a profile (``.topoprof``): gzip of JSON lines, one that says what ran and one a rank.

The first line is ``{"topompi":"profile","version":1,"ranks":p,"method":...,"command":...,"seconds":..,"hosts":[..]}``;
each further one is ``{"rank":r,"E":[peers,messages,bytes],...}`` with the kinds that the rank has, three lists of one
length each. Every line is a gzip member of its own: a file that ends too early has all ranks that were written before.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..mapping.readers.text import GraphFileError
from ..mapping.readers.topoprof import VERSION, head_of, rank_of
from .errors import ProfileError
from .recording import KINDS, Profile, RankRows

__all__ = ["head_line", "rank_line", "read_profile", "write_profile"]

MOST_BYTES = 1 << 30  # unpacked: 64 M pairs


def write_profile(profile: Profile, path: str | os.PathLike[str]) -> None:
    """Write a profile; a file of that name is replaced when the new one is whole.

    Cost: the memory of one rank's line.
    """
    final = Path(path)
    part = final.with_name(f"{final.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            file.writelines(_lines_of(profile))
        part.replace(final)
    finally:
        part.unlink(missing_ok=True)


def _lines_of(profile: Profile) -> Iterator[bytes]:
    yield head_line(profile)
    yield from map(rank_line, profile.of_rank)


def head_line(profile: Profile) -> bytes:
    """The first line, packed; what the ranks sent is not looked at."""
    fields = {"method": profile.method, "command": profile.command, "seconds": profile.seconds}
    return _packed(
        {"topompi": "profile", "version": VERSION, "ranks": profile.size, **fields, "hosts": list(profile.hosts)}
    )


def rank_line(one: RankRows) -> bytes:
    """A rank's line, packed."""
    line: dict[str, Any] = {"rank": one.rank}
    for number, letter in enumerate(KINDS):
        here = one.kind == number
        if here.any():
            line[letter] = [column[here].tolist() for column in (one.peer, one.messages, one.volume)]
    return _packed(line)


def _packed(line: dict[str, Any]) -> bytes:
    return gzip.compress((json.dumps(line, separators=(",", ":")) + "\n").encode(), mtime=0)


def read_profile(path: str | os.PathLike[str]) -> Profile:
    """Read a profile; of a file that ends too early the ranks that it still has, see ``Profile.missing``.

    :raises ProfileError: with file and line, and what should stand there.
    """
    name = str(path)
    lines = _whole_lines(Path(path))
    try:
        head = head_of(name, next(lines, ""))
        ranks = (rank_of(name, number, line, head.size) for number, line in enumerate(lines, 2))
        found = {rank: _rows(rank, kinds.items()) for rank, kinds in ranks}
    except GraphFileError as error:
        raise ProfileError(str(error)) from error
    of_rank = [found[rank] for rank in sorted(found)]
    return Profile(head.size, head.method, head.command, head.seconds, head.hosts, of_rank)


def _rows(rank: int, kinds: Iterable[tuple[str, Any]]) -> RankRows:
    letters = list(KINDS)
    tables = [np.r_[np.full((1, table.shape[1]), letters.index(letter)), table] for letter, table in kinds]
    kind, peer, messages, volume = np.concatenate([np.empty((4, 0), dtype=np.int64), *tables], axis=1)
    return RankRows(rank, kind, peer, messages, volume)


def _whole_lines(path: Path) -> Iterator[str]:
    """The lines of a packed file that end, as far as it can be unpacked.

    :raises ProfileError: for a file that is not packed, or of more than ``MOST_BYTES``.
    """
    left = MOST_BYTES
    with gzip.open(path) as file:
        while True:
            try:
                line = file.readline(left + 1)
            except gzip.BadGzipFile as error:
                if left < MOST_BYTES:
                    return
                raise ProfileError(f"{path}: expecting a profile, as topompi profile writes it") from error
            except (EOFError, zlib.error):
                return
            left -= len(line)
            if left < 0:
                raise ProfileError(f"{path}: expecting at most {MOST_BYTES:,} bytes unpacked")
            if not line.endswith(b"\n"):
                return
            yield line.decode("utf-8", errors="replace")
