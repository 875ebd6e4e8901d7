"""The journal of a measurement: each completed run is appended at once, and a later call goes on from there."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ....inputs.appending import AppendedLines
from ....inputs.files import read_text
from ....inputs.jsontext import parse_json
from ..errors import ColocationError
from .plan import MeasuredProgram, MeasuredRun

__all__ = ["Journal"]

HEADER = {"format": "topompi runs of pairs", "version": 1}
_MARK = json.dumps(HEADER)[:-1].encode()  # every first line begins so, because the cores follow the version


def _line(value: object) -> bytes:
    return (json.dumps(value) + "\n").encode()


class Journal:
    """The journal of one node: JSON lines of a header, the programs' commands, and runs.

    A last line without an end, which a crash leaves, is cut off.

    :param path: path of the file, which is made if it is missing.
    :param programs: the programs of this call.
    :param cores: cores of both places.
    :raises ColocationError: if the file is no journal, is of other cores, or has another command for a program.
    """

    def __init__(self, path: Path, programs: Sequence[MeasuredProgram], cores: Sequence[Sequence[int]]) -> None:
        self.path, self.runs = path, list[MeasuredRun]()
        head = {**HEADER, "cores": [list(one) for one in cores]}
        self._file = AppendedLines(path, _line(head), _MARK, lambda line: self._check(line, head), ColocationError)
        try:
            self._begin(programs)
        except BaseException:
            self._file.close()
            raise

    def _begin(self, programs: Sequence[MeasuredProgram]) -> None:
        """Read the runs so far, and append the commands of programs that are new."""
        known = self._read()
        for one in programs:
            old = known.get(one.name)
            if old is None:
                self._file.write(_line({"program": one.name, "command": list(one.command)}))
            elif old != list(one.command):
                raise ColocationError(
                    f"{self.path}: {one.name}: expecting the command {old}, got {list(one.command)}; "
                    "remove the journal to begin again"
                )

    def write(self, run: MeasuredRun) -> None:
        """Append a run, and see it to the disk.

        :param run: the run.
        """
        self.runs.append(run)
        self._file.write(_line(["run", run.pair, run.block, run.program, run.beside, run.seconds]))
        self._file.sync()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _check(self, line: bytes, head: dict[str, object]) -> None:
        """Raise an error if a first line is not ``head``, which has the cores."""
        if self._parsed(1, line.decode(errors="replace")) != head:
            shown = line[:200].decode(errors="replace")
            raise ColocationError(f"{self.path}:1: expecting {json.dumps(head)}, got {shown}")

    def _read(self) -> dict[str, list[str]]:
        """Read the runs, and return the commands by program."""
        lines = read_text(self.path, ColocationError, "a journal of runs").split("\n")[:-1]
        commands: dict[str, list[str]] = {}
        for number, line in enumerate(lines[1:], 2):
            value = self._parsed(number, line)
            if isinstance(value, dict) and value.keys() == {"program", "command"}:
                commands[value["program"]] = value["command"]
            else:
                self.runs.append(self._run(number, value))
        return commands

    def _parsed(self, number: int, line: str) -> Any:
        return parse_json(line, str(self.path), ColocationError, line=number)

    def _run(self, number: int, value: Any) -> MeasuredRun:
        wanted = "a run: pair, block, program, neighbour, seconds"
        try:
            word, pair, block, program, beside, seconds = value
            one, other = pair
            good = word == "run" and all(isinstance(name, str) for name in (one, other, program)) and type(block) is int
            good = good and isinstance(beside, str | None) and 0 < float(seconds) < math.inf
        except (TypeError, ValueError):
            good = False
        if not good:
            raise ColocationError(f"{self.path}:{number}: expecting {wanted}, got {str(value)[:60]}")
        return MeasuredRun((one, other), block, program, beside, float(seconds))
