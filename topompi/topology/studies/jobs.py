"""Many jobs on one fabric: where each sits, how thin its uplinks are, and whose links it shares."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from ...errors import SourceError
from ...inputs import open_inputs
from ..fabric import Fabric
from ..hostlist import expand
from ..hostnames import require_hosts
from ..routes import Routes
from .names import end_name, switch_labels
from .usage import LinkUse, leaf_rows, link_use

__all__ = ["Job", "JobRow", "read_jobs", "study_jobs"]


@dataclass(frozen=True)
class Job:
    """A job's name and hosts.

    :param name: any text, unique.
    :param hosts: names, each once.
    :param place: ``file:line``.
    """

    name: str
    hosts: tuple[str, ...]
    place: str = ""


@dataclass(frozen=True)
class JobRow:
    """What one job has of the fabric.

    :param job: its name.
    :param hosts: number of its hosts.
    :param leaves: leaf switches that hold them.
    :param levels: levels of switches that its routes cross.
    :param oversubscription: what its hosts on a leaf can send over what the uplinks that its routes use there carry, on
        the worst leaf; None where no route leaves a leaf, or the source lists no cables.
    :param busiest: the link between switches with most of its routes, in words; empty without one.
    :param busiest_routes: ordered pairs of its hosts whose routes cross that link.
    :param lost: ordered pairs of its hosts without a route.
    :param links: directed links between switches that its routes use.
    :param shared_links: those of them that routes of other jobs use, too.
    :param shares_with: names of these jobs, those with most common links first.
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


def read_jobs(path: str | os.PathLike[str]) -> list[Job]:
    """Jobs of a CSV file, ``job,hosts`` a line; hosts are a host list, whose commas need no quotes.

    :raises SourceError: with file and line, for a line without hosts, a list that is none, and a name that comes twice.
    """
    (text, *more) = open_inputs(path)
    if more:
        raise SourceError(f"{path}: expecting one CSV file of jobs, got {1 + len(more)} files")
    jobs = list(_rows(text.name, text.lines()))
    if not jobs:
        raise SourceError(f"{text.name}: expecting lines 'job,hosts', got none")
    places: dict[str, str] = {}
    for job in jobs:
        if places.setdefault(job.name, job.place) != job.place:
            raise SourceError(
                f"{job.place}: expecting each job once, got {job.name!r} again, first at {places[job.name]}"
            )
    return jobs


def _rows(name: str, lines: Iterator[tuple[int, str]]) -> Iterator[Job]:
    for number, line in lines:
        cells = next(csv.reader([line.strip()]), [])
        if not cells or line.lstrip().startswith("#") or (number == 1 and cells[0].strip().lower() == "job"):
            continue
        place, hosts = f"{name}:{number}", ",".join(cells[1:]).strip()
        if not cells[0].strip() or not hosts:
            raise SourceError(f"{place}: expecting job,hosts, got {line.strip()[:80]!r}")
        try:
            found = tuple(dict.fromkeys(expand(hosts)))
        except SourceError as error:
            raise SourceError(f"{place}: {error}") from error
        yield Job(cells[0].strip(), found, place)


def study_jobs(routes: Routes, jobs: Sequence[Job]) -> list[JobRow]:
    """One row a job, in their order.

    :param routes: over the whole fabric.
    :param jobs: that run at the same time.
    :raises HostError: for hosts that the fabric has not.
    Cost: see ``link_use``, for each job; (jobs x links) bits.
    """
    fabric = routes.fabric
    uses = [link_use(routes, np.unique(require_hosts(fabric, job.hosts))) for job in jobs]
    links = fabric.switch_links
    used = np.stack([use.routes[links] > 0 for use in uses]) if uses else np.empty((0, len(links)), dtype=bool)
    common = used.astype(np.int32) @ used.T.astype(np.int32)
    by_many = used.sum(axis=0) > 1
    labels = switch_labels(fabric)
    rows = []
    for number, (job, use) in enumerate(zip(jobs, uses, strict=True)):
        others = [
            at for at in np.argsort(-common[number], kind="stable").tolist() if at != number and common[number, at]
        ]
        shared = int((used[number] & by_many).sum())
        rows.append(_row(job, use, labels, shared, tuple(jobs[at].name for at in others)))
    return rows


def _row(job: Job, use: LinkUse, labels: list[str], shared: int, others: tuple[str, ...]) -> JobRow:
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
        links=len(crossed),
        shared_links=shared,
        shares_with=others,
    )


def _levels(fabric: Fabric, links: np.ndarray) -> int:
    ends = np.concatenate((fabric.link_source[links], fabric.link_target[links])) - fabric.num_adapters
    return int(fabric.switch_level[ends].max()) + 1


def _named(fabric: Fabric, labels: list[str], link: int) -> str:
    ends = (int(fabric.link_source[link]), int(fabric.link_target[link]))
    return " → ".join(end_name(fabric, labels, vertex) for vertex in ends)
