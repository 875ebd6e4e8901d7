"""The waiting jobs of a Slurm, and what they wait for in plain words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from ....errors import SourceError
from ....inputs.hostlist import expand
from ....views.picture.names import cut, ranges
from ..snapshot import SlurmJob, SlurmSnapshot
from .holdings import Holdings, Site
from .markup import LONG, Html, paragraph, table, text
from .words import LEFT, reason_words, span_words

__all__ = ["waiting"]

_NUMBER = re.compile(r"[0-9]+")


def waiting(snapshot: SlurmSnapshot, holdings: Holdings, site: Site, door: str) -> str:
    """Return a table of the waiting jobs as HTML, the first in the queue first.

    :param snapshot: Slurm's state.
    :param holdings: the running jobs of this state.
    :param site: the machine.
    :param door: partition in which jobs wait for the bridge.
    """
    ends = {node: job.end for job, nodes in zip(holdings.jobs, holdings.nodes, strict=True) for node in nodes.tolist()}
    is_down, ahead, rows = not snapshot.up.get(door, True), 0, []
    for name, job, count in _groups(job for job in snapshot.jobs if job.state == "PENDING"):
        waits = span_words(snapshot.now - job.submit) if job.submit else ""
        if is_down and job.partition == door and job.waits:
            words = "; ".join(_at_door(job, ahead, snapshot.now, site, ends))
            ahead += count
        else:
            words = "; ".join(_elsewhere(job, snapshot.now))
        reason = Html(f'<span title="{text(f"Slurm says: {job.reason}")}">{text(words)}</span>')
        rows.append(("", [cut(name, LONG), job.user, job.partition, f"{job.nodes:,}", waits, reason]))
    heads = ("job", "user", "partition", "#nodes", "waiting", "for what")
    return table(heads, rows) if rows else paragraph("No job waits.")


def _groups(jobs: Iterable[SlurmJob]) -> Iterator[tuple[str, SlurmJob, int]]:
    """Yield name, job and number of jobs in the order of their priority; equal tasks of an array are one."""
    groups: dict[object, list[SlurmJob]] = {}
    for job in sorted(jobs, key=_order):
        same = (job.array, job.reason, job.mark, job.priority, job.partition) if job.array else job.id
        groups.setdefault(same, []).append(job)
    for group in groups.values():
        first, name = group[0], group[0].id
        if len(group) > 1:
            name = f"{first.array}_[{ranges(sorted(int(job.id.partition('_')[2]) for job in group))}]"
        yield name, first, len(group)


def _order(job: SlurmJob) -> tuple[int, int, list[int]]:
    return -job.priority, job.submit, [int(number) for number in _NUMBER.findall(job.id)]


def _elsewhere(job: SlurmJob, now: int) -> Iterator[str]:
    """Yield what a job waits for that does not wait for the bridge, in words."""
    if job.mark.left:
        yield f"left to Slurm, because {LEFT.get(job.mark.left, job.mark.left)}"
    elif job.mark.moved:
        yield f"Slurm starts it on {cut(job.wanted, LONG)}, which it was given {span_words(now - job.mark.moved)} ago"
    yield reason_words(job.reason)


def _at_door(job: SlurmJob, ahead: int, now: int, site: Site, ends: Mapping[int, int]) -> Iterator[str]:
    """Yield what a job at the door waits for, in words.

    :param job: the job.
    :param ahead: number of jobs at the door before it.
    :param now: present time in seconds since 1970.
    :param site: the machine.
    :param ends: time at which the job on each node of the machine ends by its limit; 0 if unknown.
    """
    mark = job.mark
    yield f"{ahead:,} job{'s' * (ahead != 1)} before it at the door" if ahead else "first at the door"
    if mark.promise:
        yield f"promised {cut(mark.promise, LONG)}, {_free_within(mark.promise, now, site, ends)}"
    elif not ahead:
        yield "starts as soon as enough nodes suit it"
    if mark.tries:
        yield f"did not start on nodes that it was given: {mark.tries} time{'s' * (mark.tries != 1)}"
    if mark.until > now:
        yield f"tried again in {span_words(mark.until - now)}"


def _free_within(promise: str, now: int, site: Site, ends: Mapping[int, int]) -> str:
    try:
        nodes = site.numbers(expand(promise)).tolist()
    except SourceError:
        return "which are no nodes"
    held = [ends[node] for node in nodes if node in ends]
    if not held:
        return "which no job holds now"
    return f"free in {span_words(max(held) - now)} at the latest" if all(held) else "on which a job has no time limit"
