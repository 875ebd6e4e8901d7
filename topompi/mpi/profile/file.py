"""The file of a profile (``.topoprof``): gzipped JSON lines, a header, then one line per rank.

The header is ``{"topompi":"profile","version":1,"ranks":p,"method":...,"command":...,"seconds":..,"hosts":[..]}``. A
rank's line is ``{"rank":r,"E":[peers,messages,bytes],...}`` with, for each kind of message that the rank sent, three
lists of equal length. Every line is a gzip member of its own, so that all complete lines of a truncated file can be
read. While a program records itself, each rank keeps its numbers in a file ``FILE.RANK.part`` beside the profile; these
files are removed when the profile is complete.
"""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import asdict
from pathlib import Path

import numpy as np

from ...inputs import open_begun
from ...inputs.writing import open_output
from ...mapping.readers.text import GraphFileError
from ...mapping.readers.topoprof import VERSION, Head, RankLine, head_of, rank_of
from .errors import ProfileError
from .recording import KINDS, Profile, RankRows

__all__ = ["head_line", "part_of", "parts_of", "rank_line", "read_profile", "write_lines", "write_profile"]


def write_profile(profile: Profile, path: str | os.PathLike[str]) -> None:
    """Write a profile; an existing file is replaced when the new one is complete.

    Cost: the memory of one rank's line.

    :param profile: the profile.
    :param path: path of the file.
    """
    write_lines(_lines_of(profile), Path(path))


def write_lines(lines: Iterable[bytes], path: Path) -> None:
    """Write compressed lines; an existing file is replaced when all lines are written."""
    with open_output(path, "wb", private=True) as file:
        file.writelines(lines)


def part_of(path: Path, rank: int) -> Path:
    """Path of the file in which a rank keeps its numbers while the program runs."""
    return path.with_name(f"{path.name}.{rank}.part")


def parts_of(path: Path) -> list[Path]:
    """Paths of the files that ranks left beside a profile's file while their program ran, in rank order."""
    name = re.compile(re.escape(path.name) + r"\.([0-9]+)\.part")
    found = {int(match[1]): one for one in path.parent.iterdir() if (match := name.fullmatch(one.name))}
    return [found[rank] for rank in sorted(found)]


def _lines_of(profile: Profile) -> Iterator[bytes]:
    yield head_line(profile)
    yield from map(rank_line, profile.of_rank)


def head_line(profile: Profile) -> bytes:
    """The compressed header line of a profile, with the facts about the run and without the ranks' data."""
    ran = {"method": profile.method, "command": profile.command, "seconds": profile.seconds}
    counted: dict[str, object] = {
        "hosts": list(profile.hosts),
        "moves": profile.moves,
        "granularity": profile.granularity,
    }
    if profile.virtual:
        counted["virtual"] = True
    if profile.counting:
        counted["counting"] = profile.counting
    if view := {key: word for key, word in asdict(profile.view).items() if word}:
        counted["view"] = view
    return _packed({"topompi": "profile", "version": VERSION, "ranks": profile.size, **ran, **counted})


def rank_line(one: RankRows) -> bytes:
    """The compressed line with one rank's data."""
    line: dict[str, object] = {"rank": one.rank}
    for number, letter in enumerate(KINDS):
        here = one.kind == number
        if here.any():
            line[letter] = [column[here].tolist() for column in (one.peer, one.messages, one.volume)]
    if one.host:
        line["host"] = one.host
    if one.calls:
        line["calls"] = one.calls
    if one.exchanges:
        line["neighbours"] = one.exchanges
    return _packed(line)


def _packed(line: dict[str, object]) -> bytes:
    return gzip.compress((json.dumps(line, separators=(",", ":")) + "\n").encode(), mtime=0)


def read_profile(path: str | os.PathLike[str]) -> Profile:
    """Read a profile from a file. If the file is truncated, the profile lacks ranks, see ``Profile.missing``.

    If ranks left files of their own beside the file, these are read instead, because they belong to a later run, which
    is still running or was interrupted.

    :raises ProfileError: if the file is malformed, with file, line and what is expected there; or if a rank's file is a
        link or another user's.
    """
    file = Path(path)
    parts = parts_of(file) if file.parent.is_dir() else []
    # Ranks' files must belong to root, this user or the owner of the profile: any other user who may write in the
    # folder could plant one, while the owner of the profile controls its content anyway.
    owners = {0, os.geteuid(), *([file.lstat().st_uid] if file.is_file() and not file.is_symlink() else [])}
    read = [_read_one(part, owners) for part in parts] if parts else [_read_one(file, None)]
    head, found = read[0][0], {one.rank: one for _, ranks in read for one in ranks}
    if any(other.size != head.size for other, _ in read):
        raise ProfileError(f"{file}: expecting parts of one run beside it, got several numbers of ranks")
    of_rank = [found[rank] for rank in sorted(found)]
    hosts = head.hosts or tuple(one.host for one in of_rank)
    known = hosts if len(hosts) == head.size and all(hosts) else ()
    seconds = max(other.seconds for other, _ in read)
    how = head.moves, head.granularity, head.virtual, head.counting, head.view
    return Profile(head.size, head.method, head.command, seconds, known, of_rank, *how)


def _read_one(path: Path, owners: Collection[int] | None) -> tuple[Head, list[RankRows]]:
    lines = _whole_lines(path, owners)
    try:
        head = head_of(str(path), next(lines, ""))
        ranks = (rank_of(str(path), number, line, head.size) for number, line in enumerate(lines, 2))
        return head, [_rows(one) for one in ranks]
    except GraphFileError as error:
        raise ProfileError(str(error)) from error


def _rows(one: RankLine) -> RankRows:
    letters = list(KINDS)
    tables = [np.r_[np.full((1, table.shape[1]), letters.index(letter)), table] for letter, table in one.kinds.items()]
    kind, peer, messages, volume = np.concatenate([np.empty((4, 0), dtype=np.int64), *tables], axis=1)
    return RankRows(one.rank, kind, peer, messages, volume, one.host, one.calls, one.exchanges)


def _whole_lines(path: Path, owners: Collection[int] | None) -> Iterator[str]:
    """The complete lines of a compressed file, as far as it can be decompressed.

    :param path: path of the file.
    :param owners: numbers of the users who may own the file; None if any user may.
    :raises ProfileError: if the file is not compressed, exceeds a limit, or belongs to another user.
    """
    file = open_begun(path, ProfileError, "a profile, as topompi profile writes it", owners=owners)
    file.head()
    with file.open() as stream:
        for line in stream:
            if not line.endswith(b"\n"):
                return
            yield line.decode("utf-8", errors="replace")
