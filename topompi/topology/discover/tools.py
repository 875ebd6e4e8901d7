"""Runs of ``ibnetdiscover`` and ``dump_fts`` (infiniband-diags) with a time limit, and messages on their failures."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from ...errors import SourceError
from ...inputs import open_begun
from ...inputs.writing import open_output
from ...visible import last_first
from .archive import Gathered

__all__ = ["REPORT", "TABLES", "Tools"]

REPORT, TABLES = "ibnetdiscover.txt", "dump_fts.txt"  # file names of the outputs in the archive
SYSTEM_FOLDERS = "/usr/sbin:/sbin:/usr/local/sbin"  # the tools' folders, which are not on every user's path
VERSION_SECONDS = 10.0
DEVICES = Path("/dev/infiniband")
_VERSION = re.compile(r"VERSION:?\s*([\w.+~-]{1,40})")


@dataclass(frozen=True)
class Tools:
    """A runner of ``ibnetdiscover`` and ``dump_fts`` with their time limit and options.

    :param seconds: time limit of each run in seconds.
    :param say: callback for progress messages.
    :param options: options of every run, which select the local adapter and port.
    """

    seconds: float
    say: Callable[[str], None]
    options: tuple[str, ...] = ()

    def gather(self, folder: Path) -> Gathered:
        """Write the report of ``ibnetdiscover`` and the forwarding tables of ``dump_fts`` into a folder.

        Afterwards a second report is compared with the first, to find changes of the fabric between the two runs.

        :param folder: folder to write into.
        :raises SourceError: if a tool is missing, has no privileges, fails, or exceeds the time limit.
        """
        first = self._run("ibnetdiscover", folder / REPORT)
        tables = self._run("dump_fts", folder / TABLES)
        again = self._run("ibnetdiscover", folder / "again")
        changed = _differ(folder / REPORT, folder / "again")
        (folder / "again").unlink()
        words = f"the fabric changed meanwhile: {changed}; run it once more" if changed else ""
        first["seconds again"] = again["seconds"]
        return Gathered(
            folder / REPORT,
            folder / TABLES,
            {"ibnetdiscover": first, "dump_fts": tables},
            {"the fabric is the same before and after": [words] if words else []},
        )

    def _run(self, name: str, output: Path) -> dict[str, object]:
        program = shutil.which(name, path=f"{os.environ.get('PATH', '')}:{SYSTEM_FOLDERS}")
        if program is None:
            raise SourceError(f"expecting the tool {name} (infiniband-diags) on the path or in /usr/sbin, got none")
        self.say(f"{name}: running, for {self.seconds:g} s at most")
        from ...inputs.programs import run_program  # imported here, because other commands run no tool

        begun, command = time.monotonic(), [program, *self.options]
        with open_output(output, "wb") as file:
            done = run_program(command, "a report", self.seconds, output=file, check=False, option="--timeout")
        took, size, said = time.monotonic() - begun, output.stat().st_size, last_first(done.stderr)
        if done.returncode or not size:
            raise SourceError(_failure(name, done.returncode, said))
        self.say(f"{name}: {size:,} bytes in {took:.1f} s")
        facts = {"version": _version(program), "options": list(self.options), "seconds": round(took, 3), "bytes": size}
        return facts | ({"said": said} if done.stderr.strip() else {})


def _version(program: str) -> str:
    from ...inputs.programs import run_program  # imported here, because other commands run no tool

    try:
        done = run_program([program, "--version"], "its version", VERSION_SECONDS, check=False)
    except SourceError:
        return "unknown"
    found = _VERSION.search((done.stdout + done.stderr).decode("utf-8", errors="replace"))
    return found[1] if found else "unknown"


def _failure(name: str, code: int, said: str) -> str:
    """The error message for a failed tool: the missing privileges or the exit code, and the tool's own words.

    :param name: name of the tool.
    :param code: exit code.
    :param said: the tool's words on standard error.
    """
    devices = sorted(DEVICES.glob("umad*"))
    if not devices:
        why = f"this host has no port of a fabric that may be asked ({DEVICES}/umad*)"
    elif not any(os.access(device, os.R_OK | os.W_OK) for device in devices):
        why = f"no right to read and write {devices[0]}, which is root's"
    else:
        why = f"exit code {code}" if code else "nothing on standard output"
    return f"{name}: expecting a report, got: {why}; it said: {said}"


def _differ(one: Path, other: Path) -> str:
    """The first difference between two reports except in comments, which contain times and paths; empty if none.

    :param one: path of the first report.
    :param other: path of the second report.
    """
    lines = zip_longest(_facts(one), _facts(other), fillvalue="nothing")
    return next((f"{old[:100]!r} became {new[:100]!r}" for old, new in lines if old != new), "")


def _facts(report: Path) -> Iterator[str]:
    lines = open_begun(report, SourceError, "a report").lines()
    return (line.rstrip() for _, line in lines if not line.startswith("#"))
