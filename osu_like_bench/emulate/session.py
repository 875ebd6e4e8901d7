"""A context manager for an emulated network: up within the block, removed after it."""

from __future__ import annotations

import json
import os
import re
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from topompi.errors import BenchmarkError
from topompi.inputs import open_begun
from topompi.topology import Fabric, Routes
from topompi.topology.sources import fabricjson

from .background import END, RUNNING
from .launch import Launch, command_line, coordinates, find_peer, mpirun_of, program, rank_hosts
from .monitor import Monitor, Usage
from .network import MTU, check_rights, end_processes, lower, raise_network
from .peers import PEERS
from .records import NetworkRecord, make_folder, put, require_own, states
from .spec import LinkRates, emulated_routes

__all__ = ["Emulated", "Finished", "LaunchOptions", "take_down"]

ROOT = Path(__file__).resolve().parents[2]
MARKER = "OSU_EMULATED_RUN"
# Open MPI's launcher and its child both put the child into a process group; the later of them prints this harmless
# warning.
_NOISE = re.compile(r"^.*plm:ssh: Warning: setpgid\(.*\n?", re.M)


@dataclass(frozen=True)
class LaunchOptions:
    """The options with which a job is started on an emulated network.

    :param mpi: key of ``PEERS``, an MPI library with a set of options; None for the library of ``python`` with its
        default options.
    :param ranks: number of ranks; if it is None, as many as fit on all hosts.
    :param ppn: maximum number of ranks per host; ``3/1/4/2`` if hosts have different numbers, see ``rank_hosts``.
    :param order: order of the ranks over the hosts, see ``rank_hosts``.
    :param python: interpreter whose MPI starts the job.
    :param background: bytes that each rank of a second job sends to each other rank in an alltoall; the second job
        repeats it on all hosts during the job. 0 if there is no second job.
    :param timeout: seconds after which the job is ended.
    :param environment: additional environment variables for the ranks.
    :param hosts: host of each rank, in place of ``ranks``, ``ppn`` and ``order``.
    :param placement: options of mpirun that place the ranks in another way (``--map-by rankfile:file=F``), within the
        numbers of ranks per host that the other options give.
    :param topology: True if the ranks get the fabric's path in ``TOPOMPI_TOPOLOGY``.
    """

    mpi: str | None = None
    ranks: int | None = None
    ppn: int | str | None = None
    order: str = "block"
    python: str = sys.executable
    background: int = 0
    timeout: float = 600.0
    environment: Mapping[str, str] | None = None
    hosts: Sequence[str] | None = None
    placement: Sequence[str] = ()
    topology: bool = True


@dataclass(frozen=True)
class Finished:
    """The result of a job that has ended.

    :param returncode: exit code of mpirun.
    :param stdout: standard output; empty if it was not captured.
    :param stderr: standard error, without known harmless warnings of the launcher; empty if it was not captured.
    :param usage: load of processors and links during the job.
    :param background: output of the second job: a line with the number of its alltoalls.
    """

    returncode: int
    stdout: str
    stderr: str
    usage: Usage
    background: str = ""


