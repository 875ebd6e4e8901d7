"""Reader of the jobs that hold nodes now, from ``squeue`` or from lines with a job and its host list."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from ...errors import SourceError, TopompiError
from ..batchhosts import batch_hosts
from ..files import InputFile, open_inputs
from ..hostlist import expand

if TYPE_CHECKING:
    from .clusters import Clusters

__all__ = ["RunningJob", "jobs_of", "read_running"]


# Name of a job, its host list (empty if it has no nodes), the place of the list in the file (``file:line``), and the
# number of its CPUs, in all or by host; 0 if unknown.
Row = tuple[str, str, str, int | dict[str, int]]


@dataclass(frozen=True)
class RunningJob:
    """A running job, with its name and its hosts.

    :param name: name of the job, a text that no other job of the file has.
    :param hosts: names of its hosts, each once.
    :param place: ``file:line``, or the file.
    :param slots: number of CPUs that the job holds on each of its hosts; empty if the file does not contain it.
    """

    name: str
    hosts: tuple[str, ...]
    place: str = ""
    slots: tuple[int, ...] = ()


def read_running(
    path: str | os.PathLike[str],
    error: type[TopompiError] = SourceError,
    notes: list[str] | None = None,
    cluster: str | None = None,
) -> list[RunningJob]:
    """Return the jobs in a file that hold nodes, in the file's order.

    The file has one of three forms. (1) The output of ``squeue`` (``--json``, ``--yaml``, or a table with JOBID and
    NODELIST); besides running jobs, those that are completing, suspended, stopped or configuring hold nodes. (2) CSV
    with ``job,hosts`` per line; a host list needs no quotes around its commas. (3) Lines with a job and its host list,
    separated by blanks. The list may be that of a job of PBS (``exec_host``, ``exec_vnode``) in (2) and (3).

    :param path: path of the file, packed or not.
    :param error: class of the error that is raised.
    :param notes: list that receives a line per running job that has no nodes.
    :param cluster: name of the cluster whose jobs are taken from an output of Slurm; None if it must be of one cluster.
    :raises TopompiError: ``error``, if a line has no hosts, a host list is malformed, a name occurs twice, a limit is
        exceeded, or the jobs are of several clusters; with the file, and line or job.
    """
    (text, *more) = open_inputs(path, error, "running jobs")
    text.refuse_foreign()
    if more:
        raise error(f"{path}: expecting one file of running jobs, got {1 + len(more)} files")
    return jobs_of(text, error, notes, cluster)


def jobs_of(
    text: InputFile,
    error: type[TopompiError] = SourceError,
    notes: list[str] | None = None,
    cluster: str | None = None,
) -> list[RunningJob]:
    """Return the jobs of a text that hold nodes, in its order; the forms and errors are those of `read_running`.

    :param text: the text.
    :param error: class of the error that is raised.
    :param notes: list that receives a line per running job that has no nodes.
    :param cluster: name of the cluster whose jobs are taken; None if the text must be of one cluster.
    """
    from .clusters import Clusters  # imported here, because most commands read no running jobs

    jobs, places, clusters = [], dict[str, str](), Clusters(cluster)
    rows = list(_form_of(text)(text, clusters))
    clusters.check(text.name, error)
    for name, expression, place, cpus in rows:
        if name in places:
            raise error(f"{place}: expecting each job once, got {name!r} again, first at {places[name]}")
        places[name] = place
        try:
            hosts = tuple(dict.fromkeys(batch_hosts(expression) or expand(expression)))
        except SourceError as problem:
            raise error(f"{place}: {problem}") from problem
        if hosts:
            jobs.append(RunningJob(name, hosts, place, _slots(hosts, cpus)))
        elif notes is not None:
            notes.append(f"job {name} runs without nodes")
    return jobs


def _slots(hosts: tuple[str, ...], cpus: int | dict[str, int]) -> tuple[int, ...]:
    """Return the CPUs on each host; a total is divided equally and rounded up, so that no CPU in use counts as free."""
    if isinstance(cpus, dict):
        return tuple(cpus[host] for host in hosts) if set(hosts) <= set(cpus) else ()
    return (-(-cpus // len(hosts)),) * len(hosts) if cpus else ()


def _form_of(text: InputFile) -> Callable[[InputFile, Clusters], Iterator[Row]]:
    """Return the reader for a text, which is CSV by its suffix, or if its first line has a comma before any blank."""
    from . import squeue  # imported here, because most commands read no running jobs

    if (found := squeue.form_of(text)) is not None:
        return found
    first = next((line.strip() for line in text.head().splitlines() if line.strip() and not _is_comment(line)), "")
    names = text.name.removesuffix(".xz").removesuffix(".gz")
    return _of_csv if names.endswith(".csv") or "," in first.partition(" ")[0].partition("\t")[0] else _of_lines


def _is_comment(line: str) -> bool:
    return line.lstrip().startswith("#")


def _of_csv(text: InputFile, clusters: Clusters) -> Iterator[Row]:
    clusters.takes("")
    rows = chain(_csv_rows(text), [None])
    first = next(rows)
    if first is None:
        raise text.error(f"{text.name}: expecting lines 'job,hosts', got none")
    yield from (row for row in chain([first], rows) if row is not None)


def _csv_rows(text: InputFile) -> Iterator[Row | None]:
    for number, line in text.lines():
        cells = next(csv.reader([line.strip()]), [])
        if not cells or _is_comment(line) or (number == 1 and cells[0].strip().lower() == "job"):
            continue
        place, hosts = f"{text.name}:{number}", ",".join(cells[1:]).strip()
        if not cells[0].strip() or not hosts:
            raise text.error(f"{place}: expecting job,hosts, got {line.strip()[:80]!r}")
        yield cells[0].strip(), hosts, place, 0


def _of_lines(text: InputFile, clusters: Clusters) -> Iterator[Row]:
    clusters.takes("")
    for number, line in text.lines():
        words = line.split()
        if not words or _is_comment(line):
            continue
        if len(words) != 2:
            raise text.error(f"{text.name}:{number}: expecting a job's name and a host list, got {line[:60]!r}")
        yield words[0], words[1], f"{text.name}:{number}", 0
