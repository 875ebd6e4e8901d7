"""Options that several commands of ``topompi slurm`` have."""

from __future__ import annotations

from typing import Annotated

import typer

from ...errors import SourceError

__all__ = ["OR_SLURM", "PARTITIONS", "Partitions", "split_partitions"]

OR_SLURM = "A topology source; else what scontrol show topology prints, which has no routes."
PARTITIONS = "door,run,all"
_PARTITIONS = "Partitions in which jobs wait, in which placed jobs run, and of jobs that are left to Slurm."
Partitions = Annotated[str, typer.Option("--partitions", metavar="DOOR,RUN,USUAL", help=_PARTITIONS)]


def split_partitions(text: str) -> tuple[str, str, str]:
    """Return the names of the three partitions; those that are left out, or empty, are the default ones.

    :param text: value of ``--partitions``.
    :raises SourceError: if there are more than three names.
    """
    names, usual = text.split(","), PARTITIONS.split(",")
    if len(names) > len(usual):
        raise SourceError(f"--partitions: expecting DOOR,RUN,USUAL, got {text!r:.60}")
    door, run, last = (name or other for name, other in zip([*names, "", ""], usual, strict=False))
    return door, run, last