class Emulated:
    """A network that is up within ``with``: ``with Emulated("4x4") as net: net.run(["program.py"])``.

    :param spec: specification of the network, see ``emulated_routes``.
    :param rates: rates of the links, see ``emulated_routes``.
    :param name: name of the network on this machine; by default a new one.
    :param texts: arguments of ``LinkRates.parse``, in place of ``rates``: ``Emulated("4x4", uplinks="400M")``.
    :raises TopompiError: if the spec cannot be emulated, or this process lacks the rights or programs for it.
    """

    def __init__(
        self, spec: str, rates: LinkRates | None = None, *, name: str | None = None, **texts: str | None
    ) -> None:
        self.spec = spec
        self.routes: Routes = emulated_routes(spec, rates or LinkRates.parse(**texts))
        self.name = name or f"run-{os.getpid()}-{secrets.token_hex(2)}"
        self._state: NetworkRecord | None = None

    @classmethod
    def existing(cls, state: NetworkRecord) -> Emulated:
        """Return an object for a network that is up already; used as a context, it takes the network down at the end.

        :param state: record of the network.
        """
        found = cls(str(state.path / fabricjson.NAME), name=state.name)
        found.spec = state.spec
        found._state = state
        return found

    def up(self, owned: bool = False) -> NetworkRecord:
        """Make the network.

        :param owned: True if ``emulate down`` without a name must spare the network as long as this process lives.
        """
        check_rights()
        self._state = NetworkRecord.make(self.name, self.spec, self.fabric.hosts, owned)
        raise_network(self.routes, self._state)
        return self._state

    def down(self) -> None:
        """End the network's processes and remove it; nothing happens if it is not up."""
        if self._state is not None:
            lower(self._state)
            self._state = None

    def __enter__(self) -> Emulated:
        if self._state is None:
            self.up(owned=True)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.down()

    @property
    def fabric(self) -> Fabric:
        """The fabric, with a rate for every link."""
        return self.routes.fabric

    @property
    def state(self) -> NetworkRecord:
        """The record of the network; raises BenchmarkError if it is not up."""
        if self._state is None:
            raise BenchmarkError(f"emulate: expecting a network that is up, got {self.name!r}, which is down")
        return self._state

    @property
    def path(self) -> Path:
        """Path of the file ``fabric.json``, which has the fabric with its rates and is a topology source."""
        return self.state.path / fabricjson.NAME

    def run(self, words: Sequence[str], options: LaunchOptions | None = None, *, capture: bool = True) -> Finished:
        """Run a program on the hosts with the real mpirun.

        The ranks find the Python modules in the folder of ``osu_like_bench``, as this process does.

        :param words: a Python script, options of Python (``-m``), a program, or a module's name; then arguments.
        :param options: options of the job; by default one rank on each host.
        :param capture: True to keep the output in the result; False to let it go to this process's output.
        :raises BenchmarkError: if the program cannot be run, other users may write the current directory, or the job
            exceeds its time and is ended.
        """
        options = options or LaunchOptions()
        require_own(Path.cwd(), "ranks import modules from here as root: run elsewhere")
        job = self.job(words, options)
        environment, token = self._environment(job, options)
        try:
            with self._background(options, token) as said, Monitor(self.fabric, self.state) as monitor:
                code, out, err = self._start(job, environment, options.timeout, capture)
        finally:
            end_processes(self.state.namespaces, f"{MARKER}={token}")
        words = open_begun(said, BenchmarkError, "what the background job says").text() if said else ""
        return Finished(code, out, err, monitor.usage, _NOISE.sub("", words))

    def job(self, words: Sequence[str], options: LaunchOptions) -> Launch:
        """Return the job that ``run`` would start with the same arguments."""
        peer = find_peer(options.mpi, options.python)
        hosts = options.hosts or rank_hosts(self.fabric, options.ranks, options.ppn, options.order)
        strange = [host for host in hosts if host not in self.fabric.host_index]
        if strange:
            raise BenchmarkError(f"emulate run: expecting hosts of {self.spec}, got {strange[0]!r}")
        return Launch(program(words, options.python), peer, mpirun_of(options.python), hosts, options.placement)

    def _environment(self, job: Launch, options: LaunchOptions) -> tuple[dict[str, str], str]:
        peer, token = PEERS[job.peer], secrets.token_hex(6)
        environment = {key: value for key, value in os.environ.items() if key not in ("TOPOMPI_HOSTS",)}
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        environment |= {MARKER: token, "OSU_EMULATED": json.dumps(self._facts(job, options)), **peer.environment}
        if options.topology:
            environment["TOPOMPI_TOPOLOGY"] = str(self.path)
        if peer.coordinates:
            path = self.state.path / f"coordinates-{token}"
            put(path, coordinates(self.routes, job.hosts))
            environment["MPIR_CVAR_COORDINATES_FILE"] = str(path)
        return environment | dict(options.environment or {}), token

    def _rates(self) -> str:
        return ", ".join(f"{8e-6 * rate:g}" for rate in sorted(set(self.fabric.link_rate.tolist())))

    def _facts(self, job: Launch, options: LaunchOptions) -> dict[str, object]:
        return {
            "network": f"{self.state.spec}, links of {self._rates()} Mbit/s",
            "mpi": PEERS[job.peer].what,
            "order": options.order,
            "background": options.background,
            "mtu": MTU,
            "links": "tbf, both directions",
        }

    def _start(self, job: Launch, environment: dict[str, str], timeout: float, capture: bool) -> tuple[int, str, str]:
        process = subprocess.Popen(
            command_line(job, self.state),
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if capture else None,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            if capture:
                out, err = process.communicate(timeout=timeout)
                return process.returncode, out, _NOISE.sub("", err)
            return _pass_on(process, timeout), "", ""
        except subprocess.TimeoutExpired:
            raise BenchmarkError(
                f"emulate: expecting the job to end within {timeout:g} s, got no end; it was killed"
            ) from None
        finally:
            process.kill()
            process.wait()

    @contextmanager
    def _background(self, options: LaunchOptions, token: str) -> Iterator[Path | None]:
        """Run a second job on all hosts before, during and after the first; provide the file of its output."""
        if not options.background:
            yield None
            return
        directory = self.state.path / f"background-{token}"
        make_folder(directory)
        words = ["-m", f"{__package__}.background", str(options.background), f"{options.timeout:g}", str(directory)]
        job = self.job(words, LaunchOptions(mpi=options.mpi, python=options.python))
        environment, _ = self._environment(job, options)
        environment[MARKER] = token
        command = command_line(job, self.state)
        said, nothing = directory / "said", subprocess.DEVNULL
        put(said, "")
        with (
            said.open("a") as file,
            subprocess.Popen(command, env=environment, stdin=nothing, stdout=nothing, stderr=file) as process,
        ):
            try:
                _await(directory / RUNNING, process, min(60.0, options.timeout))
                yield said
                if process.poll() is not None:
                    raise BenchmarkError(
                        "emulate: expecting the background job to outlast the other, got one that ended first"
                    )
            finally:
                put(directory / END, "")
                with suppress(subprocess.TimeoutExpired):
                    process.wait(30)
                process.kill()


def take_down(name: str | None = None) -> list[str]:
    """Remove the network of this name, or all networks that no living process will remove; return the names removed.

    :raises BenchmarkError: if no network has this name.
    """
    check_rights()
    found = [state for state in states() if (state.name == name if name else not state.in_use)]
    if name and not found:
        raise BenchmarkError(f"emulate down: expecting the name of a network that is up, got {name!r}")
    for state in found:
        lower(state)
    return [state.name for state in found]


def _await(file: Path, process: subprocess.Popen[bytes], patience: float) -> None:
    until = time.monotonic() + patience
    while not file.exists():
        if process.poll() is not None or time.monotonic() > until:
            raise BenchmarkError(
                f"emulate: expecting the background job to run within {patience:g} s, got none running"
            )
        time.sleep(0.05)


def _pass_on(process: subprocess.Popen[str], timeout: float) -> int:
    """Print the process's standard error, without the launcher's noise, until it ends; return its exit code."""

    def read() -> None:
        assert process.stderr is not None  # for the type checker: it is a pipe
        for line in process.stderr:
            if not _NOISE.fullmatch(line):
                print(line, end="", file=sys.stderr, flush=True)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    code = process.wait(timeout)
    reader.join(1.0)  # a process that outlived its launcher may still hold the pipe
    return code
