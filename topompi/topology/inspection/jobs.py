"""Jobs on one fabric: the leaf switches that each uses, their over-subscription, and the links that jobs share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from ...inputs.slurm.running import RunningJob
from ..fabric import Fabric
from ..hostnames import require_hosts
from ..labels import end_name, switch_labels
from ..routes import Routes
from .usage import LinkUse, leaf_rows, link_use

__all__ = ["JobRow", "JobsStudy", "study_jobs"]


@dataclass(frozen=True)
class JobRow:
    """The part of the fabric that one job uses.

    :param job: name of the job.
    :param hosts: number of its hosts.
    :param leaves: number of leaf switches above its hosts.
    :param levels: number of different levels of switches that its routes cross.
    :param oversubscription: bandwidth of its hosts on a leaf switch divided by the bandwidth of the uplinks that its
        routes use there, for the worst leaf; None if no route leaves a leaf, or the source lists no cables.
    :param busiest: display name of the link between switches with most of its routes; empty without a link.
    :param busiest_routes: number of ordered pairs of its hosts whose routes cross that link.
    :param lost: number of ordered pairs of its hosts without a route.
    :param links: number of directed links between switches that its routes use.
    :param shared_links: number of these links that routes of other jobs use, too.
    :param shares_with: names of the jobs that share links with it; the job with most common links comes first.
    """

    job: str
    hosts: int
    leaves: int
    levels: int
    oversubscription: float | None
    busiest: str
    busiest_routes: int
    lost: int
    links: int
    shared_links: int
    shares_with: tuple[str, ...]

    def as_dict(self) -> dict[str, object]:
        """The fields, ready for JSON."""
        return asdict(self) | {"shares_with": list(self.shares_with)}


@dataclass(frozen=True)
class JobsStudy:
    """The result of `study_jobs`: jobs that run at the same time, and the directed links between switches they share.

    :param rows: one row per job, in the order of the jobs.
    :param pairs: number of links that both jobs of a pair can use, by the names of the two, in the order of the jobs.
    :param links: number of links that two or more jobs can use.
    :param shared: display name of each of these links, with the names of its jobs: the link with most jobs comes first,
        and of those with equally many the one with most routes.
    """

    rows: tuple[JobRow, ...]
    pairs: Mapping[tuple[str, str], int]
    links: int
    shared: tuple[tuple[str, tuple[str, ...]], ...]


def study_jobs(routes: Routes, jobs: Sequence[RunningJob], source: str = "") -> JobsStudy:
    """Find the part of the fabric that each job uses, and the links that jobs share.

    A job's links are those on all alternative routes (LMC) between all adapters of its hosts.

    :param routes: the routes over the whole fabric.
    :param jobs: jobs that run at the same time.
    :param source: name of the fabric in errors; empty for its own name.
    :raises HostError: if a job has a host that the fabric does not have.
    Cost: that of ``link_use`` for each job and alternative route; memory for jobs x links bits.
    """
    fabric = routes.fabric
    numbers = [np.unique(require_hosts(fabric, job.hosts, source)) for job in jobs]
    uses = [link_use(routes, hosts) for hosts in numbers]
    links = fabric.switch_links
    used = np.zeros((len(jobs), len(links)), dtype=bool)
    for mine, hosts, use in zip(used, numbers, uses, strict=True):
        mine |= use.routes[links] > 0
        for path in range(1, routes.num_paths):
            mine |= link_use(routes, hosts, path).routes[links] > 0
    common = used.astype(np.int32) @ used.T.astype(np.int32)
    by_many = used.sum(axis=0) > 1
    labels = switch_labels(fabric)
    rows = []
    for number, (job, use) in enumerate(zip(jobs, uses, strict=True)):
        others = [
            at for at in np.argsort(-common[number], kind="stable").tolist() if at != number and common[number, at]
        ]
        counts = int(used[number].sum()), int((used[number] & by_many).sum())
        rows.append(_row(job, use, labels, counts, tuple(jobs[at].name for at in others)))
    pairs = {(jobs[a].name, jobs[b].name): int(common[a, b]) for a, b in np.argwhere(np.triu(common, 1)).tolist()}
    load, users = sum((use.routes[links] for use in uses), np.zeros(len(links))), used.sum(axis=0)
    order = [at for at in np.lexsort((-load, -users)).tolist() if by_many[at]]
    shared = tuple(
        (_named(fabric, labels, links[at]), tuple(jobs[one].name for one in np.flatnonzero(used[:, at]).tolist()))
        for at in order
    )
    return JobsStudy(tuple(rows), pairs, int(by_many.sum()), shared)


def _row(job: RunningJob, use: LinkUse, labels: list[str], counts: tuple[int, int], others: tuple[str, ...]) -> JobRow:
    fabric, crossed, leaves = use.fabric, use.switch_links, leaf_rows(use)
    thinnest = [row["oversubscription"] for row in leaves if row["oversubscription"] is not None]
    busiest = int(crossed[0]) if len(crossed) else -1
    return JobRow(
        job=job.name,
        hosts=len(use.hosts),
        leaves=len(leaves),
        levels=_levels(fabric, crossed) if len(crossed) else int(bool(leaves)),
        oversubscription=max(thinnest, default=None),
        busiest="" if busiest < 0 else _named(fabric, labels, busiest),
        busiest_routes=0 if busiest < 0 else int(use.routes[busiest]),
        lost=use.lost,
        links=counts[0],
        shared_links=counts[1],
        shares_with=others,
    )


def _levels(fabric: Fabric, links: np.ndarray) -> int:
    ends = np.concatenate((fabric.link_source[links], fabric.link_target[links])) - fabric.num_adapters
    return int(fabric.switch_level[ends].max()) + 1


def _named(fabric: Fabric, labels: list[str], link: int) -> str:
    ends = (int(fabric.link_source[link]), int(fabric.link_target[link]))
    return " → ".join(end_name(fabric, labels, vertex) for vertex in ends)
