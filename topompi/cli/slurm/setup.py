"""``topompi slurm setup``: the files for the bridge."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...daemon.unit import own_command
from ...errors import SourceError
from ...inputs.slurm.commands import printed
from ...inputs.slurm.reports import records
from ...inputs.writing import write_text
from ...slurm.setup import FIELDS, guard, partition_lines, service, steps
from ...slurm.view import Policy

__all__ = ["setup"]

_FOLDER = "Folder to write the files to; else they go to standard output."


def setup(
    usual: Annotated[str, typer.Option("--usual", help="The partition that users have now.")] = "all",
    door: Annotated[str, typer.Option("--door", help="New partition in which jobs wait.")] = "door",
    run: Annotated[str, typer.Option("--run", help="New partition in which placed jobs run.")] = "run",
    policy: Annotated[str, typer.Option("--policy", help="Allocator, for the unit.")] = "isolated",
    cluster: Annotated[str, typer.Option("--cluster", help="Topology source, for the unit.")] = "SOURCE",
    folder: Annotated[Path | None, typer.Option("--output", "-o", help=_FOLDER)] = None,
) -> None:
    """Print what an administrator needs for topompi slurm bridge: partitions, guard, unit, and how to undo them.

    The limits of the new partitions are those of --usual, for which Slurm is asked.
    """
    rules = Policy(policy, None, door, run, usual)
    words = ["slurm", "bridge", "--policy", policy, "--cluster", cluster]
    names = zip(("--door", "--run", "--usual"), (door, run, usual), ("door", "run", "all"), strict=True)
    words += [word for option, name, usually in names if name != usually for word in (option, name)]
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
    wanted = f"the partition {partition} (--usual)"
    text = printed(("scontrol", "--oneliner", "show", "partition", partition), wanted)
    for fields, _ in records(text, "PartitionName", FIELDS):
        return fields
    raise SourceError(f"scontrol: expecting {wanted}, got none")
