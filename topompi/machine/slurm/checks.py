"""Checks of the Slurm on this machine and of the job in which they run, for ``topompi doctor``."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ...errors import TopompiError
from ...inputs.slurm.addresses import switches_above
from ...inputs.slurm.commands import LIST_MPI, SHOW_CONFIG, SHOW_TOPOLOGY, printed
from ...inputs.slurm.configuration import mpi_interfaces, read_configuration
from ...inputs.slurm.environment import ADDRESS, HOSTS, JOB, NODE, SLOTS, STEP, hosts_of_job, own_address, parse_slots
from ...topology import Report, Routes
from ...topology.hostnames import find_hosts
from ...views.cluster import cluster_of
from ..jobs import Cluster
from ..jobs.now import node_names
from .live import cluster_now

__all__ = ["ABSENT", "FAULT", "OK", "Check", "check_slurm"]

OK, ABSENT, FAULT = "ok", "absent", "fault"
Check = tuple[str, str, str]  # name of what was checked, state (OK, ABSENT or FAULT), and a line with a remedy

_WRITE = "topompi topology export SOURCE -o topology.conf, and TopologyPlugin=topology/tree"
_FLAT = {"", "topology/none", "topology/default", "topology/flat"}


def check_slurm(environment: Mapping[str, str], routes: Routes | None = None) -> Iterator[Check]:
    """Check Slurm's version, answers, topology and MPI plugins, and the variables of the job; nothing without Slurm.

    :param environment: the environment variables.
    :param routes: routes over the network that Slurm's topology is compared with; None to compare it with nothing.

    Cost: three runs of Slurm's commands, each within ten seconds.
    """
    if shutil.which(SHOW_CONFIG[0]) is None:
        if environment.get(JOB):
            yield (
                "Slurm",
                ABSENT,
                f"{SHOW_CONFIG[0]} is not here: a job learns its topology from {ADDRESS} or a service",
            )
            yield from _job(environment)
        return
    try:
        told = read_configuration(_asked(SHOW_CONFIG))
    except TopompiError as error:
        yield "Slurm", ABSENT, f"its commands are here, and do not answer: {error}"
    else:
        yield "Slurm", OK, f"{told.version}, cluster {told.cluster}, answers"
        yield from _topology(told.topology, environment, routes)
        yield _starts(told.mpi)
    yield from _job(environment)


def _asked(command: Sequence[str]) -> str:
    return printed(command, "an answer").text()


def _topology(plugin: str, environment: Mapping[str, str], routes: Routes | None) -> Iterator[Check]:
    """Check that Slurm knows the switches, that the job's nodes are below them, and that ``routes`` agree.

    Nothing is a fault here: a tree that is coarse, old or absent is the site's own, and topompi works without it.
    """
    what = "Slurm's topology"
    if plugin in _FLAT:
        yield what, ABSENT, f"none ({plugin or 'no TopologyPlugin'}): Slurm places jobs without the switches; {_WRITE}"
        return
    try:
        cluster, job = cluster_now(Report(partial=True)), hosts_of_job(environment) or []
    except TopompiError as error:
        yield what, ABSENT, f"{plugin}: {' '.join(SHOW_TOPOLOGY)}: {error}"
        return
    names = set(node_names(cluster))
    absent = [node for node in job if node not in names]
    if absent:
        yield (
            what,
            ABSENT,
            f"{len(absent)} of {len(job)} nodes of this job are in none of its switches: {absent[0]}, ...",
        )
        return
    leaves = f"{plugin}, {len(names):,} nodes on {len(np.unique(cluster.leaf)):,} leaf switches"
    if routes is None:
        yield what, OK, leaves
        return
    both, odd = _different(cluster, routes)
    if odd:
        yield what, ABSENT, f"{leaves}: {odd}; {_WRITE}"
    elif both == 0:
        yield what, ABSENT, f"{leaves}, none of which the topology above has: rename them (--nodes); {_WRITE}"
    else:
        yield what, OK, f"{leaves}; for {both:,} nodes it agrees with the topology above"


def _different(slurm: Cluster, routes: Routes) -> tuple[int, str]:
    """Compare the leaf switches of Slurm's nodes with those of another description of the cluster.

    The result is the number of nodes that both have, and two nodes in words whose leaf switches differ; empty if none.

    :param slurm: Slurm's description.
    :param routes: routes over the network that it should agree with.
    """
    fabric, other = routes.fabric, cluster_of(routes)
    leaf_of = dict(zip(node_names(other), other.leaf.tolist(), strict=True))
    hosts = find_hosts(fabric, node_names(slurm)).tolist()
    rows = [
        (name, ours, leaf_of[fabric.hosts[host]])
        for name, ours, host in zip(node_names(slurm), slurm.leaf.tolist(), hosts, strict=True)
        if host >= 0 and fabric.hosts[host] in leaf_of
    ]
    names = [name for name, _, _ in rows]
    ours, theirs = (np.array([row[side] for row in rows], dtype=np.int64) for side in (1, 2))
    for within, across, words in (
        (ours, theirs, "are on one leaf switch for Slurm, and on two in the topology above"),
        (theirs, ours, "are on one leaf switch in the topology above, and on two for Slurm"),
    ):
        if pair := _split(within, across):
            return len(names), f"{names[pair[0]]} and {names[pair[1]]} {words}"
    return len(names), ""


def _split(within: NDArray[np.int64], across: NDArray[np.int64]) -> tuple[int, int] | None:
    """Find two nodes in one group of the first partition that are in two groups of the second; None if there are none.

    :param within: group of each node in the first partition, shape (nodes,).
    :param across: group of each node in the second partition, shape (nodes,).
    """
    _, first, group = np.unique(within, return_index=True, return_inverse=True)
    apart = np.flatnonzero(across != across[first[group]])
    return (int(first[group[apart[0]]]), int(apart[0])) if len(apart) else None


def _starts(default: str) -> Check:
    """Check which interfaces srun offers to MPI libraries.

    :param default: the one that it offers without an option; empty for none.
    """
    what = "srun --mpi"
    try:
        kinds = mpi_interfaces(_asked(LIST_MPI))
    except TopompiError as error:
        return what, ABSENT, f"srun does not tell what it offers: {error}"
    offered = ", ".join(kinds) or "none that an MPI library speaks"
    if not any(kind.startswith("pmix") for kind in kinds):
        return what, ABSENT, f"{offered}: no pmix, so that Open MPI is started by mpirun alone"
    if not default:
        words = "without an option each task is an MPI program of one rank (MpiDefault=none)"
        return what, ABSENT, f"{offered}; {words}: srun --mpi=pmix for Open MPI, --mpi=pmi2 for MPICH"
    return what, OK, f"{offered}; {default} without an option"


def _job(environment: Mapping[str, str]) -> Iterator[Check]:
    """Check the variables that Slurm sets for a job; nothing outside a job."""
    if not environment.get(JOB):
        return
    what, number = "Slurm's job", environment[JOB]
    try:
        hosts = hosts_of_job(environment)
        if hosts is None:
            yield what, ABSENT, f"{number}: expecting {HOSTS}, got none: pass Slurm's variables on"
            return
        slots = environment.get(SLOTS, "")
        if slots and not environment.get(STEP):  # in a step they are the step's, whose nodes may be fewer
            parse_slots(slots, len(hosts))
        told = own_address(environment)
        if told is not None and environment.get(NODE):
            switches_above({environment[NODE]: told})
    except TopompiError as error:
        yield what, FAULT, f"{number}: {error}"
        return
    tasks = f"{SLOTS}={slots}" if slots else f"no {SLOTS}"
    address = f"{ADDRESS}={told[0]}" if told else f"no {ADDRESS} (srun and sbatch set it, salloc and mpirun do not)"
    yield what, OK, f"{number}: {len(hosts):,} nodes, {environment[HOSTS]}; {tasks}; {address}"
