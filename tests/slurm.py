"""A real Slurm on an emulated network, one daemon per host, for tests of Slurm's placement of ranks."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence

import pytest

from osu_like_bench.emulate import Emulated
from osu_like_bench.emulate.slurm import PROGRAMS, EmulatedSlurm, SlurmOptions
from tests.emulation import may_emulate
from tests.support import TRANSPORT

ACCOUNTING = ("mariadbd", "mariadb-install-db", "slurmdbd", "sacctmgr")  # programs of a Slurm that keeps accounts
_DATABASE = """\
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
DbdHost={head}
SlurmUser=root
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StorageUser=root
StorageLoc=accounts
PidFile={folder}/slurmdbd.pid
LogFile={folder}/slurmdbd.log
"""
_ACCOUNTING = """\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost={head}
AccountingStoragePass={folder}/munge.socket
"""
CORES = 4  # of each host, as Slurm is told; more than there may be
PATIENCE = 60  # seconds for the nodes of an allocation, and again for its command


class SlurmCluster(EmulatedSlurm):
    """A cluster in which tests run jobs."""

    def job(
        self, command: Sequence[str], environment: Mapping[str, str] | None = None, options: Sequence[str] = ()
    ) -> list[str]:
        """The lines that a command prints in an allocation.

        :param command: run on the first host; ``srun`` or ``mpirun`` start it on all.
        :param environment: variables besides those of the tests.
        :param options: options of ``salloc``; by default it takes all hosts.
        """
        said = self.allocated(command, environment, options)
        assert said.returncode == 0, said.stderr
        return said.stdout.splitlines()

    def allocated(
        self, command: Sequence[str], environment: Mapping[str, str] | None = None, options: Sequence[str] = ()
    ) -> subprocess.CompletedProcess[str]:
        """The end of a command in an allocation of whole hosts; parameters as for ``job``."""
        wanted = list(options) or [f"--nodes={len(self.hosts)}"]
        allocate = ["salloc", "--quiet", f"--immediate={PATIENCE}", "--exclusive", *wanted]
        # Ranks on several hosts need another transport than the tests' on one.
        one_host = [word for name in TRANSPORT for word in ("-u", name)]
        own = ["env", *one_host, *(f"{name}={value}" for name, value in (environment or {}).items())]
        try:
            return self.run([*allocate, *own, *command], 2 * PATIENCE)
        except subprocess.TimeoutExpired:
            self.run(["scancel", "--user=root"])  # or its nodes would be missing in all later tests
            raise

    def landed(self, options: Sequence[str], environment: Mapping[str, str]) -> list[str]:
        """The host of each rank of a run by ``srun``, within an allocation of all hosts, as the tasks tell it."""
        said = self.job(["srun", *options, "sh", "-c", "echo $SLURM_PROCID $SLURMD_NODENAME"], environment)
        found = dict(line.split() for line in said)
        return [found[str(rank)] for rank in range(len(found))]


class AccountedSlurm(SlurmCluster):
    """A cluster that keeps accounts, in a database in its folder, so that ``sacct`` prints its jobs."""

    def _configure(self) -> None:
        super()._configure()
        names = {"folder": self.folder, "head": self.hosts[0]}
        with open(self.folder / "slurm.conf", "a", encoding="utf-8") as file:
            file.write(_ACCOUNTING.format(**names))
        (self.folder / "slurmdbd.conf").write_text(_DATABASE.format(**names))
        (self.folder / "slurmdbd.conf").chmod(0o600)
        data = [f"--datadir={self.folder / 'database'}", "--user=root"]
        subprocess.run(["mariadb-install-db", *data], check=True, capture_output=True, timeout=PATIENCE)
        files = [f"--{name}={self.folder / f'database.{name}'}" for name in ("socket", "pid-file")]
        self._start(self.hosts[0], ["mariadbd", *data, *files, "--bind-address=127.0.0.1", "--skip-grant-tables"])

    def _start(self, host: str, command: Sequence[str]) -> subprocess.Popen[bytes]:
        """Start a daemon; before the controller, that of the accounts, which has to know the cluster."""
        if command[0] == "slurmctld":
            self._wait_for((self.folder / "database.socket").exists, "mariadbd")
            super()._start(host, ["slurmdbd", "-D"])
            add = ["sacctmgr", "--immediate", "add", "cluster", "emulated"]
            self._wait_for(lambda: self.run(add).returncode == 0, "slurmdbd")
        return super()._start(host, command)


def skip_without_slurm(more: Sequence[str] = ()) -> None:
    """Skip a test if Slurm, or one of ``more`` programs, is not installed, or no network may be emulated."""
    missing = [name for name in (*PROGRAMS, *more) if shutil.which(name) is None]
    if missing:
        pytest.skip(f"no Slurm here: {', '.join(missing)} not found")
    if not may_emulate():
        pytest.skip("a Slurm cluster needs root, iproute2 and a kernel with tbf")


@pytest.fixture(scope="package", name="slurm")
def slurm_cluster() -> Iterator[SlurmCluster]:
    """A cluster of two leaves of two hosts; skips if Slurm is not installed, or no network may be emulated."""
    skip_without_slurm()
    # Slurm's sockets are in the folder, so that its path has to be short.
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory(dir="/run") as folder:
        patch.setenv("TOPOMPI_EMULATE_STATE", folder)
        with Emulated("2x2") as network, SlurmCluster(network, SlurmOptions(cores=CORES, minutes=5)) as cluster:
            yield cluster
