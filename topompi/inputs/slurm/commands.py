"""Slurm's own commands, run within a time."""

from __future__ import annotations

import io
import subprocess
from collections.abc import Sequence

from ...errors import SourceError
from ..files import InputFile

__all__ = ["SHOW_TOPOLOGY", "printed"]

SHOW_TOPOLOGY = ("scontrol", "show", "topology")
SECONDS = 10.0


def printed(command: Sequence[str], wanted: str, seconds: float = SECONDS) -> InputFile:
    """The standard output of a command, as a text to read.

    :param command: program and arguments.
    :param wanted: word for what it should print, for the error.
    :param seconds: seconds that it may take.
    :raises SourceError: for an exit code other than 0, with the first words of standard error.
    :raises OSError: where the program is not there.
    :raises subprocess.TimeoutExpired: when the time is over.
    """
    done = subprocess.run(command, capture_output=True, timeout=seconds, check=False)
    if done.returncode:
        words = done.stderr.decode("utf-8", errors="replace").strip()
        raise SourceError(f"expecting {wanted}, got exit code {done.returncode}: {words[:200]}")
    return InputFile(" ".join(command), lambda: io.BytesIO(done.stdout))
