"""``topompi jobs check``: running jobs that share links, and the leaf switches and links of each job."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from ...errors import SourceError
from ...inputs.slurm.running import RunningJob, read_running
from ...machine.jobs import AllocationError, Cluster
from ...machine.jobs.isolation import TreeRoutes
from ...machine.jobs.now import held_nodes, node_names, remarks, shared_links
from ...topology import Report, Routes
from ...topology.hostnames import find_hosts
from ...topology.inspection import study_jobs, without
from ..inputs import ClusterName, Lfts, grouped, list_findings, reading, reporting, routes_of
from ..rows import Listing, print_rows
from ..terminal import Limit, console
from .allocate import ClusterOrSlurm, Count, Live, Slots, require_cluster

__all__ = ["check_command"]

MOST_SHOWN = 4  # shared links that are printed; --json has all

Running = Annotated[
    Path | None, typer.Argument(help="squeue (text, --json, --yaml), CSV (job,hosts), or lines JOB HOSTS.")
]


@grouped
def check_command(
    running: Running = None,
    *,
    cluster: ClusterOrSlurm = None,
    nodes: Count = None,
    lfts: Lfts = None,
    slots: Slots = None,
    live: Live = False,
    cluster_name: ClusterName = None,
    how: Listing,
    limit: Limit = None,
) -> None:
    """List running jobs that can share directed links between switches; exit code 1 if some do.

    For a topology source, also print a row per job: its leaf switches, levels, over-subscription, busiest link, and the
    jobs with which it shares links. The over-subscription of a leaf switch is the job's hosts below the switch divided
    by the uplinks that the job's routes use; the largest one is printed.
    """
    if (running is None) != live:
        raise AllocationError("expecting a file of running jobs, or --slurm")
    require_cluster(cluster, live, how, lfts)
    if _show_sharing(running, cluster, nodes, lfts, how, slots, cluster_name):
        raise typer.Exit(1)


def _show_sharing(
    running: Path | None,
    cluster: str | None,
    nodes: int | None,
    lfts: Path | None,
    how: Listing,
    slots: int | None = None,
    cluster_name: str | None = None,
) -> bool:
    """Print the running jobs that share links; return whether some do.

    :param running: file of the running jobs; None to ask Slurm.
    :param cluster: specification of a cluster (``leaves=18x18``), or a topology source; None to ask Slurm.
    :param nodes: number of nodes of a specified cluster; None if it follows from the specification.
    :param lfts: path of the forwarding tables of a source; None if they are in the source.
    :param how: options for the reading of a source, and for the output.
    :param slots: number of slots of each node, for notes on how many of them are held on nodes that several jobs share;
        None if nodes have no slots.
    :param cluster_name: name of the cluster whose jobs are taken, or which is asked; None if there is one.
    :raises AllocationError: if an option that only sources have is given with a specification.
    """
    notes: list[str] = []
    if running is None:
        from ...machine.slurm.live import running_now  # imported here, because few commands ask Slurm

        jobs = running_now(notes, cluster_name)
    else:
        jobs = read_running(running, AllocationError, notes, cluster_name)
    if cluster is not None and cluster.startswith("leaves="):
        if how.down or how.partial or how.as_csv or how.rails or how.names or how.rule:
            options = "--without, --rails, --names, --name-rule, --partial and --csv"
            raise AllocationError(f"expecting a topology source beside {options}, got leaves=...")
        machine = Cluster.parse(cluster, nodes)
        held = held_nodes(jobs, machine)
        found, names = shared_links(list(held.values()), machine), list(held)
        names_of = node_names(machine)
        users: dict[int, dict[str, None]] = {}
        for pair, links in found.pairs.items():
            for link in links.tolist():
                users.setdefault(link, {}).update((names[job], None) for job in pair)
        name_of = TreeRoutes(machine.leaf, machine.pod).name_of
        shared = [(name_of(link), tuple(users[link])) for link in sorted(users, key=lambda link: -len(users[link]))]
        _tell([*notes, *remarks(jobs, names_of, machine.name, _each(slots, names_of))])
        pairs = {(names[a], names[b]): len(links) for (a, b), links in found.pairs.items()}
        if how.as_json:
            facts = {"jobs": len(held), "links": found.num_links, "pairs": _listed(pairs), "shared": shared}
            print(json.dumps(facts))
        else:
            _print_pairs(len(held), pairs, found.num_links, shared)
        return bool(pairs)
    name = cluster or "Slurm's switches"
    with _routes(cluster, lfts, how, cluster_name) as (routes, report):
        report.step("following routes")
        _tell([*notes, *remarks(jobs, routes.fabric.hosts, name, _each(slots, routes.fabric.hosts))])
        jobs = [job for job in jobs if (find_hosts(routes.fabric, job.hosts) >= 0).any()] or jobs
        study = study_jobs(routes, jobs, name)
    facts = {"source": name, "routes": routes.engine, "jobs": len(jobs), "links": study.links, "shared": study.shared}
    rows = [row.as_dict() for row in study.rows]
    heading = f"{name}: {len(rows):,} jobs; {routes.engine}"
    print_rows(heading, {**facts, "pairs": _listed(study.pairs)}, rows, as_json=how.as_json, as_csv=how.as_csv)
    if not (how.as_json or how.as_csv):
        _print_pairs(len(jobs), study.pairs, study.links, study.shared)
        if study.pairs and running is not None and cluster is not None:
            tables = () if lfts is None else ("--lfts", str(lfts))
            named = () if cluster_name is None else ("--cluster-name", cluster_name)
            words = ("--topology", cluster, *tables, *named, "-p", str(running))
            print(f"how much slower: {_replay(jobs, max(study.pairs, key=study.pairs.__getitem__), words)}")
    list_findings(report)
    return bool(study.pairs)


@contextmanager
def _routes(
    cluster: str | None, lfts: Path | None, how: Listing, cluster_name: str | None
) -> Iterator[tuple[Routes, Report]]:
    """Provide the routes of a topology source, or of the switches that Slurm knows, and the report on them."""
    if cluster is not None:
        with reading(cluster, lfts, how) as (discovery, report):
            yield routes_of(discovery, how.rails, how.down), report
        return
    from ...machine.slurm.live import routes_now  # imported here, because few commands ask Slurm

    with reporting(SourceError, "asking Slurm", partial=how.partial) as report:
        yield without(routes_now(report, cluster_name), how.down or []), report


def _each(slots: int | None, hosts: Sequence[str]) -> NDArray[np.int64] | None:
    return None if slots is None else np.full(len(hosts), slots)


def _tell(notes: Sequence[str]) -> None:
    screen = console(to_error=True)
    for note in notes:
        screen.print(note, soft_wrap=True)


def _listed(pairs: Mapping[tuple[str, str], int]) -> list[tuple[str, str, int]]:
    return [(one, other, links) for (one, other), links in pairs.items()]


def _print_pairs(
    jobs: int, pairs: Mapping[tuple[str, str], int], links: int, shared: Sequence[tuple[str, Sequence[str]]]
) -> None:
    screen = console()
    for one, other, count in _listed(pairs):
        screen.print(f"{one} and {other} share {count} link{'s' * (count != 1)}")
    for link, users in shared[:MOST_SHOWN]:
        screen.print(f"  {link}: {', '.join(users)}", soft_wrap=True)
    if len(shared) > MOST_SHOWN:
        screen.print(f"  and {len(shared) - MOST_SHOWN:,} more links: see --json")
    words = f"{jobs} job{'s' * (jobs != 1)}, {len(pairs)} pair{'s' * (len(pairs) != 1)} share{'s' * (len(pairs) == 1)}"
    screen.print(f"{words} {links} link{'s' * (links != 1)}")


def _replay(jobs: Sequence[RunningJob], pair: tuple[str, str], words: Sequence[str]) -> str:
    """Return the command that simulates two jobs side by side on their nodes, as if they ran an alltoall.

    :param jobs: running jobs.
    :param pair: names of the two jobs.
    :param words: options of the command.
    """
    sizes = {job.name: len(job.hosts) for job in jobs}
    specs = [f"{name}=alltoall@ranks={sizes[name]}" for name in pair]
    return shlex.join(["topompi", "jobs", "replay", *specs, *words])
