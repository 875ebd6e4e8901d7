"""Readers of the environment variables that Slurm sets for the tasks of a job."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ...errors import SettingError, TopompiError

__all__ = ["ADDRESS", "HOSTS", "JOB", "MEANINGS", "PATTERN", "SLOTS", "hosts_of_job", "own_address", "parse_slots"]

JOB, HOSTS, SLOTS = "SLURM_JOB_ID", "SLURM_JOB_NODELIST", "SLURM_TASKS_PER_NODE"
ADDRESS, PATTERN = "SLURM_TOPOLOGY_ADDR", "SLURM_TOPOLOGY_ADDR_PATTERN"
MEANINGS = {
    HOSTS: "Slurm: the job's hosts, where a command is told none",
    ADDRESS: "Slurm: the switches above this host, for the source auto",
    PATTERN: "Slurm: what the parts of it are",
    SLOTS: "Slurm: the slots of each, for topompi map",
}
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
