"""Readers of what Slurm says about itself: ``scontrol show config`` and ``srun --mpi=list``."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Configuration", "mpi_interfaces", "read_configuration"]

_SETTING = re.compile(r"^(\w+)\s*= (.*?)\s*$", re.MULTILINE)
_INTERFACE = re.compile(r"\bpmi[a-z0-9_]*[0-9x]\b")
_NOTHING = "(null)"  # scontrol's word for a setting without a value


@dataclass(frozen=True)
class Configuration:
    """The settings of a running Slurm that concern topologies and MPI programs; empty if Slurm does not tell one.

    :param version: version of the controller.
    :param cluster: name of the cluster.
    :param topology: plugin that knows the switches, for example ``topology/tree``.
    :param mpi: value of ``srun --mpi`` if the option is not given; empty also for ``none``.
    """

    version: str
    cluster: str
    topology: str
    mpi: str


def read_configuration(text: str) -> Configuration:
    """Read what ``scontrol show config`` prints.

    :param text: lines ``Name = value``; others are ignored.
    """
    found = {name: value for name, value in _SETTING.findall(text) if value != _NOTHING}
    mpi = found.get("MpiDefault", "none")
    return Configuration(
        version=found.get("SLURM_VERSION", ""),
        cluster=found.get("ClusterName", ""),
        topology=found.get("TopologyPlugin", ""),
        mpi="" if mpi == "none" else mpi,
    )


def mpi_interfaces(text: str) -> list[str]:
    """Return the interfaces for MPI libraries (``pmi2``, ``pmix``, ``pmix_v4``) that ``srun --mpi=list`` names, sorted.

    :param text: the command's output.
    """
    return sorted(set(_INTERFACE.findall(text)))
