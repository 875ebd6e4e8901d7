"""Hosts of several jobs on one fabric: regular fragments of leaf switches, random hosts, or those of a file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..inputs.slurm.running import read_running
from ..topology import Fabric
from ..topology.hostnames import require_hosts
from .errors import InterferenceError
from .levels import Levels

__all__ = ["fragments", "listed", "place", "random_hosts"]

Integers = NDArray[np.int64]
_TEXT = re.compile(r"NF|F([1-9][0-9]{0,5})|RF:([0-9]{1,18})", re.IGNORECASE)


def place(text: str, levels: Levels, sizes: Sequence[int]) -> list[Integers]:
    """Choose the hosts of each job by a placement's name.

    ``Fn`` takes n hosts of each leaf switch, so that several jobs share it. ``NF`` (not fragmented) takes all hosts of
    each one. ``RF:SEED`` takes random hosts.

    :param text: name of the placement.
    :param levels: levels of the fabric.
    :param sizes: number of hosts of each job.
    :raises InterferenceError: if the name is unknown, or the jobs do not fit.
    """
    match = _TEXT.fullmatch(text.strip())
    if match is None:
        raise InterferenceError(f"placement: expecting NF, Fn such as F8, RF:SEED or a file, got {text!r}")
    if match[2] is not None:
        return random_hosts(levels, sizes, int(match[2]))
    return fragments(levels, sizes, int(match[1]) if match[1] else None)


def listed(path: str, fabric: Fabric, sizes: Sequence[int]) -> list[Integers]:
    """Read the hosts of each job from a file, in the order of its jobs.

    :param path: file of jobs and their hosts in any form that ``topompi jobs check`` reads, for example a line
        ``JOB HOSTS`` per job.
    :param fabric: the fabric.
    :param sizes: number of hosts that each job needs.
    :raises InterferenceError: if the file has another number of jobs, a job has too few hosts, or two have one host.
    :raises HostError: if a host is unknown.
    """
    jobs = read_running(path, InterferenceError)
    if len(jobs) != len(sizes):
        raise InterferenceError(f"{path}: expecting the hosts of {len(sizes)} jobs, got {len(jobs)}")
    placed = [require_hosts(fabric, job.hosts)[:size].astype(np.int64) for job, size in zip(jobs, sizes, strict=True)]
    for job, hosts, size in zip(jobs, placed, sizes, strict=True):
        if len(hosts) < size:
            raise InterferenceError(f"{job.place}: expecting {size} hosts of {job.name}, got {len(hosts)}")
    host, times = Counter(np.concatenate([np.empty(0, np.int64), *placed]).tolist()).most_common(1)[0]
    if times > 1:
        raise InterferenceError(f"{path}: expecting each host once, got {fabric.hosts[host]} {times} times")
    return placed


def fragments(levels: Levels, sizes: Sequence[int], each: int | None = None) -> list[Integers]:
    """Give each job, one after the other, the first free hosts of consecutive leaf switches, a number of each.

    Leaf switches with too few free hosts are left out. A job's last leaf switch may have fewer of its hosts than the
    others. A job that takes all hosts of leaf switches shares none of them with other jobs, even if its last one has
    hosts left. Hosts are in the order of leaf switches.

    :param levels: levels of the fabric.
    :param sizes: number of hosts of each job.
    :param each: number of hosts that a job takes of a leaf switch; None for all of them.
    :raises InterferenceError: if a job finds too few leaf switches with enough free hosts.
    """
    leaf = levels.group[1] if len(levels) > 1 else np.zeros(levels.num_hosts, dtype=np.int64)
    free = [np.flatnonzero(leaf == one) for one in range(int(leaf.max()) + 1)]
    most = [len(hosts) for hosts in free]
    placed = []
    for job, size in enumerate(sizes):
        taken: list[Integers] = []
        missing = size
        for number, hosts in enumerate(free):
            wanted = min(missing, most[number] if each is None else each)
            if wanted and len(hosts) >= (most[number] if each is None else wanted):
                taken.append(hosts[:wanted])
                free[number], missing = hosts[wanted:], missing - wanted
        if missing:
            text = f"job {job}: expecting {size} hosts, {each or 'all'} of each leaf switch"
            raise InterferenceError(f"placement: {text}, got {size - missing} free")
        placed.append(np.concatenate(taken) if taken else np.empty(0, dtype=np.int64))
    return placed


def random_hosts(levels: Levels, sizes: Sequence[int], seed: int) -> list[Integers]:
    """Draw the hosts of all jobs uniformly, without repetition; a job's ranks are in the order of its hosts' numbers.

    :param levels: levels of the fabric.
    :param sizes: number of hosts of each job.
    :param seed: seed of the random generator.
    :raises InterferenceError: if the fabric has too few hosts.
    """
    if sum(sizes) > levels.num_hosts:
        raise InterferenceError(f"placement: expecting up to {levels.num_hosts} hosts, got {sum(sizes)}")
    drawn = np.random.default_rng(seed).permutation(levels.num_hosts)[: sum(sizes)]
    return [np.sort(part) for part in np.split(drawn, np.cumsum(sizes)[:-1])]
