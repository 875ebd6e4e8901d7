"""Readers of the environment variables that Slurm sets for the tasks of a job."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ...errors import SettingError, TopompiError

__all__ = [
    "ADDRESS",
    "HOSTS",
    "JOB",
    "MEANINGS",
    "NODE",
    "PATTERN",
    "SLOTS",
    "STEP",
    "TASKS",
    "hosts_of_job",
    "own_address",
    "parse_slots",
    "worlds_of_one",
]

JOB, HOSTS, SLOTS = "SLURM_JOB_ID", "SLURM_JOB_NODELIST", "SLURM_TASKS_PER_NODE"
TASKS, NODE = "SLURM_NTASKS", "SLURMD_NODENAME"
STEP, STEP_TASKS, TASK = "SLURM_STEP_ID", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID"
ADDRESS, PATTERN = "SLURM_TOPOLOGY_ADDR", "SLURM_TOPOLOGY_ADDR_PATTERN"
MEANINGS = {
    HOSTS: "Slurm: the job's hosts, where a command is told none",
    ADDRESS: "Slurm: the switches above this host, for the source auto",
    PATTERN: "Slurm: what the parts of it are",
    SLOTS: "Slurm: the slots of each, for topompi map",
    TASKS: "Slurm: the job's number of tasks, for topompi slurm place",
    STEP_TASKS: "Slurm: tasks of this step, each of which may be a world of its own by mistake",
}
# Variables that mpirun's daemons set for their ranks: Open MPI's, MPICH's and Intel MPI's (hydra), and MVAPICH's. srun
# starts the daemons, and the ranks inherit the daemons' SLURM_PROCID and SLURM_STEP_NUM_TASKS.
BY_MPIRUN = ("OMPI_COMM_WORLD_SIZE", "MPI_LOCALNRANKS", "MPIRUN_RSH_LAUNCH", "MV2_COMM_WORLD_SIZE")
_SLOTS = re.compile(r"([0-9]{1,9})(?:\(x([0-9]{1,9})\))?")


def hosts_of_job(environment: Mapping[str, str]) -> list[str] | None:
    """Return the hosts of the Slurm job; None if there is no job.

    :param environment: environment of a task or a batch script.
    :raises SourceError: if the host list is malformed.
    """
    from ..hostlist import read_hosts  # imported here, because most ranks need only their own address

    written = environment.get(HOSTS)
    return read_hosts(written) if written else None


def own_address(environment: Mapping[str, str]) -> tuple[str, str] | None:
    """Return Slurm's address of this host (its switches and its name) and its pattern; None if Slurm sets no address.

    :param environment: environment of a task.
    """
    address = environment.get(ADDRESS)
    return (address, environment.get(PATTERN, "")) if address else None


def worlds_of_one(environment: Mapping[str, str], size: int) -> str:
    """Return a warning if srun started several tasks, each of which is a world of its own; empty if not.

    That is so if the MPI library does not speak the interface that ``srun --mpi`` offers. The text is for the first
    task of the step alone. A program that `BY_MPIRUN` tells to be mpirun's, and one in a batch script or the shell of
    ``salloc``, may rightly be alone.

    :param environment: environment of the process.
    :param size: number of ranks of ``MPI.COMM_WORLD``.
    """
    tasks = environment.get(STEP_TASKS, "")
    several = re.fullmatch("[0-9]{1,9}", tasks) and int(tasks) > 1
    if size != 1 or not several or not environment.get(STEP) or environment.get(TASK) != "0":
        return ""
    if any(name in environment for name in BY_MPIRUN):
        return ""
    return (
        f"srun started {tasks} tasks, and each is an MPI program of one rank, because the MPI library does not speak "
        "what srun --mpi offers: start it with srun --mpi=pmix (Open MPI) or --mpi=pmi2 (MPICH), or with mpirun"
    )


def parse_slots(written: str, hosts: int, error: type[TopompiError] = SettingError, where: str = SLOTS) -> list[int]:
    """Parse the numbers of slots per host: one for all hosts, one per host (``16,16,8``), or as ``16(x2),8`` by Slurm.

    :param written: text with the numbers.
    :param hosts: number of hosts.
    :param error: class of the error that is raised if the text is malformed or does not fit the number of hosts.
    :param where: name of the option or variable, for the error's message.
    """
    slots: list[int] = []
    for word in written.split(","):
        match = _SLOTS.fullmatch(word.strip())
        if not match or int(match[2] or 1) > hosts:
            raise error(f"expecting {where} like 16, 16,16,8 or 16(x2),8 for {hosts} hosts, got {written!r}")
        slots += [int(match[1])] * int(match[2] or 1)
    if len(slots) == 1 and "(" not in written:
        slots *= hosts
    if len(slots) != hosts:
        raise error(f"expecting {where} for {hosts} hosts, got {len(slots)}: {written}")
    return slots
