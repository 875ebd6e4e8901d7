"""Discovery from the switch addresses that Slurm gives the tasks of a job, for all its hosts together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...errors import SourceError
from ...inputs.hostlist import compress
from ...inputs.slurm.environment import ADDRESS
from ...inputs.writing import write_text
from ..discovery import Report
from ..sources import fabricjson, slurm_addresses
from .archive import Gathered

__all__ = ["REPORT", "from_addresses"]

REPORT = "fabric.json"


def from_addresses(of_ranks: Sequence[tuple[str, tuple[str, str] | None]], folder: Path) -> Gathered:
    """Write the switches above a job's hosts as a file ``fabric.json`` into a folder.

    :param of_ranks: host of each rank with Slurm's (address, pattern) of that host, None if Slurm gives none.
    :param folder: folder to write into.
    :raises SourceError: if a host has no address from Slurm, or the addresses contradict each other.
    """
    silent = sorted({host for host, address in of_ranks if address is None})
    if silent:
        raise SourceError(
            f"expecting {ADDRESS} on all hosts, got none on {compress(silent)} "
            "(Slurm sets it where a topology is configured, for tasks that srun starts)"
        )
    addresses = {host: address for host, address in of_ranks if address is not None}
    fabric = slurm_addresses.read(addresses, Report()).fabric
    path = folder / REPORT
    write_text(path, fabricjson.write(fabric))
    facts = {"ranks": len(of_ranks), "hosts": len(addresses), "bytes": path.stat().st_size}
    return Gathered(path, None, {slurm_addresses.NAME: facts})
