"""The jobs that users of the shutter name: by options, in a file, as folders of control groups."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ..guard import intrusion
from .errors import ShutterError
from .targets import parse_job

__all__ = ["Wanted"]


class Wanted:
    """The targets of jobs by name; a call looks again.

    :param named: jobs in the form ``NAME=TARGET``.
    :param file: file with a job per line in this form; empty lines and lines with # are left out.
    :param folder: directory of control groups, each of which is a job.
    :raises ShutterError: if a job is malformed, or if root may not trust the file.
    """

    def __init__(self, named: Sequence[str], file: Path | None = None, folder: Path | None = None) -> None:
        self._named, self._file, self._folder = dict(map(parse_job, named)), file, folder
        if file is not None and os.geteuid() == 0 and (who := intrusion(str(file))):
            raise ShutterError(f"expecting a file of jobs that only root can replace, got {who}")
        self._read: dict[str, str] = {}
        self()

    def __call__(self) -> dict[str, str]:
        """Return the target of each job, by name; a file that is being written keeps its former content."""
        found = dict(self._named)
        if self._file is not None:
            with suppress(OSError, ShutterError):
                lines = map(str.strip, self._file.read_text(encoding="utf-8").splitlines())
                self._read = dict(parse_job(line) for line in lines if line and not line.startswith("#"))
            found |= self._read
        if self._folder is not None:
            with suppress(OSError):
                found |= {one.name: f"cgroup:{one.path}" for one in os.scandir(self._folder) if one.is_dir()}
        return found
