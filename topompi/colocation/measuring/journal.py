"""The journal of a measurement: each completed run is appended at once, and a later call goes on from there."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...inputs.files import read_text
from ..errors import ColocationError
from .plan import Program, Run

__all__ = ["Journal"]

HEADER = {"format": "topompi runs of pairs", "version": 1}


class Journal:
    """The journal of one node: JSON lines of a header, the programs' commands, and runs.

    A last line without an end, which a crash leaves, is cut off.

    :param path: path of the file, which is made if it is missing.
    :param programs: the programs of this call.
    :param cores: cores of both places.
    :raises ColocationError: if the file is no journal, is of other cores, or has another command for a program.
    """

    def __init__(self, path: Path, programs: Sequence[Program], cores: Sequence[Sequence[int]]) -> None:
        self.path, self.runs = path, list[Run]()
        head = {**HEADER, "cores": [list(one) for one in cores]}
        known = self._read(head) if path.exists() and path.stat().st_size else None
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        if known is None:
            self._append(head)
        for one in programs:
            old = (known or {}).get(one.name)
            if old is None:
                self._append({"program": one.name, "command": list(one.command)})
            elif old != list(one.command):
                raise ColocationError(
                    f"{path}: {one.name}: expecting the command {old}, got {list(one.command)}; "
                    "remove the journal to begin again"
                )

    def write(self, run: Run) -> None:
        """Append a run, and see it to the disk.

        :param run: the run.
        """
        self.runs.append(run)
        self._append(["run", run.pair, run.block, run.program, run.beside, run.seconds])
        os.fsync(self._fd)

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)

    def _append(self, value: Any) -> None:
        text = (json.dumps(value) + "\n").encode()
        while text:
            text = text[os.write(self._fd, text) :]

    def _read(self, head: dict[str, Any]) -> dict[str, list[str]] | None:
        """Read the runs and return the commands by program; None if not even the header is complete."""
        text = read_text(self.path, ColocationError, "a journal of runs")
        *lines, torn = text.split("\n")
        if torn:
            os.truncate(self.path, len(text.encode()) - len(torn.encode()))
        if not lines:
            return None
        found = self._parsed(1, lines[0])
        if found != head:
            raise ColocationError(f"{self.path}: line 1: expecting {json.dumps(head)}, got {lines[0][:200]}")
        commands: dict[str, list[str]] = {}
        for number, line in enumerate(lines[1:], 2):
            value = self._parsed(number, line)
            if isinstance(value, dict) and value.keys() == {"program", "command"}:
                commands[value["program"]] = value["command"]
            else:
                self.runs.append(self._run(number, value))
        return commands

    def _parsed(self, number: int, line: str) -> Any:
        try:
            return json.loads(line)
        except ValueError:
            raise ColocationError(f"{self.path}: line {number}: expecting JSON, got {line[:60]!r}") from None

    def _run(self, number: int, value: Any) -> Run:
        wanted = "a run: pair, block, program, neighbour, seconds"
        try:
            word, pair, block, program, beside, seconds = value
            one, other = pair
            good = word == "run" and all(isinstance(name, str) for name in (one, other, program)) and type(block) is int
            good = good and isinstance(beside, str | None) and 0 < float(seconds) < math.inf
        except (TypeError, ValueError):
            good = False
        if not good:
            raise ColocationError(f"{self.path}: line {number}: expecting {wanted}, got {str(value)[:60]}")
        return Run((one, other), block, program, beside, float(seconds))
