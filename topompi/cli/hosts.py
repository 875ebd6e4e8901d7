"""The hosts that a command works on: those of its option ``--hosts``, else of the Slurm job, else of the topology."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from ..errors import SettingError
from ..inputs.hostlist import ALL, read_hosts
from ..inputs.slurm.environment import HOSTS as JOB_HOSTS
from ..inputs.slurm.environment import hosts_of_job

__all__ = ["HOSTS_HELP", "Placement", "find_hosts"]

HOSTS_HELP = f"A host list such as n[01-16], a file, or {ALL}; else ${JOB_HOSTS}, else all."


def _placement(policy: str) -> str:
    from ..mapping.placement import place  # imported here, because few commands place ranks

    try:
        place(1, ["host"], policy)
    except ValueError as error:
        raise SettingError(f"--place: {error}") from None
    return policy


_PLACE = "Ranks on these hosts: block, cyclic or random:SEED."
Placement = Annotated[str, typer.Option("--place", callback=_placement, help=_PLACE)]


def find_hosts(option: str | None) -> list[str] | None:
    """Return the hosts of ``--hosts``, else of the Slurm job (with a note on standard error); None for all hosts.

    :param option: value of ``--hosts``, a host list, a file or ``all``; None if the option is not given.
    :raises SourceError: if the host list is malformed.
    """
    if option == ALL:
        return None
    if option is not None:
        return read_hosts(option)
    hosts = hosts_of_job(os.environ)
    if hosts is None:
        return None
    print(f"hosts: the {len(hosts):,} of this Slurm job ({JOB_HOSTS}); --hosts {ALL} takes all", file=sys.stderr)
    return hosts
