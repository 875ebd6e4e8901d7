"""The files that a site gives OpenSM to set up lanes for jobs, and to undo them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ....inputs.writing import write_text
from .membership import Member, partitions, policy
from .opensm import Qos

__all__ = ["write_files"]


def write_files(path: str | os.PathLike[str], qos: Qos, members: Sequence[Member]) -> list[Path]:
    """Write the options file, and beside it the policy, the partitions, and the options that undo the lanes.

    From ``lanes.conf`` come the names ``lanes.policy.conf``, ``lanes.partitions.conf`` and ``lanes.undo.conf``.

    :param path: path of the options file.
    :param qos: tables of all ports.
    :param members: service level and ports of each job.
    :returns: the paths of all four files.
    :raises InterferenceError: if two jobs have one port.
    :raises OSError: if a file cannot be written.
    """
    path = Path(path)
    beside = {
        kind: path.with_name(f"{path.stem}.{kind}{path.suffix}").absolute() for kind in ("policy", "partitions", "undo")
    }
    note = "To be renewed when jobs start on other hosts."
    jobs = ", ".join(f"{one.name} has service level {one.level}" for one in members)
    texts = {
        path: f"# Virtual lanes for jobs: {jobs}.\n"
        "# Put these lines in opensm.conf, or start OpenSM with them: opensm -F FILE.\n"
        f"{qos.lines()}"
        "# The service level of a job: keep one of the next two lines, or neither if programs set it themselves.\n"
        f"qos_policy_file {beside['policy']}\n"
        f"# partition_config_file {beside['partitions']}\n",
        beside["policy"]: f"# Service levels by the ports of jobs' hosts. {note}\n{policy(members)}",
        beside["partitions"]: f"# Service levels by the partitions of jobs. {note}\n{partitions(members)}",
        beside["undo"]: "# OpenSM's own tables, by its defaults. Start it once with this file: opensm -F FILE.\n"
        "# Lines taken out without this leave the ports as they are, because OpenSM then sets no tables.\n"
        "qos TRUE\n",
    }
    for file, text in texts.items():
        write_text(file, text)
    return list(texts)
