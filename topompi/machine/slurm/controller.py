"""The bridge's commands to a running Slurm: reads of its state, and updates of jobs and of the door."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from ...inputs.programs import run_program
from ...inputs.slurm.commands import ENVIRONMENT, SHOW_MARKS, SHOW_NODES, SHOW_QUEUE, asked
from .mark import Mark
from .snapshot import SlurmSnapshot, read_snapshot

__all__ = ["Commands", "Move"]

_DONE = "exit"  # ends scontrol, which reads updates from its standard input


@dataclass(frozen=True)
class Move:
    """A change of a waiting job.

    :param job: name of the job, as ``scontrol update`` takes it.
    :param mark: the bridge's new note on the job.
    :param partition: partition that it goes to; empty if it stays.
    :param hosts: host list of the nodes that it asks for; empty for no particular ones, None if that stays.
    :param nodes: number of nodes that it asks for; 0 if that stays.
    :param release: whether to release it from the hold that Slurm puts on a job whose nodes it refuses.
    :param why: reason, in words, for the log.
    """

    job: str
    mark: Mark
    partition: str = ""
    hosts: str | None = None
    nodes: int = 0
    release: bool = False
    why: str = ""

    def commands(self) -> list[str]:
        """Return the lines for ``scontrol``."""
        words = ["update", f"JobId={self.job}"]
        words += [f"Partition={self.partition}"] if self.partition else []
        words += [] if self.hosts is None else [f"ReqNodeList={self.hosts}"]
        # One number would be the least, so that Slurm could add nodes.
        words += [f"NumNodes={self.nodes}-{self.nodes}"] if self.nodes else []
        words.append(f"AdminComment={_quoted(self.mark.text())}")
        return [" ".join(words), *([f"release {self.job}"] if self.release else [])]


def _quoted(text: str) -> str:
    plain = "".join(letter for letter in text if letter.isprintable() and letter not in "\"'\\")
    return f'"{plain}"' if " " in plain else plain


class Commands:
    """Slurm's own commands.

    One ``scontrol`` takes all updates of a pass, because to start it takes 15 times as long as an update.

    :param seconds: time limit of each command.
    """

    def __init__(self, seconds: float = 10.0) -> None:
        self._seconds = seconds

    def snapshot(self) -> SlurmSnapshot:
        """Return Slurm's present state; the three commands run at once.

        :raises SourceError: if a command fails, is not installed, exceeds its time limit or prints malformed text.
        """
        with ThreadPoolExecutor(3) as pool:
            texts = list(pool.map(self._run, (SHOW_QUEUE, SHOW_MARKS, SHOW_NODES)))
        return read_snapshot(int(time.time()), *texts)

    def apply(self, moves: Sequence[Move]) -> list[str]:
        """Carry out moves; return Slurm's complaints, a line each, about moves that it refuses.

        :raises SourceError: as in `snapshot`.
        """
        lines = [line for move in moves for line in move.commands()]
        return self._told(lines) if lines else []

    def set_up(self, partition: str, up: bool) -> None:
        """Set a partition up, so that Slurm starts its jobs, or down.

        :raises SourceError: as in `snapshot`, or if Slurm refuses.
        """
        words = ("scontrol", "update", f"PartitionName={partition}", f"State={'UP' if up else 'DOWN'}")
        self._run(words)

    def _run(self, command: Sequence[str]) -> str:
        output = asked(command, "its output", self._seconds, ENVIRONMENT)
        return output.decode("utf-8", errors="replace")

    def _told(self, lines: Sequence[str]) -> list[str]:
        told = "\n".join([*lines, _DONE, ""]).encode()
        done = run_program(("scontrol",), "its output", self._seconds, told=told, environment=ENVIRONMENT, check=False)
        return [line.strip() for line in done.stderr.decode("utf-8", errors="replace").splitlines() if line.strip()]
