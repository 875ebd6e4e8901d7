"""A real Slurm on an emulated network, one daemon per host, for tests of Slurm's placement of ranks."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from osu_like_bench.emulate import Emulated
from osu_like_bench.emulate.agent import enter
from tests.emulation import may_emulate
from tests.support import TRANSPORT
from topompi.topology import Fabric

CORES = 4  # of each host, as Slurm is told; more than there may be
PATIENCE = 60.0  # seconds for the daemons to come up

_CONFIG = """
ClusterName=emulated
SlurmctldHost={head}
SlurmUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SchedulerType=sched/builtin
TopologyPlugin=topology/tree
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
KillWait=2
NodeName={hosts} CPUs={cores} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=5 OverSubscribe=NO State=UP
"""


class SlurmCluster:
    """A cluster that is up: its hosts, and commands on the first of them.

    :param hosts: names, all with as many cores.
    """

    def __init__(self, network: Emulated, folder: Path) -> None:
        self.hosts, self._network, self._folder = list(network.fabric.hosts), network, folder

    def start(self, daemons: ExitStack) -> None:
        """Starts the daemons, which end with the stack; raises if they do not answer in time."""
        folder, head = self._folder, self.hosts[0]
        names = ",".join(self.hosts)
        (folder / "slurm.conf").write_text(_CONFIG.format(folder=folder, head=head, hosts=names, cores=CORES))
        (folder / "topology.conf").write_text(_switches(self._network.fabric))
        (folder / "state").mkdir()
        key = folder / "munge.key"
        key.touch(mode=0o600)
        key.write_bytes(bytes(range(128)))
        files = [f"--{name}={folder / 'munge'}.{name.split('-')[0]}" for name in ("pid-file", "log-file", "seed-file")]
        munge = ["munged", "--foreground", "--force", f"--key-file={key}", f"--socket={folder / 'munge.socket'}"]
        self._daemon(daemons, [*munge, *files])
        self._daemon(daemons, self._on(head, ["slurmctld", "-D"]))
        for host in self.hosts:
            self._daemon(daemons, self._on(host, ["slurmd", "-D", "-N", host]))
        until = time.monotonic() + PATIENCE
        while self._idle() < len(self.hosts):
            if time.monotonic() > until:
                logs = "\n".join(path.read_text()[-2000:] for path in sorted(folder.glob("*.log")))
                raise TimeoutError(f"Slurm: expected {len(self.hosts)} idle hosts within {PATIENCE:g} s\n{logs}")
            time.sleep(0.2)

    def run(self, command: Sequence[str], timeout: float = 60.0) -> subprocess.CompletedProcess[str]:
        """Run a command of Slurm on the first host."""
        line = self._on(self.hosts[0], command)
        return subprocess.run(line, capture_output=True, text=True, timeout=timeout, check=False)

    def job(self, command: Sequence[str], environment: Mapping[str, str] | None = None) -> list[str]:
        """What a command prints in an allocation of all hosts, line by line.

        :param command: run on the first host; ``srun`` or ``mpirun`` start it on all.
        :param environment: variables that it has besides those of the tests.
        """
        allocate = ["salloc", "--quiet", "--immediate=20", f"--nodes={len(self.hosts)}", "--exclusive"]
        # Ranks on several hosts need another transport than the tests' on one.
        one_host = [word for name in TRANSPORT for word in ("-u", name)]
        own = ["env", *one_host, *(f"{name}={value}" for name, value in (environment or {}).items())]
        said = self.run([*allocate, *own, *command])
        assert said.returncode == 0, said.stderr
        return said.stdout.splitlines()

    def landed(self, options: Sequence[str], environment: Mapping[str, str]) -> list[str]:
        """The host of each rank of a run by ``srun``, within an allocation of all hosts, where a map's are known."""
        said = self.job(["srun", *options, "sh", "-c", "echo $SLURM_PROCID $SLURMD_NODENAME"], environment)
        found = dict(line.split() for line in said)
        return [found[str(rank)] for rank in range(len(found))]

    def _idle(self) -> int:
        said = self.run(["sinfo", "--noheader", "--Node", "--states=idle", "--format=%N"])
        return len(said.stdout.split())

    def _on(self, host: str, command: Sequence[str]) -> list[str]:
        return enter(self._network.state, host, ["env", f"SLURM_CONF={self._folder / 'slurm.conf'}", *command])

    def _daemon(self, daemons: ExitStack, command: Sequence[str]) -> None:
        with open(self._folder / "daemons.log", "a", encoding="utf-8") as log:
            started = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        daemons.callback(started.wait, 20)
        daemons.callback(started.terminate)


def _switches(fabric: Fabric) -> str:
    """A ``topology.conf`` of the leaves and one switch above them."""
    leaves: dict[int, list[str]] = {}
    for host, leaf in zip(fabric.hosts, fabric.adapter_leaf.tolist(), strict=True):
        leaves.setdefault(leaf, []).append(host)
    lines = [f"SwitchName=leaf{leaf} Nodes={','.join(hosts)}" for leaf, hosts in leaves.items()]
    lines.append(f"SwitchName=top Switches={','.join(f'leaf{leaf}' for leaf in leaves)}")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module", name="slurm")
def slurm_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    """A cluster of two leaves of two hosts; skips where Slurm is not installed, or no network may be emulated."""
    missing = [name for name in ("slurmctld", "slurmd", "srun", "munged") if shutil.which(name) is None]
    if missing:
        pytest.skip(f"no Slurm here: {', '.join(missing)} not found")
    if not may_emulate():
        pytest.skip("a Slurm cluster needs root, iproute2 and a kernel with tbf")
    folder = tmp_path_factory.mktemp("slurm")
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        patch.setenv("TOPOMPI_EMULATE_STATE", str(folder / "networks"))
        cluster = SlurmCluster(stack.enter_context(Emulated("2x2")), folder)
        cluster.start(stack.enter_context(ExitStack()))
        yield cluster
