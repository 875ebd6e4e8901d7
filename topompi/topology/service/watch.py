"""Files that a subnet manager rewrites: whether they have changed, and whether they are at rest."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from ...inputs import current_limits

__all__ = ["Watch", "signature"]

Signature = tuple[tuple[str, int, int, int], ...]


def signature(paths: Sequence[str | os.PathLike[str]]) -> Signature:
    """Name, time of the last change in ns, size and number of each file at or below some paths; of no file's content.

    What is not there, or goes away meanwhile, has none. Of a directory as many files count as a source may have.
    """
    found = []
    for path in map(Path, paths):
        files = [path, *_below(path)] if path.is_dir() else [path]
        for file in files:
            try:
                status = os.stat(file)
            except OSError:
                continue
            size = 0 if stat.S_ISDIR(status.st_mode) else status.st_size
            found.append((str(file), status.st_mtime_ns, size, status.st_ino))
    return tuple(found)


def _below(folder: Path) -> list[Path]:
    found: list[Path] = []
    for at, _, names in os.walk(folder):
        found += [Path(at) / name for name in names]
        if len(found) > current_limits().members:
            break
    return sorted(found)


class Watch:
    """Says when files have changed and then stayed as they are between two looks: nobody is writing them.

    :param paths: files and directories.
    """

    def __init__(self, paths: Sequence[str | os.PathLike[str]]) -> None:
        self.paths = tuple(paths)
        self.taken = self.seen = signature(self.paths)

    def is_due(self) -> bool:
        """Look again: whether there is a change that was there at the last look, too, and was not yet taken."""
        now = signature(self.paths)
        at_rest, self.seen = now == self.seen, now
        return at_rest and now != self.taken

    def take(self) -> None:
        """The change of the last look is being read: it is due no more."""
        self.taken = self.seen

    def is_unchanged(self) -> bool:
        """Whether the files are still what was taken."""
        return signature(self.paths) == self.taken
