"""A whole Slurm on an emulated network, with a controller on the first host and a daemon on each host."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from topompi.errors import BenchmarkError
from topompi.inputs import open_begun
from topompi.topology.sources import load_routes
from topompi.topology.writers import written

from .agent import enter
from .peers import VARIABLES
from .records import make_folder, put
from .session import Emulated

__all__ = ["PROGRAMS", "EmulatedSlurm", "SlurmOptions"]

PROGRAMS = ("slurmctld", "slurmd", "srun", "munged")
PATIENCE = 60.0  # maximum seconds to wait until the daemons answer
MOST_PATH = 107  # maximum bytes of a socket's path in Linux
STEP = 16  # maximum letters that Slurm adds to a socket's name for the number of a job step
_CONF = "slurm.conf"
_CONTROLLER = ("slurmctld", "-D")

# munge authenticates with a key of this cluster alone. Processes are found by their parents and tasks are not bound,
# because the hosts share one kernel, one cgroup tree and its processors.
_CONFIG = """\
ClusterName=emulated
SlurmctldHost={head}
SlurmUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/s-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SchedulerType={scheduler}
TopologyPlugin=topology/tree
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
KillWait=2
NodeName={hosts} CPUs={cores} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime={minutes} OverSubscribe=NO State=UP
"""
# Slurm's PMIx makes a folder of the same name on each host of a step, and the hosts share /tmp.
_MPI_CONFIG = "PMIxCliTmpDirBase=/dev/shm\n"


@dataclass(frozen=True)
class SlurmOptions:
    """Options of the emulated cluster.

    :param cores: number of processors per host that Slurm is told, which may exceed this machine's.
    :param scheduler: Slurm's scheduler plugin.
    :param minutes: time limit of the partition ``all``.
    :param lines: further lines of ``slurm.conf``.
    """

    cores: int = 4
    scheduler: str = "sched/builtin"
    minutes: int = 60
    lines: tuple[str, ...] = ()


class EmulatedSlurm:
    """A Slurm that is up within ``with``, on a network that is up: ``with EmulatedSlurm(network) as slurm: ...``.

    All daemons run in the network's namespaces, so that taking the network down ends them, too.

    :param network: the network.
    :param options: options of the cluster.
    :ivar hosts: names of the hosts, which are the nodes.
    :ivar folder: folder of the configuration, logs and state, below the network's record.
    """

    def __init__(self, network: Emulated, options: SlurmOptions | None = None) -> None:
        self.hosts, self.options = list(network.fabric.hosts), options or SlurmOptions()
        self.folder: Path = network.state.path / "slurm"
        self._network = network
        self._daemons: list[subprocess.Popen[bytes]] = []

    @property
    def is_up(self) -> bool:
        """Whether the cluster has been started, by this or another process."""
        return (self.folder / _CONF).exists()

    def up(self) -> None:
        """Start the daemons, and wait until all nodes are idle.

        :raises BenchmarkError: if Slurm or munge is not installed, or nodes do not answer within ``PATIENCE`` seconds.
        """
        if missing := [name for name in PROGRAMS if shutil.which(name) is None]:
            words = "Debian's packages are slurmctld, slurmd, slurm-client and munge"
            raise BenchmarkError(f"emulate --slurm: expecting {', '.join(missing)} to be installed: {words}")
        longest = max(len(f"{self.folder}/s-{host}/{host}") for host in self.hosts) + STEP
        if longest > MOST_PATH:
            raise BenchmarkError(
                f"emulate --slurm: expecting a state folder shorter by {longest - MOST_PATH} letters, because Slurm "
                f"makes sockets there, got {self.folder}: name another one in TOPOMPI_EMULATE_STATE"
            )
        self._configure()
        files = [f"--{name}-file={self.folder / f'munge.{name}'}" for name in ("pid", "log", "seed")]
        munge = ["munged", "--foreground", "--force", f"--key-file={self.folder / 'munge.key'}"]
        socket = self.folder / "munge.socket"
        self._start(self.hosts[0], [*munge, f"--socket={socket}", *files])
        self._wait_for(socket.exists, "munge")
        socket.chmod(0o600)  # everybody may write to it by default, which the records of networks refuse
        self._controller = self._start(self.hosts[0], _CONTROLLER)
        for host in self.hosts:
            self._start(host, ["slurmd", "-D", "-N", host])
        self._wait_for(self._are_idle, f"{len(self.hosts)} idle nodes")

    def _configure(self) -> None:
        make_folder(self.folder)
        (self.folder / "state").mkdir()
        put(self.folder / "munge.key", secrets.token_hex(64), 0o600)
        options = self.options
        text = _CONFIG.format(
            folder=self.folder,
            head=self.hosts[0],
            hosts=",".join(self.hosts),
            cores=options.cores,
            scheduler=options.scheduler,
            minutes=options.minutes,
        )
        tree, _ = written(load_routes(str(self._network.path)), "topology.conf")
        put(self.folder / "topology.conf", tree)
        put(self.folder / "mpi.conf", _MPI_CONFIG)
        put(self.folder / _CONF, "\n".join([text.rstrip(), *options.lines]) + "\n")

    def restart_controller(self) -> None:
        """End slurmctld, as an administrator does, and start it again; the jobs go on.

        :raises BenchmarkError: if it does not end or begin within ``PATIENCE`` seconds.
        """
        _ended(self._controller)
        self._daemons.remove(self._controller)
        self._controller = self._start(self.hosts[0], _CONTROLLER)
        self._wait_for(lambda: self.run(["scontrol", "ping"]).returncode == 0, "slurmctld")

    def pause_controller(self, seconds: float) -> None:
        """Stop slurmctld for a time in which no command gets an answer.

        :param seconds: the time in seconds.
        """
        self._controller.send_signal(signal.SIGSTOP)
        try:
            time.sleep(seconds)
        finally:
            self._controller.send_signal(signal.SIGCONT)

    def _start(self, host: str, command: Sequence[str]) -> subprocess.Popen[bytes]:
        with open(self.folder / "daemons.log", "a", encoding="utf-8") as log:
            started = subprocess.Popen(self.command(host, command), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self._daemons.append(started)
        return started

    def _wait_for(self, is_there: Callable[[], bool], what: str) -> None:
        until = time.monotonic() + PATIENCE
        while not is_there():
            if time.monotonic() > until:
                paths = sorted(self.folder.glob("*.log"))
                logs = "\n".join(open_begun(path, BenchmarkError, "a log").text()[-2000:] for path in paths)
                raise BenchmarkError(
                    f"emulate --slurm: expecting {what} within {PATIENCE:g} s, got none; the logs end with:\n{logs}"
                )
            time.sleep(0.1)

    def _are_idle(self) -> bool:
        told = self.run(["sinfo", "--noheader", "--Node", "--partition=all", "--states=idle", "--format=%N"])
        return len(set(told.stdout.split())) == len(self.hosts)

    def command(self, host: str, command: Sequence[str]) -> list[str]:
        """Return the command line that runs a command on a host, with this cluster's configuration.

        MPI programs that the command starts use the emulated links; variables that are already set stay.

        :param host: name of the host.
        :param command: program and arguments.
        """
        own = [f"{name}={value}" for name, value in VARIABLES.items() if name not in os.environ]
        return enter(self._network.state, host, ["env", f"SLURM_CONF={self.folder / _CONF}", *own, *command])

    def run(
        self,
        command: Sequence[str],
        timeout: float = 60.0,
        environment: Mapping[str, str] | None = None,
        *,
        capture: bool = True,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command on the first host, for example ``["srun", "-N4", "hostname"]``.

        :param command: program and arguments.
        :param timeout: seconds after which the command is ended.
        :param environment: the command's environment; this process's by default.
        :param capture: True to keep the output in the result; False to let it go to this process's output.
        :raises subprocess.TimeoutExpired: if the command takes longer.
        """
        line = self.command(self.hosts[0], command)
        return subprocess.run(line, capture_output=capture, text=True, timeout=timeout, check=False, env=environment)

    def down(self) -> None:
        """End the daemons that this object started."""
        for daemon in reversed(self._daemons):
            daemon.terminate()
        for daemon in reversed(self._daemons):
            _ended(daemon)
        self._daemons.clear()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> EmulatedSlurm:
        try:
            self.up()
        except BaseException:
            self.down()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.down()


def _ended(daemon: subprocess.Popen[bytes]) -> None:
    """End a daemon; kill it if it takes longer than 10 s."""
    daemon.terminate()
    try:
        daemon.wait(10)
    except subprocess.TimeoutExpired:
        daemon.kill()
        daemon.wait()
