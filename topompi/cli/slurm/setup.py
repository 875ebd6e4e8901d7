"""The files that ``topompi slurm bridge --setup`` writes."""

from __future__ import annotations

from pathlib import Path

from ...errors import SourceError
from ...inputs.slurm.commands import printed
from ...inputs.slurm.reports import records
from ...inputs.writing import write_text
from ...machine.daemon.unit import own_command
from ...machine.slurm.setup import FIELDS, guard, partition_lines, service, steps
from ...machine.slurm.view import Policy
from .partitions import PARTITIONS

__all__ = ["write_setup"]


def write_setup(partitions: tuple[str, str, str], policy: str, source: str, folder: Path | None) -> None:
    """Print or write what an administrator needs for the bridge: partitions, guard, unit, and how to undo them.

    :param partitions: new partition in which jobs wait, new one in which placed jobs run, and that of the users now.
    :param policy: allocator, for the unit.
    :param source: topology source, for the unit.
    :param folder: folder to write the files to; None to print them.
    """
    door, run, usual = partitions
    rules = Policy(policy, None, door, run, usual)
    words = ["slurm", "bridge", "--policy", policy, "--topology", source]
    if (text := ",".join(partitions)) != PARTITIONS:
        words += ["--partitions", text]
    files = {
        "slurm.conf.lines": partition_lines(rules, _limits_of(usual)),
        "job_submit.lua": guard(rules),
        "topompi-bridge.service": service(rules, own_command(words, "bridge")),
        "STEPS.txt": steps(rules),
    }
    for name, text in files.items():
        if folder is None:
            print(f"==> {name} <==\n{text}")
        else:
            folder.mkdir(parents=True, exist_ok=True)
            write_text(folder / name, text)


def _limits_of(partition: str) -> dict[str, str]:
    """Ask Slurm for the fields of a partition."""
    wanted = f"the partition {partition} (--partitions)"
    text = printed(("scontrol", "--oneliner", "show", "partition", partition), wanted)
    for fields, _ in records(text, "PartitionName", FIELDS):
        return fields
    raise SourceError(f"scontrol: expecting {wanted}, got none")
