"""The jobs that users of the shutter name: by options, in a file, as folders of control groups."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from ...guard import intrusion
from ...inputs.files import open_begun
from .controlgroups import ControlGroup, is_group
from .errors import ShutterError
from .steps import PLACES, SlurmSteps, slurm_job
from .targets import ProcessGroup, ProcessTree

__all__ = ["FORMS", "JobFolders", "JobTargets", "Target", "parse_job"]

FORMS = "pgid:NUMBER, sid:NUMBER, tree:PID, slurm:JOBID or cgroup:/PATH"
Target = ProcessGroup | ProcessTree | ControlGroup | SlurmSteps
_NAME = re.compile(r"[\w.:@-]{1,200}", re.ASCII)
_TARGET = re.compile(r"(pgid|sid|tree|slurm):([0-9]{1,10})|(cgroup):(/[^\0]{1,4000})")


class JobFolders:
    """The folders of this node in which jobs are looked for.

    :param slurm: folder of Slurm's control groups, or SlurmdSpoolDir; None for the first of ``PLACES`` that is there.
    :param groups: a folder of control groups that the administrator has named; None if there is none.
    """

    def __init__(self, slurm: Path | None = None, groups: Path | None = None) -> None:
        found = (place for place in PLACES if os.path.isdir(place))
        self.slurm = str(slurm.absolute()) if slurm is not None else next(found, PLACES[0])
        self._roots = [self.slurm] if is_group(self.slurm) else []
        self._roots += [] if groups is None else [str(groups.absolute())]

    def target(self, words: str) -> Target:
        """Find the processes of a job, for example ``pgid:NUMBER`` or ``cgroup:/PATH``.

        Root stops no control group outside the folders that the administrator has named.

        :param words: the text.
        :raises ShutterError: if the text has another form, or if it names what may not be stopped.
        """
        found = _TARGET.fullmatch(words)
        if found is None:
            raise ShutterError(f"expecting {FORMS}, got {words:.200}")
        kind, path = found[1] or found[3], (found[4] or "").rstrip("/")
        if kind == "cgroup":
            if os.geteuid() == 0 and not any(path.startswith(f"{root}/") for root in self._roots):
                known = " or ".join(self._roots) or "a folder that --cgroups or --slurm names"
                raise ShutterError(f"expecting a control group below {known}, got {path}")
            return ControlGroup(path)
        number = int(found[2])
        if kind == "slurm":
            return slurm_job(number, self.slurm)
        return ProcessTree(number) if kind == "tree" else ProcessGroup(number, kind)


class JobTargets:
    """The targets of jobs by name; a call looks again.

    :param named: jobs in the form ``NAME=TARGET``.
    :param file: file with a job per line in this form; empty lines and lines with # are left out.
    :param folder: directory of control groups, each of which is a job.
    :raises ShutterError: if a named job is malformed, or if root may not trust the file.
    """

    def __init__(self, named: Sequence[str], file: Path | None = None, folder: Path | None = None) -> None:
        self._named, self._file, self._folder = dict(map(parse_job, named)), file, folder
        if file is not None and os.geteuid() == 0 and (who := intrusion(str(file))):
            raise ShutterError(f"expecting a file of jobs that only root can replace, got {who}")
        self._read: dict[str, str] = {}
        self.refused: dict[str, str] = {}  # reasons by malformed line or folder, as of the last call
        self()

    def __call__(self) -> dict[str, str]:
        """Return the target of each job, by name; a file that is being written keeps its former content."""
        found, self.refused = dict(self._named), {}
        if self._file is not None:
            with suppress(OSError, ShutterError):
                lines = [line for _, line in open_begun(self._file, ShutterError, "a file of jobs").lines()]
                self._read = self._jobs(lines)
            found |= self._read
        if self._folder is not None:
            with suppress(OSError):
                paths = [one.path for one in os.scandir(self._folder) if one.is_dir(follow_symlinks=False)]
                found |= self._jobs(f"{os.path.basename(path)}=cgroup:{path}" for path in paths)
        return found

    def _jobs(self, lines: Iterable[str]) -> dict[str, str]:
        """The jobs of lines; a malformed line, or one that names a job again, is refused alone."""
        found: dict[str, str] = {}
        for line in filter(None, map(str.strip, lines)):
            if line.startswith("#"):
                continue
            try:
                name, target = parse_job(line)
                if name in found:
                    raise ShutterError(f"expecting each job once, got {name} again")
                found[name] = target
            except ShutterError as problem:
                self.refused[line[:200]] = str(problem)
        return found


def parse_job(words: str) -> tuple[str, str]:
    """Split ``NAME=TARGET``, and check the form of both.

    :param words: the text.
    :raises ShutterError: if the text has another form.
    """
    name, equal, target = words.partition("=")
    if not equal or not _NAME.fullmatch(name) or not _TARGET.fullmatch(target):
        raise ShutterError(f"expecting NAME=TARGET, where TARGET is {FORMS}, got {words:.200}")
    return name, target
