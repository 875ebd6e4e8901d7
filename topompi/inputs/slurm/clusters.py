"""The clusters of an output of Slurm's commands, of which one alone is read."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ...errors import TopompiError

__all__ = ["Clusters", "cluster_heading"]

_HEADING = re.compile(r"CLUSTER: (\S+)\s*")


def cluster_heading(line: str) -> str | None:
    """Return the name in a line ``CLUSTER: name``, which squeue and sinfo print with ``-M``; None for other lines."""
    match = _HEADING.fullmatch(line)
    return match[1] if match else None


@dataclass(frozen=True)
class Clusters:
    """The names of the clusters in an output, and the choice of one of them.

    Jobs and nodes of several clusters are never read together: their numbers and names may be equal.

    :param wanted: name of the cluster whose rows are taken; None if the output must be of one cluster.
    :param found: names of the clusters so far; an empty name stands for rows that name no cluster.
    """

    wanted: str | None = None
    found: dict[str, None] = field(default_factory=dict)

    def takes(self, name: str) -> bool:
        """Record the cluster of a row, or of an empty part of the output; return whether its rows are taken."""
        self.found.setdefault(name)
        return self.wanted is None or name == self.wanted

    def check(self, file: str, error: type[TopompiError]) -> None:
        """Raise an error if the output has several clusters and none is wanted, or has not the wanted one.

        :param file: name of the input.
        :param error: class of the error.
        """
        names = [name or "one without a name" for name in self.found]
        got = " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))
        if self.wanted is None and len(names) > 1:
            raise error(f"{file}: expecting one cluster, got {got}: --cluster-name takes one")
        if self.wanted is not None and self.wanted not in self.found:
            got = got if any(self.found) else "no name of a cluster (-M prints it, in sacct --format=Cluster,...)"
            raise error(f"{file}: expecting the cluster {self.wanted} (--cluster-name), got {got}")
