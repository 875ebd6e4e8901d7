"""Files and options that give a job's ranks their places: Open MPI, MPICH, Slurm."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..errors import ColocationError
from .cores import RankCores

__all__ = ["WRITERS", "write_places"]


def write_places(places: RankCores, hosts: Sequence[str], form: str) -> str:
    """Return the text that gives the ranks their places. It begins with the command that uses it.

    :param places: places of the ranks.
    :param hosts: names of the nodes, in order; more than the job needs stay unused.
    :param form: one of ``WRITERS``.
    :raises ColocationError: if the form is unknown or there are too few nodes.
    """
    if form not in WRITERS:
        raise ColocationError(f"expecting a format of {', '.join(WRITERS)}, got {form!r}")
    if len(hosts) < places.nodes:
        wanted = f"{places.nodes} hosts for {places.processes} ranks on {len(places.cores)} cores each"
        raise ColocationError(f"expecting {wanted}, got {len(hosts)}")
    return WRITERS[form](places, hosts[: places.nodes])


def _counts(places: RankCores) -> list[int]:
    """Return the number of ranks on each node."""
    k = len(places.cores)
    return [min(k, places.processes - k * node) for node in range(places.nodes)]


def _cpus(places: RankCores) -> str:
    return ",".join(str(core.cpu) for core in places.cores)


def _openmpi(places: RankCores, hosts: Sequence[str]) -> str:
    """Return a rank file. PACKAGE:CORE counts both from 0, whatever numbers the system gives to CPUs."""
    listed = ",".join(f"{host}:{count}" for host, count in zip(hosts, _counts(places), strict=True))
    lines = [f"# mpirun -n {places.processes} --host {listed} --map-by rankfile:file=THIS_FILE PROGRAM"]
    for rank in range(places.processes):
        node, core = places.of_rank(rank)
        lines.append(f"rank {rank}={hosts[node]} slot={core.package}:{core.number}")
    return "\n".join(lines) + "\n"


def _mpich(places: RankCores, hosts: Sequence[str]) -> str:
    """Return a host file; the option binds the ranks of each node to the CPUs in this order."""
    lines = [f"# mpiexec -f THIS_FILE -n {places.processes} -bind-to user:{_cpus(places)} PROGRAM"]
    lines += [f"{host}:{count}" for host, count in zip(hosts, _counts(places), strict=True)]
    return "\n".join(lines) + "\n"


def _slurm(places: RankCores, hosts: Sequence[str]) -> str:
    """Return a command of Slurm; beside another job's step, both are steps of one allocation."""
    words = [
        f"srun --nodes={places.nodes} --ntasks={places.processes} --ntasks-per-node={len(places.cores)}",
        f"--nodelist={','.join(hosts)} --distribution=block",
        f"--cpu-bind=map_cpu:{_cpus(places)}",
    ]
    if places.shared:
        words.append("--overlap")
    return " ".join([*words, "PROGRAM"]) + "\n"


WRITERS: dict[str, Callable[[RankCores, Sequence[str]], str]] = {"openmpi": _openmpi, "mpich": _mpich, "slurm": _slurm}
