"""Running cases in child processes that may die, and what came of them."""

import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzz.readers import CONTROL
from tests.fuzz.seeds import FABRIC_REPORT
from tests.support import ROOT

__all__ = ["Campaign", "Case"]

SECONDS = 2.0  # of the processor, for one case
PATIENCE = 30.0  # seconds that one case may wait for the processor too, where the machine does other work
CASES_A_CHILD = 2000  # memory in pieces must not become the case's fault
NOISE = "topompi: "  # notes on caches


@dataclass(frozen=True)
class Case:
    """One input.

    :param name: for messages.
    :param reader: that reads it.
    :param data: its bytes.
    """

    name: str
    reader: str
    data: bytes


@dataclass
class Campaign:
    """Counts the outcomes of cases by reader, and keeps the inputs that failed.

    :param kept: folder of these; None keeps none.
    :param seconds: most seconds of the processor for one case.
    """

    kept: Path | None = None
    seconds: float = SECONDS
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    slowest: float = 0.0
    _child: subprocess.Popen[str] | None = None
    _cases: int = 0

    def run(self, cases: Iterable[Case], until: float = float("inf")) -> None:
        """Run cases until there are none, or the monotonic clock says so."""
        with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
            (Path(folder) / "fabric").write_bytes(FABRIC_REPORT)
            for case in cases:
                if time.monotonic() > until:
                    break
                self._one(case, Path(folder))
        self._end()

    def _one(self, case: Case, folder: Path) -> None:
        inside = folder / "case"
        inside.mkdir()
        path = inside / "input"
        path.write_bytes(case.data)
        told = self._ask(case.reader, path)
        seconds = float(told["seconds"])
        self.slowest = max(self.slowest, seconds)
        shutil.rmtree(inside)
        outcome, words = told["outcome"], told["words"]
        if seconds > self.seconds:
            outcome, words = "failed", f"took {seconds} s"
        if outcome == "refused" and "case" not in words and case.reader in ("topology", "graph", "rules", "hosts"):
            outcome, words = "failed", f"the message names no file: {words}"
        if outcome == "refused" and CONTROL.search(words):
            outcome, words = "failed", f"the message has control characters: {words!r}"
        self.counts[case.reader, outcome] += 1
        if outcome == "failed":
            self.failures.append(f"{case.reader}: {case.name}: {words}")
            if self.kept is not None:
                self.kept.mkdir(parents=True, exist_ok=True)
                (self.kept / f"{len(self.failures)}-{case.reader.replace(' ', '-')}").write_bytes(case.data)

    def _ask(self, reader: str, path: Path) -> dict[str, str]:
        if self._child is None or self._cases >= CASES_A_CHILD:
            self._end()
            self._start()
        assert self._child is not None
        assert self._child.stdin is not None
        self._cases += 1
        self._child.stdin.write(json.dumps([reader, str(path)]) + "\n")
        self._child.stdin.flush()
        line = self._line(PATIENCE)
        if line:
            told: dict[str, str] = json.loads(line)
            return told
        code = self._child.poll()
        self._end()
        words = f"no answer within {PATIENCE} s" if code is None else f"died with {code}"
        return {"outcome": "failed", "words": words, "seconds": "0"}

    def _line(self, seconds: float) -> str:
        """The child's next line, empty where it has died or takes too long."""
        assert self._child is not None
        assert self._child.stdout is not None
        ready, _, _ = select.select([self._child.stdout], [], [], seconds)
        line = self._child.stdout.readline() if ready else ""
        if not line and ready:
            self._child.wait(10)
        return line

    def _start(self) -> None:
        one_thread = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")
        self._child = subprocess.Popen(
            [sys.executable, "-m", "tests.fuzz.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=ROOT,
            env={**os.environ, **one_thread},
        )
        self._cases = 0
        assert self._line(120) == "ready\n"

    def _end(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child.communicate()
            self._child = None
