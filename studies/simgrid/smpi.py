"""A runner for SimGrid's replay of MPI traces, and a parser of its output."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import IO, NamedTuple

from osu_like_bench.simulate import Failure
from topompi.errors import BenchmarkError
from topompi.inputs.programs import run_program

from .platform import SLOWER, UNIT_WEIGHT

__all__ = ["MODELS", "Replay", "Simulator", "configuration", "version"]

# smpi is SimGrid's own model: factors for rate and latency by message size, measured on one cluster; acknowledgements
# that share links; shares of a link that depend on the route's length. Its results do not follow from the fabric's
# numbers.
MODELS = ("flow", "smpi")
FLOW = {
    # The platform's own rates and latencies: no factors by message size (SimGrid 3.32 does not take a bare 1 as a
    # list), no acknowledgements that share links, no window that limits a flow's rate.
    "smpi/bw-factor": "0:1",
    "smpi/lat-factor": "0:1",
    "network/crosstraffic": "0",
    "network/TCP-gamma": "0",
    "network/weight-S": f"{UNIT_WEIGHT:.0f}",
}
ALWAYS = {
    # A rank spends no time on starting, completing or testing a message, so that only the links take time.
    "smpi/os": "0:0:0:0:0",
    "smpi/or": "0:0:0:0:0",
    "smpi/ois": "0:0:0:0:0",
    "smpi/host-speed": "1Gf",
}
SECONDS = re.compile(r"Simulation time ([0-9.]+)")
ENDS = re.compile(r"^\[\S+:(\d+):\(\d+\) ([0-9.]+)\].*/VERBOSE\] ", re.MULTILINE)
REASON = re.compile(r"(assertion|exception|error|abort|segmentation|fault|deadlock|killed)", re.IGNORECASE)


def configuration(model: str, selector: str | None = None, eager: int = 0) -> list[str]:
    """Return options of the simulator.

    :param model: ``flow`` for the platform's rates and latencies unchanged, ``smpi`` for SimGrid's own corrections.
    :param selector: library whose choice of algorithms a collective action follows.
    :param eager: bytes below which a message leaves its sender at once and waits at the receiver; larger messages wait
        until both ranks are ready.
    """
    chosen = {**ALWAYS, **(FLOW if model == "flow" else {})}
    chosen.update({"smpi/send-is-detached-thresh": str(eager), "smpi/async-small-thresh": str(eager)})
    if selector is not None:
        chosen["smpi/coll-selector"] = selector
    return [f"--cfg={name}:{value}" for name, value in chosen.items()]


@cache
def version() -> str:
    """Return the version of smpirun, ``SimGrid 3.32``; raise BenchmarkError if it is not installed."""
    if shutil.which("smpirun") is None:
        raise BenchmarkError(
            "simulate: expecting SimGrid's smpirun on the path, got none; Debian has it in libsimgrid-dev"
        )
    said = run_program(["smpirun", "-version"], "its version", 60, BenchmarkError, check=False).stdout
    found = re.search(r"\d+\.\d+(\.\d+)?", said.decode(errors="replace"))
    return f"SimGrid {found[0] if found else 'of unknown version'}"


class Replay(NamedTuple):
    """A replay of traces on a platform.

    :ivar listing: file that lists the traces.
    :ivar platform: file that ``platform.write_platform`` wrote.
    :ivar hostfile: file with the host of each rank.
    :ivar ranks: number of ranks.
    :ivar timeout: seconds of real time, after which the simulator and its children are ended.
    """

    listing: Path
    platform: Path
    hostfile: Path
    ranks: int
    timeout: float


class Simulator:
    """A runner of SimGrid's replays; several threads may run one each at once, and ``close`` ends them all.

    ``configuration`` makes the options that its methods take.
    """

    def __init__(self) -> None:
        self._jobs: set[subprocess.Popen[str]] = set()
        self._lock = threading.Lock()
        self._closed = False

    def run(self, replay: Replay, options: Sequence[str]) -> float | Failure:
        """Return the simulated seconds of a replay until the last rank has finished, or a failure."""
        said = self.say(replay, options)
        if isinstance(said, Failure):
            return said
        # Every rank that takes itself for the last one prints a time, also one without work that finishes before others
        # begin.
        found = [float(seconds) for seconds in SECONDS.findall(said)]
        return max(found) / SLOWER if found else Failure(f"crashed: {_reason(said)}")

    def ends(self, replay: Replay, options: Sequence[str]) -> list[float] | Failure:
        """Return the simulated seconds until each rank has finished, or a failure."""
        said = self.say(replay, [*options, "--log=smpi_replay.thres:verbose"])
        if isinstance(said, Failure):
            return said
        last = {int(rank): float(clock) / SLOWER for rank, clock in ENDS.findall(said)}
        return [last[rank] for rank in range(replay.ranks)]

    def say(self, replay: Replay, options: Sequence[str]) -> str | Failure:
        """Return the simulator's output of a replay, or a failure."""
        command = ["smpirun", "-quiet", "-np", str(replay.ranks), "-platform", str(replay.platform)]
        command += ["-hostfile", str(replay.hostfile), "-replay", str(replay.listing)]
        command += [*options, "--log=xbt_cfg.thres:warning"]
        with tempfile.TemporaryFile("w+", errors="replace") as said:
            job = self._start(command, said, replay.listing.parent)
            try:
                code = job.wait(replay.timeout)
            except subprocess.TimeoutExpired:
                return Failure(f"time limit of {replay.timeout:g} s")
            finally:
                with self._lock:
                    self._jobs.discard(job)
                _end(job)
            said.seek(0)
            if self._closed:
                return Failure("interrupted")
            text = said.read()
        return Failure(f"crashed: {_reason(text)} (exit code {code})") if code else text

    def close(self) -> None:
        """End running replays; replays that are started later fail."""
        with self._lock:
            self._closed = True
            for job in self._jobs:
                _end(job)

    def _start(self, command: Sequence[str], said: IO[str], where: Path) -> subprocess.Popen[str]:
        with self._lock:
            if self._closed:
                raise BenchmarkError("simulate: expecting an arena that is open, got a closed one")
            # A session of its own, because smpirun is a script whose children must end with it.
            job = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                cwd=where,
                start_new_session=True,
                text=True,
            )
            self._jobs.add(job)
        return job


def _end(job: subprocess.Popen[str]) -> None:
    if job.poll() is None:
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()


def _reason(said: str) -> str:
    lines = [" ".join(line.split()) for line in said.splitlines()]
    telling = [line for line in lines if REASON.search(line) and not line.startswith("Execution failed")]
    reason = telling[0] if telling else next((line for line in reversed(lines) if line), "it said nothing")
    return reason.rpartition("CRITICAL] ")[2][:160]
