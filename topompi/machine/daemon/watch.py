"""Detection of changed files that are no longer being written."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

__all__ = ["Watch"]

MOST_FILES = 16_384  # largest number of files that are watched per directory

State = tuple[int, int, int]  # time of the last change in ns, size in bytes, inode number


class Watch:
    """A detector of changed files, which the daemon asks repeatedly with ``is_due``.

    A change is due when two successive calls have found the same files, because then nobody is still writing them. In a
    directory only the files that the daemon reads are watched, and not, for example, a log that grows beside them.

    :param paths: files and directories to watch.
    :param is_input: function that returns whether the daemon reads a file of a directory; it is called again after each
        change of the file.
    :param most: number of files per directory that are watched.
    """

    def __init__(
        self,
        paths: Sequence[str | os.PathLike[str]],
        is_input: Callable[[Path], bool] = lambda _: True,
        most: int = MOST_FILES,
    ) -> None:
        self._paths, self._is_input, self._most = tuple(map(Path, paths)), is_input, most
        self._known: dict[Path, tuple[State, bool]] = {}
        self._taken = self._seen = self._look()

    def is_due(self) -> bool:
        """Return whether the files differ from those at the last ``take``, but not from those at the previous call."""
        now = self._look()
        at_rest, self._seen = now == self._seen, now
        return at_rest and now != self._taken

    def take(self) -> None:
        """Mark the change that the last ``is_due`` saw as taken, so that it is no longer due."""
        self._taken = self._seen

    def is_unchanged(self) -> bool:
        """Return whether the files now are still those of the last change that was taken."""
        return self._look() == self._taken

    def _look(self) -> dict[Path, State]:
        """Return the state of each watched file; files that are missing, or disappear meanwhile, are left out."""
        found, known = {}, {}
        for file, is_named in self._files():
            try:
                status = os.stat(file)
            except OSError:
                continue
            state = status.st_mtime_ns, status.st_size, status.st_ino
            if not is_named:
                before = self._known.get(file)
                known[file] = before if before and before[0] == state else (state, self._is_input(file))
            if is_named or known[file][1]:
                found[file] = state
        self._known = known
        return found

    def _files(self) -> Iterator[tuple[Path, bool]]:
        """Yield the files, at most ``most`` per directory, and whether each is one of ``paths`` itself."""
        for path in self._paths:
            if not path.is_dir():
                yield path, True
                continue
            count = 0
            for at, _, names in os.walk(path):
                for name in names[: self._most - count]:
                    yield Path(at) / name, False
                count += len(names)
                if count >= self._most:
                    break
