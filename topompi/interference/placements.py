"""Hosts of several jobs on one fabric: regular fragments of leaf switches, or random hosts."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .errors import InterferenceError
from .levels import Levels

__all__ = ["fragments", "place", "random_hosts"]

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
        raise InterferenceError(f"placement: expecting NF, Fn such as F8, or RF:SEED, got {text!r}")
    if match[2] is not None:
        return random_hosts(levels, sizes, int(match[2]))
    return fragments(levels, sizes, int(match[1]) if match[1] else None)


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
