"""A real Slurm on an emulated network, one daemon per host, for tests of Slurm's placement of ranks."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence

import pytest

from osu_like_bench.emulate import Emulated
from osu_like_bench.emulate.slurm import PROGRAMS, EmulatedSlurm, SlurmOptions
from tests.emulation import may_emulate
from tests.support import TRANSPORT

CORES = 4  # of each host, as Slurm is told; more than there may be


class SlurmCluster(EmulatedSlurm):
    """A cluster in which tests run jobs."""

    def job(self, command: Sequence[str], environment: Mapping[str, str] | None = None) -> list[str]:
        """The lines that a command prints in an allocation of all hosts.

        :param command: run on the first host; ``srun`` or ``mpirun`` start it on all.
        :param environment: variables besides those of the tests.
        """
        allocate = ["salloc", "--quiet", "--immediate=20", f"--nodes={len(self.hosts)}", "--exclusive"]
        # Ranks on several hosts need another transport than the tests' on one.
        one_host = [word for name in TRANSPORT for word in ("-u", name)]
        own = ["env", *one_host, *(f"{name}={value}" for name, value in (environment or {}).items())]
        said = self.run([*allocate, *own, *command])
        assert said.returncode == 0, said.stderr
        return said.stdout.splitlines()

    def landed(self, options: Sequence[str], environment: Mapping[str, str]) -> list[str]:
        """The host of each rank of a run by ``srun``, within an allocation of all hosts, as the tasks tell it."""
        said = self.job(["srun", *options, "sh", "-c", "echo $SLURM_PROCID $SLURMD_NODENAME"], environment)
        found = dict(line.split() for line in said)
        return [found[str(rank)] for rank in range(len(found))]


@pytest.fixture(scope="module", name="slurm")
def slurm_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    """A cluster of two leaves of two hosts; skips if Slurm is not installed, or no network may be emulated."""
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        pytest.skip(f"no Slurm here: {', '.join(missing)} not found")
    if not may_emulate():
        pytest.skip("a Slurm cluster needs root, iproute2 and a kernel with tbf")
    folder = tmp_path_factory.mktemp("slurm")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TOPOMPI_EMULATE_STATE", str(folder / "networks"))
        with Emulated("2x2") as network, SlurmCluster(network, SlurmOptions(cores=CORES, minutes=5)) as cluster:
            yield cluster
